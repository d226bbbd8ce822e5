//! What the documentation says is there: links, commands and their options, keys of profiles, hooks.

use crate::common::rig::{command_in, said};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A page: its path, its text, and its lines apart by what they are.
struct Page {
    path: PathBuf,
    text: String,
    prose: Vec<String>,
    code: Vec<String>,
}

impl Page {
    fn read(path: &Path) -> Self {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (mut prose, mut code) = (Vec::new(), Vec::new());
        // Indented code begins after a blank line.
        let (mut is_fenced, mut may_begin) = (false, true);
        for line in text.lines() {
            let is_fence = line.trim_start().starts_with("```");
            let is_code = is_fenced || (line.starts_with("    ") && may_begin);
            match (is_fence, is_code) {
                (true, _) => is_fenced = !is_fenced,
                (false, true) => code.push(line.trim().to_owned()),
                (false, false) => prose.push(line.to_owned()),
            }
            may_begin = is_code || line.trim().is_empty();
        }
        Self { path: path.to_owned(), text, prose, code }
    }

    fn name(&self) -> String {
        self.path.strip_prefix(root()).expect("in the repository").display().to_string()
    }

    /// Targets of its links and images.
    fn links(&self) -> Vec<String> {
        let link = regex::Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
        let spans = regex::Regex::new("`[^`]*`").expect("a pattern");
        let text = self.prose.join("\n");
        // A code span may hold brackets; one that is a link's text keeps its place.
        let text = spans.replace_all(&text, "code");
        link.captures_iter(&text).map(|found| found[1].to_owned()).collect()
    }

    /// Anchors of its headings, as the usual viewers of Markdown make them.
    fn anchors(&self) -> BTreeSet<String> {
        let headings = self.prose.iter().filter(|line| line.starts_with('#'));
        headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
    }

    /// Invocations of the program in its code: lines that begin with it, whole where they go on after a backslash, and what
    /// code spans begin with it.
    fn invocations(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut lines = self.code.iter();
        while let Some(line) = lines.next() {
            let mut whole = line.trim_start_matches("$ ").to_owned();
            while whole.ends_with('\\') {
                whole.pop();
                whole.push_str(lines.next().map_or("", String::as_str));
            }
            found.extend(whole.split("&&").map(|part| part.trim().to_owned()));
        }
        let span = regex::Regex::new("`([^`]+)`").expect("a pattern");
        let prose = self.prose.join("\n");
        found.extend(span.captures_iter(&prose).map(|span| span[1].replace('\n', " ")));
        found.retain(|line| line.starts_with("sched-bisect "));
        found
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Pages beside docs/*.md.
const BESIDE: [&str; 4] = ["README.md", "CONTRIBUTING.md", "bisect-profiles/README.md", "hooks/README.md"];

/// All of them.
fn pages() -> Vec<Page> {
    let docs = std::fs::read_dir(root().join("docs")).expect("docs/");
    let mut paths: Vec<PathBuf> = docs.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.extend(BESIDE.map(|path| root().join(path)));
    paths.sort();
    paths.iter().map(|path| Page::read(path)).collect()
}

fn page(name: &str) -> Page {
    Page::read(&root().join(name))
}

/// Fails with all faults at once.
#[track_caller]
fn none(faults: &[String]) {
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn output(args: &[&str]) -> String {
    said(&command_in(root(), args).output().expect("the program starts")).exits(0).out
}

/// What the program knows: the options of each subcommand ("start", "profile show"), by its own help.
fn options() -> &'static BTreeMap<String, BTreeSet<String>> {
    static KNOWN: OnceLock<BTreeMap<String, BTreeSet<String>>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut known = BTreeMap::new();
        learn(&[], &mut known);
        known
    })
}

fn learn(command: &[&str], known: &mut BTreeMap<String, BTreeSet<String>>) {
    let help = output(&[command, &["--help"]].concat());
    let option = regex::Regex::new(r"^ +(-\w, )?(--[a-z][a-z-]*)").expect("a pattern");
    let short = regex::Regex::new(r"^ +(-\w)\b").expect("a pattern");
    let of = |pattern: &regex::Regex, group: usize| -> Vec<String> {
        help.lines().filter_map(|line| Some(pattern.captures(line)?[group].to_owned())).collect()
    };
    known.insert(command.join(" "), of(&option, 2).into_iter().chain(of(&short, 1)).collect());
    let below = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in below.take_while(|line| !line.is_empty()) {
        let name = line.split_whitespace().next().expect("not empty");
        if name != "help" {
            learn(&[command, &[name]].concat(), known);
        }
    }
}

/// Words of a shell line without quotes; a comment ends it, as do a pipe and a redirection.
fn words(line: &str) -> Vec<String> {
    let word = regex::Regex::new(r#"(?:[^\s'"]|'[^']*'|"[^"]*")+"#).expect("a pattern");
    let words = word.find_iter(line).map(|found| found.as_str().to_owned());
    words.take_while(|word| !["#", "|", ">", "<", ";", "&"].iter().any(|end| word.starts_with(end))).collect()
}

/// What is wrong with an invocation, if anything is.
fn fault(line: &str) -> Option<String> {
    let words = words(line);
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let is_name = |word: &&&str| options().contains_key(**word);
    let Some(name) = words.first().filter(is_name) else {
        let is_flag = words.first().is_some_and(|word| options()[""].contains(*word));
        return (!is_flag).then(|| "no such subcommand".to_owned());
    };
    let two = words.get(1).map(|below| format!("{name} {below}"));
    let name = two.filter(|two| options().contains_key(two)).unwrap_or_else(|| (*name).to_owned());
    let flags = words.iter().filter(|word| word.starts_with("--") && word.len() > 2);
    let flags: Vec<&str> = flags.map(|word| word.split('=').next().unwrap_or(word)).collect();
    let unknown = flags.into_iter().find(|flag| !options()[&name].contains(*flag))?;
    Some(format!("{name} knows no {unknown}"))
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let mut faults = Vec::new();
    for page in pages() {
        for link in page.links().iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            let (file, heading) = link.split_once('#').map_or((link.as_str(), None), |(f, h)| (f, Some(h)));
            let target = if file.is_empty() {
                page.path.clone()
            } else {
                page.path.parent().expect("a file").join(file)
            };
            if !target.exists() {
                faults.push(format!("{}: {link}: no such file", page.name()));
            } else if heading.is_some_and(|heading| !Page::read(&target).anchors().contains(heading)) {
                faults.push(format!("{}: {link}: no such heading", page.name()));
            }
        }
    }
    none(&faults);
}

#[test]
fn every_command_of_the_documentation_is_one_that_the_program_knows() {
    let mut faults = Vec::new();
    let mut count = 0;
    for page in pages() {
        for line in page.invocations() {
            count += 1;
            faults.extend(fault(&line).map(|fault| format!("{}: {line}: {fault}", page.name())));
        }
    }
    none(&faults);
    assert!(count > 20, "only {count} commands were found");
}

#[test]
fn commands_that_the_program_does_not_know_are_found() {
    assert_eq!(fault("sched-bisect start a b --metric 'a --wrong b' # --nor-this"), None);
    assert_eq!(fault("sched-bisect profile show x | grep -- --any"), None);
    assert_eq!(fault("sched-bisect --version"), None);
    assert_eq!(fault("sched-bisect begin a b").as_deref(), Some("no such subcommand"));
    assert_eq!(fault("sched-bisect start a --wrong=b").as_deref(), Some("start knows no --wrong"));
    assert_eq!(
        fault("sched-bisect profile show --metric m").as_deref(),
        Some("profile show knows no --metric")
    );
}

#[test]
fn the_index_of_the_documentation_names_every_page() {
    let links: BTreeSet<String> = page("docs/README.md").links().into_iter().collect();
    let mut faults = Vec::new();
    for page in pages() {
        let name = page.name();
        if let Some(name) =
            name.strip_prefix("docs/").filter(|name| *name != "README.md" && !links.contains(*name))
        {
            faults.push(format!("docs/README.md has no link to {name}"));
        }
    }
    none(&faults);
}

/// Keys that a text of a profile has, commented or not, with NAME for what the user names.
fn keys(toml: &str) -> BTreeSet<String> {
    let table = regex::Regex::new(r"^#?\[+([a-z_A-Z.0-9-]+)\]+").expect("a pattern");
    let key = regex::Regex::new(r#"^(?:#(?:   )?)?("[^"]+"|[a-zA-Z_]+) = "#).expect("a pattern");
    let mut found = BTreeSet::new();
    let mut section = String::new();
    for line in toml.lines() {
        if let Some(name) = table.captures(line) {
            section = name[1].to_owned();
        } else if let Some(name) = key.captures(line) {
            let full =
                if section.is_empty() { name[1].to_owned() } else { format!("{section}.{}", &name[1]) };
            found.insert(named(&full));
        }
    }
    found
}

/// A key as the page has it.
fn named(key: &str) -> String {
    let parts: Vec<&str> = key.splitn(4, '.').collect();
    match parts[..] {
        [table @ ("env" | "roles"), _, ..] => format!("{table}.NAME"),
        ["variant", _, key, ..] => format!("variant.NAME.{key}"),
        ["workload", "metrics", _, key] => format!("workload.metrics.NAME.{key}"),
        _ => key.to_owned(),
    }
}

#[test]
fn every_key_of_a_new_profile_and_of_the_shipped_ones_is_described() {
    let text = page("docs/profiles.md").text;
    let mut known = keys(&output(&["profile", "new"]));
    let shipped = std::fs::read_dir(root().join("bisect-profiles")).expect("bisect-profiles/");
    for entry in shipped {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            known.extend(keys(&std::fs::read_to_string(&path).expect("a profile")));
        }
    }
    // What is shown where nothing is set has keys that neither of them has.
    let shown = output(&["profile", "show", "qemu-hackbench"]);
    let shown = shown.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = "));
    known.extend(shown.map(|(key, _)| named(key)));
    assert!(known.len() > 60, "{known:?}");
    let missing = known.iter().filter(|key| !text.contains(&format!("`{key}`")));
    none(&missing.map(|key| format!("docs/profiles.md has no `{key}`")).collect::<Vec<_>>());
}

#[test]
fn every_shipped_hook_is_named() {
    let text = page("docs/hooks.md").text;
    let hooks = std::fs::read_dir(root().join("hooks")).expect("hooks/");
    let names = hooks.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let missing = names.filter(|name| name.ends_with(".sh") && !text.contains(&format!("(../hooks/{name})")));
    none(&missing.map(|name| format!("docs/hooks.md has no link to hooks/{name}")).collect::<Vec<_>>());
}
