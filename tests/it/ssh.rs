//! The connection to a machine, over a real sshd and a network that is cut, frozen and refused.

use crate::common::two::{Lab, ok, text, wait_for};
use rustix::process::Signal;
use sched_bisect::lab::ssh::far::{Far as _, FarError, Script, Told};
use sched_bisect::lab::ssh::job::{self, Job, JobEnd};
use sched_bisect::lab::ssh::{Access, HostKeys, Link, Wires};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// A lab, and what belongs to a session that uses it.
struct Scene {
    lab: Lab,
    owner: tempfile::TempDir,
}

impl Scene {
    fn new(test: &str) -> Option<Self> {
        let lab = Lab::new(test, &[])?;
        lab.enter();
        Some(Self { lab, owner: tempfile::tempdir().expect("a directory") })
    }

    fn access(&self) -> Access {
        Access {
            identity: Some(self.lab.path("user")),
            known_hosts: self.lab.path("hosts"),
            host_keys: HostKeys::Add,
            jump: Vec::new(),
            config: None,
        }
    }

    fn wires(&self, access: Access) -> Rc<Wires> {
        Wires::new(access, self.owner.path()).expect("there is a place for connections")
    }

    fn sut(&self) -> Link {
        self.by(self.access())
    }

    fn by(&self, access: Access) -> Link {
        Link::new(self.wires(access), "ssh://root@10.9.1.2".parse().expect("an address"), false)
    }

    fn boot_id(&self) -> String {
        text(&std::fs::read("/proc/sys/kernel/random/boot_id").expect("Linux tells it")).trim().to_owned()
    }

    /// Which masters of this session's connections run.
    fn masters(&self) -> Vec<u32> {
        let control = self.control();
        let pids = std::fs::read_dir("/proc").expect("Linux has it").flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            text(&command).contains(&control)
        })
        .collect()
    }

    fn control(&self) -> String {
        let hash = blake3::hash(self.owner.path().as_os_str().as_encoded_bytes()).to_hex();
        format!("sched-bisect/{}", &hash[..16])
    }
}

fn on_one_thread<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

fn script<'a>(text: &'static str, args: &'a [&'a str]) -> Script<'a> {
    Script { what: "try it", text, args, deadline: MINUTE }
}

async fn sh(link: &mut Link, text: &'static str, args: &[&str]) -> Result<Told, FarError> {
    link.sh(script(text, args)).await
}

struct Work<'a> {
    scene: &'a Scene,
    boot_id: String,
}

impl<'a> Work<'a> {
    fn of(scene: &'a Scene) -> Self {
        Self { scene, boot_id: scene.boot_id() }
    }

    async fn run(&self, link: &mut Link, body: &str, seconds: u64) -> Result<JobEnd, FarError> {
        let dir = ("DIR".to_owned(), self.scene.lab.path("").display().to_string());
        let job = Job {
            mark: &format!("t{}-{}", std::process::id(), blake3::hash(body.as_bytes()).to_hex()),
            body,
            env: &[dir],
            deadline: Duration::from_secs(seconds),
            most: 1 << 20,
            before: None,
            boot_id: &self.boot_id,
            leaves_processes: false,
        };
        job::run(link, job).await
    }
}

fn exit(status: i32, stdout: &str) -> JobEnd {
    JobEnd::Exit { status, stdout: stdout.into(), stderr: Vec::new() }
}

/// Lines of a file of the lab's.
fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

#[test]
fn case_57_a_script_tells_its_own_status_and_its_arguments_are_never_code() {
    let Some(scene) = Scene::new("case_57") else { return };
    on_one_thread(async {
        let mut sut = scene.sut();
        let nasty = ["a b", "'; touch /tmp/x; '", "$(id)", "\"`id`\"", "new\nline", "", "-n", "!", "\\", "ä"];
        let told =
            sh(&mut sut, r#"printf '%s|' "$@"; echo oops >&2; exit 255"#, &nasty).await.expect("answers");
        assert_eq!((told.status, text(&told.stderr).as_str()), (255, "oops\n"));
        assert_eq!(text(&told.stdout), nasty.map(|word| format!("{word}|")).concat());
        let done = sh(&mut sut, "id -u", &[]).await.expect("answers");
        assert_eq!(text(&done.stdout), "0\n");
        let killed = sh(&mut sut, "kill -9 $PPID", &[]).await.expect_err("its end was not told");
        assert!(matches!(killed, FarError::Lost { .. }), "{killed}");
        let again = sh(&mut sut, "echo here", &[]).await.expect("answers again");
        assert_eq!(text(&again.stdout), "here\n");
        let late = Script { deadline: Duration::from_secs(1), ..script("sleep 50", &[]) };
        let late = sut.sh(late).await.expect_err("is late");
        assert!(matches!(late, FarError::Late { .. }), "{late}");
    });
}

#[test]
fn who_is_refused_for_good_is_told_why_and_what_mends_it_and_is_not_tried_again() {
    let Some(scene) = Scene::new("who_is_refused") else { return };
    on_one_thread(async {
        let begin = Instant::now();
        let mut strict = scene.by(Access { host_keys: HostKeys::Strict, ..scene.access() });
        let error = strict.connect("look at it", MINUTE).await.expect_err("is not known");
        assert!(
            matches!(error, FarError::Refused { .. }) && error.to_string().contains("host key"),
            "{error}"
        );
        drop(strict);

        let stranger = scene.lab.path("stranger");
        let mut keygen = std::process::Command::new("ssh-keygen");
        ok(&keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&stranger).output().expect("is there"));
        let mut wrong_key = scene.by(Access { identity: Some(stranger), ..scene.access() });
        let error = wrong_key.connect("look at it", MINUTE).await.expect_err("does not know us");
        assert!(
            matches!(error, FarError::Refused { .. }) && error.to_string().contains("authorized_keys"),
            "{error}"
        );
        drop(wrong_key);

        let other = std::fs::read_to_string(scene.lab.path("host-ldg.pub")).expect("was made");
        std::fs::write(scene.lab.path("hosts"), format!("10.9.1.2 {other}")).expect("writes");
        let mut changed = scene.sut();
        let error = changed.connect("look at it", MINUTE).await.expect_err("is another machine");
        assert!(error.to_string().contains("ssh-keygen -R"), "{error}");
        assert!(begin.elapsed() < MINUTE, "was tried again");
    });
}

#[test]
fn a_machine_that_does_not_listen_is_not_up_and_is_reached_once_it_is() {
    let Some(scene) = Scene::new("a_machine_that_does_not_listen") else { return };
    on_one_thread(async {
        scene.lab.cut_off("sut");
        let mut sut = scene.sut();
        let error = sut.connect("look at it", Duration::ZERO).await.expect_err("is cut off");
        assert!(matches!(error, FarError::NotUp { .. }), "{error}");
        let address = "ssh://root@10.9.1.2:7".parse().expect("an address");
        scene.lab.reconnect("sut");
        let mut closed = Link::new(scene.wires(scene.access()), address, false);
        let error = closed.connect("look at it", Duration::ZERO).await.expect_err("is closed");
        assert!(matches!(error, FarError::NotUp { .. }) && error.to_string().contains("refused"), "{error}");
        drop(closed);
        let mut sut = scene.sut();
        sut.connect("look at it", MINUTE).await.expect("is up");
    });
}

#[test]
fn case_60_a_frozen_machine_does_not_hang_the_program() {
    let Some(scene) = Scene::new("case_60") else { return };
    on_one_thread(async {
        let mut sut = scene.sut();
        sh(&mut sut, "true", &[]).await.expect("is up");
        scene.lab.signal_connections("sut", Signal::STOP);
        let begin = Instant::now();
        let error = sh(&mut sut, "echo never", &[]).await.expect_err("is frozen");
        assert!(matches!(error, FarError::Lost { .. }), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(60), "took {:?}", begin.elapsed());
        scene.lab.signal_connections("sut", Signal::CONT);
        let told = sh(&mut sut, "echo back", &[]).await.expect("connects anew");
        assert_eq!(text(&told.stdout), "back\n");
    });
}

#[test]
fn a_job_goes_on_while_the_link_is_lost_and_counts_once() {
    let Some(scene) = Scene::new("a_job_goes_on") else { return };
    on_one_thread(async {
        let work = Work::of(&scene);
        let mut sut = scene.sut();
        let (lab, ran) = (&scene.lab, scene.lab.path("ran"));
        let body =
            "echo begun >>\"$DIR/ran\"; while [ ! -e \"$DIR/go\" ]; do sleep 0.1; done; echo 42; exit 7";
        let faults = async {
            let begun = async || {
                while lines(&ran) == 0 {
                    tokio::time::sleep(Duration::from_millis(20)).await
                }
            };
            begun().await;
            lab.signal_connections("sut", Signal::KILL);
            tokio::time::sleep(Duration::from_secs(2)).await;
            lab.cut_off("sut");
            std::fs::write(lab.path("go"), "").expect("writes");
            tokio::time::sleep(Duration::from_secs(1)).await;
            lab.reconnect("sut");
        };
        let (end, ()) = tokio::join!(work.run(&mut sut, body, 120), faults);
        assert_eq!(end.expect("is found again"), exit(7, "42\n"));
        assert_eq!(lines(&ran), 1, "it ran more than once");
    });
}

#[test]
fn case_63_a_job_past_its_deadline_is_gone_with_all_its_processes() {
    let Some(scene) = Scene::new("case_63") else { return };
    on_one_thread(async {
        let work = Work::of(&scene);
        let mut sut = scene.sut();
        let body =
            "trap '' TERM; setsid sh -c 'while :; do date >>\"$DIR/ticks\"; sleep 0.05; done' & sleep 300";
        let end = work.run(&mut sut, body, 2).await.expect("is up");
        assert_eq!(end, JobEnd::Late);
        let ticks = std::fs::read(scene.lab.path("ticks")).expect("it ran").len();
        let told = sh(&mut sut, "ps -e -o args | grep -c '[s]leep 300'", &[]).await.expect("is up");
        assert_eq!(text(&told.stdout), "0\n");
        assert_eq!(
            std::fs::read(scene.lab.path("ticks")).expect("it ran").len(),
            ticks,
            "something still runs"
        );
    });
}

#[test]
fn what_a_job_prints_is_taken_to_the_byte_or_not_at_all() {
    let Some(scene) = Scene::new("what_a_job_prints") else { return };
    on_one_thread(async {
        let work = Work::of(&scene);
        let mut sut = scene.sut();
        let end = work.run(&mut sut, "printf 'a\\r\\n\\0\\377'; printf ' e' >&2", 60).await.expect("is up");
        let (stdout, stderr) = (b"a\r\n\0\xff".to_vec(), b" e".to_vec());
        assert_eq!(end, JobEnd::Exit { status: 0, stdout, stderr });
        let end = work.run(&mut sut, "head -c 3000000 /dev/zero", 60).await.expect("is up");
        assert_eq!(end, JobEnd::TooMuch(3_000_000));
        let end = work.run(&mut sut, "kill -9 $$", 60).await.expect("is up");
        assert!(matches!(end, JobEnd::Exit { status: 137, .. }), "{end:?}");
    });
}

#[test]
fn a_file_goes_on_where_the_link_was_lost_and_arrives_whole() {
    let Some(scene) = Scene::new("a_file_goes_on") else { return };
    on_one_thread(async {
        let mut sut = scene.sut();
        let from = scene.lab.path("modules.tar");
        let content: Vec<u8> =
            (0..50_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        std::fs::write(&from, &content).expect("writes");
        let to = scene.lab.path("arrived");
        let to_text = to.display().to_string();
        let part = PathBuf::from(format!("{to_text}.sb-part"));
        let cut = async {
            while std::fs::metadata(&part).map_or(0, |part| part.len()) < 20_000_000 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            scene.lab.signal_connections("sut", Signal::KILL);
        };
        let (put, ()) = tokio::join!(sut.put(&from, &to_text), cut);
        let error = put.expect_err("the link was lost");
        assert!(matches!(error, FarError::Lost { .. }), "{error}");
        let over = std::fs::metadata(&part).expect("is kept").len();
        assert!(over >= 20_000_000 && !to.exists());
        sut.put(&from, &to_text).await.expect("goes on");
        assert!(std::fs::read(&to).expect("is there") == content);
        sut.put(&from, &to_text).await.expect("is there already");
        std::fs::write(&from, b"").expect("writes");
        sut.put(&from, &to_text).await.expect("an empty file is one too");
        assert_eq!(std::fs::metadata(&to).expect("is there").len(), 0);
    });
}

#[test]
fn case_61_nothing_is_left_of_a_connection_and_nobody_who_reads_from_us_waits_for_it() {
    let Some(scene) = Scene::new("case_61") else { return };
    on_one_thread(async {
        let mut sut = scene.sut();
        sh(&mut sut, "true", &[]).await.expect("is up");
        let masters = scene.masters();
        assert!(!masters.is_empty());
        for pid in masters {
            for stream in 0..3 {
                let open = std::fs::read_link(format!("/proc/{pid}/fd/{stream}")).unwrap_or_default();
                assert!(open.as_os_str().is_empty() || open.starts_with("/dev/null"), "{}", open.display());
            }
        }
        sut.close().await;
        drop(sut);
        wait_for("the masters' end", || scene.masters().is_empty().then_some(()));
        let control = scene.control();
        assert!(!Path::new("/run").join(&control).exists(), "{control} is left");
    });
}

#[test]
fn a_machine_behind_another_is_reached_through_it_by_the_same_rules() {
    let Some(scene) = Scene::new("a_machine_behind_another") else { return };
    on_one_thread(async {
        let jump = vec!["ssh://root@10.9.1.2".parse().expect("an address")];
        let wires = scene.wires(Access { jump, ..scene.access() });
        // The load generator's end of the wire between the two: nothing else leads there from here.
        let mut ldg = Link::new(wires, "ssh://root@10.9.3.2".parse().expect("an address"), false);
        let told = sh(&mut ldg, "cat /proc/sys/kernel/hostname", &[]).await.expect("is reached");
        assert_eq!(text(&told.stdout), "ldg\n");
    });
}
