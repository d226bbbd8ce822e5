//! Where a profile's text comes from: the program itself or a file.

use super::problem::ProfileError;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Embedded profiles by name.
const PROFILES: [(&str, &str); 10] = [
    ("qemu-hackbench", include_str!("../../bisect-profiles/qemu-hackbench.toml")),
    ("hackbench", include_str!("../../bisect-profiles/hackbench.toml")),
    ("schbench", include_str!("../../bisect-profiles/schbench.toml")),
    ("perf-bench-sched", include_str!("../../bisect-profiles/perf-bench-sched.toml")),
    ("stress-ng-context", include_str!("../../bisect-profiles/stress-ng-context.toml")),
    ("cyclictest", include_str!("../../bisect-profiles/cyclictest.toml")),
    ("mysql-hammerdb", include_str!("../../bisect-profiles/mysql-hammerdb.toml")),
    ("mariadb-sysbench-oltp", include_str!("../../bisect-profiles/mariadb-sysbench-oltp.toml")),
    ("postgres-pgbench", include_str!("../../bisect-profiles/postgres-pgbench.toml")),
    ("command", include_str!("../../bisect-profiles/command.toml")),
];

/// A profile to begin with: every key with what it is for.
pub(super) const TEMPLATE: &str = include_str!("../../bisect-profiles/template.toml");

/// Files that embedded profiles name.
const FILES: [(&str, &str); 1] =
    [("qemu-hackbench.config", include_str!("../../bisect-profiles/qemu-hackbench.config"))];

/// A profile's text and where it is from.
#[derive(Debug)]
pub(super) struct Source {
    /// How messages name it: "profile NAME" or the file's path as given.
    pub label: String,
    /// Name of a profile that gives none itself.
    pub default_name: String,
    /// The TOML.
    pub text: Cow<'static, str>,
    /// Directory of the file; `None`: embedded.
    dir: Option<PathBuf>,
}

impl Source {
    /// Whether it is part of the program.
    pub fn is_embedded(&self) -> bool {
        self.dir.is_none()
    }

    /// The content of a file that the profile names, relative to itself. Errors with the reason.
    pub fn attached(&self, name: &str) -> Result<String, String> {
        let Some(dir) = &self.dir else {
            let file = FILES.iter().find(|(file, _)| *file == name);
            return file
                .map(|(_, content)| (*content).to_owned())
                .ok_or_else(|| format!("no file {name:?} is embedded"));
        };
        let path = dir.join(name);
        let bytes =
            std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8 text", path.display()))
    }
}

/// All embedded profiles.
pub(super) fn embedded() -> impl Iterator<Item = (&'static str, Source)> {
    PROFILES.into_iter().map(|(name, text)| {
        let source = Source {
            label: format!("profile {name}"),
            default_name: name.to_owned(),
            text: text.into(),
            dir: None,
        };
        (name, source)
    })
}

/// The embedded profile of this name, else the profile in this file.
pub(super) fn find(name_or_file: &str) -> Result<Source, ProfileError> {
    if let Some((_, source)) = embedded().find(|(name, _)| *name == name_or_file) {
        return Ok(source);
    }
    let path = Path::new(name_or_file);
    let is_path = name_or_file.contains('/') || path.extension().is_some_and(|e| e == "toml");
    if !is_path && !path.is_file() {
        let known: Vec<&str> = PROFILES.iter().map(|(name, _)| *name).collect();
        return Err(ProfileError::Unknown { name: name_or_file.to_owned(), known: known.join(", ") });
    }
    let unreadable = |reason: String| ProfileError::Unreadable { file: name_or_file.to_owned(), reason };
    let bytes = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|&&b| b == b'\n').count() + 1;
        unreadable(format!("line {line} is not UTF-8 text"))
    })?;
    Ok(Source {
        label: name_or_file.to_owned(),
        default_name: path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
        text: text.into(),
        dir: Some(path.parent().unwrap_or(Path::new("")).to_owned()),
    })
}
