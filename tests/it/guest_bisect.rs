//! A whole bisection on a machine that reboots: real kernels are built, installed into a QEMU guest, booted once by its boot
//! loader, proved, measured and taken away again, by the same code as on a server in a rack.
//!
//! `make check-extended` runs it. Needs a tree made by demo/make-history.sh in `SB_TEST_KERNEL_TREE` and a directory in
//! `SB_TEST_KERNEL_STATE`, which is kept, so that a second run finds its kernels built.

use crate::common::guest::Guest;
use crate::common::planted::{CULPRIT, DIES, Planted, planted};
use crate::common::rig::{Said, command_in, said};
use crate::common::two::text;
use sched_bisect::driver::{self, SessionDir};
use sched_bisect::history::History;
use sched_bisect::lab::kbuild::KbuildBuilder;
use sched_bisect::lab::{BuildJob, Builder as _};
use sched_bisect::model::{BootResult, BuildResult, CommitId, RunResult, StepId, UntestableKind};
use sched_bisect::profile::{self, Overrides};
use sched_bisect::session::{BuilderSpec, Event};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// For a moment to come, and for a kernel from nothing; far above what any takes.
const PATIENCE: Duration = Duration::from_secs(3600);

const RUN: &str = "hackbench -g 1 -l 20";

/// A guest, and kernels for it.
struct Scene {
    guest: Guest,
    line: Planted,
    begin: Instant,
}

impl Scene {
    /// `None`, said aloud, where there is no guest or no kernel tree.
    fn new(test: &str) -> Option<Self> {
        let Some(tree) = std::env::var_os("SB_TEST_KERNEL_TREE") else {
            eprintln!(
                "skipped {test}: SB_TEST_KERNEL_TREE names no kernel tree (make check-extended sets it)"
            );
            return None;
        };
        let state =
            std::env::var_os("SB_TEST_KERNEL_STATE").expect("SB_TEST_KERNEL_STATE goes with the tree");
        let begin = Instant::now();
        let guest = Guest::start(test)?;
        let line = planted(Path::new(&tree), &PathBuf::from(state).join("guest/linux"));
        let scene = Self { guest, line, begin };
        scene.say("the commits are there");
        Some(scene)
    }

    fn say(&self, what: &str) {
        eprintln!("{:5} s  {what}", self.begin.elapsed().as_secs());
    }

    fn sessions(&self) -> PathBuf {
        self.line.dir.join(".git/sched-bisect")
    }

    /// Writes the session's profile; an earlier run's session goes.
    fn profile(&self) -> PathBuf {
        let sessions = self.sessions();
        // What is known of machines goes too: the guest is a new one, perhaps at the port of an old one.
        for old in ["s", "machines"] {
            match std::fs::remove_dir_all(sessions.join(old)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{old}: {error}"),
                Ok(()) | Err(_) => {}
            }
        }
        std::fs::create_dir_all(&sessions).expect("makes");
        let config = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lab/kernel.config");
        // Nothing that would take an emulated machine long: the kernel finds its disk by itself.
        let machine = self.guest.machine_toml("lab", "initramfs = \"none\"\n", RUN);
        // A busy host moves the emulated clock by half.
        let profile = format!(
            "minimum_effect = \"80%\"\n[metric]\nname = \"time\"\nunit = \"s\"\ndirection = \"lower\"\n\
             [workload]\nparser = \"hackbench\"\n[judging]\nboots = 2\n[attempts]\ninfra = 4\nboot = 1\nrun = 3\n\
             [costs]\nbuild = \"30s\"\nboot = \"90s\"\nrun = \"10s\"\nrun_noise = \"15%\"\nboot_noise = \"10%\"\n\
             [deadlines]\nbuild = \"1h\"\nboot = \"15m\"\nrun = \"10m\"\n[environment]\nwatch = false\n\
             [evidence]\nschedstat = false\n\
             [build]\nkind = \"kbuild\"\njobs = 6\nbase = \"tinyconfig\"\nconfig = \"{config}\"\nmodules = true\n\
             required = [\"CONFIG_HZ=250\", \"CONFIG_VIRTIO_BLK=y\"]\n{machine}"
        );
        let path = sessions.join("s.toml");
        std::fs::write(&path, profile).expect("writes");
        path
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = command_in(&self.line.dir, args);
        command.env("HOME", self.sessions()).stderr(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        said(&self.command(args).stderr(Stdio::piped()).output().expect("the program starts"))
    }

    fn session(&self) -> SessionDir {
        SessionDir::at(self.sessions().join("s"))
    }

    fn events(&self) -> Vec<Event> {
        let (_, _, records) = driver::load(&self.session()).expect("the session can be read");
        records.into_iter().map(|record| record.event).collect()
    }

    /// Builds these kernels of the line into the cache that sessions take them from, since a make that is killed begins
    /// from nothing: kills in builds are tested elsewhere.
    fn build(&self, profile: &Path, numbers: impl IntoIterator<Item = usize>) {
        let resolve = |_: &str| Ok(self.commit(0));
        let path = profile.to_str().expect("UTF-8");
        let loaded = profile::load(path, &Overrides::default(), &resolve).expect("the profile is sound");
        let BuilderSpec::Kbuild(spec) = loaded.recipe.builder else { panic!("is built by the kernel's own") };
        let scratch = tempfile::tempdir().expect("a directory");
        let history = History::open(&self.line.dir).expect("opens");
        let root = self.sessions().join(".kbuild");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let builder = KbuildBuilder::open(*spec, &root, scratch.path(), history.common_dir());
        let mut builder = builder.expect("a builder");
        for number in numbers {
            let log = self.sessions().join(format!("build-{number}.log"));
            let job = BuildJob { step: StepId(1), commit: self.commit(number), deadline: PATIENCE, log };
            let built = runtime.block_on(builder.build(&job));
            let BuildResult::Built { artifact } = built else {
                panic!("{built:?}, see {}", job.log.display())
            };
            self.say(&format!("c{number} is built; it was there: {}", artifact.cached));
        }
    }

    fn commit(&self, number: usize) -> CommitId {
        CommitId::parse(&self.line.commits[number]).expect("an id")
    }

    /// The log of the last boot that was begun.
    fn boot_log(&self) -> String {
        let logs = std::fs::read_dir(self.session().path().join("logs")).into_iter().flatten().flatten();
        let names = logs.map(|entry| entry.path()).filter(|path| path.to_string_lossy().contains("-boot-"));
        let last = names.filter(|path| path.extension().is_some_and(|end| end == "log")).max();
        last.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default()
    }

    fn console(&self) -> Vec<u8> {
        std::fs::read(self.guest.console()).unwrap_or_default()
    }

    /// After everything: it would come up by itself as it always did, and nothing of ours is left.
    fn assert_is_itself(&self, disk: &[String]) {
        let kept = self.guest.grub();
        assert!(kept.contains(&"saved_entry=rescue".to_owned()), "{kept:?}");
        assert!(!kept.iter().any(|line| line.starts_with("next_entry")), "{kept:?}");
        let boot = self.guest.run("cat /proc/sys/kernel/random/boot_id");
        self.guest.power("cycle");
        self.guest.await_boot(Some(&boot));
        let release = self.guest.run("uname -r");
        assert!(release.contains("cloud"), "{release} runs after a power cycle, and not the machine's own");
        self.say("after a power cycle its own kernel runs");
        let cleaned = self.run(&["cleanup", "s"]).exits(0);
        assert!(cleaned.out.contains("removed 6.12"), "{}", cleaned.out);
        assert_eq!(self.guest.grub(), ["saved_entry=rescue"]);
        assert_eq!(self.guest.disk(), disk, "something is left, or gone");
        self.run(&["cleanup", "s"]).exits(0).tells("nothing of this program's is on");
        self.say("cleaned up");
    }
}

/// What tells that a moment has come; each counts from the start of the process.
#[derive(Debug, Clone, Copy)]
enum Sign {
    /// A boot is begun in the journal.
    BootStarted,
    /// A run is.
    RunStarted,
    /// The log of the boot has this.
    Log(&'static str),
    /// The console has shown this.
    Console(&'static str),
}

/// Moments around installation and restart at which the program is killed, and milliseconds after the sign of each.
const MOMENTS: [(&str, Sign, u64); 11] = [
    ("while it looks at the machine", Sign::BootStarted, 700),
    ("before the restart of the rehearsal", Sign::Log("rehearsal: "), 2500),
    ("while files go over", Sign::Log("rehearsal passed"), 6000),
    ("while files go over or are put in place", Sign::BootStarted, 14_000),
    ("installed, no entry yet", Sign::Log("installed "), 0),
    ("while the entry is written and chosen", Sign::Log("installed "), 3500),
    ("as the restart is asked for", Sign::Log("restart into "), 0),
    ("while the machine goes down", Sign::Log("restart into "), 7000),
    ("while the kernel starts", Sign::Console("Booting `sched-bisect"), 15_000),
    ("as it is up", Sign::Log(" is up: "), 0),
    ("in a run", Sign::RunStarted, 1500),
];

/// Kills the process at the moment.
fn kill_at(scene: &Scene, mut child: Child, sign: Sign, after_ms: u64) {
    let journal = || std::fs::read_to_string(scene.session().journal()).unwrap_or_default();
    let (old, old_boot, old_console) = (journal().len(), scene.boot_log(), scene.console().len());
    let begin = Instant::now();
    loop {
        let new = journal();
        let began = |what: &str| new.get(old..).is_some_and(|new| new.contains(&format!("{what:?}")));
        let seen = match sign {
            Sign::BootStarted => began("boot_started"),
            Sign::RunStarted => began("run_started"),
            Sign::Log(text) => {
                Some(scene.boot_log()).is_some_and(|log| log != old_boot && log.contains(text))
            }
            Sign::Console(shown) => {
                let console = scene.console();
                began("boot_started") && text(console.get(old_console..).unwrap_or_default()).contains(shown)
            }
        };
        if seen {
            break;
        }
        let ended = child.try_wait().expect("is ours");
        assert!(ended.is_none(), "it ended before {sign:?}: {ended:?}; {}", scene.boot_log());
        assert!(begin.elapsed() < PATIENCE, "no {sign:?} within {PATIENCE:?}; {}", scene.boot_log());
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(after_ms));
    child.kill().expect("is ours");
    child.wait().expect("is ours");
}

/// What the journal tells of a whole session.
fn assert_told_once(events: &[Event]) {
    let mut runs: BTreeMap<StepId, (u64, u32)> = BTreeMap::new();
    let mut measured = BTreeSet::new();
    for event in events {
        if let Event::RunStarted { step, boot, repetition } = event {
            runs.insert(*step, (boot.0, *repetition));
        }
        if let Event::RunFinished { step, result: RunResult::Measured { .. }, .. } = event {
            assert!(measured.insert(runs[step]), "measured twice: boot and repetition {:?}", runs[step]);
        }
    }
    assert!(measured.len() >= 8, "{measured:?}");
}

#[test]
#[ignore = "an hour on two cores: make check-extended"]
fn a_bisection_in_a_machine_that_reboots_is_killed_at_every_moment_and_names_its_culprit() {
    let Some(scene) = Scene::new("guest_bisect") else { return };
    let profile = scene.profile();
    scene.build(&profile, 0..scene.line.commits.len());
    scene.guest.await_boot(None);
    let disk = scene.guest.disk();
    scene.say("the machine is up");

    let profile = profile.display().to_string();
    let start = ["start", "c0", "c4", "--session", "s", "--profile", &profile];
    for (number, (what, sign, after_ms)) in MOMENTS.into_iter().enumerate() {
        let args: &[&str] = if number == 0 { &start } else { &["resume", "s"] };
        let child = scene.command(args).stdout(Stdio::null()).spawn().expect("the program starts");
        kill_at(&scene, child, sign, after_ms);
        scene.say(&format!("killed {what}"));
    }
    let told = scene.run(&["resume", "s"]).exits(0);
    scene.say("it is over");
    eprintln!("{}", told.out);
    told.tells("(\"sched: settle before a switch\") is the regression");
    assert!(told.flat().contains(&scene.line.commits[CULPRIT][..12]), "{}", told.out);

    let events = scene.events();
    assert_told_once(&events);
    let dies = scene.commit(DIES);
    let mut boots = BTreeMap::new();
    for event in &events {
        if let Event::BootStarted { boot, commit, .. } = event {
            boots.insert(*boot, commit.clone());
        }
        if let Event::BootFinished { boot, result: BootResult::Untestable(untestable), .. } = event {
            assert_eq!(boots[boot], dies, "{untestable:?}");
            assert_eq!(untestable.kind, UntestableKind::Panic, "{untestable:?}");
            assert!(untestable.reason.contains("planted"), "{untestable:?}");
        }
        if let Event::BootFinished { boot, result: BootResult::Booted(_), .. } = event {
            assert_ne!(boots[boot], dies);
        }
    }
    let kernels: BTreeSet<&CommitId> = boots.values().collect();
    eprintln!("{} boots of {} kernels", boots.len(), kernels.len());
    assert!(kernels.contains(&dies) && kernels.len() >= 4, "{kernels:?}");
    scene.run(&["audit", "s"]).exits(0);
    scene.assert_is_itself(&disk);
}
