//! `[build]` with kind "kbuild".

use super::*;
use crate::session::HostKeys;

const KBUILD: &str = "[build]\nkind = \"kbuild\"\n";

fn kbuild(keys: &str) -> crate::session::Kbuild {
    let loaded = load_text(&format!("{WHOLE}{KBUILD}{keys}"), &Overrides::default()).expect("loads");
    let BuilderSpec::Kbuild(kbuild) = loaded.recipe.builder else { panic!("no kernel build") };
    *kbuild
}

#[test]
fn an_architecture_brings_its_target_and_image_unless_the_profile_names_them() {
    let arm64 = kbuild("arch = \"arm64\"\ncross_compile = \"aarch64-linux-gnu-\"\nmodules = true\n");
    assert_eq!((arm64.arch.as_str(), arm64.cross_compile.as_str()), ("arm64", "aarch64-linux-gnu-"));
    assert_eq!((arm64.targets, arm64.image.as_str()), (vec!["Image".to_owned()], "arch/arm64/boot/Image"));
    assert!(arm64.modules && arm64.make_args.is_empty());
    let by_args = kbuild("make_args = [\"ARCH=s390\", \"CROSS_COMPILE=s390x-linux-gnu-\"]\n");
    assert_eq!((by_args.arch.as_str(), by_args.image.as_str()), ("", "arch/s390/boot/bzImage"));
    let own = kbuild("arch = \"arm64\"\ncross_compile = \"x-\"\nimage = \"vmlinux\"\ntargets = [\"all\"]\n");
    assert_eq!((own.targets, own.image.as_str()), (vec!["all".to_owned()], "vmlinux"));
    let unknown =
        kbuild("arch = \"vax\"\ncross_compile = \"vax-\"\nimage = \"vmlinux\"\ntargets = [\"vmlinux\"]\n");
    assert_eq!(unknown.arch, "vax");
}

#[test]
fn a_plan_without_these_keys_is_written_as_before_and_read_as_before() {
    let plain = kbuild("image = \"vmlinux\"\n");
    let json = serde_json::to_string(&plain).expect("serializes");
    for key in ["arch", "cross_compile", "modules"] {
        assert!(!json.contains(&format!("{key:?}")), "{key} stands in {json}");
    }
    assert_eq!(serde_json::from_str::<crate::session::Kbuild>(&json).expect("reads"), plain);
}

#[test]
fn an_architecture_that_cannot_be_built_so_is_refused_with_what_to_write() {
    let profile = |keys: &str| format!("{WHOLE}{KBUILD}{keys}");
    golden!(
        "architectures",
        messages(&[
            &profile("arch = \"aarch64\"\ncross_compile = \"aarch64-linux-gnu\"\nmodules = \"yes\"\n"),
            &profile("arch = \"arm64\"\n"),
            &profile("arch = \"vax\"\ncross_compile = \"vax-\"\n"),
            &profile(
                "arch = \"arm64\"\ncross_compile = \"aarch64-linux-gnu-\"\n\
                 make_args = [\"ARCH=arm64\", \"W=1\", \"CROSS_COMPILE=x-\"]\n"
            ),
        ])
    );
}

const SERVER: &str = "[metric]\nname = \"nopm\"\ndirection = \"higher\"\n[machine]\nkind = \"ssh\"\n\
    address = \"ssh://root@10.0.0.1\"\nidentity = \"/keys/lab\"\nhost_keys = \"add\"\nrun = \"./run.sh\"\n\
    [build]\nkind = \"kbuild\"\nmodules = true\n";

fn host(profile: &str) -> crate::session::BuildOn {
    let loaded = load_text(profile, &Overrides::default()).expect("loads");
    let BuilderSpec::Kbuild(kbuild) = loaded.recipe.builder else { panic!("no kernel build") };
    kbuild.host.expect("a build host")
}

#[test]
fn a_build_host_is_reached_as_the_machine_unless_it_says_how() {
    let same = host(&format!("{SERVER}[build.host]\naddress = \"sut\"\n"));
    assert_eq!((same.address.as_str(), same.dir.as_str()), ("ssh://root@10.0.0.1", ""));
    assert_eq!((same.reach.identity.as_str(), same.reach.host_keys), ("/keys/lab", HostKeys::Add));
    let own = host(&format!(
        "{SERVER}[build.host]\naddress = \"ssh://me@big:2222\"\ndir = \"/var/tmp/sb\"\nhost_keys = \"strict\"\n\
         identity = \"/keys/big\"\njump = [\"ssh://gate\"]\n"
    ));
    assert_eq!((own.address.as_str(), own.dir.as_str()), ("ssh://me@big:2222", "/var/tmp/sb"));
    assert_eq!((own.reach.identity.as_str(), own.reach.host_keys), ("/keys/big", HostKeys::Strict));
    assert_eq!(own.reach.jump, ["ssh://gate"]);
    let alone = host(&format!("{WHOLE}{KBUILD}[build.host]\naddress = \"ssh://big\"\n"));
    assert_eq!((alone.reach.identity.as_str(), alone.reach.host_keys), ("", HostKeys::Strict));
}

#[test]
fn a_build_host_that_cannot_be_is_refused_with_what_to_write() {
    let profile = |keys: &str| format!("{SERVER}[build.host]\n{keys}");
    golden!(
        "build-hosts",
        messages(&[
            &profile("dir = \"/var/tmp\"\n"),
            &profile("address = \"root@big:22\"\n"),
            &profile("address = \"ssh://big\"\ndir = \"/var/my builds\"\n"),
            &profile("address = \"ssh://big\"\ndir = \"../x\"\n"),
            &profile("address = \"ssh://big\"\nadress = \"ssh://big\"\n"),
            &profile("address = \"ssh://big\"\njump = [\"gate:22\"]\n"),
            &format!("{WHOLE}{KBUILD}[build.host]\naddress = \"sut\"\n"),
            &format!(
                "{WHOLE}[build]\nkind = \"command\"\ncommand = \"true\"\n[build.host]\naddress = \"ssh://big\"\n"
            ),
        ])
    );
}
