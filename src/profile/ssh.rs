//! `[machine]` of the kind "ssh".

use super::document::Plain;
use super::layers::Layers;
use super::value::{Read, filled, flag, one_of, quoted, show_text, text};
use crate::model::Address;
use crate::session::{BuildOn, BuilderSpec, HostKeys, MachineSpec, Reach, Recipe, SUT, Ssh};

/// Its keys.
pub(super) const KEYS: &[&str] = &[
    "address",
    "identity",
    "known_hosts",
    "host_keys",
    "jump",
    "config",
    "sudo",
    "loader",
    "hook",
    "initramfs",
    "cmdline",
    "power",
    "console",
    "run",
];

const LOADERS: [&str; 5] = ["auto", "grub", "systemd-boot", "kexec", "hook"];

const INITRAMFS: [&str; 6] = ["auto", "none", "mkinitramfs", "dracut", "update-initramfs", "mkinitcpio"];

/// Asks for it.
pub(super) fn ssh(l: &mut Layers) -> Ssh {
    let word = |value: &Plain, words: &[&'static str]| one_of(value, words).map(str::to_owned);
    let loader = l.or("machine.loader", "auto".to_owned(), |value| word(value, &LOADERS), quoted);
    let hook = if loader == "hook" {
        l.required("machine.hook", None, filled)
    } else {
        l.optional("machine.hook", filled, |hook| show_text(hook)).unwrap_or_default()
    };
    let mut command = |key: &str, unset: &str| {
        l.unset(key, unset);
        l.optional(key, filled, |command| show_text(command)).unwrap_or_default()
    };
    let power = command("machine.power", "none: a machine that hangs needs a hand");
    let console = command("machine.console", "none: why a kernel did not come up is not known");
    Ssh {
        address: l.required("machine.address", None, address),
        reach: reach(l, "machine", None),
        loader,
        hook,
        initramfs: l.or("machine.initramfs", "auto".to_owned(), |value| word(value, &INITRAMFS), quoted),
        cmdline: l.or("machine.cmdline", String::new(), text, quoted),
        power,
        console,
        run: l.required("machine.run", None, filled),
    }
}

/// `[build.host]`: asked for where a key of it is there. Where it does not say how the host is reached, it is reached as the
/// machine under test is.
pub(super) fn build_host(l: &mut Layers, machine: &MachineSpec) -> Option<BuildOn> {
    l.unset("build.host.address", "kernels are built here");
    if l.keys_under("build.host").is_empty() {
        return None;
    }
    let sut = match machine {
        MachineSpec::Ssh(spec) => Some(spec),
        MachineSpec::Command { .. } | MachineSpec::Qemu(_) => None,
    };
    let there = |value: &Plain| match (filled(value)?.as_str(), sut) {
        ("sut", Some(sut)) => Ok(sut.address.clone()),
        ("sut", None) => Err("\"sut\" needs machine.kind = \"ssh\"; write ssh://USER@HOST:PORT".to_owned()),
        (_, _) => address(value),
    };
    let address = l.required("build.host.address", None, there);
    let reach = reach(l, "build.host", sut.map(|sut| &sut.reach));
    Some(BuildOn { address, dir: l.or("build.host.dir", String::new(), remote_dir, quoted), reach })
}

/// How a machine is reached by the keys of this table; what it does not say is as in `default`.
fn reach(l: &mut Layers, table: &str, default: Option<&Reach>) -> Reach {
    let key = |leaf: &str| format!("{table}.{leaf}");
    let word = |value: &Plain| one_of(value, &["strict", "add"]);
    let unsaid =
        if default.is_some_and(|default| default.host_keys == HostKeys::Add) { "add" } else { "strict" };
    let host_keys = match l.or(&key("host_keys"), unsaid, word, |word: &&str| format!("{word:?}")) {
        "add" => HostKeys::Add,
        _ => HostKeys::Strict,
    };
    let mut file = |leaf: &str, of: fn(&Reach) -> &String, unset: &str| {
        let unsaid = default.map(of).filter(|text| !text.is_empty());
        l.unset(&key(leaf), unsaid.map_or(unset, |_| "as the machine's"));
        l.optional(&key(leaf), path, quoted).or_else(|| unsaid.cloned()).unwrap_or_default()
    };
    let identity = file("identity", |reach| &reach.identity, "what ssh has by itself");
    let known_hosts = file("known_hosts", |reach| &reach.known_hosts, "known_hosts beside the sessions");
    let config = file("config", |reach| &reach.config, "~/.ssh/config");
    let unsaid: Vec<&str> =
        default.map_or(Vec::new(), |reach| reach.jump.iter().map(String::as_str).collect());
    let jump: Vec<String> = l.list(&key("jump"), &unsaid);
    for way in &jump {
        if let Err(error) = way.parse::<Address>() {
            let jump = key("jump");
            l.contradiction(&jump, format!("`{jump}`: {error}"), "write ssh://USER@HOST:PORT");
        }
    }
    // Nothing that is built needs root.
    let sudo = default.is_none() && table == "machine" && l.or(&key("sudo"), false, flag, bool::to_string);
    Reach { identity, known_hosts, host_keys, jump, config, sudo }
}

/// Values that are each right and do not fit together.
pub(super) fn contradictions(l: &mut Layers, recipe: &Recipe) {
    if recipe.suts != 1 {
        let message = "`suts` must be 1: the profile has the address of one machine".to_owned();
        l.contradiction("suts", message, "remove it");
    }
    if matches!(recipe.builder, BuilderSpec::None) {
        let key = if l.is_given("build.kind") { "build.kind" } else { "machine.kind" };
        let message = "a machine that is reached by ssh boots kernels, and nothing builds them".to_owned();
        l.contradiction(key, message, "set `kind = \"kbuild\"` and `modules = true` in [build]");
    }
    for (name, reached) in &recipe.setup.roles {
        if let Err(error) = reached.parse::<Address>() {
            let key = format!("roles.{name}");
            l.contradiction(
                &key,
                format!("`{key}`: {error}"),
                "with machine.kind = \"ssh\" a role is an address",
            );
        }
        if name == SUT {
            let message = "`roles.sut` and `machine.address` are one machine".to_owned();
            l.contradiction("roles.sut", message, "remove roles.sut");
        }
    }
}

/// Where a machine is.
pub(super) fn address(value: &Plain) -> Read<String> {
    let text = filled(value)?;
    let address: Address = text.parse().map_err(|error: crate::model::AddressError| {
        format!("is no address: {}; write ssh://USER@HOST:PORT", error.reason())
    })?;
    Ok(address.to_string())
}

/// Of another machine: make takes neither spaces nor colons, rsync's own words are none.
fn remote_dir(value: &Plain) -> Read<String> {
    let dir = text(value)?;
    let plain = dir.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    match plain && !dir.starts_with('-') && !dir.split('/').any(|part| part == "..") {
        true => Ok(dir),
        false => Err("must be a path of letters, digits and / . _ - on that machine, without ..".to_owned()),
    }
}

/// Of this machine; where the program is started says nothing about it.
fn path(value: &Plain) -> Read<String> {
    let path = filled(value)?;
    match path.starts_with('/') || path.starts_with("~/") {
        true => Ok(path),
        false => Err("must be an absolute path, or begin with ~/".to_owned()),
    }
}
