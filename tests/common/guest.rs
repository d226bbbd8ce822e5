//! A machine that reboots: a QEMU guest with a disk, on which Debian, GRUB and sshd are installed as on a server.
//!
//! The disk is made by `tests/lab/make-disk.sh`, once; each guest writes to a layer of its own over it. There is no KVM: an
//! emulated processor does everything, some 50 times slower, so reboots take a minute.

use super::two::{Process, find, ok, text};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Set by `make check-extended`: what is missing then fails the test instead of skipping it.
const REQUIRED: &str = "SB_TEST_GUEST";

/// An image other than the one that the tests make, with the files that make-disk.sh writes beside it.
const IMAGE: &str = "SB_TEST_GUEST_IMAGE";

/// Far above what a boot takes, on a host that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(600);

/// Who can log in: root, `lab` (sudo without a password) and `nosudo`.
pub const USERS: [&str; 3] = ["root", "lab", "nosudo"];

/// Runs as long as its value lives, and no longer than the thread that started it.
pub struct Guest {
    // Ends before its files go.
    _qemu: Process,
    dir: tempfile::TempDir,
    image: PathBuf,
    port: u16,
}

impl Guest {
    /// Powered on, and not up yet. `None`, said aloud, where this host has not what it takes.
    pub fn start(test: &str) -> Option<Self> {
        let image = match image() {
            Ok(image) => image,
            Err(reason) => {
                assert!(std::env::var_os(REQUIRED).is_none(), "no guest: {reason}");
                eprintln!("skipped {test}: no guest: {reason}");
                return None;
            }
        };
        let dir = tempfile::tempdir().expect("a directory");
        let layer = dir.path().join("disk.qcow2");
        let mut create = Command::new("qemu-img");
        create.args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"]).arg(&image).arg(&layer);
        ok(&create.output().expect("qemu-img is there"));
        let qemu = Process::start(&mut qemu(dir.path()));
        let port = forwarded_port(&dir.path().join("monitor"));
        let key = std::fs::read_to_string(beside(&image, "hostkey.pub")).expect("is beside the image");
        std::fs::write(dir.path().join("known_hosts"), format!("[127.0.0.1]:{port} {key}")).expect("writes");
        Some(Self { _qemu: qemu, dir, image, port })
    }

    /// `ssh://USER@127.0.0.1:PORT`.
    pub fn address(&self, user: &str) -> String {
        format!("ssh://{user}@127.0.0.1:{}", self.port)
    }

    /// The private key that all [`USERS`] accept.
    pub fn key(&self) -> PathBuf {
        beside(&self.image, "key")
    }

    /// A known-hosts file with the guest's key for its address.
    pub fn known_hosts(&self) -> PathBuf {
        self.dir.path().join("known_hosts")
    }

    /// What the guest writes to its serial port, GRUB and kernel, from the first power-on.
    pub fn console(&self) -> PathBuf {
        self.dir.path().join("console.log")
    }

    /// A command that takes `SB_POWER`: the guest's power switch.
    pub fn power_command(&self) -> [String; 2] {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lab/power.sh");
        [script.to_owned(), self.dir.path().join("monitor").display().to_string()]
    }

    /// `[machine]` of a profile with this user, down to what is run; `more` are further keys.
    pub fn machine_toml(&self, user: &str, more: &str, run: &str) -> String {
        let [script, monitor] = self.power_command();
        let (key, known_hosts, console) = (self.key(), self.known_hosts(), self.console());
        let sudo = user != "root";
        format!(
            "[machine]\nkind = \"ssh\"\naddress = \"{address}\"\nsudo = {sudo}\nidentity = \"{key}\"\n\
             known_hosts = \"{known_hosts}\"\npower = '''exec {script} {monitor}'''\n\
             console = '''exec tail -n 0 -F {console}'''\n{more}run = '''{run}'''\n",
            address = self.address(user),
            key = key.display(),
            known_hosts = known_hosts.display(),
            console = console.display(),
        )
    }

    /// What GRUB keeps, a line each; empty variables are left out.
    #[track_caller]
    pub fn grub(&self) -> Vec<String> {
        let kept = self.run("grub-editenv - list");
        kept.lines().filter(|line| !line.ends_with('=')).map(str::to_owned).collect()
    }

    /// Everything that a kernel's installation touches, by name and hash; not GRUB's environment.
    #[track_caller]
    pub fn disk(&self) -> Vec<String> {
        let listed = self.run(
            "find /boot -type f ! -name grubenv -exec sha256sum {} + | sort -k 2; find /boot -type d | sort; \
             ls /lib/modules; ls /var/lib | grep sched-bisect || true",
        );
        listed.lines().map(str::to_owned).collect()
    }

    /// `cycle`, `on`, `off` or `status`; what it printed.
    pub fn power(&self, verb: &str) -> String {
        let [script, monitor] = self.power_command();
        let output = Command::new(script).arg(monitor).env("SB_POWER", verb).output().expect("runs");
        ok(&output);
        text(&output.stdout).trim().to_owned()
    }

    /// `ssh` to the guest, without what the user of this host has configured; the remote command is still to be added.
    pub fn ssh(&self, user: &str) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args(["-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "LogLevel=ERROR"]);
        ssh.args(["-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=20"]);
        ssh.args(["-o", "ServerAliveInterval=10"]);
        ssh.arg("-o").arg(format!("UserKnownHostsFile={}", self.known_hosts().display()));
        ssh.arg("-i").arg(self.key()).arg(self.address(user)).stdin(Stdio::null());
        ssh
    }

    /// What a script of root's prints; it must succeed.
    #[track_caller]
    pub fn run(&self, script: &str) -> String {
        let output = self.ssh("root").arg(script).output().expect("ssh is there");
        ok(&output);
        text(&output.stdout).trim().to_owned()
    }

    /// Writes a file in the guest; nothing of its content is seen by a shell.
    #[track_caller]
    pub fn write(&self, path: &str, content: &[u8]) {
        let mut ssh = self.ssh("root");
        ssh.arg(format!("cat >{path}")).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = ssh.spawn().expect("ssh is there");
        child.stdin.take().expect("is piped").write_all(content).expect("the guest reads");
        assert!(child.wait().expect("ssh ends").success(), "{path} is written");
    }

    /// Restarts it in good order; the connection may end before the answer.
    pub fn reboot(&self) {
        self.ssh("root").arg("systemctl reboot").output().expect("ssh is there");
    }

    /// Waits until root can log in to a boot with another id than `old`, and tells its id.
    #[track_caller]
    pub fn await_boot(&self, old: Option<&str>) -> String {
        let begin = Instant::now();
        loop {
            let asked = self.ssh("root").arg("cat /proc/sys/kernel/random/boot_id").output();
            let asked = asked.expect("ssh is there");
            let id = text(&asked.stdout).trim().to_owned();
            if asked.status.success() && old != Some(&id) {
                return id;
            }
            let console = std::fs::read(self.console()).unwrap_or_default();
            let tail = text(&console[console.len().saturating_sub(2000)..]);
            assert!(begin.elapsed() < PATIENCE, "waited {PATIENCE:?} for a boot; its console:\n{tail}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

/// The image, made if it is not there, and why not.
fn image() -> Result<PathBuf, String> {
    if let Some(given) = std::env::var_os(IMAGE) {
        return Ok(given.into());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let image = root.join("target/lab/disk.img");
    let made = Command::new(root.join("tests/lab/make-disk.sh")).arg(&image).output();
    let made = made.map_err(|why| format!("make-disk.sh: {why}"))?;
    match made.status.success() {
        true => Ok(image),
        false => Err(text(&made.stderr)),
    }
}

fn beside(image: &Path, what: &str) -> PathBuf {
    PathBuf::from(format!("{}.{what}", image.display()))
}

fn qemu(dir: &Path) -> Command {
    let here = dir.display();
    let program = find("qemu-system-x86_64").expect("make-disk.sh looks for it");
    let mut qemu = Command::new(program);
    // Of "max" an emulated kernel uses what costs it more than it gives: a boot takes a sixth longer.
    qemu.args(["-accel", "tcg,thread=multi", "-cpu", "qemu64", "-smp", "2", "-m", "1024"]);
    // Without -no-shutdown a guest that powers itself off would take its power switch with it.
    qemu.args(["-nodefaults", "-display", "none", "-no-shutdown", "-device", "virtio-rng-pci"]);
    qemu.arg("-drive").arg(format!("file={here}/disk.qcow2,if=virtio,cache=unsafe"));
    // restrict: it reaches nothing but this port of ours, which QEMU chooses.
    qemu.args(["-netdev", "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:0-:22"]);
    qemu.args(["-device", "virtio-net-pci,netdev=net,romfile="]);
    qemu.arg("-serial").arg(format!("file:{here}/console.log"));
    qemu.arg("-monitor").arg(format!("unix:{here}/monitor,server=on,wait=off"));
    qemu
}

/// The port that QEMU chose, from its monitor.
fn forwarded_port(monitor: &Path) -> u16 {
    let begin = Instant::now();
    let mut stream = loop {
        match UnixStream::connect(monitor) {
            Ok(stream) => break stream,
            Err(why) => assert!(begin.elapsed() < Duration::from_secs(60), "QEMU's monitor: {why}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket takes one");
    stream.write_all(b"info usernet\n").expect("QEMU reads");
    let (mut said, mut chunk) = (String::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut chunk).expect("QEMU answers");
        assert!(count > 0, "QEMU ended: {said}");
        said.push_str(&text(&chunk[..count]));
        // TCP[HOST_FORWARD]  FD  127.0.0.1  PORT  10.0.2.15  22  0  0
        let line = said.lines().find(|line| line.contains("HOST_FORWARD") && line.contains(" 22 "));
        let port = line.and_then(|line| line.split_whitespace().nth(3)).and_then(|port| port.parse().ok());
        if let Some(port) = port {
            return port;
        }
    }
}
