//! GRUB 2. Entries go into custom.cfg, which the generated grub.cfg reads at its end, so that no configuration is made
//! anew; text of others in that file stays.

use super::grub_menu::{self, Menu, bls_order};
use super::words::for_grub;
use super::{DefaultEntry, Entry, PREFIX, SetBy};
use crate::lab::ssh::far::Far;
use crate::lab::ssh::kernels::Error;
use crate::lab::ssh::kernels::call::{Call, Facts, LOOKS};
use crate::lab::ssh::sut;

/// Variable of GRUB's environment in which an entry of ours leaves what its boot is known by.
const TRIED: &str = "sched_bisect_tried";

/// What the machine tells of its GRUB.
async fn look(far: &mut dyn Far, root: &str, boot: &str) -> Result<Facts, Error> {
    let args = [boot];
    let text = sut::GRUB_LOOK;
    Call { what: "look at GRUB", text, args: &args, deadline: LOOKS }.facts(far, root).await
}

pub(super) async fn default_entry(far: &mut dyn Far, root: &str) -> Result<DefaultEntry, Error> {
    let told = look(far, root, "/boot").await?;
    read_default(&told).ok_or_else(|| Error::Answer {
        what: "read the default entry of GRUB".to_owned(),
        host: far.host().to_owned(),
        missing: "line \"set default=\" in grub.cfg".to_owned(),
    })
}

/// By the generated menu, which is what boots, not by the settings that it was made from.
fn read_default(told: &Facts) -> Option<DefaultEntry> {
    let lines: Vec<&str> = told.all("cfg").collect();
    let setting = lines.iter().filter_map(|line| grub_menu::default_setting(line)).next_back()?;
    let mut bls = told.groups("bls");
    bls.sort_by(|(a, _), (b, _)| bls_order(b, a));
    let menu = Menu::read(&lines, &bls);
    let environment = told.below("env");
    let stored = environment.one("saved_entry").unwrap_or_default().to_owned();
    let is_stored = setting.contains("saved_entry");
    let id = if is_stored { stored.clone() } else { setting };
    let set_by = match is_stored {
        true => SetBy::Stored,
        false if id.split('>').all(|part| part.chars().all(|c| c.is_ascii_digit())) => SetBy::First,
        false => SetBy::Configured,
    };
    if let Some(release) = id.strip_prefix(PREFIX) {
        let title = format!("sched-bisect {release}");
        return Some(DefaultEntry { title, release: Some(release.to_owned()), id, set_by, stored });
    }
    // One that is not there is as good as none: GRUB takes the first.
    let found = menu.find(&id).or_else(|| menu.find("0"));
    let title = found.map(|entry| entry.title.clone()).unwrap_or_default();
    let release = found.and_then(|entry| entry.release.clone());
    Some(DefaultEntry { id, title, release, set_by, stored })
}

pub(super) async fn put_back(
    far: &mut dyn Far,
    root: &str,
    before: &DefaultEntry,
    now: &DefaultEntry,
) -> Result<(), Error> {
    if before.stored == now.stored { Ok(()) } else { store(far, root, &before.stored).await }
}

pub(super) async fn store(far: &mut dyn Far, root: &str, value: &str) -> Result<(), Error> {
    let text = sut::GRUB_DEFAULT;
    let call = Call { what: "put GRUB's saved_entry back", text, args: &[value], deadline: LOOKS };
    call.facts(far, root).await.map(|_| ())
}

pub(super) async fn set_once(far: &mut dyn Far, root: &str, entry: &Entry) -> Result<(), Error> {
    let told = look(far, root, &entry.boot).await?;
    let text = menu_entry(entry, told.one("path"), told.one("uuid"))?;
    write_entry(far, root, &entry.release, &text).await?;
    once(far, root, &entry.id()).await
}

/// The entry's text. Without a file system's UUID or the path in it, the images are found from GRUB's own directory,
/// which is one below theirs.
fn menu_entry(entry: &Entry, path: Option<&str>, uuid: Option<&str>) -> Result<String, Error> {
    let Entry { release, initramfs, words, .. } = entry;
    let words: Result<Vec<String>, Error> = words.iter().map(|word| for_grub(word)).collect();
    let words = words?.join(" ");
    let id = entry.id();
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./+@".contains(c));
    let (search, dir) = match (path, uuid) {
        (Some(path), Some(uuid)) if is_plain(path) && is_plain(uuid) => (
            format!("\tsearch --no-floppy --fs-uuid --set=root {uuid}\n"),
            path.trim_end_matches('/').to_owned(),
        ),
        _ => (String::new(), "$prefix/..".to_owned()),
    };
    // Whether GRUB came so far is known afterwards, whatever becomes of the kernel.
    let tried = match entry.token().filter(|token| is_plain(token)) {
        Some(token) => format!("\tset {TRIED}={token}\n\tsave_env {TRIED}\n"),
        None => String::new(),
    };
    let initrd = if *initramfs { format!("\tinitrd {dir}/initrd.img-{release}\n") } else { String::new() };
    // Where GRUB asks for a password, it does so only for what is not marked.
    Ok(format!(
        "menuentry 'sched-bisect {release}' --id '{id}' --unrestricted {{\n{tried}{search}\tlinux {dir}/vmlinuz-{release} {words}\n{initrd}}}"
    ))
}

/// What the last boot of ours that GRUB began to start is known by.
pub(super) async fn tried(far: &mut dyn Far, root: &str) -> Result<Option<String>, Error> {
    let told = look(far, root, "/boot").await?;
    Ok(told.one(&format!("env.{TRIED}")).map(str::to_owned))
}

/// Takes that away: the machine is to be as it was.
pub(super) async fn forget_tried(far: &mut dyn Far, root: &str) -> Result<(), Error> {
    let (what, text) = ("take what entries left in GRUB's environment away", sut::GRUB_UNTRIED);
    Call { what, text, args: &[], deadline: LOOKS }.facts(far, root).await.map(|_| ())
}

async fn write_entry(far: &mut dyn Far, root: &str, release: &str, entry: &str) -> Result<(), Error> {
    let what = format!("write GRUB's entry of {release}");
    let text = sut::GRUB_ENTRY;
    Call { what: &what, text, args: &[release, entry], deadline: LOOKS }.facts(far, root).await.map(|_| ())
}

async fn once(far: &mut dyn Far, root: &str, id: &str) -> Result<(), Error> {
    let text = sut::GRUB_ONCE;
    let call = Call { what: "choose GRUB's next entry", text, args: &[id], deadline: LOOKS };
    call.facts(far, root).await.map(|_| ())
}

pub(super) async fn pending(far: &mut dyn Far, root: &str) -> Result<Option<String>, Error> {
    let told = look(far, root, "/boot").await?;
    Ok(told.one("env.next_entry").map(str::to_owned))
}

pub(super) async fn clear_once(far: &mut dyn Far, root: &str) -> Result<(), Error> {
    once(far, root, "").await
}

pub(super) async fn leave(far: &mut dyn Far, root: &str, release: &str) -> Result<(), Error> {
    write_entry(far, root, release, "").await
}
