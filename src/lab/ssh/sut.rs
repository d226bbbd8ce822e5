//! The scripts that run on the machine, as they are sent: constants, data comes as arguments. They run under dash, bash and
//! busybox sh; sut/common.sh tells their answers and exit statuses.

macro_rules! scripts {
    ($($name:ident = $($file:literal)+;)+) => {
        $(pub(super) const $name: &str = concat!(include_str!("sut/common.sh"), $("\n", include_str!($file)),+);)+
        #[cfg(test)]
        const ALL: &[(&str, &str)] = &[$((stringify!($name), $name)),+];
    };
}

scripts! {
    LOOK = "sut/look.sh";
    ROOM = "sut/room.sh";
    CLAIM = "sut/claim.sh";
    PLACE = "sut/place.sh";
    INITRAMFS = "sut/initramfs.sh";
    FINISH = "sut/finish.sh";
    VERIFY = "sut/verify.sh";
    REMOVE = "sut/remove.sh";
    REMEMBER = "sut/remember.sh";
    GRUB_LOOK = "sut/grub.sh" "sut/grub_look.sh";
    GRUB_ENTRY = "sut/grub.sh" "sut/grub_entry.sh";
    GRUB_ONCE = "sut/grub.sh" "sut/grub_once.sh";
    GRUB_UNTRIED = "sut/grub.sh" "sut/grub_untried.sh";
    GRUB_DEFAULT = "sut/grub.sh" "sut/grub_default.sh";
    SD_LOOK = "sut/sd_boot.sh" "sut/sd_look.sh";
    SD_ENTRY = "sut/sd_boot.sh" "sut/sd_entry.sh";
    SD_ONCE = "sut/sd_boot.sh" "sut/sd_once.sh";
    SD_DEFAULT = "sut/sd_boot.sh" "sut/sd_default.sh";
    KEXEC_LOAD = "sut/kexec_load.sh";
    KEXEC_STATE = "sut/kexec_state.sh";
    RESTART = "sut/restart.sh";
    SURVEY = "sut/survey.sh";
    OWN = "sut/own.sh";
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// Gives what `program` says against the text on its standard input; nothing where there is no such program.
    fn complaints(program: &[&str], text: &str) -> Option<String> {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().ok()?;
        child.stdin.take().expect("is piped").write_all(text.as_bytes()).expect("writes");
        let output = child.wait_with_output().expect("ends");
        let said = [output.stdout, output.stderr].concat();
        (!output.status.success()).then(|| String::from_utf8_lossy(&said).into_owned())
    }

    #[test]
    fn every_script_is_one_that_shellcheck_and_the_small_shells_take() {
        // Each has functions of what it stands on that it does not use.
        let shellcheck = ["shellcheck", "-s", "sh", "-e", "SC2034,SC2317,SC2329", "-"];
        for (name, text) in ALL {
            for program in [&shellcheck[..], &["dash", "-n"], &["busybox", "sh", "-n"]] {
                assert_eq!(complaints(program, text), None, "{name} by {program:?}");
            }
        }
    }
}
