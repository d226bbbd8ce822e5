//! systemd-boot. An entry whose file is renamed by boot counting (`NAME+3.conf`, `NAME+1-2.conf`) is the same entry.

use super::grub_menu::{bls_order, release_of};
use super::{DefaultEntry, Entry, SetBy};
use crate::lab::ssh::far::Far;
use crate::lab::ssh::kernels::Error;
use crate::lab::ssh::kernels::call::{Call, Facts, LOOKS};
use crate::lab::ssh::sut;
use serde::Deserialize;

/// What `bootctl list --json` tells of an entry.
#[derive(Deserialize)]
struct Listed {
    #[serde(default)]
    id: String,
    #[serde(default, rename = "isDefault")]
    is_default: bool,
}

async fn look(far: &mut dyn Far, root: &str) -> Result<Facts, Error> {
    let text = sut::SD_LOOK;
    Call { what: "look at systemd-boot", text, args: &[], deadline: LOOKS }.facts(far, root).await
}

pub(super) async fn directory(far: &mut dyn Far, root: &str) -> Result<String, Error> {
    let told = look(far, root).await?;
    told.one("boot").map(|dir| dir.trim_end_matches('/').to_owned()).ok_or_else(|| Error::Answer {
        what: "look at systemd-boot".to_owned(),
        host: far.host().to_owned(),
        missing: "boot partition".to_owned(),
    })
}

pub(super) async fn default_entry(far: &mut dyn Far, root: &str) -> Result<DefaultEntry, Error> {
    let told = look(far, root).await?;
    read_default(&told).ok_or_else(|| Error::Answer {
        what: "read the default entry of systemd-boot".to_owned(),
        host: far.host().to_owned(),
        missing: "entry".to_owned(),
    })
}

/// The variable wins over loader.conf, which wins over the first of the menu; `bootctl` knows the menu where it lists it.
fn read_default(told: &Facts) -> Option<DefaultEntry> {
    let entries = told.groups("entry");
    let stored = told.one("set_default").unwrap_or_default().to_owned();
    let find = |pattern: &str| {
        let names = entries.iter().map(|(name, _)| without_counter(name));
        let mut names: Vec<String> = names.filter(|name| matches(pattern, name)).collect();
        names.sort_by(|a, b| bls_order(b, a));
        names.into_iter().next()
    };
    let listed: Vec<Listed> =
        told.one("json").and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    let listed = listed.into_iter().find(|entry| entry.is_default).map(|entry| without_counter(&entry.id));
    let by_variable = (!stored.is_empty()).then(|| find(&stored).unwrap_or_else(|| without_counter(&stored)));
    let by_file = told.one("configured").and_then(find);
    let set_by = match (&by_variable, &by_file) {
        (Some(_), _) => SetBy::Stored,
        (None, Some(_)) => SetBy::Configured,
        (None, None) => SetBy::First,
    };
    let id = by_variable.or(by_file).or(listed).or_else(|| first(&entries))?;
    let entry = entries.iter().find(|(name, _)| without_counter(name) == id).map(|(_, facts)| facts);
    let fact = |key| entry.and_then(|facts| facts.one(key));
    let release = fact("linux").and_then(release_of).or_else(|| fact("version").map(str::to_owned));
    let title = fact("title").unwrap_or_default().trim().to_owned();
    Some(DefaultEntry { id, title, release, set_by, stored })
}

/// The menu's order: entries with a sort key first, by it; then the others; within both the newest version first; those whose
/// tries are used up last of all.
fn first(entries: &[(String, Facts)]) -> Option<String> {
    let key = |facts: &Facts| facts.one("sort-key").map(str::to_owned);
    let version = |name: &str, facts: &Facts| facts.one("version").unwrap_or(name).to_owned();
    let mut sorted: Vec<&(String, Facts)> = entries.iter().collect();
    sorted.sort_by(|(a, one), (b, other)| {
        let order = match (key(one), key(other)) {
            (Some(left), Some(right)) => {
                left.cmp(&right).then_with(|| bls_order(&version(b, other), &version(a, one)))
            }
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => bls_order(&without_counter(b), &without_counter(a)),
        };
        is_used_up(a).cmp(&is_used_up(b)).then(order)
    });
    sorted.first().map(|(name, _)| without_counter(name))
}

/// A file's name without the counter of tries left and done.
fn without_counter(name: &str) -> String {
    let stem = name.strip_suffix(".conf").unwrap_or(name);
    let is_counter = |text: &str| {
        let (left, done) = text.split_once('-').unwrap_or((text, "0"));
        [left, done].iter().all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()))
    };
    match stem.rsplit_once('+') {
        Some((stem, counter)) if is_counter(counter) => format!("{stem}.conf"),
        _ => name.to_owned(),
    }
}

fn is_used_up(name: &str) -> bool {
    let stem = name.strip_suffix(".conf").unwrap_or(name);
    without_counter(name) != name
        && stem.rsplit_once('+').is_some_and(|(_, counter)| {
            counter.split('-').next().is_some_and(|left| left.chars().all(|c| c == '0'))
        })
}

/// Whether a pattern of loader.conf (`*`, `?`) means the entry; its `.conf` may be left off.
fn matches(pattern: &str, name: &str) -> bool {
    let mut regex = String::from("^");
    for c in pattern.strip_suffix(".conf").unwrap_or(pattern).chars() {
        match c {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            _ => regex.push_str(&regex::escape(&c.to_string())),
        }
    }
    regex.push_str(r"(\.conf)?$");
    regex::Regex::new(&regex).is_ok_and(|regex| regex.is_match(name))
}

/// First what is stored; where that is unchanged, the menu moved: the entry is then named outright.
pub(super) async fn put_back(
    far: &mut dyn Far,
    root: &str,
    before: &DefaultEntry,
    now: &DefaultEntry,
) -> Result<(), Error> {
    let value = if before.stored == now.stored { &before.id } else { &before.stored };
    store(far, root, value).await?;
    if default_entry(far, root).await?.is(before) { Ok(()) } else { store(far, root, &before.id).await }
}

pub(super) async fn store(far: &mut dyn Far, root: &str, value: &str) -> Result<(), Error> {
    let text = sut::SD_DEFAULT;
    let call = Call { what: "put systemd-boot's default back", text, args: &[value], deadline: LOOKS };
    call.facts(far, root).await.map(|_| ())
}

pub(super) async fn set_once(far: &mut dyn Far, root: &str, entry: &Entry) -> Result<(), Error> {
    let Entry { release, initramfs, words, .. } = entry;
    let initrd = if *initramfs { format!("initrd /initrd.img-{release}\n") } else { String::new() };
    let words = words.join(" ");
    // Without a sort key, so that it stands behind those that have one.
    let text = format!(
        "title sched-bisect {release}\nversion {release}\nlinux /vmlinuz-{release}\n{initrd}options {words}"
    );
    write_entry(far, root, release, &text).await?;
    once(far, root, &format!("{}.conf", entry.id())).await
}

async fn write_entry(far: &mut dyn Far, root: &str, release: &str, entry: &str) -> Result<(), Error> {
    let what = format!("write systemd-boot's entry of {release}");
    let text = sut::SD_ENTRY;
    Call { what: &what, text, args: &[release, entry], deadline: LOOKS }.facts(far, root).await.map(|_| ())
}

async fn once(far: &mut dyn Far, root: &str, id: &str) -> Result<(), Error> {
    let text = sut::SD_ONCE;
    let call = Call { what: "choose systemd-boot's next entry", text, args: &[id], deadline: LOOKS };
    call.facts(far, root).await.map(|_| ())
}

pub(super) async fn pending(far: &mut dyn Far, root: &str) -> Result<Option<String>, Error> {
    let told = look(far, root).await?;
    let id = told.one("once").map(without_counter);
    Ok(id.map(|id| id.strip_suffix(".conf").map_or(id.clone(), str::to_owned)))
}

pub(super) async fn clear_once(far: &mut dyn Far, root: &str) -> Result<(), Error> {
    once(far, root, "").await
}

pub(super) async fn leave(far: &mut dyn Far, root: &str, release: &str) -> Result<(), Error> {
    write_entry(far, root, release, "").await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_of(told: &str) -> DefaultEntry {
        read_default(&Facts::read(told.as_bytes())).expect("there are entries")
    }

    #[test]
    fn case_46_an_entry_renamed_by_boot_counting_is_the_same_entry() {
        for name in ["a-6.1.conf", "a-6.1+3.conf", "a-6.1+1-2.conf", "a-6.1+0-3.conf"] {
            assert_eq!(without_counter(name), "a-6.1.conf");
        }
        for name in ["a-6.15.0-rc3+.conf", "a+b.conf", "a+1-.conf"] {
            assert_eq!(without_counter(name), name);
        }
        let told =
            "set_default=a-6.1.conf\nentry=a-6.1+1-2.conf\nentry.linux=/a/vmlinuz-6.1\nentry=b-6.2.conf\n";
        let default = default_of(told);
        assert_eq!((default.id.as_str(), default.release.as_deref()), ("a-6.1.conf", Some("6.1")));
    }

    #[test]
    fn the_variable_wins_over_the_file_and_that_over_the_order() {
        let entries = "entry=a-6.1.conf\nentry=a-6.9+0-3.conf\nentry=a-6.10.conf\n";
        let id = |settings: &str| default_of(&format!("{settings}{entries}")).id;
        assert_eq!(id("set_default=a-6.1.conf\nconfigured=a-6.10*\n"), "a-6.1.conf");
        assert_eq!(id("configured=a-6.1?*\n"), "a-6.10.conf");
        assert_eq!(id("configured=a-6.1\n"), "a-6.1.conf");
        assert_eq!(id("configured=gone\n"), "a-6.10.conf");
        assert_eq!(id("json=[{\"id\":\"a-6.1.conf\",\"isDefault\":true}]\n"), "a-6.1.conf");
    }
}
