//! A machine that is reached by ssh, as a plan names it.

use crate::cli::CliError;
use crate::driver::SessionDir;
use crate::lab::console_command::ConsoleSpec;
use crate::lab::kbuild::BuildHost;
use crate::lab::power::PowerCommand;
use crate::lab::ssh::loader::{Hook, Loader};
use crate::lab::ssh::{Access, Link, Notes, Parts, Wires};
use crate::model::Address;
use crate::session::{BuildOn, Plan, Reach, SUT, Setup, Ssh};
use crate::workload::Reader;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// For a power switch to do what it is told.
const POWER: Duration = Duration::from_secs(180);

/// Of a console that is kept; older text goes.
const CONSOLE_BYTES: u64 = 16 << 20;

/// Before a console that ended is opened again.
const CONSOLE_PAUSE: Duration = Duration::from_secs(2);

/// What stands where on this side.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Places<'a> {
    /// The owner of connections and processes: a session's directory.
    pub owner: &'a Path,
    /// Where the lab's own files are: host keys, what is known of machines.
    pub lab: &'a Path,
}

impl<'a> Places<'a> {
    /// Those of a session.
    pub fn of(dir: &'a SessionDir) -> Self {
        Self { owner: dir.path(), lab: dir.path().parent().unwrap_or(dir.path()) }
    }
}

/// The machine of a session.
pub(super) fn parts(
    spec: &Ssh,
    plan: &Plan,
    dir: &SessionDir,
    reader: Option<Reader>,
) -> Result<Parts, CliError> {
    let keep = [&plan.good, &plan.bad].map(|end| format!("-sb-{}", end.commit.short())).to_vec();
    let parts = machine(spec, &plan.recipe.setup, Places::of(dir))?;
    Ok(Parts {
        reader,
        keep,
        metric: plan.recipe.metric.name.clone(),
        session: plan.session.clone(),
        ..parts
    })
}

/// A machine for which nothing is measured.
pub(in crate::cli) fn machine(spec: &Ssh, setup: &Setup, places: Places<'_>) -> Result<Parts, CliError> {
    let wires = wires(&spec.reach, places)?;
    let at = address(&spec.address)?;
    let link = |address: Address, sudo| Link::new(Rc::clone(&wires), address, sudo);
    let mut roles = BTreeMap::new();
    for (name, reached) in setup.roles.iter().filter(|(name, _)| *name != SUT) {
        roles.insert(name.clone(), link(address(reached)?, spec.reach.sudo));
    }
    let hash = blake3::hash(at.to_string().as_bytes()).to_hex();
    let path = places.lab.join("machines").join(format!("{}.json", &hash[..16]));
    let notes = Notes::open(path).map_err(|error| CliError::Lab(format!("use {at}: {error}")))?;
    let env = vec![("SB_SUT".to_owned(), at.to_string())];
    let power = (!spec.power.is_empty()).then(|| PowerCommand {
        command: spec.power.clone(),
        env: env.clone(),
        owner: places.owner.to_owned(),
        deadline: POWER,
    });
    let console = (!spec.console.is_empty()).then(|| ConsoleSpec {
        command: spec.console.clone(),
        env,
        log: places.owner.join("console.log"),
        limit: CONSOLE_BYTES,
        pause: CONSOLE_PAUSE,
        owner: places.owner.to_owned(),
    });
    let hook = || Hook {
        command: spec.hook.clone(),
        session: places.owner.to_owned(),
        log: places.owner.join("boot-hook.log"),
        deadline: POWER,
    };
    let loader = match spec.loader.as_str() {
        "grub" => Some(Loader::Grub),
        "systemd-boot" => Some(Loader::SystemdBoot),
        "kexec" => Some(Loader::Kexec),
        "hook" => Some(Loader::Hook(hook())),
        _ => None,
    };
    let initramfs = spec.initramfs.parse().map_err(CliError::Lab)?;
    Ok(Parts {
        sut: link(at, spec.reach.sudo),
        roles,
        loader,
        initramfs,
        cmdline: spec.cmdline.clone(),
        power,
        console,
        run: spec.run.clone(),
        reader: None,
        metric: String::new(),
        session: String::new(),
        owner: places.owner.to_owned(),
        keep: Vec::new(),
        notes,
    })
}

/// The machine that builds; its connections are beside those of the machine under test.
pub(in crate::cli) fn build_host(spec: &BuildOn, places: Places<'_>) -> Result<BuildHost, CliError> {
    let owner = places.owner.join("build-host");
    let wires = wires(&spec.reach, Places { owner: &owner, ..places })?;
    Ok(BuildHost::new(wires, address(&spec.address)?, &spec.dir))
}

fn wires(reach: &Reach, places: Places<'_>) -> Result<Rc<Wires>, CliError> {
    let file = |text: &str| (!text.is_empty()).then(|| expanded(text));
    let own = file("~/.ssh/config").filter(|path| path.exists());
    let access = Access {
        identity: file(&reach.identity),
        known_hosts: file(&reach.known_hosts).unwrap_or_else(|| places.lab.join("known_hosts")),
        host_keys: reach.host_keys,
        jump: reach.jump.iter().map(|way| address(way)).collect::<Result<_, _>>()?,
        config: file(&reach.config).or(own),
    };
    Wires::new(access, places.owner).map_err(CliError::Lab)
}

fn address(text: &str) -> Result<Address, CliError> {
    text.parse().map_err(|error| CliError::Lab(format!("reach a machine: {error}")))
}

/// A path below "~/" is one below the user's own directory.
fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        (_, _) => PathBuf::from(path),
    }
}
