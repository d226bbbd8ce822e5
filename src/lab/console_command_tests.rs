use super::*;
use crate::lab::splat::Hurt;

struct Rig {
    dir: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn start(&self, command: &str, limit: u64, pause: Duration) -> ConsoleCommand {
        let spec = ConsoleSpec {
            command: command.to_owned(),
            env: vec![("FIFO".to_owned(), self.path("fifo").display().to_string())],
            log: self.path("console.log"),
            limit,
            pause,
            owner: self.dir.path().to_owned(),
        };
        ConsoleCommand::start(spec).expect("starts")
    }

    /// A console that prints what is written into the returned end.
    fn piped(&self, limit: u64) -> (ConsoleCommand, File) {
        let status = std::process::Command::new("mkfifo").arg(self.path("fifo")).status();
        assert!(status.expect("mkfifo runs").success());
        let console = self.start("exec cat \"$FIFO\"", limit, NEVER);
        // Both ways, so that neither end waits for the other.
        let fifo = File::options().read(true).write(true).open(self.path("fifo")).expect("opens");
        (console, fifo)
    }
}

const NEVER: Duration = Duration::from_secs(3600);
const AT_ONCE: Duration = Duration::from_millis(1);
const LARGE: u64 = 1 << 20;

async fn until(what: &str, mut seen: impl FnMut() -> bool) {
    let looking = async {
        while !seen() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), looking).await.unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test]
async fn what_the_command_prints_is_kept_and_given_since_a_mark() {
    let rig = Rig::new();
    let (console, mut fifo) = rig.piped(LARGE);
    fifo.write_all(b"[    1.0] one\r\n").expect("writes");
    until("one", || console.last_line() == "one").await;
    let mark = console.begin();
    fifo.write_all(b"[    2.0] two\n[    3.0] three\n").expect("writes");
    until("three", || console.last_line() == "three").await;
    assert_eq!(console.text_since(mark).expect("reads"), "[    2.0] two\n[    3.0] three\n");
    let log = fs::read_to_string(rig.path("console.log")).expect("a log");
    assert_eq!(log, "[    1.0] one\r\n[    2.0] two\n[    3.0] three\n");
    assert_eq!(console.trouble(), None);
}

#[tokio::test]
async fn a_panic_is_found_until_the_next_beginning() {
    let rig = Rig::new();
    let (console, mut fifo) = rig.piped(LARGE);
    console.begin();
    fifo.write_all(b"sut1 login: [   35.000001] Kernel panic - not syncing: hung_task\n[   36.0] x\n")
        .expect("writes");
    until("the line after", || console.last_line() == "x").await;
    let splat = console.worst().expect("a splat");
    assert_eq!((splat.hurt, splat.line.as_str()), (Hurt::Panic, "Kernel panic - not syncing: hung_task"));
    console.begin();
    assert_eq!(console.worst(), None);
}

#[tokio::test]
async fn a_command_that_ends_is_started_again_and_says_so_in_the_log() {
    let rig = Rig::new();
    let console = rig.start("echo hello; exit 3", LARGE, AT_ONCE);
    let starts = || fs::read_to_string(rig.path("console.log")).map_or(0, |log| log.matches("hello").count());
    until("three starts", || starts() >= 3).await;
    let log = console.text_since(Mark(0)).expect("reads");
    assert!(log.starts_with("hello\n\n+ the console command ended with exit 3; started again"), "{log}");
}

#[tokio::test]
async fn why_there_is_no_console_can_be_asked() {
    let rig = Rig::new();
    let console = rig.start("echo 'BUG: x'; kill -9 $$", LARGE, NEVER);
    until("its end", || console.trouble().is_some()).await;
    assert_eq!(console.trouble().as_deref(), Some("the console command was killed by signal 9"));
    assert_eq!(console.worst().map(|splat| splat.hurt), Some(Hurt::Oops), "its last words count");
}

#[tokio::test]
async fn the_command_has_a_terminal_on_all_three_ends() {
    let rig = Rig::new();
    let console = rig.start("[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo terminal", LARGE, NEVER);
    until("its end", || console.trouble().is_some()).await;
    assert_eq!(console.last_line(), "terminal");
}

#[tokio::test]
async fn a_console_without_end_takes_no_more_than_its_limit_and_keeps_the_newest() {
    const LIMIT: u64 = 64 << 10;
    let rig = Rig::new();
    let console = rig.start("seq 100000; echo end; sleep 300", LIMIT, NEVER);
    until("the end", || console.last_line() == "end").await;
    let size = |name: &str| fs::metadata(rig.path(name)).expect("is there").len();
    assert!(size("console.log") + size("console.log.1") <= LIMIT);
    let text = console.text_since(Mark(0)).expect("reads");
    assert!(text.ends_with("99999\n100000\nend\n") && text.len() as u64 > LIMIT / 4, "{}", text.len());
    assert_eq!(text.len() as u64, size("console.log") + size("console.log.1"));
}

#[tokio::test]
async fn a_log_of_an_earlier_run_is_gone_on_with() {
    let rig = Rig::new();
    fs::write(rig.path("console.log"), "before\n").expect("writes");
    let (console, mut fifo) = rig.piped(LARGE);
    let mark = console.begin();
    fifo.write_all(b"after\n").expect("writes");
    until("after", || console.last_line() == "after").await;
    assert_eq!(console.text_since(mark).expect("reads"), "after\n");
    assert_eq!(fs::read_to_string(rig.path("console.log")).expect("a log"), "before\nafter\n");
}

#[tokio::test]
async fn the_command_ends_with_its_console() {
    let rig = Rig::new();
    let console = rig.start("sleep 300 & echo $!; wait", LARGE, NEVER);
    until("a pid", || !console.last_line().is_empty()).await;
    let stat = format!("/proc/{}/stat", console.last_line());
    drop(console);
    until("its end", || !fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "))).await;
}
