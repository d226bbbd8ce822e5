//! `[machine]` of the kind "ssh".

use super::document::Plain;
use super::layers::Layers;
use super::value::{Read, filled, flag, one_of, quoted, show_text, text};
use crate::model::Address;
use crate::session::{BuilderSpec, HostKeys, Reach, Recipe, SUT, Ssh};

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
        reach: reach(l),
        loader,
        hook,
        initramfs: l.or("machine.initramfs", "auto".to_owned(), |value| word(value, &INITRAMFS), quoted),
        cmdline: l.or("machine.cmdline", String::new(), text, quoted),
        power,
        console,
        run: l.required("machine.run", None, filled),
    }
}

fn reach(l: &mut Layers) -> Reach {
    let word = |value: &Plain| one_of(value, &["strict", "add"]);
    let host_keys = match l.or("machine.host_keys", "strict", word, |word: &&str| format!("{word:?}")) {
        "add" => HostKeys::Add,
        _ => HostKeys::Strict,
    };
    let mut file = |key: &str, unset: &str| {
        l.unset(key, unset);
        l.optional(key, path, quoted).unwrap_or_default()
    };
    let identity = file("machine.identity", "what ssh has by itself");
    let known_hosts = file("machine.known_hosts", "known_hosts beside the sessions");
    let config = file("machine.config", "~/.ssh/config");
    let jump: Vec<String> = l.list("machine.jump", &[]);
    for way in &jump {
        if let Err(error) = way.parse::<Address>() {
            l.contradiction("machine.jump", format!("`machine.jump`: {error}"), "write ssh://USER@HOST:PORT");
        }
    }
    Reach {
        identity,
        known_hosts,
        host_keys,
        jump,
        config,
        sudo: l.or("machine.sudo", false, flag, bool::to_string),
    }
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

/// Of this machine; where the program is started says nothing about it.
fn path(value: &Plain) -> Read<String> {
    let path = filled(value)?;
    match path.starts_with('/') || path.starts_with("~/") {
        true => Ok(path),
        false => Err("must be an absolute path, or begin with ~/".to_owned()),
    }
}
