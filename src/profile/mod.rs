//! bisect-profiles: from TOML to a resolved [`Recipe`].
//!
//! Owns: the profiles embedded in the program, the layering (built-in defaults, then the profile, then the command
//! line), the origin of every value, and all checks of a value before a session starts. Must not do: measure, resolve
//! a revision itself, look at the repository.
//!
//! Invariants: a key that is not known is an error, since a typing error would change the science; every problem of a
//! profile is reported at once, each with its position and what to do; a loaded recipe passes every check.
//! Tested in `tests.rs` here; the messages are golden files in tests/golden/profile/.

mod arch;
mod document;
mod layers;
mod problem;
mod reading;
mod recipe;
mod setup;
mod source;
mod ssh;
mod strangers;
#[cfg(test)]
mod tests;
mod value;

pub use layers::{Origin, Setting};
pub use problem::ProfileError;
pub use value::parse_duration;

use crate::model::CommitId;
use crate::session::Recipe;
use layers::Layers;
use recipe::Assembled;
use source::Source;

/// What the command line says about the recipe; each value as it was typed, so that it is checked like a profile's.
/// The flag that a message names stands behind each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Name of the judged metric (`--metric`). Another name than the profile's drops the profile's unit and direction.
    pub metric: Option<String>,
    /// Which way is better (`--direction`).
    pub direction: Option<String>,
    /// Smallest change worth finding (`--minimum-effect`).
    pub minimum_effect: Option<String>,
    /// The change that was reported (`--expect`).
    pub expected_effect: Option<String>,
    /// Probability asked of a conclusion (`--confidence`).
    pub confidence: Option<String>,
    /// What is looked for (`--find`).
    pub find: Option<String>,
    /// Machine time allowed (`--budget`).
    pub budget: Option<String>,
    /// Build command (`--build`); replaces a build of another kind.
    pub build: Option<String>,
    /// Boot command (`--boot`); replaces a machine of another kind.
    pub boot: Option<String>,
    /// Run command (`--run`); replaces a machine of another kind.
    pub run: Option<String>,
    /// Name of the set of tunables to search under (`--variant`).
    pub variant: Option<String>,
    /// Further ones (`--variant` again).
    pub also: Vec<String>,
    /// Name of the parser (`--parser`).
    pub parser: Option<String>,
    /// How a shell on a role is started, "NAME=COMMAND" (`--role`).
    pub roles: Vec<String>,
    /// Environment of steps and runs, "NAME=VALUE" (`--env`).
    pub env: Vec<String>,
    /// Path limits (`--path`); empty = the profile's.
    pub paths: Vec<String>,
    /// Good endpoint (`--good`).
    pub good: Option<String>,
    /// Bad endpoint (`--bad`).
    pub bad: Option<String>,
}

/// A profile with everything laid over it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The recipe.
    pub recipe: Recipe,
    /// One line on what it measures.
    pub description: String,
    /// Why it is made as it is.
    pub why: String,
    /// Good endpoint as a revision, where one is given.
    pub good: Option<String>,
    /// Bad endpoint as a revision, where one is given.
    pub bad: Option<String>,
    /// Path limits; empty = none.
    pub paths: Vec<String>,
    /// Every value with its origin, in the order of the documentation.
    pub settings: Vec<Setting>,
}

impl Loaded {
    /// Lines "key = value   # origin".
    pub fn explain(&self) -> Vec<String> {
        /// Wider values do not push the origins of all others out of an 80 column terminal.
        const ALIGNED: usize = 48;
        let left: Vec<String> = self.settings.iter().map(|s| format!("{} = {}", s.key, s.value)).collect();
        let width = left.iter().map(|l| l.chars().count()).filter(|&w| w <= ALIGNED).max().unwrap_or(0);
        left.iter().zip(&self.settings).map(|(l, s)| format!("{l:width$}   # {}", s.origin)).collect()
    }
}

/// A profile of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// One line on what it measures.
    pub description: String,
}

/// What a checked profile is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// What it leaves to the command line, e.g. "machine.run (--run)"; empty when it is complete.
    pub needs: Vec<String>,
}

/// The text of a new profile: every key, commented, with what it is for.
pub fn template() -> &'static str {
    source::TEMPLATE
}

/// Resolves a revision of the user's repository. Errors with the reason.
pub type Resolver<'a> = &'a dyn Fn(&str) -> Result<CommitId, String>;

/// The profiles that are embedded in the program, by name.
pub fn list() -> Vec<Listed> {
    let described = |(name, source): (&str, Source)| {
        // Every embedded profile is valid (a test loads each), so its problems need no report here.
        let (_, assembled) = assemble(&source, &Overrides::default(), None);
        Listed { name: name.to_owned(), description: assembled.description }
    };
    source::embedded().map(described).collect()
}

/// Loads the embedded profile of this name or the profile in this file, under `overrides`. Revisions in it are
/// resolved by `resolve`.
pub fn load(name_or_file: &str, overrides: &Overrides, resolve: Resolver) -> Result<Loaded, ProfileError> {
    let source = source::find(name_or_file)?;
    let (layers, assembled) = assemble(&source, overrides, Some(resolve));
    let settings = layers.finish(true)?;
    let Assembled { recipe, description, why, good, bad, paths } = assembled;
    Ok(Loaded { recipe, description, why, good, bad, paths, settings })
}

/// Checks the embedded profile of this name or the profile in this file by itself: a value that the command line can
/// still give may be missing, and revisions are not resolved.
pub fn check(name_or_file: &str) -> Result<Checked, ProfileError> {
    let source = source::find(name_or_file)?;
    let (layers, assembled) = assemble(&source, &Overrides::default(), None);
    let needs = layers.needs();
    layers.finish(false)?;
    Ok(Checked { name: assembled.recipe.profile, needs })
}

fn assemble<'s>(
    source: &'s Source,
    overrides: &Overrides,
    resolve: Option<Resolver>,
) -> (Layers<'s>, Assembled) {
    let mut layers = Layers::new(source);
    layers.command_line(overrides);
    let assembled = recipe::assemble(&mut layers, resolve);
    (layers, assembled)
}
