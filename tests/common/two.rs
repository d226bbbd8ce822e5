//! Two machines on one host: network namespaces with an sshd each, a wire between them, and a third one for control.
//!
//! ```text
//!   control  10.9.1.1 ---- 10.9.1.2  sut  10.9.3.1
//!       10.9.2.1 --------- 10.9.2.2  ldg  10.9.3.2 (wire to sut)
//! ```
//!
//! Nothing of it is in the host's own network, and none of the namespaces has a name: each lives as long as its first
//! process, which takes all others of its PID namespace with it, and dies with the thread of the test.

use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Set by `make check`, which installs the programs: one that is missing then fails the test instead of skipping it.
const REQUIRED: &str = "SB_TEST_TWO_MACHINES";

/// The SUT on its wire to the load generator.
pub const SUT_ON_WIRE: Ipv4Addr = Ipv4Addr::new(10, 9, 3, 1);

/// The load generator on it.
pub const LDG_ON_WIRE: Ipv4Addr = Ipv4Addr::new(10, 9, 3, 2);

/// For what takes a moment, on a host that may be busy with other things.
const PATIENCE: Duration = Duration::from_secs(120);

const PLACES: [&str; 3] = ["/usr/sbin", "/usr/bin", "/sbin"];

/// The machines, reached by `ssh -F` [`Lab::ssh_config`] `sut` or `ldg` from the control namespace.
pub struct Lab {
    // In the order in which they go: connections, machines, files.
    _masters: Vec<Process>,
    control: Process,
    sut: Process,
    ldg: Process,
    dir: tempfile::TempDir,
    /// CPUs of the SUT; the load generator has one.
    pub sut_cpus: usize,
}

impl Lab {
    /// `None`, said aloud, where this host has not what it takes. `programs` are what the test itself needs: program and
    /// Debian package.
    pub fn new(test: &str, programs: &[(&str, &str)]) -> Option<Self> {
        let own = [("sshd", "openssh-server"), ("ssh", "openssh-client"), ("ip", "iproute2")];
        let missing = own.iter().chain(programs).find(|(program, _)| find(program).is_none());
        if let Some((program, package)) = missing {
            assert!(std::env::var_os(REQUIRED).is_none(), "no {program}; install {package}");
            eprintln!("skipped {test}: no {program} (Debian package {package})");
            return None;
        }
        let probe = "ip link add probe0 type veth peer name probe1 && mount -t tmpfs tmpfs /run";
        let unshare = ["--net", "--mount", "--uts", "--pid", "--fork", "sh", "-c", probe];
        let probed = Command::new("unshare").args(unshare).output().expect("unshare is there");
        if !probed.status.success() {
            let reason = text(&probed.stderr);
            // What a container may not do no package brings.
            let may_not = ["not permitted", "denied", "not supported"].iter().any(|why| reason.contains(why));
            assert!(may_not || std::env::var_os(REQUIRED).is_none(), "no network namespaces here: {reason}");
            eprintln!("skipped {test}: no network namespaces here: {reason}");
            return None;
        }
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
        let cpus: Vec<String> = allowed_cpus().into_iter().take(2).map(|cpu| cpu.to_string()).collect();
        write_keys(dir.path());
        let control = Process::start(Command::new("unshare").args(["--net", "sleep", "infinity"]));
        let sut = machine(dir.path(), "sut", &cpus.join(","));
        let ldg = machine(dir.path(), "ldg", &cpus[0]);
        let mut lab = Self { _masters: Vec::new(), control, sut, ldg, dir, sut_cpus: cpus.len() };
        lab.wire();
        lab.connect();
        Some(lab)
    }

    fn wire(&self) {
        let own = net_of("self");
        let (control, sut, ldg) = (self.control.id(), self.sut.id(), self.ldg.id());
        for pid in [control, sut, ldg] {
            wait_for("a namespace", || (net_of(&pid.to_string()) != own).then_some(()));
        }
        self.link(control, "sut", "10.9.1.1/24", sut, "control", "10.9.1.2/24");
        self.link(control, "ldg", "10.9.2.1/24", ldg, "control", "10.9.2.2/24");
        let (at_sut, at_ldg) = (format!("{SUT_ON_WIRE}/24"), format!("{LDG_ON_WIRE}/24"));
        self.link(sut, "wire", &at_sut, ldg, "wire", &at_ldg);
    }

    fn link(&self, one: u32, name: &str, address: &str, other: u32, its_name: &str, its_address: &str) {
        let peer = other.to_string();
        ip(one, &["link", "add", name, "type", "veth", "peer", "name", its_name, "netns", &peer]);
        for (pid, name, address) in [(one, name, address), (other, its_name, its_address)] {
            ip(pid, &["addr", "add", address, "dev", name]);
            ip(pid, &["link", "set", name, "up"]);
        }
    }

    /// One connection to each, which all others share: a handshake costs more than most scripts.
    fn connect(&mut self) {
        let config = ["-F", &self.ssh_config()].map(str::to_owned);
        for role in ["sut", "ldg"] {
            wait_for("the sshd", || {
                self.inside("ssh").args(&config).args([role, "true"]).status().ok()?.success().then_some(())
            });
            let mut master = self.inside("ssh");
            master.args(&config).args(["-M", "-N", role]);
            self._masters.push(Process::start(&mut master));
            wait_for("the connection", || self.path(&format!("master-{role}")).exists().then_some(()));
        }
    }

    /// A program in the control namespace.
    pub fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.control.id())).arg("--").arg(program);
        command
    }

    /// How ssh reaches the roles.
    pub fn ssh_config(&self) -> String {
        self.path("ssh.conf").display().to_string()
    }

    /// A file of the lab's; both machines see it too.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Pulls the wire between the two out of the SUT; what is connected to control stays so.
    pub fn cut(&self) {
        ip(self.sut.id(), &["link", "set", "wire", "down"]);
    }

    /// Puts it back.
    pub fn mend(&self) {
        ip(self.sut.id(), &["link", "set", "wire", "up"]);
    }

    /// Moves the calling thread, and what it starts from now on, into the control namespace.
    pub fn enter(&self) {
        let net = std::fs::File::open(format!("/proc/{}/ns/net", self.control.id())).expect("is there");
        rustix::thread::move_into_link_name_space(net.as_fd(), None).expect("may enter it");
    }

    /// A program on a machine, not by ssh.
    pub fn on(&self, role: &str, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let first = self.first(role).to_string();
        command.args(["-t", &first, "-n", "-m", "-p", "-u", "--", program]);
        command
    }

    /// Pulls the wire between control and a machine out.
    pub fn cut_off(&self, role: &str) {
        ip(self.control.id(), &["link", "set", role, "down"]);
    }

    /// Puts it back.
    pub fn reconnect(&self, role: &str) {
        ip(self.control.id(), &["link", "set", role, "up"]);
    }

    /// Stops, goes on with or kills the processes of a machine's connections; not its sshd, and not what was started by them.
    pub fn signal_connections(&self, role: &str, signal: rustix::process::Signal) {
        let mut of_sshd = children(self.first(role));
        let mut at = 0;
        while at < of_sshd.len() {
            of_sshd.extend(children(of_sshd[at]));
            at += 1;
        }
        for pid in of_sshd.into_iter().filter(|&pid| name_of(pid).starts_with("sshd")) {
            // One that is gone needs none.
            let _ = rustix::process::kill_process(pid_of(pid), signal);
        }
    }

    /// The first process of a machine, by its number here.
    fn first(&self, role: &str) -> u32 {
        let machine = if role == "sut" { self.sut.id() } else { self.ldg.id() };
        wait_for("its first process", || {
            children(machine).first().copied().filter(|&pid| name_of(pid) == "sshd")
        })
    }

    /// Waits until the load generator has so many connections to this port.
    pub fn await_connections(&self, count: usize, port: u16) {
        let table = format!("/proc/{}/net/tcp", self.ldg.id());
        let (there, established) = (format!(":{port:04X}"), "01");
        wait_for("connections", || {
            let text = std::fs::read_to_string(&table).expect("the load generator is there");
            let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let up = lines.filter(|l| l.len() > 3 && l[2].ends_with(&there) && l[3] == established);
            (up.count() >= count).then_some(())
        });
    }
}

/// A process that ends with its value, and with the thread that started it.
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts the program with its arguments; it hears nothing, and its errors are not heard.
    pub fn start(command: &mut Command) -> Self {
        let mut bound = Command::new("setpriv");
        bound.args(["--pdeathsig", "KILL"]).arg(command.get_program()).args(command.get_args());
        Self { child: bound.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("setpriv is there") }
    }

    fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The first process of a PID namespace takes all of it along, and its parent here ends after that.
        let pid = self.id();
        match children(pid).first() {
            Some(&first) => drop(rustix::process::kill_process(pid_of(first), rustix::process::Signal::KILL)),
            None => drop(self.child.kill()),
        }
        // Fails when it was waited for already, which it was not.
        let _ = self.child.wait();
    }
}

/// A machine with its own network, processes, name and /run; its sshd is its first process.
fn machine(dir: &Path, name: &str, cpus: &str) -> Process {
    let config = dir.join(format!("sshd-{name}.conf"));
    let here = dir.display();
    // A home of its own: what root's shell does at a login on this host (bash reads ~/.bashrc) is not the machine's.
    let home = dir.join(format!("home-{name}"));
    std::fs::create_dir_all(&home).expect("writes");
    let text = format!(
        "HostKey {here}/host-{name}\nAuthorizedKeysFile {here}/user.pub\nStrictModes no\nPidFile none\n\
         PermitRootLogin yes\nPasswordAuthentication no\nUsePAM no\nUseDNS no\nLogLevel ERROR\nSetEnv HOME={}\n",
        home.display()
    );
    std::fs::write(&config, text).expect("writes");
    let sshd = find("sshd").expect("was looked for").display().to_string();
    let script = format!(
        "echo {name} >/proc/sys/kernel/hostname && mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && \
         ip link set lo up && exec {sshd} -D -E {here}/sshd-{name}.log -f {}",
        config.display()
    );
    let unshare = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let mut command = Command::new("taskset");
    command.args(["-c", cpus]).args(unshare).args(["sh", "-c", &script]);
    Process::start(&mut command)
}

/// Keys of both machines and of the one who logs in, and how to.
fn write_keys(dir: &Path) {
    let mut known = String::new();
    for name in ["host-sut", "host-ldg", "user"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(dir.join(name));
        ok(&keygen.output().expect("ssh-keygen is there"));
        if let Some(role) = name.strip_prefix("host-") {
            let key = std::fs::read_to_string(dir.join(format!("{name}.pub"))).expect("was written");
            known.push_str(&format!("{role} {key}"));
        }
    }
    let here = dir.display();
    let config = format!(
        "Host sut\n  HostName 10.9.1.2\n  HostKeyAlias sut\nHost ldg\n  HostName 10.9.2.2\n  HostKeyAlias ldg\nHost *\n  User root\n  \
         IdentityFile {here}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {here}/known\n  StrictHostKeyChecking yes\n  \
         BatchMode yes\n  LogLevel ERROR\n  ControlPath {here}/master-%n\n  ServerAliveInterval 15\n"
    );
    std::fs::write(dir.join("known"), known).expect("writes");
    std::fs::write(dir.join("ssh.conf"), config).expect("writes");
    let private = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(dir, private).expect("is ours");
}

fn ip(pid: u32, args: &[&str]) {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/proc/{pid}/ns/net")).arg("ip").args(args);
    ok(&command.output().expect("nsenter is there"));
}

/// Fails the test with what the command said.
#[track_caller]
pub fn ok(output: &Output) {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

/// A stream as text.
pub fn text(stream: &[u8]) -> String {
    String::from_utf8_lossy(stream).into_owned()
}

fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn name_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

fn pid_of(pid: u32) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(pid.cast_signed()).expect("no process has the number 0")
}

fn net_of(process: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{process}/ns/net")).ok()
}

/// Where a program is, in the places for administrators too.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(PLACES.map(PathBuf::from));
    places.map(|place| place.join(program)).find(|path| path.exists())
}

/// CPUs that this process may use, by number.
fn allowed_cpus() -> Vec<usize> {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let list =
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("Linux tells it");
    let number = |text: &str| text.parse::<usize>().expect("a number");
    let ranges = list.trim().split(',').map(|range| range.split_once('-').unwrap_or((range, range)));
    ranges.flat_map(|(first, last)| number(first)..=number(last)).collect()
}

/// Looks until there is something.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
