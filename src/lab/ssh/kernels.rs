//! Kernels on another machine: put there under names of their own, listed, taken away.
//!
//! Owns: the files of a release (/boot/vmlinuz-, initrd.img-, config-, System.map-, /lib/modules/), a manifest for each in
//! /var/lib/sched-bisect/kernels, room for them. Must not do: choose what boots (see [`super::loader`]). Invariants: a
//! manifest is written before any file of its kernel; a file that no manifest names is never touched; the image comes
//! last; an installation that was cut short ends in the same state when it is repeated; the default entry is what it was.
//! Tested in kernels/tests.rs with the real scripts over a root directory of its own.

pub(in crate::lab::ssh) mod call;
mod error;
mod manifest;
mod room;
#[cfg(test)]
mod tests;

pub use self::error::Error;
pub use self::manifest::Own;
pub use self::room::{MARGIN, Short};

use self::call::{Call, DIFFERS, FOREIGN, Facts, LOOKS, WRITES};
use self::manifest::{Manifest, check_session};
use self::room::Need;
use super::far::Far;
use super::loader::{DefaultEntry, Entry, Loader};
use super::sut;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub(in crate::lab::ssh) use self::manifest::check_release;

/// File of a build's directory with the bootable kernel.
pub const IMAGE: &str = "image";
/// Its configuration.
pub const CONFIG: &str = "config";
/// Its symbols; may be absent.
pub const MAP: &str = "System.map";
/// An uncompressed tar of lib/modules/RELEASE; absent where nothing is built as a module.
pub const MODULES: &str = "modules.tar";

/// Directory on the machine where files arrive, below the root.
const INCOMING: &str = "/var/lib/sched-bisect/incoming";

/// A machine as its kernels see it.
#[derive(Debug, Clone)]
pub struct Site {
    /// Stands before every path there; empty, except over a copy of a machine.
    pub root: String,
    /// What boots it.
    pub loader: Loader,
    /// What makes an initramfs.
    pub initramfs: Initramfs,
    /// Bytes that stay free on each file system; [`MARGIN`] by default.
    pub margin: u64,
}

impl Site {
    /// A real machine, with what it has.
    pub fn new(loader: Loader) -> Self {
        Self { root: String::new(), loader, initramfs: Initramfs::Auto, margin: MARGIN }
    }
}

/// What makes an initramfs on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Initramfs {
    /// The first that is there, in the order below; none where none is.
    #[default]
    Auto,
    /// None: all that mounts the root is in the kernel.
    None,
    /// Debian's, without its bookkeeping.
    Mkinitramfs,
    /// Fedora's and others'.
    Dracut,
    /// Debian's; later updates of all its images take ours along.
    UpdateInitramfs,
    /// Arch's.
    Mkinitcpio,
}

impl Initramfs {
    /// Its program.
    pub(in crate::lab::ssh) fn program(self) -> Option<&'static str> {
        match self {
            Self::Auto | Self::None => None,
            Self::Mkinitramfs => Some("mkinitramfs"),
            Self::Dracut => Some("dracut"),
            Self::UpdateInitramfs => Some("update-initramfs"),
            Self::Mkinitcpio => Some("mkinitcpio"),
        }
    }
}

impl FromStr for Initramfs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "auto" => Self::Auto,
            "none" => Self::None,
            "mkinitramfs" => Self::Mkinitramfs,
            "dracut" => Self::Dracut,
            "update-initramfs" => Self::UpdateInitramfs,
            "mkinitcpio" => Self::Mkinitcpio,
            _ => {
                return Err(format!(
                    "{text:?} makes no initramfs known here: auto, none, mkinitramfs, dracut, update-initramfs or mkinitcpio"
                ));
            }
        })
    }
}

/// A kernel to install.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Its release; unique for each candidate.
    pub release: &'a str,
    /// Directory of its build, with [`IMAGE`] and what else there is.
    pub dir: &'a Path,
    /// The session that wants it.
    pub session: &'a str,
    /// Now, seconds since 1970.
    pub at: u64,
    /// Releases that stay, whatever room is needed: the endpoints'.
    pub keep: &'a [String],
}

/// A kernel that is there, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Its release.
    pub release: String,
    /// Whether it was there before, unchanged.
    pub was_there: bool,
    /// Older ones that made room for it, or for its other build.
    pub removed: Vec<String>,
    /// Directory of image and initramfs.
    pub boot: String,
    /// Whether it has an initramfs.
    pub initramfs: bool,
    /// The machine's default entry, before and after.
    pub default: Option<DefaultEntry>,
    /// Whether that had moved meanwhile and was put back.
    pub put_back: bool,
}

impl Installed {
    /// Its entry for a boot loader, with this command line (see [`super::loader::command_line`]).
    pub fn entry(&self, words: Vec<String>) -> Entry {
        Entry { release: self.release.clone(), boot: self.boot.clone(), initramfs: self.initramfs, words }
    }
}

/// What is on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernels {
    /// Release that runs.
    pub running: String,
    /// Programs that make an initramfs.
    pub tools: Vec<String>,
    /// Kernels of this program's, oldest first.
    pub own: Vec<Own>,
    /// The default entry before the first of them.
    pub default_before: Option<DefaultEntry>,
}

/// What a cleanup did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cleaned {
    /// Kernels that are gone.
    pub removed: Vec<String>,
    /// The kernel that stays, since it runs.
    pub kept_running: Option<String>,
    /// The default entry, where it was put back.
    pub put_back: Option<DefaultEntry>,
}

/// Reads what is there.
pub async fn list(far: &mut dyn Far, site: &Site) -> Result<Kernels, Error> {
    let call = Call { what: "list the kernels", text: sut::LOOK, args: &[], deadline: LOOKS };
    let told = call.facts(far, &site.root).await?;
    let running = told.one("running").ok_or_else(|| call.lacks(far.host(), "running"))?.to_owned();
    let mut own: Vec<Own> =
        told.groups("own").into_iter().map(|(release, facts)| Own::read(release, &facts)).collect();
    own.sort_by(|a, b| (a.at, &a.release).cmp(&(b.at, &b.release)));
    let tools = told.all("tool").map(str::to_owned).collect();
    Ok(Kernels { running, tools, own, default_before: DefaultEntry::recall(&told.below("default")) })
}

/// Puts a kernel on the machine. Repeated after an interruption at any point, it ends in the same state; what is there
/// already, unchanged, is left alone.
pub async fn install(far: &mut dyn Far, site: &Site, wanted: &Wanted<'_>) -> Result<Installed, Error> {
    check_release(wanted.release)?;
    check_session(wanted.session)?;
    let product = Product::read(wanted.dir).await?;
    let there = list(far, site).await?;
    let default = settled_default(far, site, &there).await?;
    if let Some(default) = &default {
        remember(far, site, &default.text()).await?;
    }
    let mut job = Job { site, wanted, product, there, default, removed: Vec::new() };
    let done = job.install(far).await;
    // Also after a failure: it may have been half done.
    let put_back = match &job.default {
        Some(before) => site.loader.keep_default(far, &site.root, before).await,
        None => Ok(false),
    };
    let (was_there, boot, initramfs) = done?;
    let Job { removed, default, .. } = job;
    let release = wanted.release.to_owned();
    Ok(Installed { release, was_there, removed, boot, initramfs, default, put_back: put_back? })
}

/// Takes a kernel of ours away, with its entry. Nothing happens where it is not there.
pub async fn remove(far: &mut dyn Far, site: &Site, release: &str, running_too: bool) -> Result<(), Error> {
    check_release(release)?;
    let there = list(far, site).await?;
    if there.running == release && !running_too {
        return Err(Error::Runs { what: format!("remove {release}"), host: far.host().to_owned() });
    }
    take_away(far, site, release, running_too).await
}

/// Removes the kernels this program put there, of all sessions or of one, and leaves the machine as it was: entries gone,
/// no one-shot of ours pending, the default entry as before the first. The running kernel stays unless `running_too`.
pub async fn cleanup(
    far: &mut dyn Far,
    site: &Site,
    session: Option<&str>,
    running_too: bool,
) -> Result<Cleaned, Error> {
    let there = list(far, site).await?;
    site.loader.forget_once(far, &site.root).await?;
    let mut cleaned = Cleaned::default();
    let mut left = false;
    for own in &there.own {
        if session.is_some_and(|session| session != own.session) {
            left = true;
        } else if own.release == there.running && !running_too {
            cleaned.kept_running = Some(own.release.clone());
        } else {
            take_away(far, site, &own.release, running_too).await?;
            cleaned.removed.push(own.release.clone());
        }
    }
    if let Some(before) = &there.default_before
        && site.loader.restore_default(far, &site.root, before).await?
    {
        cleaned.put_back = Some(before.clone());
    }
    if !left && cleaned.kept_running.is_none() {
        remember(far, site, "").await?;
    }
    Ok(cleaned)
}

/// The entry goes first: one that points nowhere must not be chosen.
async fn take_away(far: &mut dyn Far, site: &Site, release: &str, running_too: bool) -> Result<(), Error> {
    if site.loader.pending(far, &site.root).await?.as_deref() == Some(release) {
        site.loader.clear_once(far, &site.root).await?;
    }
    site.loader.forget(far, &site.root, release).await?;
    let what = format!("remove {release}");
    let args = [release, if running_too { "yes" } else { "no" }];
    Call { what: &what, text: sut::REMOVE, args: &args, deadline: WRITES }.facts(far, &site.root).await?;
    Ok(())
}

async fn remember(far: &mut dyn Far, site: &Site, text: &str) -> Result<(), Error> {
    let what = "keep the default entry on the machine";
    Call { what, text: sut::REMEMBER, args: &[text], deadline: LOOKS }.facts(far, &site.root).await?;
    Ok(())
}

/// The default entry, which is no kernel of ours: where it became one, it is put back to what it was before the first.
async fn settled_default(
    far: &mut dyn Far,
    site: &Site,
    there: &Kernels,
) -> Result<Option<DefaultEntry>, Error> {
    let Some(now) = site.loader.default_entry(far, &site.root).await? else { return Ok(None) };
    let is_ours = |entry: &DefaultEntry| {
        there.own.iter().any(|own| entry.release.as_deref() == Some(own.release.as_str()))
    };
    if !is_ours(&now) {
        return Ok(Some(now));
    }
    match &there.default_before {
        Some(before) if !is_ours(before) => {
            site.loader.keep_default(far, &site.root, before).await?;
            Ok(Some(before.clone()))
        }
        Some(_) | None => Err(Error::DefaultMoved {
            host: far.host().to_owned(),
            before: "a kernel of yours".to_owned(),
            now: now.to_string(),
            mend: "choose a kernel of yours as the default entry".to_owned(),
        }),
    }
}

/// What a build made, as files here.
#[derive(Debug)]
struct Product {
    image: Part,
    config: Option<Part>,
    map: Option<Part>,
    modules: Option<Part>,
}

#[derive(Debug)]
struct Part {
    name: &'static str,
    path: PathBuf,
    sha256: String,
    bytes: u64,
}

impl Product {
    async fn read(dir: &Path) -> Result<Self, Error> {
        let image = Part::read(dir, IMAGE).await?.ok_or_else(|| Error::Artifact {
            path: dir.join(IMAGE),
            reason: "no such file; a kernel that is installed needs an image of its own".to_owned(),
        })?;
        let config = Part::read(dir, CONFIG).await?;
        let map = Part::read(dir, MAP).await?;
        Ok(Self { image, config, map, modules: Part::read(dir, MODULES).await? })
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        [Some(&self.image), self.config.as_ref(), self.map.as_ref(), self.modules.as_ref()]
            .into_iter()
            .flatten()
    }

    fn need(&self, initramfs: bool, margin: u64) -> Need {
        let bytes = |part: &Option<Part>| part.as_ref().map_or(0, |part| part.bytes);
        let files = bytes(&self.config) + bytes(&self.map);
        Need { image: self.image.bytes, files, modules: bytes(&self.modules), initramfs, margin }
    }
}

impl Part {
    /// `None`: there is none.
    async fn read(dir: &Path, name: &'static str) -> Result<Option<Self>, Error> {
        let path = dir.join(name);
        let file = path.clone();
        let broken = |reason: String| Error::Artifact { path: path.clone(), reason };
        // Hundreds of megabytes: what else is awaited goes on meanwhile.
        let read = tokio::task::spawn_blocking(move || sha256(&file)).await;
        match read.map_err(|error| broken(error.to_string()))? {
            Ok((sha256, bytes)) => Ok(Some(Self { name, path, sha256, bytes })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(broken(error.to_string())),
        }
    }
}

fn sha256(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hasher.update(&buffer[..n]);
        bytes += n as u64;
    }
    let hex = hasher.finalize().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
        hex
    });
    Ok((hex, bytes))
}

/// One installation.
struct Job<'a> {
    site: &'a Site,
    wanted: &'a Wanted<'a>,
    product: Product,
    there: Kernels,
    default: Option<DefaultEntry>,
    removed: Vec<String>,
}

impl Job<'_> {
    /// Gives whether it was there, the directory of its image, and whether it has an initramfs.
    async fn install(&mut self, far: &mut dyn Far) -> Result<(bool, String, bool), Error> {
        let release = self.wanted.release;
        let boot = self.site.loader.boot_directory(far, &self.site.root).await?;
        let tool = self.tool(far)?;
        if let Some(old) = self.there.own.iter().find(|own| own.release == release) {
            let same = old.image == self.product.image.sha256;
            if same && old.whole && self.is_unchanged(far).await? {
                let initramfs =
                    old.paths.iter().any(|path| path.ends_with(&format!("/initrd.img-{release}")));
                return Ok((true, old.boot.clone(), initramfs));
            }
            if self.there.running == release {
                let what =
                    format!("install {}build of {release}", if same { "the same " } else { "another " });
                return Err(Error::Runs { what, host: far.host().to_owned() });
            }
            if !same || old.boot != boot {
                take_away(far, self.site, release, false).await?;
                self.removed.push(release.to_owned());
            }
        }
        self.make_room(far, &boot, tool.is_some()).await?;
        self.claim(far, &boot, tool).await?;
        self.send(far).await?;
        self.place(far, &boot).await?;
        if let Some(tool) = tool {
            self.step(far, "make the initramfs of", sut::INITRAMFS, &[release, &boot, tool]).await?;
        }
        let image = &self.product.image.sha256;
        self.step(far, "finish installing", sut::FINISH, &[release, &boot, image]).await?;
        Ok((false, boot, tool.is_some()))
    }

    fn tool(&self, far: &dyn Far) -> Result<Option<&'static str>, Error> {
        let is_there = |program: &str| self.there.tools.iter().any(|tool| tool == program);
        match self.site.initramfs {
            Initramfs::None => Ok(None),
            Initramfs::Auto => {
                let known = [
                    Initramfs::Mkinitramfs,
                    Initramfs::Dracut,
                    Initramfs::UpdateInitramfs,
                    Initramfs::Mkinitcpio,
                ];
                Ok(known.into_iter().filter_map(Initramfs::program).find(|program| is_there(program)))
            }
            chosen @ (Initramfs::Mkinitramfs
            | Initramfs::Dracut
            | Initramfs::UpdateInitramfs
            | Initramfs::Mkinitcpio) => match chosen.program() {
                Some(program) if !is_there(program) => Err(Error::Missing {
                    what: format!("make an initramfs by {program}"),
                    host: far.host().to_owned(),
                    reason: "there is no such program; install it, or let another make it".to_owned(),
                }),
                program => Ok(program),
            },
        }
    }

    async fn is_unchanged(&self, far: &mut dyn Far) -> Result<bool, Error> {
        verify(far, &self.site.root, self.wanted.release, "all").await
    }

    /// Own kernels go, oldest first, until it fits.
    async fn make_room(&mut self, far: &mut dyn Far, boot: &str, initramfs: bool) -> Result<(), Error> {
        let Wanted { release, keep, .. } = self.wanted;
        let rescue = self.default.as_ref().and_then(|default| default.release.as_deref());
        let stays = |own: &str| {
            own == *release
                || own == self.there.running
                || Some(own) == rescue
                || keep.iter().any(|kept| kept == own)
        };
        let mut may_go = self.there.own.iter().map(|own| own.release.as_str()).filter(|own| !stays(own));
        let need = self.product.need(initramfs, self.site.margin);
        let args = [*release, boot];
        let call = Call { what: "look for room", text: sut::ROOM, args: &args, deadline: LOOKS };
        loop {
            let told = call.facts(far, &self.site.root).await?;
            let shorts = room::shorts(&call, far.host(), &told, &need)?;
            if shorts.is_empty() {
                return Ok(());
            }
            let Some(oldest) = may_go.next() else {
                let (release, host) = ((*release).to_owned(), far.host().to_owned());
                return Err(Error::NoRoom { release, host, shorts });
            };
            take_away(far, self.site, oldest, false).await?;
            self.removed.push(oldest.to_owned());
        }
    }

    async fn claim(&self, far: &mut dyn Far, boot: &str, tool: Option<&str>) -> Result<(), Error> {
        let Wanted { release, session, at, .. } = *self.wanted;
        let (config, map) = (self.product.config.is_some(), self.product.map.is_some());
        let manifest =
            Manifest { release, image: &self.product.image.sha256, session, at, boot, config, map, tool };
        let text = manifest.text();
        let what = format!("write the manifest of {release}");
        let args = [release, text.as_str()];
        let call = Call { what: &what, text: sut::CLAIM, args: &args, deadline: LOOKS };
        let told = call.told(far, &self.site.root).await?;
        match told.status {
            0 => Ok(()),
            FOREIGN => {
                let files = Facts::read(&told.stdout).all("foreign").map(str::to_owned).collect();
                Err(Error::Foreign { release: release.to_owned(), host: far.host().to_owned(), files })
            }
            _ => Err(call.failed(far.host(), &told)),
        }
    }

    async fn send(&self, far: &mut dyn Far) -> Result<(), Error> {
        for part in self.product.parts() {
            far.put(&part.path, &self.incoming(part)).await?;
        }
        Ok(())
    }

    fn incoming(&self, part: &Part) -> String {
        format!("{}{INCOMING}/{}/{}", self.site.root, self.wanted.release, part.name)
    }

    /// What arrived changed is sent once more.
    async fn place(&self, far: &mut dyn Far, boot: &str) -> Result<(), Error> {
        let release = self.wanted.release;
        let hash = |part: Option<&'_ Part>| part.map_or_else(|| "-".to_owned(), |part| part.sha256.clone());
        let Product { image, config, map, modules } = &self.product;
        let hashes = [hash(Some(image)), hash(config.as_ref()), hash(map.as_ref()), hash(modules.as_ref())];
        let args = [release, &hashes[0], &hashes[1], &hashes[2], &hashes[3], boot];
        let what = format!("unpack {release}");
        let call = Call { what: &what, text: sut::PLACE, args: &args, deadline: WRITES };
        let mut sent_again: Option<&str> = None;
        loop {
            let told = call.told(far, &self.site.root).await?;
            if told.status == 0 {
                return Ok(());
            }
            let facts = Facts::read(&told.stdout);
            let damaged = self.product.parts().find(|part| facts.one("damaged") == Some(part.name));
            match damaged {
                Some(part) if told.status == DIFFERS && sent_again != Some(part.name) => {
                    sent_again = Some(part.name);
                    far.put(&part.path, &self.incoming(part)).await?;
                }
                Some(part) if told.status == DIFFERS => {
                    let (release, host) = (release.to_owned(), far.host().to_owned());
                    return Err(Error::Damaged { release, host, file: part.name.to_owned() });
                }
                Some(_) | None => return Err(call.failed(far.host(), &told)),
            }
        }
    }

    async fn step(
        &self,
        far: &mut dyn Far,
        what: &str,
        text: &'static str,
        args: &[&str],
    ) -> Result<(), Error> {
        let what = format!("{what} {}", self.wanted.release);
        Call { what: &what, text, args, deadline: WRITES }.facts(far, &self.site.root).await?;
        Ok(())
    }
}

/// Whether the files of a kernel (`part` "all"), or those a boot loader reads ("boot"), are as they were put there.
pub(in crate::lab::ssh) async fn verify(
    far: &mut dyn Far,
    root: &str,
    release: &str,
    part: &str,
) -> Result<bool, Error> {
    let what = format!("look whether {release} is unchanged");
    let args = [release, part];
    let call = Call { what: &what, text: sut::VERIFY, args: &args, deadline: WRITES };
    let told = call.told(far, root).await?;
    match told.status {
        0 => Ok(true),
        DIFFERS => Ok(false),
        _ => Err(call.failed(far.host(), &told)),
    }
}
