//! Reading `.config` files.

use std::collections::BTreeMap;

/// Value by symbol ("CONFIG_HZ" to "250"); a symbol that "is not set" has the value "n".
fn symbols(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| unset(line).map(|name| (name, "n")).or_else(|| assignment(line))).collect()
}

fn unset(line: &str) -> Option<&str> {
    line.trim().strip_prefix("# ")?.strip_suffix(" is not set").filter(|name| is_symbol(name))
}

fn assignment(line: &str) -> Option<(&str, &str)> {
    line.trim().split_once('=').filter(|(name, _)| is_symbol(name))
}

fn is_symbol(name: &str) -> bool {
    let rest = name.strip_prefix("CONFIG_").unwrap_or_default();
    !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `text` on top of `base`: what `text` sets is taken out of `base` first, which spares a warning of kconfig's for each.
pub(super) fn overlay(base: &str, text: &str) -> String {
    let set = symbols(text);
    let name = |line| unset(line).or_else(|| assignment(line).map(|(name, _)| name));
    let mut overlaid = String::with_capacity(base.len() + text.len());
    for line in base.lines().filter(|line| name(line).is_none_or(|name| !set.contains_key(name))) {
        overlaid += line;
        overlaid += "\n";
    }
    overlaid + text
}

/// How `now` differs from `base`, a symbol a line ("CONFIG_FOO: y -> n"), sorted. A symbol that a commit does not have
/// reads "absent", which is not the same as "n".
pub(super) fn delta(base: &str, now: &str) -> Vec<String> {
    let (base, now) = (symbols(base), symbols(now));
    let names: std::collections::BTreeSet<&str> = base.keys().chain(now.keys()).copied().collect();
    let value = |of: &BTreeMap<&str, &str>, name: &str| of.get(name).copied().unwrap_or("absent").to_owned();
    names
        .into_iter()
        .filter(|name| base.get(name) != now.get(name))
        .map(|name| format!("{name}: {} -> {}", value(&base, name), value(&now, name)))
        .collect()
}

/// Whether a kernel of this configuration can load modules.
pub(super) fn has_modules(resolved: &str) -> bool {
    symbols(resolved).get("CONFIG_MODULES") == Some(&"y")
}

/// A required symbol: "CONFIG_HZ=250", "CONFIG_FOO=n" or "# CONFIG_FOO is not set".
pub(super) fn parse_required(line: &str) -> Result<(&str, &str), String> {
    unset(line).map(|name| (name, "n")).or_else(|| assignment(line)).ok_or_else(|| {
        format!("required symbol {line:?} is not written as CONFIG_NAME=value (n for what must not be set)")
    })
}

/// Errors with every required symbol that reads otherwise. What a commit does not have counts as not set.
pub(super) fn check_required(resolved: &str, required: &[String]) -> Result<(), String> {
    let found = symbols(resolved);
    let mut wrong = Vec::new();
    for line in required {
        let (name, wanted) = parse_required(line)?;
        match found.get(name) {
            Some(&value) if value == wanted => {}
            None if wanted == "n" => {}
            Some(value) => wrong.push(format!("{name} is {value}, required is {wanted}")),
            None => wrong.push(format!("{name} is absent, required is {wanted}")),
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "#\n# Linux/x86 6.15.0 Kernel Configuration\n#\nCONFIG_HZ=250\nCONFIG_SMP=y\n# CONFIG_NUMA is not \
                          set\nCONFIG_LOCALVERSION=\"a=b\"\n# end of Timers\n";

    #[test]
    fn required_symbols_are_held_against_what_was_resolved() {
        let check = |line: &str| check_required(CONFIG, &[line.to_owned()]);
        for met in [
            "CONFIG_HZ=250",
            "CONFIG_NUMA=n",
            "# CONFIG_NUMA is not set",
            "CONFIG_GONE=n",
            "CONFIG_LOCALVERSION=\"a=b\"",
        ] {
            assert_eq!(check(met), Ok(()), "{met}");
        }
        assert_eq!(check("CONFIG_HZ=1000"), Err("CONFIG_HZ is 250, required is 1000".to_owned()));
        assert_eq!(check("CONFIG_GONE=y"), Err("CONFIG_GONE is absent, required is y".to_owned()));
        assert_eq!(check("CONFIG_SMP=n"), Err("CONFIG_SMP is y, required is n".to_owned()));
        assert!(check("HZ=250").is_err() && check("CONFIG_HZ").is_err());
    }

    #[test]
    fn an_overlay_sets_each_symbol_once() {
        let text = "CONFIG_SMP=n\nCONFIG_NUMA=y\nCONFIG_NEW=y\n# a comment\n";
        let overlaid = overlay(CONFIG, text);
        assert!(overlaid.ends_with(text));
        let lines: Vec<&str> = overlaid.lines().filter(|line| line.contains("CONFIG_")).collect();
        assert_eq!(
            lines,
            ["CONFIG_HZ=250", "CONFIG_LOCALVERSION=\"a=b\"", "CONFIG_SMP=n", "CONFIG_NUMA=y", "CONFIG_NEW=y"]
        );
    }

    #[test]
    fn a_delta_tells_absent_from_not_set() {
        let now = CONFIG.replace("HZ=250", "HZ=1000").replace("CONFIG_SMP=y\n", "") + "CONFIG_NEW=m\n";
        let lines = ["CONFIG_HZ: 250 -> 1000", "CONFIG_NEW: absent -> m", "CONFIG_SMP: y -> absent"];
        assert_eq!(delta(CONFIG, &now), lines);
        assert!(delta(CONFIG, CONFIG).is_empty());
    }
}
