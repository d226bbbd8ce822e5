//! Machines that are reached by ssh.

use super::{Loaded, load_text, messages};
use crate::profile::Overrides;
use crate::session::{HostKeys, MachineSpec};

const SOUND: &str = r#"
[metric]
name = "nopm"
direction = "higher"
[build]
kind = "kbuild"
modules = true
[machine]
kind = "ssh"
address = "ssh://root@10.0.0.1:2202"
run = "./run.sh"
"#;

fn with(more: &str) -> String {
    format!("{SOUND}{more}")
}

#[test]
fn what_is_not_said_of_a_machine_is_the_careful_choice() {
    let Loaded { recipe, .. } = load_text(SOUND, &Overrides::default()).expect("is sound");
    let MachineSpec::Ssh(ssh) = &recipe.machine else { panic!("another machine") };
    assert_eq!((ssh.address.as_str(), ssh.loader.as_str()), ("ssh://root@10.0.0.1:2202", "auto"));
    assert_eq!(ssh.reach.host_keys, HostKeys::Strict);
    assert!(!ssh.reach.sudo && recipe.setup.is_staged() && recipe.suts == 1);
}

#[test]
fn each_contradiction_of_a_machine_is_named_with_what_mends_it() {
    let profiles = [
        with("identity = \"keys/lab\"\n"),
        with("host_keys = \"none\"\n"),
        with("loader = \"lilo\"\n"),
        with("loader = \"hook\"\n"),
        with("jump = [\"gate:22\"]\n"),
        with("[roles]\nldg = \"ssh root@ldg sh\"\nsut = \"ssh://sut\"\n"),
        SOUND.replace("ssh://root@10.0.0.1:2202", "root@10.0.0.1:2202"),
        SOUND.replace("address = \"ssh://root@10.0.0.1:2202\"\n", ""),
        SOUND.replace("[build]\nkind = \"kbuild\"\nmodules = true\n", ""),
        format!("suts = 2\n{SOUND}"),
    ];
    let profiles: Vec<&str> = profiles.iter().map(String::as_str).collect();
    golden!("ssh", messages(&profiles));
}
