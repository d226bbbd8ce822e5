//! Two machines, an sshd on each, a database on one and its load on the other, through a shipped profile.
//!
//! No kernel changes: a "kernel" is a commit whose tree holds MariaDB's settings, and a "boot" puts them on the SUT. Without
//! its detection of deadlocks MariaDB lets each of them last a second, which costs nine tenths of the throughput whatever else
//! this host does.
//! Where there are no namespaces, or no MariaDB, sysbench and OpenSSH, each test says that it is skipped.

use crate::common::rig::{Profile, Rig, Said, parents_of, said};
use crate::common::two::{LDG_ON_WIRE, Lab, SUT_ON_WIRE, ok};
use sched_bisect::model::{BootResult, CommitId, RunResult};
use sched_bisect::session::{Event, Halt, State};
use std::io::Read as _;
use std::process::{Child, Command, Stdio};

const SHIPPED: &str = include_str!("../../bisect-profiles/mariadb-sysbench-oltp.toml");

const PROGRAMS: [(&str, &str); 5] = [
    ("mariadbd", "mariadb-server-core"),
    ("mariadb-install-db", "mariadb-server-core"),
    ("my_print_defaults", "mariadb-client"),
    ("mysqladmin", "mariadb-client"),
    ("sysbench", "sysbench"),
];

/// Two machines with a database that does not run yet, and commits to try.
struct Scene {
    rig: Rig,
    lab: Lab,
    commits: Vec<CommitId>,
}

impl Scene {
    /// A line of commits "c0" to "cN"; from `culprit` on they are slow.
    fn new(test: &str, last: usize, culprit: usize) -> Option<Self> {
        let lab = Lab::new(test, &PROGRAMS)?;
        install(&lab);
        let mut rig = Rig::new(&Profile::default());
        let mut commits: Vec<CommitId> = Vec::new();
        for n in 0..=last {
            let detect = if n < culprit { "ON" } else { "OFF" };
            let settings =
                format!("[mariadbd]\ninnodb_lock_wait_timeout = 1\ninnodb_deadlock_detect = {detect}\n");
            let parent = commits.last().cloned();
            let edits = [("server.cnf", settings.as_str())];
            commits.push(rig.commit(&format!("c{n}"), &parents_of(parent.as_ref()), 0, &edits));
        }
        rig.repo.check_out(commits.last().expect("a line has commits"));
        Some(Self { rig, lab, commits })
    }

    /// `start c0 cN` in the control namespace, with what belongs to this lab.
    fn start(&self, profile: &str, more: &[&str]) -> Command {
        let (config, dir) = (self.lab.ssh_config(), self.lab.path(""));
        let dir = dir.display();
        let reach = |role: &str| format!("{role}=ssh -F {config} {role} sh");
        // As a reboot would, it ends what runs.
        let boot = format!(
            "ssh -F {config} sut 'sh {dir}/stop.sh && cat >{dir}/candidate.cnf && cat /proc/sys/kernel/random/uuid' \
             <server.cnf >\"$SB_BOOT_DIR/boot_id\" || exit 75"
        );
        let serve =
            format!("DB_START=setsid mariadbd --defaults-file={dir}/my.cnf </dev/null >/dev/null 2>&1 &");
        let (stop, host) = (format!("DB_STOP=sh {dir}/stop.sh"), format!("DB_HOST={SUT_ON_WIRE}"));
        let last = format!("c{}", self.commits.len() - 1);
        let mut args: Vec<String> =
            ["start", "c0", &last, "--session", "s", "--profile", profile, "--boot", &boot]
                .map(str::to_owned)
                .into();
        for role in ["sut", "ldg"] {
            args.extend(["--role".to_owned(), reach(role)]);
        }
        for env in [&host, &serve, &stop, "TABLES=2", "ROWS=1000", "RUNTIME_S=1"] {
            args.extend(["--env".to_owned(), env.to_owned()]);
        }
        args.extend(["--minimum-effect", "30%"].iter().chain(more).map(|arg| (*arg).to_owned()));
        self.command(&args)
    }

    fn command(&self, args: &[String]) -> Command {
        let program = self.rig.command(args);
        let mut command = self.lab.inside(program.get_program().to_str().expect("UTF-8"));
        command.args(program.get_args()).current_dir(self.rig.repo.path()).env_clear();
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    }
}

/// Makes an empty database, and what starts and stops its server.
fn install(lab: &Lab) {
    let dir = lab.path("");
    let here = dir.display();
    let (host, user) = (LDG_ON_WIRE, "sbtest");
    let account = format!(
        "CREATE DATABASE IF NOT EXISTS sbtest;\nCREATE USER IF NOT EXISTS {user}@'{host}' IDENTIFIED BY '{user}';\n\
         GRANT ALL ON sbtest.* TO {user}@'{host}';\n"
    );
    let settings = format!(
        "[mariadbd]\ndatadir = {here}/data\nsocket = /run/server.sock\npid-file = /run/server.pid\nlog-error = {here}/server.log\n\
         init-file = {here}/init.sql\nuser = root\nskip-name-resolve\ninnodb_buffer_pool_size = 32M\ninnodb_log_file_size = 32M\n\
         !include {here}/candidate.cnf\n"
    );
    let stop = "read -r pid </run/server.pid || exit 0\nkill $pid\nwhile kill -0 $pid; do sleep 0.1; done\n";
    let files = [
        ("init.sql", account.as_str()),
        ("my.cnf", &settings),
        ("stop.sh", &format!("exec 2>/dev/null\n{stop}")),
    ];
    for (name, content) in files {
        std::fs::write(lab.path(name), content).expect("writes");
    }
    let mut installing = Command::new("mariadb-install-db");
    installing.args([
        "--no-defaults",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        "--user=root",
    ]);
    ok(&installing.arg(format!("--datadir={here}/data")).output().expect("was looked for"));
}

#[test]
#[ignore = "takes three minutes and more on a busy host: make check-extended"]
fn a_slow_setting_of_a_database_under_load_from_another_machine_is_found_by_the_shipped_profile() {
    let Some(scene) = Scene::new("the database of two machines", 8, 5) else { return };
    let start = scene.start("mariadb-sysbench-oltp", &[]).output().expect("nsenter is there");
    let told = said(&start).exits(0);
    told.tells("(\"c5\") is the regression");
    told.tells("transactions/s");
    told.tells("also seen");
    told.tells("latency_p95_ms");
    if scene.lab.sut_cpus > 1 {
        let sut = scene.lab.sut_cpus;
        told.tells(&format!("not saturated: the load generators have 1 CPUs for the SUT's {sut}"));
    }
    let (_, state, _) = scene.rig.load("s");
    let named = state.conclusion.as_ref().and_then(|c| c.commit.as_ref());
    assert_eq!(named, Some(&scene.commits[5]));
    for boot in &state.boots {
        for run in &boot.runs {
            assert!(run.metrics.contains_key("sut.idle_percent"), "{:?}", run.metrics);
            assert_eq!(
                (run.settings["sut.cpus"].as_str(), run.settings["ldg.cpus"].as_str()),
                (scene.lab.sut_cpus.to_string().as_str(), "1")
            );
        }
    }
    let report = scene.rig.json("s");
    let environment = report["environment"].to_string();
    for field in
        ["hostname", "program.mariadbd", "ldg:hostname", "ldg:program.sysbench", "ldg:program.mysqladmin"]
    {
        let mut looked = state.boots.iter().filter_map(|boot| boot.record.as_ref());
        assert!(looked.all(|record| record.environment.contains_key(field)), "{field}: {environment}");
        assert!(environment.contains(field), "{field}: {environment}");
    }
    let first = &state.boots[0].record.as_ref().expect("it booted").environment;
    assert_eq!((first["hostname"].as_str(), first["ldg:hostname"].as_str()), ("sut", "ldg"));
    assert!(first["program.mariadbd"].contains("(mariadb-server-core "), "{}", first["program.mariadbd"]);
    assert!(first["ldg:program.sysbench"].contains("(sysbench "), "{}", first["ldg:program.sysbench"]);
}

/// A session that is at work; it ends with the test.
struct Working(Child);

impl Working {
    fn start(command: &mut Command) -> Self {
        Self(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("starts"),
        )
    }

    /// Waits for its end.
    fn end(&mut self) -> Said {
        let mut out = String::new();
        let mut err = String::new();
        // A session says little on standard error: less than what a pipe holds.
        self.0.stdout.take().expect("piped").read_to_string(&mut out).expect("UTF-8");
        self.0.stderr.take().expect("piped").read_to_string(&mut err).expect("UTF-8");
        let status = self.0.wait().expect("it is our child").code().expect("it ends by itself");
        Said { status, out, err }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        // Fails when it has ended, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The shipped profile with less patience.
fn impatient() -> String {
    let mut text = SHIPPED.to_owned();
    let waits = "every = \"2s\"\ndeadline = \"5m\"";
    for (was, is) in [(waits, "every = \"1s\"\ndeadline = \"20s\""), ("run = \"15m\"", "run = \"20s\"")] {
        assert_eq!(text.matches(was).count(), 1, "{was:?} in the shipped profile");
        text = text.replace(was, is);
    }
    // The machines are given up at the second failure in a row: that of the run, and that of the boot after it.
    format!("{text}\n[attempts]\ninfra = 2\n")
}

/// Fails the test if anything that went wrong was put down to a commit.
fn assert_no_commit_is_blamed(state: &State, events: &[Event]) {
    for event in events {
        if let Event::RunFinished { result, .. } = event {
            assert!(matches!(result, RunResult::Measured { .. } | RunResult::Infra(_)), "{result:?}");
        } else if let Event::BootFinished { result, .. } = event {
            assert!(matches!(result, BootResult::Booted(_) | BootResult::Infra(_)), "{result:?}");
        }
    }
    for commit in state.commits.values() {
        assert!(commit.untestable.is_none() && commit.failures_in_all == 0, "{commit:?}");
    }
}

#[test]
fn a_wire_that_is_cut_during_a_run_is_ours_and_the_session_goes_on_when_it_is_back() {
    let Some(scene) = Scene::new("a wire that is cut", 1, 1) else { return };
    let profile = scene.rig.note("impatient.toml");
    std::fs::write(&profile, impatient()).expect("writes");
    let mut start = scene.start(profile.to_str().expect("UTF-8"), &[]);
    let mut session = Working::start(&mut start);
    // More than steps and pings have: the threads of a run.
    scene.lab.await_connections(6, 3306);
    scene.lab.cut();
    let stopped = session.end().exits(5);
    stopped.tells("STOPPED: our side broke");
    let (_, state, records) = scene.rig.load("s");
    let events: Vec<Event> = records.into_iter().map(|record| record.event).collect();
    assert_no_commit_is_blamed(&state, &events);
    let Some(Halt::Infra(failure)) = &state.halted else { panic!("{:?}", state.halted) };
    assert!(failure.reason.contains("wait for the server"), "{}", failure.reason);
    let of_runs = events.iter().filter_map(|event| {
        if let Event::RunFinished { result: RunResult::Infra(failure), .. } = event {
            Some(failure)
        } else {
            None
        }
    });
    let of_runs: Vec<_> = of_runs.collect();
    assert_eq!(of_runs.len(), 1, "{of_runs:?}");
    assert!(
        of_runs[0].reason.contains("the step reach the SUT") && of_runs[0].reason.contains("the run"),
        "{of_runs:?}"
    );

    scene.lab.mend();
    let resume = ["resume", "s"].map(str::to_owned);
    said(&scene.command(&resume).output().expect("nsenter is there"))
        .exits(0)
        .tells("(\"c1\") is the regression");
    let (_, state, records) = scene.rig.load("s");
    let events: Vec<Event> = records.into_iter().map(|record| record.event).collect();
    assert_no_commit_is_blamed(&state, &events);
}
