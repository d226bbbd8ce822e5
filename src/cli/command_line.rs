//! A session's own command, as a shell takes it: what a report says that reproduces it.

use super::args::{Options, Place, RevertTest, Start, Survey};
use crate::report::word;
use std::path::Path;

/// Words that are collected, quoted as they come.
#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn flag<T: AsRef<str>>(&mut self, flag: &str, value: Option<T>) {
        if let Some(value) = value {
            self.0.extend([flag.to_owned(), word(value.as_ref())]);
        }
    }

    fn flags(&mut self, flag: &str, values: &[String]) {
        values.iter().for_each(|value| self.flag(flag, Some(value)));
    }

    fn measuring(&mut self, place: &Place, options: &Options) {
        let profile = options.profile.as_ref().map(|name| {
            let path = Path::new(name);
            if path.is_file() { absolute(path) } else { name.clone() }
        });
        self.flag("--repo", (place.repo != Path::new(".")).then(|| absolute(&place.repo)));
        self.flag("--state-dir", place.state_dir.as_deref().map(absolute));
        self.flag("--profile", profile);
        self.flag("--metric", options.metric.as_ref());
        self.flag("--direction", options.direction.as_ref());
        self.flag("--minimum-effect", options.minimum_effect.as_ref());
        self.flag("--confidence", options.confidence.as_ref());
        self.flag("--build", options.build.as_ref());
        self.flag("--boot", options.boot.as_ref());
        self.flag("--run", options.run.as_ref());
        self.flag("--parser", options.parser.as_ref());
        self.flags("--role", &options.roles);
        self.flags("--env", &options.env);
    }

    /// What [`Words::measuring`] leaves out, but for the session's name: that is taken.
    fn searching(&mut self, options: &Options) {
        self.flags("--path", &options.paths);
        self.flag("--expect", options.expect.as_ref());
        self.flag("--find", options.find.as_ref());
        self.flag("--budget", options.budget.as_ref());
        self.flags("--variant", &options.variants);
        self.flag("--seed", Some(options.seed.to_string()));
    }
}

/// A file is found from wherever the command is pasted.
fn absolute(path: &Path) -> String {
    let found = path.canonicalize().or_else(|_| std::path::absolute(path));
    found.unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

fn command(place: &Place, options: &Options, first: &[&str], own: impl FnOnce(&mut Words)) -> String {
    let mut words = Words(vec!["sched-bisect".to_owned()]);
    words.0.extend(first.iter().map(|w| word(w)));
    own(&mut words);
    words.measuring(place, options);
    words.searching(options);
    words.0.join(" ")
}

/// What a search between two kernels is to be given so that it measures as these options say.
pub(super) fn arguments(place: &Place, options: &Options) -> String {
    let mut words = Words::default();
    words.measuring(place, options);
    words.0.join(" ")
}

/// `start` again; the endpoints as they were given.
pub(super) fn start(place: &Place, start: &Start) -> String {
    let ends: Vec<&str> = start.good.iter().chain(&start.bad).map(String::as_str).collect();
    let first = [&["start"], &ends[..]].concat();
    command(place, &start.options, &first, |words| words.flags("--skip", &start.skip))
}

/// `revert-test` again.
pub(super) fn revert_test(place: &Place, test: &RevertTest) -> String {
    command(place, &test.options, &["revert-test", &test.commit], |words| {
        words.flag("--on", test.on.as_ref());
        words.flag("--against", test.against.as_ref());
        words.flag("--mainline", test.mainline.map(|n| n.to_string()));
    })
}

/// `survey` again.
pub(super) fn survey(place: &Place, asked: &Survey) -> String {
    let revs: Vec<&str> = asked.revs.iter().map(String::as_str).collect();
    let first = [&["survey"], &revs[..]].concat();
    command(place, &asked.options, &first, |words| {
        words.flag("--baseline", asked.baseline.as_ref());
        words.flag("--boots", asked.boots.as_ref());
        words.flag("--runs", asked.runs.as_ref());
        words.flags("--also", &asked.also);
        if asked.own_baseline {
            words.0.push("--own-baseline".to_owned());
        }
    })
}
