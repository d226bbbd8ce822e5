//! A machine under test that restarts, as a network namespace: the same sshd, GRUB's own files and programs, but no kernel.
//! What it tells of itself (boot id, release, command line) is changed by `tests/lab/server/restart.sh` as a restart would
//! change it. It stands beside the real one (guest.rs), which takes a minute where this takes a second.

use super::two::{Lab, ok};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Release of the kernel that the machine has by itself.
pub const RESCUE: &str = "6.1.0-rescue";

/// Where its boot loader's files begin.
const GRUB_CFG: &str = "\
if [ \"${next_entry}\" ] ; then
   set default=\"${next_entry}\"
   set next_entry=
   save_env next_entry
else
   set default=\"${saved_entry}\"
fi
menuentry 'Rescue' --id rescue {
	linux /boot/vmlinuz-6.1.0-rescue root=/dev/fake quiet
}
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
elif [ -z \"${config_directory}\" -a -f  $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
";

/// The machine; the `sut` of its lab.
pub struct Server {
    /// What it lives in.
    pub lab: Lab,
}

impl Server {
    /// On its own kernel, with GRUB. `None`, said aloud, where this host has not what it takes.
    pub fn new(test: &str) -> Option<Self> {
        let lab = Lab::new(test, &[("grub-editenv", "grub2-common"), ("grub-reboot", "grub2-common")])?;
        let server = Self { lab };
        server.lay_out();
        server.mount();
        Some(server)
    }

    /// A file of the machine's hardware; `boot/...`, `modules/...`, `varlib/...` are on its disk.
    pub fn path(&self, name: &str) -> PathBuf {
        self.lab.path("server").join(name)
    }

    /// Its part in a file of it.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default().trim().to_owned()
    }

    /// What goes wrong from now on, see restart.sh.
    pub fn faults(&self, lines: &str) {
        fs::write(self.path("faults"), format!("{lines}\n")).expect("writes");
    }

    /// Its power switch, as a command (SB_POWER).
    pub fn power_command(&self) -> String {
        let here = self.path("").display().to_string();
        let here = here.trim_end_matches('/');
        let enter = self.lab.on("sut", "setsid");
        let words: Vec<&str> = enter.get_args().filter_map(|arg| arg.to_str()).collect();
        format!(
            "[ $SB_POWER != status ] || {{ echo on; exit; }}; nsenter {} sh {here}/restart.sh {here} power",
            words.join(" ")
        )
    }

    /// Takes its power away and gives it again.
    pub fn cycle(&self) {
        let mut command = Command::new("sh");
        command.args(["-c", &self.power_command()]).env("SB_POWER", "cycle");
        ok(&command.output().expect("sh is there"));
    }

    /// What GRUB keeps under this name.
    pub fn grub(&self, name: &str) -> String {
        let output = Command::new("grub-editenv").arg(self.path("boot/grub/grubenv")).arg("list").output();
        let output = output.expect("was looked for");
        let text = super::two::text(&output.stdout);
        let begin = format!("{name}=");
        text.lines().find_map(|line| line.strip_prefix(&begin)).unwrap_or_default().to_owned()
    }

    /// Kernels of the program's that are there, by release.
    pub fn kernels(&self) -> Vec<String> {
        let names = fs::read_dir(self.path("boot")).expect("is there").flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let mut releases: Vec<String> =
            names.filter_map(|name| name.strip_prefix("vmlinuz-").map(str::to_owned)).collect();
        releases.retain(|release| release != RESCUE);
        releases.sort();
        releases
    }

    fn lay_out(&self) {
        let dir = self.path("");
        for name in ["boot/grub", "modules", "varlib/sched-bisect", "bin", "sys"] {
            fs::create_dir_all(dir.join(name)).expect("makes");
        }
        let here = dir.display().to_string();
        let here = here.trim_end_matches('/');
        let scripts = [
            ("restart.sh", include_str!("../lab/server/restart.sh")),
            ("bin/systemctl", include_str!("../lab/server/systemctl")),
            ("bin/kexec", include_str!("../lab/server/kexec")),
        ];
        for (name, text) in scripts {
            fs::write(dir.join(name), text.replace("@DIR@", here)).expect("writes");
            ok(&Command::new("chmod").arg("755").arg(dir.join(name)).output().expect("is there"));
        }
        let files = [
            ("boot/grub/grub.cfg", GRUB_CFG),
            (&format!("boot/vmlinuz-{RESCUE}"), "the machine's own"),
            ("rescue", RESCUE),
            ("osrelease", RESCUE),
            ("cmdline", "root=/dev/fake quiet"),
            ("boot_id", "00000000-0000-0000-0000-000000000001"),
            ("sys/kexec_loaded", "0"),
            ("state", "running"),
            ("faults", ""),
            ("console.log", ""),
        ];
        for (name, text) in files {
            fs::write(dir.join(name), format!("{text}\n")).expect("writes");
        }
        fs::write(dir.join("sys/notes"), "").expect("writes");
        let grubenv = dir.join("boot/grub/grubenv");
        for args in [&["create"][..], &["set", "saved_entry=rescue"]] {
            ok(&Command::new("grub-editenv").arg(&grubenv).args(args).output().expect("was looked for"));
        }
    }

    /// Its own files in the place of this host's, for the machine alone.
    fn mount(&self) {
        let dir = self.path("");
        let mut script = String::from("set -e\nmkdir -p /lib/modules /run/systemd/system\n");
        let places = [
            ("boot", "/boot"),
            ("modules", "/lib/modules"),
            ("varlib", "/var/lib"),
            ("bin", "/usr/local/bin"),
            ("boot_id", "/proc/sys/kernel/random/boot_id"),
            ("osrelease", "/proc/sys/kernel/osrelease"),
            ("cmdline", "/proc/cmdline"),
            ("sys", "/sys/kernel"),
        ];
        for (name, place) in places {
            script.push_str(&format!("mount --bind {}/{name} {place}\n", dir.display()));
        }
        let mut command = self.lab.on("sut", "sh");
        ok(&command.args(["-c", &script]).output().expect("nsenter is there"));
    }
}
