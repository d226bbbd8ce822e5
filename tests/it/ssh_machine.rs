//! Whole sessions over a machine that restarts, and everything that can go wrong with that: each fault of docs/faults.md.

use crate::common::rig::{Profile, Rig, Said, said};
use crate::common::server::{RESCUE, Server};
use rand::{RngExt as _, SeedableRng as _};
use sched_bisect::model::{BootResult, CommitId, InfraKind, RunResult, UntestableKind};
use sched_bisect::session::Event;
use std::process::Command;
use std::time::Duration;

/// A server, and a repository whose commits are its kernels: what is installed is what is measured.
struct Scene {
    server: Server,
    rig: Rig,
    commits: Vec<CommitId>,
}

/// What a test may say otherwise.
#[derive(Default)]
struct Otherwise {
    /// More keys of [machine].
    machine: &'static str,
    /// Whether nothing can switch the power.
    has_no_power: bool,
    /// Whether nobody looks at the console.
    has_no_console: bool,
    /// Deadline of a boot.
    boot_s: Option<u32>,
}

impl Scene {
    fn new(test: &str, levels: &[u32]) -> Option<Self> {
        Self::otherwise(test, levels, &Otherwise::default())
    }

    fn otherwise(test: &str, levels: &[u32], otherwise: &Otherwise) -> Option<Self> {
        let server = Server::new(test)?;
        let mut rig = Rig::new(&Profile::default());
        let commits = rig.line(levels);
        let scene = Self { server, rig, commits };
        std::fs::write(scene.rig.profile_path(), scene.profile(otherwise)).expect("writes");
        Some(scene)
    }

    fn profile(&self, otherwise: &Otherwise) -> String {
        let lab = &self.server.lab;
        let dir = self.server.path("").display().to_string();
        let power = self.server.power_command();
        let power = if otherwise.has_no_power { String::new() } else { format!("power = '''{power}'''\n") };
        let console = format!("console = '''exec tail -n 0 -F {dir}console.log'''\n");
        let console = if otherwise.has_no_console { "" } else { &console };
        let Otherwise { machine, boot_s, .. } = otherwise;
        let loader = if machine.contains("loader") { "" } else { "loader = \"grub\"\n" };
        format!(
            "minimum_effect = \"10%\"\n[metric]\nname = \"nopm\"\ndirection = \"higher\"\n[judging]\nboots = 2\n\
             [attempts]\ninfra = 3\nboot = 2\nrun = 2\n[deadlines]\nboot = \"{boot}s\"\nrun = \"20s\"\n\
             [environment]\nwatch = false\n[evidence]\nschedstat = false\n\
             [build]\nkind = \"command\"\n\
             command = '''cd \"$SB_ARTIFACTS\" && cp \"$SB_SOURCE/level\" image && printf '6.12.0-sb-%.12s' $SB_COMMIT >release'''\n\
             [machine]\nkind = \"ssh\"\naddress = \"ssh://root@10.9.1.2\"\nidentity = \"{key}\"\nhost_keys = \"add\"\n\
             initramfs = \"none\"\n{loader}{machine}{power}{console}run = '''{run}'''\n",
            boot = boot_s.unwrap_or(30),
            key = lab.path("user").display(),
            run = self.run_script(),
        )
    }

    /// The kernel's speed is what its image says. A kernel that DIR/dies names restarts the machine under load, so often.
    fn run_script(&self) -> String {
        let dir = self.server.path("").display().to_string();
        let dir = dir.trim_end_matches('/');
        format!(
            "release=$(cat /proc/sys/kernel/osrelease)\necho \"$release $SB_BOOT\" >>{dir}/ran\n\
             if grep -qx \"$release\" {dir}/dies 2>/dev/null; then\n\
             setsid sh {dir}/restart.sh {dir} power </dev/null >/dev/null 2>&1 &\nsleep 60\nfi\n\
             read -r level </boot/vmlinuz-$release\necho $((level + SB_BOOT * 7 % 11 - 5))"
        )
    }

    fn release(&self, n: usize) -> String {
        format!("6.12.0-sb-{}", &self.commits[n].as_str()[..12])
    }

    /// The program in the control namespace.
    fn command(&self, args: &[&str]) -> Command {
        let program = self.rig.command(args);
        let mut command = self.server.lab.inside(program.get_program().to_str().expect("UTF-8"));
        command.args(program.get_args()).current_dir(self.rig.repo.path()).env_clear();
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("HOME", self.rig.repo.path());
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        said(&self.command(args).output().expect("nsenter is there"))
    }

    fn start(&self) -> Said {
        let last = format!("c{}", self.commits.len() - 1);
        let profile = self.rig.profile_path().display().to_string();
        self.run(&["start", "c0", &last, "--session", "s", "--profile", &profile])
    }

    fn events(&self) -> Vec<Event> {
        self.rig.load("s").2.into_iter().map(|record| record.event).collect()
    }

    /// Failures of boots, in order: the class of what is a fact about the commit, or of what is ours, with the reason.
    fn failed_boots(&self) -> Vec<(Result<UntestableKind, InfraKind>, String)> {
        let failed = |event| {
            let Event::BootFinished { result, .. } = event else { return None };
            match result {
                BootResult::Untestable(told) => Some((Ok(told.kind), told.reason)),
                BootResult::Infra(failure) => Some((Err(failure.kind), failure.reason)),
                BootResult::Booted(_) => None,
            }
        };
        self.events().into_iter().filter_map(failed).collect()
    }

    /// Fails the test unless the machine would come up by itself as it always did.
    #[track_caller]
    fn assert_is_itself(&self) {
        assert_eq!(self.server.grub("saved_entry"), "rescue");
        assert_eq!(self.server.grub("next_entry"), "");
        self.server.cycle();
        crate::common::two::wait_for("its own kernel", || {
            (self.server.read("osrelease") == RESCUE).then_some(())
        });
    }
}

#[test]
fn case_44_a_search_finds_its_culprit_though_a_candidate_panics_and_leaves_the_machine_as_it_was() {
    let Some(scene) = Scene::new("case_44", &[1000, 1000, 1000, 1000, 1000, 800, 800]) else { return };
    scene.server.faults(&format!("panic {}", scene.release(3)));
    let told = scene.start().exits(0);
    told.tells("(\"c5\") is the regression");
    let failed = scene.failed_boots();
    assert!(
        !failed.is_empty() && failed.iter().all(|(kind, _)| *kind == Ok(UntestableKind::Panic)),
        "{failed:?}"
    );
    assert!(failed[0].1.contains("Kernel panic - not syncing: planted"), "{failed:?}");
    scene.assert_is_itself();
    assert!(!scene.server.kernels().is_empty());
    let cleaned = scene.run(&["cleanup"]).exits(0);
    assert!(cleaned.out.contains(&format!("removed {}", scene.release(0))), "{}", cleaned.out);
    assert_eq!(scene.server.kernels(), Vec::<String>::new());
    assert!(!scene.server.path("boot/grub/custom.cfg").exists());
    assert_eq!(scene.server.grub("sched_bisect_tried"), "", "something is left in GRUB's environment");
    scene.run(&["cleanup"]).exits(0).tells("nothing of this program's is on ssh://root@10.9.1.2");
}

#[test]
fn without_a_console_the_boot_loader_tells_that_a_kernel_was_started_and_fell() {
    let otherwise = Otherwise { has_no_console: true, ..Otherwise::default() };
    let levels = [1000, 1000, 1000, 1000, 800];
    let Some(scene) = Scene::otherwise("without_a_console", &levels, &otherwise) else { return };
    scene.server.faults(&format!("panic {}", scene.release(2)));
    scene.start().exits(0).tells("(\"c4\") is the regression");
    let failed = scene.failed_boots();
    assert!(
        !failed.is_empty() && failed.iter().all(|(kind, _)| *kind == Ok(UntestableKind::Boot)),
        "{failed:?}"
    );
    assert!(failed[0].1.contains("fell back to 6.1.0-rescue"), "{failed:?}");
}

#[test]
fn a_boot_loader_that_passes_the_entry_over_stops_the_session_and_blames_nobody() {
    let Some(scene) = Scene::new("passed_over", &[1000, 1000, 800]) else { return };
    // Once, it is chosen again; always, nothing can be measured.
    scene.server.faults("ignored 6.12.0-sb-* 1");
    scene.start().exits(0).tells("(\"c2\") is the regression");
    assert_eq!(scene.failed_boots(), vec![]);

    let Some(scene) = Scene::new("passed_over", &[1000, 1000, 800]) else { return };
    scene.server.faults("ignored 6.12.0-sb-*");
    scene.start().exits(5).tells("one-shot boot not honoured");
    let failed = scene.failed_boots();
    assert!(failed.iter().all(|(kind, _)| *kind == Err(InfraKind::BrokenCommand)), "{failed:?}");
    assert!(
        !scene.events().iter().any(|event| matches!(event, Event::RunStarted { .. })),
        "a wrong kernel was run"
    );
    scene.server.faults("");
    scene.run(&["resume"]).exits(0).tells("(\"c2\") is the regression");
    scene.assert_is_itself();
}

#[test]
fn a_machine_whose_boot_loader_heeds_no_one_shot_is_found_before_anything_is_measured() {
    let Some(scene) = Scene::new("no_one_shot", &[1000, 800]) else { return };
    scene.server.faults("ignored *");
    scene.start().exits(5).tells("one-shot boot not honoured");
    assert_eq!(scene.server.kernels(), Vec::<String>::new(), "nothing was installed");
    let profile = scene.rig.profile_path().display().to_string();
    scene.run(&["doctor", "--rehearse", "--profile", &profile]).exits(5).tells("one-shot boot not honoured");
    scene.server.faults("");
    let told = scene.run(&["doctor", "--rehearse", "--profile", &profile]);
    told.tells("rehearsal passed");
    assert!(!scene.server.path("boot/grub/custom.cfg").exists(), "the rehearsal's entry is left");
}

#[test]
fn a_kernel_that_hangs_is_ended_by_its_power_and_is_untestable() {
    let otherwise = Otherwise { boot_s: Some(8), ..Otherwise::default() };
    let Some(scene) = Scene::otherwise("hangs", &[1000, 1000, 1000, 1000, 800], &otherwise) else { return };
    scene.server.faults(&format!("hang {}", scene.release(2)));
    scene.start().exits(0).tells("(\"c4\") is the regression");
    let failed = scene.failed_boots();
    assert!(
        !failed.is_empty() && failed.iter().all(|(kind, _)| *kind == Ok(UntestableKind::Boot)),
        "{failed:?}"
    );
    assert!(failed[0].1.contains("a power cycle brought the machine back"), "{failed:?}");
    scene.assert_is_itself();
}

#[test]
#[ignore = "takes minutes: make check-extended"]
fn without_a_power_switch_a_kernel_that_hangs_waits_for_a_hand_and_is_known_after_it() {
    let otherwise = Otherwise { boot_s: Some(6), has_no_power: true, ..Otherwise::default() };
    let Some(scene) = Scene::otherwise("a_hand", &[1000, 1000, 1000, 1000, 800], &otherwise) else { return };
    scene.server.faults(&format!("hang {}", scene.release(2)));
    let mut told = scene.start();
    let mut hands = 0;
    while told.status == 5 {
        told.tells("switch it off and on, then resume");
        hands += 1;
        assert!(hands < 6, "{}", told.out);
        scene.server.cycle();
        told = scene.run(&["resume"]);
    }
    told.exits(0).tells("(\"c4\") is the regression");
    assert!(hands > 0);
    let blamed = scene.failed_boots().into_iter().filter(|(kind, _)| kind.is_ok()).count();
    assert!(blamed > 0, "the kernel is known to hang");
}

#[test]
fn case_45_a_kernel_that_restarts_the_machine_under_load_is_untestable_and_never_slow() {
    let Some(scene) = Scene::new("case_45", &[1000, 1000, 1000, 1000, 800]) else { return };
    std::fs::write(scene.server.path("dies"), format!("{}\n", scene.release(2))).expect("writes");
    scene.start().exits(0).tells("(\"c4\") is the regression");
    let died = scene.events().into_iter().filter_map(|event| {
        let Event::RunFinished { result: RunResult::Untestable(told), .. } = event else { return None };
        Some(told.reason)
    });
    let died: Vec<String> = died.collect();
    assert!(!died.is_empty() && died.iter().all(|why| why.starts_with("died under load")), "{died:?}");
}

#[test]
fn case_52_where_kexec_does_nothing_the_boot_loader_is_used_from_the_first_boot_on() {
    let otherwise = Otherwise { machine: "loader = \"kexec\"\n", boot_s: Some(6), ..Otherwise::default() };
    let Some(scene) = Scene::otherwise("case_52", &[1000, 1000, 800], &otherwise) else { return };
    scene.server.faults("no-kexec *");
    scene.start().exits(0).tells("(\"c2\") is the regression");
    let methods = scene.events().into_iter().filter_map(|event| {
        let Event::BootFinished { result: BootResult::Booted(record), .. } = event else { return None };
        record.settings.get("boot.method").cloned()
    });
    let methods: Vec<String> = methods.collect();
    assert!(methods.len() >= 4 && methods.iter().all(|method| method == "GRUB"), "{methods:?}");

    let Some(scene) = Scene::otherwise("case_52", &[1000, 1000, 800], &otherwise) else { return };
    scene.start().exits(0).tells("(\"c2\") is the regression");
    assert!(scene.server.read("console.log").contains("restart by kexec"));
    scene.assert_is_itself();
}

#[test]
fn a_machine_that_takes_its_time_is_waited_for() {
    let Some(scene) = Scene::new("takes_its_time", &[1000, 1000, 800]) else { return };
    scene.server.faults(&format!("late {}\nnologin {}", scene.release(0), scene.release(2)));
    scene.start().exits(0).tells("(\"c2\") is the regression");
    assert_eq!(scene.failed_boots(), vec![]);
}

/// Fails the test unless this was said beside the data.
#[track_caller]
fn says(told: &Said, part: &str) {
    let flat = told.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(part), "{part:?} is not in\n{}", told.err);
}

#[test]
fn a_conclusion_says_which_kernels_are_left_and_what_removes_them_and_does_so_where_asked() {
    let Some(scene) = Scene::new("left_over", &[1000, 1000, 800]) else { return };
    let told = scene.start().exits(0);
    assert!(!scene.server.kernels().is_empty());
    says(&told, "of this program's are on ssh://root@10.9.1.2; `sched-bisect cleanup s` removes");
    assert_eq!(told.err.matches("sched-bisect cleanup").count(), 1, "{}", told.err);

    let again = scene.run(&["resume", "s"]).exits(0);
    assert!(!again.err.contains("sched-bisect cleanup"), "it was said before: {}", again.err);
    let told = scene.run(&["resume", "s", "--cleanup"]).exits(0);
    says(&told, &format!("ssh://root@10.9.1.2: removed {}", scene.release(0)));
    assert_eq!(scene.server.kernels(), Vec::<String>::new());

    let profile = scene.rig.profile_path().display().to_string();
    let told =
        scene.run(&["start", "c1", "c2", "--session", "t", "--cleanup", "--profile", &profile]).exits(0);
    told.tells("(\"c2\") is the regression");
    says(&told, "ssh://root@10.9.1.2: removed ");
    assert_eq!(scene.server.kernels(), Vec::<String>::new());
    scene.assert_is_itself();
}

/// Starts a session whose run ticks for ever, and waits until it does.
fn ticking(scene: &Scene) -> std::process::Child {
    let ticks = scene.server.path("ticks");
    let forever = format!("'''while :; do date >>{}; sleep 0.1; done\nrelease", ticks.display());
    let profile = std::fs::read_to_string(scene.rig.profile_path()).expect("is there");
    let profile = profile.replace("'''release", &forever).replace("run = \"20s\"", "run = \"600s\"");
    std::fs::write(scene.rig.profile_path(), profile).expect("writes");
    let path = scene.rig.profile_path().display().to_string();
    let mut command = scene.command(&["start", "c0", "c1", "--session", "s", "--profile", &path]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("starts");
    crate::common::two::wait_for("a run", || ticks.exists().then_some(()));
    child
}

/// Sends it SIGTERM; what it said, and how long it took to end.
fn terminated(child: std::process::Child) -> (Said, Duration) {
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).expect("is a process");
    let begun = std::time::Instant::now();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("is ours");
    let output = child.wait_with_output().expect("ends");
    (said(&output), begun.elapsed())
}

#[test]
fn an_interrupted_session_ends_its_run_on_the_machine_or_says_that_it_goes_on_there() {
    let Some(scene) = Scene::new("interrupted", &[1000, 800]) else { return };
    let ticks = |scene: &Scene| scene.server.read("ticks").lines().count();
    let (told, took) = terminated(ticking(&scene));
    says(&told.exits(75), "`sched-bisect resume s` goes on");
    assert!(took < Duration::from_secs(8), "{took:?}");
    let then = ticks(&scene);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(ticks(&scene), then, "the run goes on");

    let Some(scene) = Scene::new("interrupted", &[1000, 800]) else { return };
    let child = ticking(&scene);
    scene.server.lab.cut_off("sut");
    let (told, took) = terminated(child);
    says(&told.exits(75), "may still run there, until its deadline");
    assert!(took < Duration::from_secs(12), "{took:?}");
    scene.server.lab.reconnect("sut");
    let then = ticks(&scene);
    crate::common::two::wait_for("a tick", || (ticks(&scene) > then).then_some(()));
}

#[test]
fn killed_as_the_machine_goes_down_the_next_run_waits_for_what_comes_up() {
    let Some(scene) = Scene::new("goes_down", &[1000, 800]) else { return };
    scene.server.faults("slow-down *");
    let profile = scene.rig.profile_path().display().to_string();
    let start = ["start", "c0", "c1", "--session", "s", "--profile", &profile];
    let mut child = scene.command(&start).stderr(std::process::Stdio::null()).spawn().expect("starts");
    let told = || {
        let logs = std::fs::read_dir(scene.rig.session("s").path().join("logs")).into_iter().flatten();
        let texts = logs.flatten().filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
        texts.collect::<String>()
    };
    crate::common::two::wait_for("a restart into a candidate", || {
        let is_going = scene.server.read("state") == "stopping";
        (is_going && told().contains("restart into 6.12")).then_some(())
    });
    child.kill().expect("is ours");
    child.wait().expect("is ours");
    scene.server.faults("");
    scene.run(&["resume", "s"]).exits(0).tells("(\"c1\") is the regression");
    assert!(told().contains("the machine is going down: waiting for what comes up"), "{}", told());
    assert_eq!(scene.failed_boots(), vec![]);
}

#[test]
#[ignore = "takes minutes: make check-extended"]
fn killed_at_any_moment_the_session_goes_on_and_the_machine_is_itself() {
    const KILLS: usize = 10;
    let Some(scene) = Scene::new("killed", &[1000, 1000, 1000, 800, 800]) else { return };
    let seed = std::process::id();
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(u64::from(seed));
    let profile = scene.rig.profile_path().display().to_string();
    let start = ["start", "c0", "c4", "--session", "s", "--profile", &profile];
    let mut killed = 0;
    while killed < KILLS {
        let args: &[&str] = if killed == 0 { &start } else { &["resume", "s"] };
        let mut child = scene.command(args).stderr(std::process::Stdio::null()).spawn().expect("starts");
        std::thread::sleep(Duration::from_millis(random.random_range(300..5000)));
        if child.try_wait().expect("is ours").is_some() {
            break;
        }
        child.kill().expect("is ours");
        child.wait().expect("is ours");
        killed += 1;
        assert_eq!(scene.server.grub("saved_entry"), "rescue", "seed {seed}");
    }
    let told = scene.run(&["resume", "s"]);
    told.tells("(\"c3\") is the regression");
    println!("killed {killed} times, seed {seed}");
    assert!(killed > 2, "seed {seed}: it was over after {killed} kills");
    // A run that was finished is in the journal once.
    let runs = scene.rig.load("s").1.boots.iter().map(|boot| boot.runs.len()).sum::<usize>();
    let ran = scene.server.read("ran").lines().count();
    assert!(
        ran >= runs && ran - runs <= killed,
        "seed {seed}: {ran} runs for {runs} measurements, {killed} kills"
    );
    scene.assert_is_itself();
    let left = scene.run(&["cleanup", "s"]).exits(0);
    assert!(left.out.contains("removed"), "{}", left.out);
    assert_eq!(scene.server.kernels(), Vec::<String>::new());
}
