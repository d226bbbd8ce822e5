//! The menu of a generated grub.cfg, as far as a default entry can name it. Pure.

use crate::lab::ssh::kernels::call::Facts;
use std::cmp::Ordering;

/// An entry or a submenu.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Item {
    pub title: String,
    pub id: Option<String>,
    /// By the name of its image.
    pub release: Option<String>,
    /// Of a submenu.
    inside: Vec<Item>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Menu(Vec<Item>);

impl Menu {
    /// By the lines of grub.cfg that begin or end something, and the entries of /boot/loader/entries in GRUB's order.
    pub fn read(lines: &[&str], bls: &[(String, Facts)]) -> Self {
        // The innermost that is open comes last; the first is the menu itself.
        let mut open = vec![Item::default()];
        for line in lines {
            let line = line.trim_start();
            let first = line.split_whitespace().next().unwrap_or_default();
            match first {
                "menuentry" | "submenu" => open.push(heading(line)),
                "linux" | "linuxefi" | "linux16" => {
                    let path = line.split_whitespace().nth(1).unwrap_or_default();
                    if let [_, .., item] = open.as_mut_slice() {
                        item.release = release_of(path);
                    }
                }
                "blscfg" => {
                    let entries = bls.iter().map(|(name, facts)| bls_item(name, facts));
                    if let Some(menu) = open.last_mut() {
                        menu.inside.extend(entries);
                    }
                }
                _ if first.starts_with('}') && open.len() > 1 => {
                    let done = open.pop();
                    if let Some(outer) = open.last_mut() {
                        outer.inside.extend(done);
                    }
                }
                _ => {}
            }
        }
        Self(open.into_iter().next().unwrap_or_default().inside)
    }

    /// What GRUB takes for `path`: positions, titles or ids, `>` between levels.
    pub fn find(&self, path: &str) -> Option<&Item> {
        let mut items = &self.0;
        let mut found = None;
        for part in path.replace(">>", "\u{1}").split('>') {
            let part = part.replace('\u{1}', ">");
            let by_name =
                || items.iter().find(|item| item.id.as_deref() == Some(part.as_str()) || item.title == part);
            let item = part.parse::<usize>().ok().and_then(|n| items.get(n)).or_else(by_name)?;
            items = &item.inside;
            found = Some(item);
        }
        // A submenu boots its own first entry.
        while let Some(first) = found.and_then(|item| item.inside.first()) {
            found = Some(first);
        }
        found
    }
}

/// The value a line gives to `default`, unless that is the one-shot's.
pub(super) fn default_setting(line: &str) -> Option<String> {
    let line = line.trim_start();
    let line = line.strip_prefix("set").map_or(line, str::trim_start);
    let value = words(line.strip_prefix("default=")?).into_iter().next().unwrap_or_default();
    (!value.contains("next_entry")).then_some(value)
}

/// GRUB's order of two entries of /boot/loader/entries by their names: parts of digits by value. The menu shows the greatest
/// first.
pub(super) fn bls_order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (left, right) = (part(&mut a), part(&mut b));
        let order = match (left.parse::<u64>(), right.parse::<u64>()) {
            (Ok(left), Ok(right)) => left.cmp(&right),
            (Ok(_), Err(_)) if !right.is_empty() => Ordering::Greater,
            (Err(_), Ok(_)) if !left.is_empty() => Ordering::Less,
            _ => left.cmp(right),
        };
        if order != Ordering::Equal || (left.is_empty() && right.is_empty()) {
            return order;
        }
    }
}

/// Takes the next part of digits or of letters; what is between them only separates.
fn part<'a>(text: &mut &'a str) -> &'a str {
    let rest = text.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let digits = rest.starts_with(|c: char| c.is_ascii_digit());
    let same = |c: char| if digits { c.is_ascii_digit() } else { c.is_ascii_alphabetic() };
    let end = rest.find(|c| !same(c)).unwrap_or(rest.len());
    *text = &rest[end..];
    &rest[..end]
}

fn heading(line: &str) -> Item {
    let words = words(line);
    let title = words.get(1).cloned().unwrap_or_default();
    let mut id = None;
    for (n, word) in words.iter().enumerate() {
        if word == "--id" || word.ends_with("menuentry_id_option") {
            id = words.get(n + 1).cloned();
        } else if let Some(value) = word.strip_prefix("--id=") {
            id = Some(value.to_owned());
        }
    }
    Item { title, id, ..Item::default() }
}

fn bls_item(name: &str, facts: &Facts) -> Item {
    let title = facts.one("title").unwrap_or(name).trim().to_owned();
    let release = facts.one("linux").and_then(release_of).or_else(|| facts.one("version").map(str::to_owned));
    Item { title, id: Some(name.to_owned()), release, inside: Vec::new() }
}

/// The release in an image's name.
pub(super) fn release_of(path: &str) -> Option<String> {
    let name = path.trim().rsplit('/').next()?;
    let release =
        ["vmlinuz-", "vmlinux-", "kernel-"].into_iter().find_map(|prefix| name.strip_prefix(prefix))?;
    Some(release.to_owned())
}

/// The words of a line, with GRUB's quotes off.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = r#"
   set default="${next_entry}"
   set default="0"
}
menuentry 'Debian GNU/Linux' --class debian --class gnu-linux $menuentry_id_option 'gnulinux-simple-1' {
	linux	/boot/vmlinuz-6.1.0-18-amd64 root=UUID=1 ro quiet
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-1' {
	menuentry 'Debian, with Linux 6.1.0-18-amd64' $menuentry_id_option 'gnulinux-6.1.0-18-amd64-advanced-1' {
		linux	/boot/vmlinuz-6.1.0-18-amd64 root=UUID=1 ro quiet
	}
	menuentry 'It'\''s > old' $menuentry_id_option 'gnulinux-6.1.0-17-amd64-advanced-1' {
		linux	/boot/vmlinuz-6.1.0-17-amd64 root=UUID=1 ro quiet
	}
}
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {
}"#;

    fn menu() -> Menu {
        Menu::read(&DEBIAN.lines().collect::<Vec<_>>(), &[])
    }

    #[test]
    fn a_default_is_found_by_position_title_and_id_through_submenus() {
        let menu = menu();
        let release = |path: &str| menu.find(path).and_then(|item| item.release.clone());
        for path in ["0", "gnulinux-simple-1", "Debian GNU/Linux", "1>0", "1", "gnulinux-advanced-1>0"] {
            assert_eq!(release(path).as_deref(), Some("6.1.0-18-amd64"), "{path}");
        }
        let old = "gnulinux-advanced-1>gnulinux-6.1.0-17-amd64-advanced-1";
        for path in ["1>1", old, "Advanced options for Debian GNU/Linux>It's >> old"] {
            assert_eq!(release(path).as_deref(), Some("6.1.0-17-amd64"), "{path}");
        }
        assert_eq!(menu.find("gone"), None);
        assert_eq!(menu.find("2").map(|item| item.title.as_str()), Some("UEFI Firmware Settings"));
    }

    #[test]
    fn the_setting_of_the_one_shot_is_no_default() {
        let settings: Vec<String> = DEBIAN.lines().filter_map(default_setting).collect();
        assert_eq!(settings, ["0"]);
        assert_eq!(default_setting("  set default=\"${saved_entry}\"").as_deref(), Some("${saved_entry}"));
        assert_eq!(default_setting("default=rescue").as_deref(), Some("rescue"));
    }

    #[test]
    fn entries_of_files_come_newest_first() {
        let mut names = ["m-6.5.6-300.fc39", "m-6.5.12-300.fc39", "m-0-rescue", "m-6.5.6-200.fc39"];
        names.sort_by(|a, b| bls_order(b, a));
        assert_eq!(names, ["m-6.5.12-300.fc39", "m-6.5.6-300.fc39", "m-6.5.6-200.fc39", "m-0-rescue"]);
    }
}
