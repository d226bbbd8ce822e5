//! One live guest: a QEMU process, its console and its command channel.
//!
//! Owns: the process and both streams. Must not do: decide whose fault an end is, know a workload. The
//! command channel is QEMU's standard input (a socket pair) and the console its standard output, so that
//! nothing lies in the file system that two machines could share or a killed session could leave. Invariants:
//! dropping a guest kills its whole process group; deadlines are kept in host time, since a guest that counts
//! instructions has a clock of its own; the console is read while anything is waited for. Tested in tests.rs
//! with a program that plays QEMU.

use super::accel::Accel;
use super::channel::{Answer, Decoder, Frame, kill_request, run_request};
use crate::lab::console::Console;
use crate::lab::process::{Ended, Group};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::time::{Instant, timeout_at};

/// A request that was not accepted in this time is sent again; the guest runs it once.
const RESEND: Duration = Duration::from_secs(5);

/// Damaged frames in one exchange before the channel counts as broken.
const DAMAGED_MAX: u32 = 5;

/// Between a panic on the console and its end of the guest.
const PANIC_GRACE: Duration = Duration::from_secs(5);

/// What to start.
#[derive(Debug, Clone)]
pub(super) struct Start<'a> {
    pub program: &'a str,
    pub accel: Accel,
    pub cpus: u32,
    pub memory_mib: u32,
    pub kernel: &'a Path,
    pub initramfs: &'a Path,
    pub token: &'a str,
    pub cmdline: &'a str,
}

impl Start<'_> {
    /// QEMU's arguments.
    fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = self.accel.arguments().iter().map(|&word| word.to_owned()).collect();
        let append = format!(
            "console=ttyS0 panic=-1 no_timer_check{} rdinit=/init sb.boot={} {}",
            self.no_apic_timer(),
            self.token,
            self.cmdline
        );
        for (option, value) in [
            // A kernel without ACPI sees one CPU of each socket only.
            ("-smp", format!("{0},sockets={0},cores=1,threads=1", self.cpus)),
            ("-m", self.memory_mib.to_string()),
            ("-chardev", "file,id=console,path=/proc/self/fd/1".to_owned()),
            ("-serial", "chardev:console".to_owned()),
            ("-chardev", "socket,id=channel,fd=0".to_owned()),
            ("-serial", "chardev:channel".to_owned()),
            ("-kernel", self.kernel.display().to_string()),
            ("-initrd", self.initramfs.display().to_string()),
            ("-append", append.trim_end().to_owned()),
        ] {
            arguments.extend([option.to_owned(), value]);
        }
        let alone = ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"];
        arguments.extend(alone.map(str::to_owned));
        arguments
    }

    /// Linux calibrates the timer of the local APIC in two loops of 0.1 s that do nothing but PAUSE. Where
    /// the clock counts instructions that is two hundred million of them, each PAUSE a trip out of the
    /// translated code: ten to twenty seconds of a boot that needs one. The PIT ticks as well on one CPU
    /// (hackbench -g 1 -l 200: 0.239 s with either); more CPUs would get their ticks from the first and run
    /// differently.
    fn no_apic_timer(&self) -> &'static str {
        if self.accel == Accel::Icount && self.cpus == 1 { " noapictimer" } else { "" }
    }
}

/// File that takes what one step shows, as it comes.
#[derive(Debug)]
pub(super) struct Log(File);

impl Log {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        File::create(path).map(Self)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// A line of ours between the guest's.
    pub(super) fn note(&mut self, text: &str) -> io::Result<()> {
        self.write(format!("--- sched-bisect: {text}\n").as_bytes())
    }
}

/// How waiting for the guest ended.
#[derive(Debug)]
pub(super) enum Reply {
    /// With an answer.
    Answer(Answer),
    /// With the end of QEMU; its last words are in [`Guest::stderr`].
    Gone(Ended),
    /// With the deadline, or a panic that did not end the guest.
    Silent,
    /// Every answer came damaged.
    Broken,
}

/// Something that happened.
#[derive(Debug)]
enum Event {
    Frame(Frame),
    Gone(Ended),
    Deadline,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Guest {
    group: Group,
    /// Also that of its process group.
    pid: Option<Pid>,
    channel: UnixStream,
    /// Absent after its end.
    console_pipe: Option<pipe::Receiver>,
    stderr: PathBuf,
    token: String,
    decoder: Decoder,
    frames: VecDeque<Frame>,
    requests: u64,
    /// Whether it may be stopped while nothing is asked of it.
    is_timeless: bool,
    /// When a guest that panicked is given up.
    panic_deadline: Option<Instant>,
    /// What its console showed.
    pub console: Console,
}

impl Guest {
    /// Starts QEMU; `stderr` is the file for its own messages.
    pub(super) fn start(start: &Start<'_>, owner: &Path, stderr: &Path, log: &mut Log) -> io::Result<Self> {
        let arguments = start.arguments();
        log.note(&format!("{} {}", start.program, arguments.join(" ")))?;
        let (channel, far_end) = std::os::unix::net::UnixStream::pair()?;
        channel.set_nonblocking(true)?;
        let mut command = Command::new(start.program);
        command
            .args(arguments)
            .stdin(Stdio::from(OwnedFd::from(far_end)))
            .stdout(Stdio::piped())
            .stderr(File::create(stderr)?);
        let mut group = Group::spawn(&mut command, owner)?;
        let stdout = group.child().stdout.take().expect("it was asked to be a pipe");
        let pid = group.child().id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self {
            group,
            pid,
            channel: UnixStream::from_std(channel)?,
            console_pipe: Some(pipe::Receiver::from_owned_fd(stdout.into_owned_fd()?)?),
            stderr: stderr.to_path_buf(),
            token: start.token.to_owned(),
            decoder: Decoder::new(start.token),
            frames: VecDeque::new(),
            requests: 0,
            is_timeless: start.accel == Accel::Icount,
            panic_deadline: None,
            console: Console::default(),
        })
    }

    /// Waits for the guest's account of itself. Errors are the log's.
    pub(super) async fn greeting(&mut self, deadline: Instant, log: &mut Log) -> io::Result<Reply> {
        self.exchange(0, "", true, deadline, log).await
    }

    /// Runs `command`. Errors are the log's.
    pub(super) async fn command(
        &mut self,
        command: &str,
        deadline: Instant,
        log: &mut Log,
    ) -> io::Result<Reply> {
        self.requests += 1;
        let id = self.requests;
        self.send(&run_request(&self.token, id, command), deadline).await;
        self.exchange(id, command, false, deadline, log).await
    }

    /// Kills everything that runs in the guest. `Ok(Some)`: that did not work, and why.
    pub(super) async fn interrupt(&mut self, deadline: Instant, log: &mut Log) -> io::Result<Option<Reply>> {
        self.requests += 1;
        let id = self.requests;
        self.send(&kill_request(&self.token, id), deadline).await;
        loop {
            match self.next(deadline, log).await? {
                Event::Frame(Frame::Killed(killed)) if killed == id => return Ok(None),
                Event::Frame(_) => {}
                Event::Gone(ended) => return Ok(Some(Reply::Gone(ended))),
                Event::Deadline => return Ok(Some(Reply::Silent)),
            }
        }
    }

    /// Reads what the console holds now, without waiting.
    pub(super) fn read_console(&mut self, log: &mut Log) -> io::Result<()> {
        let mut buffer = [0; 4096];
        // Not through the reactor, which may not know yet of bytes that are there.
        while let Some(pipe) = &self.console_pipe {
            match rustix::io::read(pipe.as_fd(), &mut buffer) {
                Ok(0) => self.console_pipe = None,
                Ok(count) => self.show(&buffer[..count], log)?,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Stops the guest until [`Guest::thaw`], if its clock allows that. With counted instructions an idle
    /// guest skips from timer to timer as fast as the host can: a whole CPU for nothing, and hours of guest
    /// time between runs.
    pub(super) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a frozen guest go on.
    pub(super) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = self.pid.filter(|_| self.is_timeless);
        if let Some(pid) = pid {
            // Fails only when the guest is gone, which the next wait finds out.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// QEMU's own messages.
    pub(super) fn stderr(&self) -> String {
        std::fs::read(&self.stderr).map_or_else(
            |error| format!("its messages cannot be read: {error}"),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    /// Ends the guest; nothing of it is left afterwards.
    pub(super) async fn stop(mut self) {
        self.group.kill();
        // Fails only for a child that is gone.
        let _ = self.group.child().wait().await;
    }

    async fn exchange(
        &mut self,
        id: u64,
        command: &str,
        mut accepted: bool,
        deadline: Instant,
        log: &mut Log,
    ) -> io::Result<Reply> {
        let request = run_request(&self.token, id, command);
        let mut damaged = 0;
        loop {
            let until = if accepted { deadline } else { deadline.min(Instant::now() + RESEND) };
            match self.next(until, log).await? {
                Event::Frame(Frame::Answer(of, answer)) if of == id => {
                    // The console's bytes were written before the answer's.
                    self.read_console(log)?;
                    return Ok(Reply::Answer(answer));
                }
                Event::Frame(Frame::Accepted(of)) if of == id => accepted = true,
                Event::Frame(Frame::Refused(of) | Frame::Garbled(of)) if of == id => {
                    damaged += 1;
                    if damaged == DAMAGED_MAX {
                        return Ok(Reply::Broken);
                    }
                    self.send(&request, deadline).await;
                }
                // Of an earlier request.
                Event::Frame(_) => {}
                Event::Gone(ended) => return Ok(Reply::Gone(ended)),
                Event::Deadline if self.panic_deadline.is_none() && Instant::now() < deadline => {
                    self.send(&request, deadline).await;
                }
                Event::Deadline => return Ok(Reply::Silent),
            }
        }
    }

    /// Sends a request. A guest that takes nothing is found out by whoever waits for the answer.
    async fn send(&mut self, request: &str, deadline: Instant) {
        let _ = timeout_at(deadline, self.channel.write_all(request.as_bytes())).await;
    }

    /// The next thing to happen until `until`; the console is read on the way.
    async fn next(&mut self, until: Instant, log: &mut Log) -> io::Result<Event> {
        let mut console = [0; 4096];
        let mut channel = [0; 4096];
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Ok(Event::Frame(frame));
            }
            let until = self.panic_deadline.map_or(until, |panic| panic.min(until));
            tokio::select! {
                count = read_pipe(&mut self.console_pipe, &mut console) => {
                    self.show(&console[..count], log)?;
                }
                count = self.channel.read(&mut channel) => match count {
                    Ok(count) if count > 0 => self.frames.extend(self.decoder.push(&channel[..count])),
                    // QEMU closed it, so it is ending.
                    Ok(_) | Err(_) => return self.end(until, log).await,
                },
                _ = self.group.child().wait() => return self.end(until, log).await,
                () = tokio::time::sleep_until(until) => return Ok(Event::Deadline),
            }
        }
    }

    /// QEMU is gone or going: its status, and everything that it still had to say.
    async fn end(&mut self, until: Instant, log: &mut Log) -> io::Result<Event> {
        let status = match timeout_at(until, self.group.child().wait()).await {
            Ok(status) => status?,
            Err(_) => return Ok(Event::Deadline),
        };
        self.read_console(log)?;
        self.console.end_line();
        let said = self.stderr();
        if !said.is_empty() {
            log.note("messages of QEMU")?;
            log.write(said.as_bytes())?;
        }
        Ok(Event::Gone(match status.code() {
            Some(code) => Ended::Exit(code),
            None => Ended::Signal(status.signal().unwrap_or(0)),
        }))
    }

    fn show(&mut self, bytes: &[u8], log: &mut Log) -> io::Result<()> {
        self.console.push(bytes);
        if self.console.panicked() && self.panic_deadline.is_none() {
            self.panic_deadline = Some(Instant::now() + PANIC_GRACE);
        }
        log.write(bytes)
    }
}

/// Reads from a pipe; at its end, and without one, waits for ever.
async fn read_pipe(pipe: &mut Option<pipe::Receiver>, buffer: &mut [u8]) -> usize {
    if let Some(open) = pipe {
        if let Ok(count @ 1..) = open.read(buffer).await {
            return count;
        }
        *pipe = None;
    }
    std::future::pending().await
}
