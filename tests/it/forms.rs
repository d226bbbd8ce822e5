//! The forms of a report over a recorded session (golden/journals/simulated-200: a simulated lab that drifts, 200 commits, a
//! tenth of which do not build), and what becomes of a form: a file, a mail that is sent, a session for others.

use crate::common::repo::Repo;
use crate::common::rig::{Profile, Rig, Said, command_in, said};

use sched_bisect::driver::{self, SessionDir};
use sched_bisect::report::{Look, People, Report, mail, text};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

macro_rules! golden {
    ($name:literal, $text:expr) => {
        insta::with_settings!({
            snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/forms"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!($name, $text);
        });
    };
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/journals/simulated-200")
}

fn report() -> Report {
    let (dag, state, records) = driver::load(&SessionDir::at(recorded())).expect("it is readable");
    Report::of(&dag, &state, &records)
}

/// The recorded session as one of a state directory.
fn state_dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let session = dir.path().join("simulated-1");
    std::fs::create_dir(&session).expect("makes");
    for file in ["journal.jsonl", "range.json"] {
        std::fs::copy(recorded().join(file), session.join(file)).expect("copies");
    }
    dir
}

fn run(state_dir: &Path, args: &[&str]) -> Said {
    let mut command = command_in(state_dir, args);
    command.arg("--state-dir").arg(state_dir);
    said(&command.output().expect("the program starts"))
}

fn people() -> People {
    People {
        from: "Ada Lab <ada@lab.example>".to_owned(),
        to: vec!["Peter Scheduler <peter@k.example>".to_owned()],
        cc: vec!["linux-kernel@vger.kernel.org".to_owned(), "regressions@lists.linux.dev".to_owned()],
    }
}

#[test]
fn each_form_of_a_recorded_session_is_as_recorded() {
    let dir = state_dir();
    let form = |name: &str| run(dir.path(), &["report", "--format", name]).exits(0).out;
    golden!("text", form("text"));
    golden!("markdown", form("markdown"));
    golden!("csv", form("csv"));
    golden!("unicode", text(&report(), Look { unicode: true, colour: false }));
    golden!("mail", mail(&report(), &people()).expect("there is a culprit"));
}

#[test]
fn all_forms_tell_the_same_facts() {
    let dir = state_dir();
    let facts = report();
    let end = &facts.conclusion;
    let commit = end.commit.as_ref().expect("a culprit").short().to_owned();
    let effect = end.effect.expect("measured").words(facts.metric.direction);
    for form in ["text", "markdown", "mail"] {
        let told = run(dir.path(), &["report", "--format", form]).exits(0);
        // The list writes "7.4%".
        let flat = told.flat().replace(" %", "%");
        for part in [&commit, &effect, "99.85 %", "135 % (48 to 1045 %)", "9 builds, 44 boots, 44 runs"] {
            assert!(flat.contains(&part.replace(" %", "%")), "{form} has no {part:?}:\n{}", told.out);
        }
    }
    let rows = run(dir.path(), &["report", "--format", "csv"]).exits(0).out;
    assert_eq!(rows.lines().filter(|row| row.contains(",time,s,")).count() as u64, facts.spent.runs);
}

#[test]
fn text_keeps_to_80_columns_and_has_colours_only_where_they_are_wanted() {
    let facts = report();
    for unicode in [false, true] {
        let plain = text(&facts, Look { unicode, colour: false });
        let wide: Vec<&str> = plain.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(wide, Vec::<&str>::new());
        assert_eq!(plain.is_ascii(), !unicode);
        assert!(!plain.contains('\u{1b}'));
    }
    assert!(text(&facts, Look { unicode: true, colour: true }).contains("\u{1b}[31m"));
}

#[test]
fn a_mail_is_ascii_of_72_columns_and_has_what_maintainers_and_regzbot_read() {
    let letter = mail(&report(), &people()).expect("there is a culprit");
    assert!(letter.is_ascii(), "{letter}");
    let (head, body) = letter.split_once("\n\n").expect("an empty line ends the head");
    assert!(head.starts_with("From: Ada Lab <ada@lab.example>\nTo: Peter Scheduler <peter@k.example>\nCc: "));
    assert!(head.contains("\nSubject: [REGRESSION] time +8.5% since c2c584e49b50 (\"c141\")"), "{head}");
    // Lines that must not be broken are those of the tools.
    let whole = ["#regzbot ", "Fixes: ", "Reported-by: ", "  sched-bisect "];
    let wide = |line: &&str| line.len() > 72 && !whole.iter().any(|start| line.starts_with(start));
    assert_eq!(body.lines().filter(wide).collect::<Vec<_>>(), Vec::<&str>::new());
    for line in [
        "#regzbot introduced: c2c584e49b50 (\"c141\")",
        "Fixes: c2c584e49b50 (\"c141\")",
        "Reported-by: Ada Lab <ada@lab.example>",
    ] {
        assert!(body.lines().any(|found| found == line), "{line:?} is no line of\n{body}");
    }
}

#[test]
fn a_subject_beyond_ascii_makes_a_mail_that_says_so_and_nothing_else_does() {
    let mut facts = report();
    facts.conclusion.subject = Some("sched: größer\nBcc: all@x.example".to_owned());
    let letter = mail(&facts, &people()).expect("there is a culprit");
    assert!(letter.contains("\nContent-Type: text/plain; charset=UTF-8\n"), "{letter}");
    assert!(letter.contains("\nSubject: =?UTF-8?B?"), "{letter}");
    assert!(!letter.lines().any(|line| line.starts_with("Bcc:")), "{letter}");
}

/// A kernel tree as far as a mail needs it: the author of the culprit, and a script that says who maintains what.
#[test]
fn a_mail_goes_through_git_send_email_to_whom_the_trees_own_script_names() {
    let mut rig = Rig::new(&Profile::default());
    let levels = [100_000, 100_000, 100_000, 92_600, 92_600];
    rig.line(&levels);
    rig.start("c0", "c4").exits(0);
    let script = "#!/usr/bin/perl\nundef $/; my $patch = <STDIN>;\n\
                  die \"no patch\" unless $patch =~ /^Subject: .*c3/m && $patch =~ /^diff --git/m;\n\
                  print \"Peter Scheduler <peter\\@k.example> (maintainer:SCHEDULER)\\n\";\n\
                  print \"linux-kernel\\@vger.kernel.org (open list:SCHEDULER)\\n\";\n";
    std::fs::create_dir(rig.repo.path().join("scripts")).expect("makes");
    std::fs::write(rig.repo.path().join("scripts/get_maintainer.pl"), script).expect("writes");
    rig.repo.run(&["config", "user.name", "Ada Lab"]);
    rig.repo.run(&["config", "user.email", "ada@lab.example"]);
    let file = rig.note("letter");
    let path = file.to_str().expect("UTF-8");
    let told = rig.run(&["report", "s", "--format", "mail", "--out", path]).exits(0);
    assert_eq!((told.out.as_str(), told.err.as_str()), ("", format!("wrote {path}\n").as_str()));
    let letter = std::fs::read_to_string(&file).expect("it is there");
    assert!(
        letter.contains(
            "Peter Scheduler <peter@k.example>\nCc: regressions@lists.linux.dev,\n    linux-kernel@"
        ),
        "{letter}"
    );
    send(&rig.repo, path);
}

/// `git send-email --dry-run` must take the mail as it is.
fn send(repo: &Repo, letter: &str) {
    let mut git = Command::new("git");
    git.current_dir(repo.path()).args([
        "send-email",
        "--dry-run",
        "--confirm=never",
        "--smtp-server=/bin/true",
    ]);
    git.arg(letter).env("GIT_CONFIG_GLOBAL", "/dev/null").stdin(Stdio::null());
    let output = git.output().expect("git is there");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if said.contains("is not a git command") {
        assert!(std::env::var_os("SB_TEST_FORMS").is_none(), "git send-email is missing: {said}");
        eprintln!("skipped: git send-email is not installed");
        return;
    }
    assert!(output.status.success(), "{said}");
    for part in
        ["Subject: [REGRESSION] nopm -7.4% since ", "To: ", "Peter Scheduler <peter@k.example>", "Result: OK"]
    {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
}

#[test]
fn a_revert_test_beside_a_session_is_a_check_of_its_culprit() {
    let run = "l=$((100000 + SB_BOOT * 7 % 11 - 5)); if [ -e slow ]; then l=$((l - 7400)); fi; echo $l";
    let mut rig = Rig::new(&Profile { run: run.to_owned(), ..Profile::default() });
    let c0 = rig.commit("c0", &[], 0, &[]);
    let c1 = rig.commit("c1", &[&c0], 0, &[("slow", "1")]);
    rig.commit("c2", &[&c1], 0, &[]);
    rig.start("c0", "c2").exits(0);
    let checks = |form: &str| rig.run(&["report", "s", "--format", form]).exits(0).flat();
    assert!(checks("text").contains("verify PASS, revert NOT RUN"), "{}", checks("text"));
    rig.run(&["revert-test", "c1"]).exits(0);
    for form in ["text", "markdown"] {
        let told = checks(form);
        assert!(told.contains("verify PASS, revert PASS"), "{told}");
        assert!(told.contains("of the difference came back (session revert-"), "{told}");
    }
    assert_eq!(rig.json("s")["checks"]["revert"], "pass");
}

#[test]
fn what_accuses_nobody_is_no_mail() {
    let mut rig = Rig::new(&Profile::default());
    rig.line(&[100_000, 100_000, 100_000]);
    rig.start("c0", "c2").exits(4);
    let told = rig.run(&["report", "s", "--format", "mail"]).exits(2);
    assert!(told.err.contains("there is nobody to write to: no difference shown"), "{}", told.err);
}

#[test]
fn a_report_is_written_whole_for_others_to_read_or_not_at_all() {
    let dir = state_dir();
    let out = dir.path().join("report.md");
    let path = out.to_str().expect("UTF-8");
    std::fs::write(&out, "of yesterday").expect("writes");
    run(dir.path(), &["report", "--format", "markdown", "--out", path]).exits(0);
    let written = std::fs::read_to_string(&out).expect("it is there");
    assert_eq!(written, run(dir.path(), &["report", "--format", "markdown"]).exits(0).out);
    let mode = out.metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o444, 0o444, "{mode:o}");
    let nowhere = dir.path().join("nowhere/report.md");
    let told = run(dir.path(), &["report", "--out", nowhere.to_str().expect("UTF-8")]).exits(5);
    assert!(told.err.contains("failed to write") && told.err.contains("nowhere/report.md"), "{}", told.err);
}

#[test]
fn a_session_goes_to_others_as_one_file_and_tells_them_the_same_and_no_more() {
    let mut rig = Rig::new(&Profile::default());
    rig.line(&[100_000, 100_000, 100_000, 92_600, 92_600]);
    rig.start("c0", "c4").exits(0);
    let file = rig.note("s.tar.gz");
    let path = file.to_str().expect("UTF-8");
    rig.run(&["export", "s", "--out", path]).exits(0);
    let there = tempfile::tempdir().expect("a directory");
    assert_eq!(run(there.path(), &["import", path]).exits(0).out, "s\n");
    for args in [&["report"][..], &["report", "--format", "json"], &["log"], &["audit"], &["status"]] {
        assert_eq!(run(there.path(), args).exits(0).out, rig.run(args).exits(0).out, "{args:?}");
    }
    assert!(run(there.path(), &["list"]).exits(0).out.contains("imported: "), "told as what it is");
    let logs = |dir: PathBuf| std::fs::read_dir(dir).expect("a directory").count();
    assert_eq!(logs(there.path().join("s/logs")), logs(rig.session("s").path().join("logs")));
    // It is read, and nothing of it is run.
    let told = run(there.path(), &["resume", "s"]).exits(2);
    assert!(told.err.contains("it was imported, and can only be read"), "{}", told.err);
    run(there.path(), &["import", path])
        .exits(2)
        .err
        .contains("it exists already")
        .then_some(())
        .expect("said");
    assert_eq!(run(there.path(), &["import", path, "--session", "again"]).exits(0).out, "again\n");
}

#[test]
fn an_imported_plan_is_not_what_a_revert_test_measures_by() {
    let mut rig = Rig::new(&Profile::default());
    let commits = rig.line(&[100_000, 100_000, 92_600]);
    rig.start("c0", "c2").exits(0);
    let file = rig.note("s.tar.gz");
    let path = file.to_str().expect("UTF-8");
    rig.run(&["export", "s", "--out", path]).exits(0);
    std::fs::remove_dir_all(rig.session("s").path()).expect("removes");
    rig.run(&["import", path]).exits(0);
    let told = rig.run(&["revert-test", commits[2].as_str()]);
    assert_eq!(told.status, 2, "{told:?}");
    assert!(rig.notes("ran").is_empty());
}

#[test]
fn a_damaged_or_hostile_file_is_refused_by_name_and_leaves_nothing() {
    let dir = state_dir();
    let file = dir.path().join("s.tar.gz");
    let path = file.to_str().expect("UTF-8");
    run(dir.path(), &["export", "--out", path]).exits(0);
    let whole = std::fs::read(&file).expect("it is there");
    let there = tempfile::tempdir().expect("a directory");
    let refused = |bytes: &[u8], words: &str| {
        std::fs::write(&file, bytes).expect("writes");
        let told = run(there.path(), &["import", path]).exits(2);
        assert!(told.err.contains(path) && told.err.contains(words), "{words:?} is not in {}", told.err);
        let left: Vec<_> = std::fs::read_dir(there.path()).expect("a directory").flatten().collect();
        assert!(left.iter().all(|entry| entry.file_name() == "lock"), "{left:?}");
    };
    refused(b"no archive", "it is no session");
    refused(&whole[..whole.len() / 2], "");
    let unpacked = unpack(&whole);
    let changed: Vec<(String, Vec<u8>)> = unpacked
        .iter()
        .map(|(name, content)| {
            let mut content = content.clone();
            if name.ends_with("journal.jsonl") {
                let at = content.len() / 2;
                content[at] ^= 1;
            }
            (name.clone(), content)
        })
        .collect();
    refused(&pack(&changed), "its hash differs");
    let front = |path: &str| {
        format!(
            "{{\"format\":1,\"tool_version\":\"0\",\"session\":\"s\",\"files\":[{{\"path\":\"{path}\",\"bytes\":1,\"blake3\":\"{}\"}}]}}",
            "0".repeat(64)
        )
    };
    for hostile in ["../evil", "logs/../../evil", "/etc/evil", "source/.git/hooks/x"] {
        let entries = [
            ("session/session.json".to_owned(), front(hostile).into_bytes()),
            (format!("session/{hostile}"), vec![b'x']),
        ];
        refused(&raw(&entries), "");
    }
    refused(
        &pack(&[("session/session.json".to_owned(), b"{\"format\":2}".to_vec())]),
        "it has the form 2, this program reads 1",
    );
}

fn unpack(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
    let entries = archive.entries().expect("an archive");
    let one = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.expect("an entry");
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).expect("reads");
        (entry.path().expect("a path").to_str().expect("UTF-8").to_owned(), content)
    };
    entries.map(one).collect()
}

fn pack(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, name, content.as_slice()).expect("appends");
    }
    zip(&archive.into_inner().expect("ends"))
}

/// Names as no well-meaning archiver writes them.
fn raw(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(content.len() as u64);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        archive.append(&header, content.as_slice()).expect("appends");
    }
    zip(&archive.into_inner().expect("ends"))
}

fn zip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).expect("writes");
    writer.finish().expect("ends")
}

#[test]
fn a_plan_has_the_command_that_starts_such_a_session_again() {
    let mut rig = Rig::new(&Profile::default());
    rig.line(&[100_000, 100_000, 92_600]);
    let run = "cat level; true 'a b'";
    rig.run(&[
        "start",
        "c0",
        "c2",
        "--session",
        "s",
        "--run",
        run,
        "--direction",
        "higher",
        "--metric",
        "nopm",
    ])
    .exits(0);
    let command = rig.json("s")["command"].as_str().expect("text").to_owned();

    let program = env!("CARGO_BIN_EXE_sched-bisect");
    let again = command.replacen("sched-bisect", program, 1);
    let mut shell = Command::new("sh");
    shell.current_dir(rig.repo.path()).args(["-c", &format!("{again} --session again")]);
    let output = shell.env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("sh is there");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(rig.json("again")["conclusion"]["commit"], rig.json("s")["conclusion"]["commit"]);
}
