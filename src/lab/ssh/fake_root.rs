//! A machine in a directory, for tests: the real scripts run over it by a real shell, with programs of the machine that cannot
//! run here replaced by small ones. It can be cut off at every call, and at every program that a script starts.

use super::far::{Far, FarError, Script, Told};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Where the machine is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// At this call, from 1, of a script or file; it is done all the same when `after`.
    Call { number: usize, after: bool },
    /// In a script, at this program of [`CHANGES`], from 1.
    Program { number: usize, after: bool },
}

/// Programs by which scripts change something.
const CHANGES: [&str; 8] = ["mv", "cp", "rm", "tar", "mkdir", "rmdir", "mkinitramfs", "grub-editenv"];

/// Files and directories by path, with their content.
pub(super) type Snapshot = BTreeMap<PathBuf, Vec<u8>>;

/// The machine.
pub(super) struct FakeRoot {
    dir: TempDir,
    /// Shell that runs its scripts.
    pub shell: Vec<&'static str>,
    /// Where it is cut off; at most once.
    pub cut: Option<Cut>,
    /// Calls so far.
    pub calls: usize,
    /// Changes this many files on their way, next.
    pub damage: usize,
    /// Scripts that ran, by what they were for.
    pub log: Vec<String>,
}

/// Release that runs at first.
pub(super) const RESCUE: &str = "6.1.0-18-amd64";

impl FakeRoot {
    /// A Debian with a kernel of its own and no boot loader.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let machine = Self { dir, shell: vec!["dash"], cut: None, calls: 0, damage: 0, log: Vec::new() };
        machine.write("proc/sys/kernel/osrelease", &format!("{RESCUE}\n"));
        for (name, text) in
            [("vmlinuz", "rescue image"), ("initrd.img", "rescue initramfs"), ("config", "# y")]
        {
            machine.write(&format!("boot/{name}-{RESCUE}"), text);
        }
        machine.write(&format!("lib/modules/{RESCUE}/modules.dep"), "");
        fs::create_dir_all(machine.dir.path().join("cut")).expect("creates");
        machine.program(
            "mkinitramfs",
            r#"[ -d "$ROOT/lib/modules/$3" ] && [ -f "$ROOT/boot/config-$3" ] && echo "initramfs of $3" >"$2""#,
        );
        machine.program("depmod", "exit 0");
        // The disks of this machine have nothing to do with it.
        machine.program("sync", "exit 0");
        // Nor may this one restart.
        for name in ["systemctl", "reboot"] {
            machine.program(name, "exit 9");
        }
        machine
    }

    pub fn with_shell(mut self, shell: &[&'static str]) -> Self {
        self.shell = shell.to_vec();
        self
    }

    /// With GRUB, whose menu is Debian's, and this line of /etc/default/grub's.
    pub fn with_grub(self, default: &str) -> Self {
        self.write_grub_cfg(default, &[RESCUE]);
        let made = Command::new("grub-editenv").arg(self.path("boot/grub/grubenv")).arg("create").status();
        assert!(made.expect("apt install grub2-common").success());
        self
    }

    /// As update-grub makes it, for these kernels.
    pub fn write_grub_cfg(&self, default: &str, releases: &[&str]) {
        let default = if default == "saved" { "${saved_entry}" } else { default };
        let entry = |title: &str, id: &str, release: &str| {
            format!(
                "menuentry '{title}' --class debian $menuentry_id_option '{id}' {{\n\tlinux\t/boot/vmlinuz-{release} ro\n}}\n"
            )
        };
        let each: String = releases
            .iter()
            .map(|release| {
                entry(
                    &format!("Debian, with Linux {release}"),
                    &format!("gnulinux-{release}-advanced-1"),
                    release,
                )
            })
            .collect();
        let text = format!(
            "if [ -s $prefix/grubenv ]; then\n  load_env\nfi\nif [ \"${{next_entry}}\" ] ; then\n   set default=\"${{next_entry}}\"\n   \
             set next_entry=\n   save_env next_entry\nelse\n   set default=\"{default}\"\nfi\n{}submenu 'Advanced options' \
             $menuentry_id_option 'gnulinux-advanced-1' {{\n{each}}}\nif [ -f  ${{config_directory}}/custom.cfg ]; then\n  \
             source ${{config_directory}}/custom.cfg\nfi\n",
            entry("Debian GNU/Linux", "gnulinux-simple-1", releases[0])
        );
        self.write("boot/grub/grub.cfg", &text);
    }

    /// The root as scripts get it.
    pub fn root(&self) -> String {
        self.path("").to_string_lossy().trim_end_matches('/').to_owned()
    }

    pub fn path(&self, inside: &str) -> PathBuf {
        self.dir.path().join("root").join(inside)
    }

    pub fn write(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("creates");
        fs::write(path, text).expect("writes");
    }

    pub fn read(&self, inside: &str) -> String {
        fs::read_to_string(self.path(inside)).unwrap_or_default()
    }

    /// A small program of the machine's; `$ROOT` is its root.
    pub fn program(&self, name: &str, text: &str) {
        write_program(&self.dir.path().join("bin").join(name), &format!("#!/bin/sh\n{text}\n"));
    }

    /// grubenv's variable.
    pub fn grub_variable(&self, name: &str) -> String {
        let listed = Command::new("grub-editenv").arg(self.path("boot/grub/grubenv")).arg("list").output();
        let text = String::from_utf8(listed.expect("runs").stdout).expect("is text");
        let prefix = format!("{name}=");
        text.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_default().to_owned()
    }

    pub fn set_grub_variable(&self, name: &str, value: &str) {
        let file = self.path("boot/grub/grubenv");
        let done = Command::new("grub-editenv").arg(file).arg("set").arg(format!("{name}={value}")).status();
        assert!(done.expect("runs").success());
    }

    pub fn boot(&self, release: &str) {
        self.write("proc/sys/kernel/osrelease", &format!("{release}\n"));
    }

    /// Every file and directory below the root, with its content.
    pub fn snapshot(&self) -> Snapshot {
        let mut found = BTreeMap::new();
        let mut dirs = vec![self.path("")];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(&dir).expect("reads") {
                let path = entry.expect("reads").path();
                let name = path.strip_prefix(self.path("")).expect("is inside").to_owned();
                if path.is_dir() {
                    found.insert(name, b"directory".to_vec());
                    dirs.push(path);
                } else {
                    found.insert(name, fs::read(&path).expect("reads"));
                }
            }
        }
        found
    }

    /// Programs that a script started and that change something, so far.
    pub fn programs(&self) -> usize {
        fs::read_to_string(self.dir.path().join("count"))
            .ok()
            .and_then(|n| n.trim().parse().ok())
            .unwrap_or(0)
    }

    /// From now on programs are counted.
    pub fn count_programs(&self) {
        fs::write(self.dir.path().join("count"), "0\n").expect("writes");
        for name in CHANGES {
            let text = format!(
                "#!/bin/sh\nread -r n <\"$COUNT\"; n=$((n + 1)); echo $n >\"$COUNT\"\n\
                 [ \"$n.before\" != \"$CUT\" ] || kill -9 0\nPATH=$REST\n{name} \"$@\"\nstatus=$?\n\
                 [ \"$n.after\" != \"$CUT\" ] || kill -9 0\nexit $status\n"
            );
            write_program(&self.dir.path().join("cut").join(name), &text);
        }
    }

    fn lost(&self, what: &str) -> FarError {
        FarError::Lost { what: what.to_owned(), host: "fake".to_owned(), reason: "cut off".to_owned() }
    }

    /// Whether this call is cut off: before it, or behind it.
    fn cut_here(&mut self) -> Option<bool> {
        self.calls += 1;
        match self.cut {
            Some(Cut::Call { number, after }) if number == self.calls => Some(after),
            Some(Cut::Call { .. } | Cut::Program { .. }) | None => None,
        }
    }

    fn run(&self, script: &Script<'_>) -> Result<Told, FarError> {
        let at = |name: &str| self.dir.path().join(name).display().to_string();
        let rest = format!("{}:{}", at("bin"), std::env::var("PATH").unwrap_or_default());
        let cut = match self.cut {
            Some(Cut::Program { number, after }) => {
                format!("{number}.{}", if after { "after" } else { "before" })
            }
            Some(Cut::Call { .. }) | None => String::new(),
        };
        let mut command = Command::new(self.shell[0]);
        command.args(&self.shell[1..]).arg("-c").arg(script.text).arg("sh").args(script.args);
        command.env("PATH", format!("{}:{rest}", at("cut"))).env("REST", &rest).env("ROOT", self.root());
        command.env("COUNT", at("count")).env("CUT", cut).process_group(0);
        let output = command.output().expect("the shell runs");
        match output.status.code() {
            Some(status) => Ok(Told { status, stdout: output.stdout, stderr: output.stderr }),
            None => {
                assert_eq!(output.status.signal(), Some(9));
                Err(self.lost(script.what))
            }
        }
    }
}

fn write_program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("has a parent")).expect("creates");
    fs::write(path, text).expect("writes");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("changes the mode");
}

#[async_trait(?Send)]
impl Far for FakeRoot {
    fn host(&self) -> &str {
        "fake"
    }

    async fn sh(&mut self, script: Script<'_>) -> Result<Told, FarError> {
        self.log.push(script.what.to_owned());
        let cut = self.cut_here();
        if cut == Some(false) {
            return Err(self.lost(script.what));
        }
        let told = self.run(&script)?;
        if cut == Some(true) { Err(self.lost(script.what)) } else { Ok(told) }
    }

    async fn put(&mut self, from: &Path, to: &str) -> Result<(), FarError> {
        let cut = self.cut_here();
        if cut == Some(false) {
            return Err(self.lost("put"));
        }
        let mut bytes = fs::read(from).expect("reads");
        if self.damage > 0 {
            self.damage -= 1;
            bytes.push(0);
        }
        fs::write(to, bytes).expect("the directory exists");
        if cut == Some(true) { Err(self.lost("put")) } else { Ok(()) }
    }
}
