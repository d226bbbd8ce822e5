//! What is looked at beside the numbers: `[environment]` and `[evidence]`.

use crate::profile::document::Plain;
use crate::profile::layers::Layers;
use crate::profile::value::{Read, flag};
use crate::session::{Beside, MachineSpec, Setup, Watch};

/// Asks for both. Where it is known that a shell reaches the SUT they are on by default: without roles, commands may run
/// the workload anywhere, and what this machine is like says nothing of the SUT.
pub(super) fn read(l: &mut Layers, machine: &MachineSpec, setup: &mut Setup) {
    let is_reached = matches!(machine, MachineSpec::Qemu(_) | MachineSpec::Ssh(_)) || !setup.roles.is_empty();
    let (ignore, also) = (l.given_list("environment.ignore"), l.given_list("environment.also"));
    let is_asked = is_reached || !ignore.is_empty() || !also.is_empty();
    let mut on = |key: &str, default: bool| {
        let unknown = "off: without roles the run may be anywhere";
        let default = default || l.is_given(key);
        if !default {
            l.optional(key, flag, bool::to_string);
            l.unset(key, unknown);
            return false;
        }
        l.or(key, true, flag, bool::to_string)
    };
    let is_watched = on("environment.watch", is_asked);
    let schedstat = on("evidence.schedstat", is_reached);
    for key in ["environment.ignore", "environment.also"] {
        if !is_watched && l.is_given(key) {
            let message = format!("`{key}` is set, but nothing is watched");
            l.contradiction(key, message, "remove it, or `watch = false` in [environment]");
        }
    }
    for name in &also {
        if let Err(message) = watched(name) {
            l.contradiction(
                "environment.also",
                format!("`environment.also` holds {name:?}, which {message}"),
                HELP,
            );
        }
    }
    let perf_stat = l.given_list("evidence.perf_stat");
    for event in &perf_stat {
        if let Err(message) = event_name(event) {
            let message = format!("`evidence.perf_stat` holds {event:?}, which {message}");
            l.contradiction(
                "evidence.perf_stat",
                message,
                "name events as `perf list` does, e.g. [\"context-switches\"]",
            );
        }
    }
    setup.environment = is_watched.then_some(Watch { ignore, also });
    setup.evidence = Beside {
        schedstat,
        perf_stat,
        perf_record: opted(l, "evidence.perf_record"),
        perf_sched_stats: opted(l, "evidence.perf_sched_stats"),
    };
}

const HELP: &str =
    "name files by their absolute path and programs by their name, e.g. [\"/etc/my.cnf\", \"mariadbd\"]";

fn opted(l: &mut Layers, key: &str) -> bool {
    let read = |value: &Plain| flag(value);
    l.optional(key, read, bool::to_string).unwrap_or(false)
}

/// A file by its whole path, or a program.
fn watched(name: &str) -> Read<()> {
    let is_program =
        name.chars().all(|c| c.is_ascii_alphanumeric() || "_.+-".contains(c)) && !name.starts_with('-');
    if name.contains(['\n', '\t', '\'']) || !(name.starts_with('/') || is_program) {
        return Err("is neither an absolute path nor a program's name".to_owned());
    }
    Ok(())
}

fn event_name(event: &str) -> Read<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_:./=".contains(c);
    if event.chars().all(plain) && !event.starts_with('-') {
        Ok(())
    } else {
        Err("is not one event's name".to_owned())
    }
}
