//! What every form says of a session in the same words: keys and what belongs to them.

use super::culprit::certainty;
use super::facts::Report;
use super::path::{Phase, Stretch};
use super::text::counted;
use crate::model::{Check, CommitId, ConclusionKind};
use crate::session::duration;

/// Metrics beside the judged one that are listed, those with the largest change.
const SEEN: usize = 8;

/// Symbols of a changed configuration that are listed.
const SYMBOLS: usize = 12;

/// Relative effects below this are often code layout: forcing 32-byte alignment of functions moved hackbench by up to
/// 2 % and netperf by far more (Linux commit 09c60546).
const LAYOUT_EFFECT: f64 = 0.05;

/// Keys and words, in order; an empty key goes on with the one before.
#[derive(Debug, Default)]
pub(super) struct Pairs(pub Vec<(String, String)>);

impl Pairs {
    fn line(&mut self, key: &str, words: &str) {
        self.0.push((key.to_owned(), words.to_owned()));
    }
}

/// What kind of end it is, as a heading.
pub(super) fn title(kind: ConclusionKind) -> &'static str {
    match kind {
        ConclusionKind::Culprit => "CULPRIT",
        ConclusionKind::CulpritSet => "SUSPECTS ONLY",
        ConclusionKind::NoDifference => "NO DIFFERENCE SHOWN",
        ConclusionKind::OppositeSign => "OPPOSITE SIGN",
        ConclusionKind::NoopChange => "NO-OP CHANGE",
        ConclusionKind::NotMonotonic => "NOT MONOTONIC",
        ConclusionKind::Stopped => "STOPPED",
        ConclusionKind::Restored => "RESTORED",
        ConclusionKind::Partial => "PARTLY RESTORED",
        ConclusionKind::NoEffect => "NO EFFECT",
        ConclusionKind::CannotRevert => "CANNOT REVERT",
        ConclusionKind::AlreadyReverted => "ALREADY REVERTED",
        ConclusionKind::NotMeasurable => "NOT MEASURABLE",
        ConclusionKind::Surveyed => "SURVEY",
    }
}

/// Commit, effect, share and certainty.
pub(super) fn conclusion(report: &Report) -> Pairs {
    let mut out = Pairs::default();
    let end = &report.conclusion;
    if let (Some(commit), Some(subject)) = (&end.commit, &end.subject) {
        out.line("commit", commit.as_str());
        out.line("subject", subject);
    }
    if let Some(effect) = end.effect {
        let against = if end.restored.is_some() { "against bad" } else { "against its parent" };
        let words = effect.words(report.metric.direction);
        out.line("effect", &format!("{} {words}, {against}", report.metric.name));
    }
    if let Some(effect) = end.sides {
        let words = effect.words(report.metric.direction);
        out.line("step", &format!("{} {words}, all kernels with it against all without", report.metric.name));
    }
    if let Some(part) = end.explained {
        out.line("explains", &format!("{part} of the endpoint difference"));
    }
    if let Some(part) = end.restored {
        out.line("restored", &format!("{part} of the endpoint difference"));
    }
    if let Some(probability) = end.probability {
        out.line("certainty", &certainty(probability));
    }
    let beside = if end.kind == ConclusionKind::NotMonotonic { &[][..] } else { &end.not_monotonic };
    for (bad, good) in beside {
        out.line("not monotonic", &format!("{} is bad, its descendant {} good", bad.short(), good.short()));
    }
    if end.kind == ConclusionKind::Culprit {
        let between = format!(
            "one of the edges between {} and {}: a search finds one, and says nothing of others that cancel out",
            report.good.rev, report.bad.rev
        );
        out.line("note", &between);
    }
    out
}

/// What was compared, by what, in which range.
pub(super) fn setting(report: &Report) -> Pairs {
    let mut out = Pairs::default();
    out.line("session", &format!("{} ({})", report.session, report.profile));
    out.line("good", &format!("{} {}", report.good.commit.short(), report.good.rev));
    out.line("bad", &format!("{} {}", report.bad.commit.short(), report.bad.rev));
    let unit =
        if report.metric.unit.is_empty() { String::new() } else { format!(" [{}]", report.metric.unit) };
    out.line("metric", &format!("{}{unit}, {}", report.metric.name, report.metric.direction));
    if let Some(facts) = &report.read_back {
        out.line("variant", &facts.words());
    }
    let ends = &report.endpoints;
    if let Some(effect) = ends.effect {
        let words = effect.words(report.metric.direction);
        out.line("endpoints", &format!("{words}; {} boots, {} runs", ends.boots, ends.runs));
    }
    for seen in report.also_seen.iter().take(SEEN) {
        out.line("also seen", &seen.words());
    }
    if !report.also_seen.is_empty() {
        let more = report.also_seen.len().saturating_sub(SEEN) as u64;
        let more =
            if more > 0 { format!("; {} in the JSON", counted(more, "more metric")) } else { String::new() };
        out.line("", &format!("(medians of runs, good to bad; not judged{more})"));
    }
    let range = if report.purpose == "bisect" {
        format!("{}; ", counted(report.range, "commit"))
    } else {
        String::new()
    };
    out.line("judged", &format!("{range}intervals at {:.0} %", report.confidence * 100.0));
    out
}

/// What a maintainer asks first: was it verified, was it reverted, can it be code layout?
pub(super) fn checks(report: &Report) -> Pairs {
    let mut out = Pairs::default();
    if report.conclusion.kind != ConclusionKind::Culprit {
        return out;
    }
    let word = |check: Check| match check {
        Check::Pass => "PASS",
        Check::Fail => "FAIL",
        Check::NotRun => "NOT RUN",
    };
    let checks = &report.checks;
    let words = format!(
        "verify {}, revert {}, alignment {}",
        word(checks.verify),
        word(checks.revert),
        word(checks.alignment)
    );
    out.line("checks", &words);
    if let Some(revert) = &report.reverted {
        out.line("", &format!("revert: {}", revert.words));
    }
    let small = report.conclusion.effect.is_some_and(|e| e.relative.abs() < LAYOUT_EFFECT);
    if small && checks.alignment == Check::NotRun {
        out.line(
            "caution",
            "code layout alone can make a difference of this size; alignment was not checked",
        );
    }
    out
}

/// "under NO_RUN_TO_PARITY: +0.3 % (-1.2 to +1.9 %), within the noise; 6 and 6 boots".
pub(super) fn further(report: &Report) -> Pairs {
    let mut out = Pairs::default();
    let several =
        report.conclusion.culprits.len() > 1 || report.further.windows(2).any(|f| f[0].parent != f[1].parent);
    for (at, facts) in report.further.iter().enumerate() {
        let of = if several {
            format!(" ({} against {})", facts.commit.short(), facts.parent.short())
        } else {
            String::new()
        };
        let words = match (&facts.reason, facts.effect) {
            (Some(reason), _) => format!("not measured: {reason}"),
            (None, Some(effect)) => {
                let words = effect.words(report.metric.direction);
                format!("{words}; {} and {} boots", facts.boots, facts.parent_boots)
            }
            (None, None) => "not measured yet".to_owned(),
        };
        let key = if at == 0 { "variants" } else { "" };
        out.line(key, &format!("under {}{of}: {words}", facts.variant));
    }
    if !report.further.is_empty() {
        out.line("", "(culprit against parent, beside the verdict and no part of it)");
    }
    out
}

/// The guards that acted.
pub(super) fn guards(report: &Report) -> Pairs {
    let mut out = Pairs::default();
    for guard in &report.guards {
        out.line(&guard.guard.replace('_', "-"), &guard.words);
    }
    out
}

/// Where the search stands: leaders, credible set, what is measured next and why.
pub(super) fn search(report: &Report) -> Pairs {
    let mut out = Pairs::default();
    let Some(search) = &report.search else { return out };
    for leader in &search.leaders {
        let (percent, short) = (leader.probability * 100.0, leader.commit.short());
        out.line("likely", &format!("{percent:.1} % {short} {}", leader.subject));
    }
    let words = format!(
        "{} hold 95 %; {:.2} bits are open",
        counted(search.credible as u64, "commit"),
        search.entropy_bits
    );
    out.line("credible", &words);
    if let Some(next) = &search.next {
        out.line("measures", &format!("{} {}: {}", next.measure, next.commit.short(), next.why));
    }
    out
}

/// Offers to leave broken lines out of another search.
pub(super) fn stretches(report: &Report) -> Pairs {
    let mut out = Pairs::default();
    for stretch in &report.broken_stretches {
        let words = format!(
            "{} commits in a row, {} tried, none can be measured; to leave them out of another search: --skip {}",
            stretch.commits, stretch.tried, stretch.range
        );
        out.line("broken", &words);
    }
    out
}

/// What the machines were like.
pub(super) fn environment(report: &Report) -> Pairs {
    let mut out = Pairs::default();
    for (key, words) in report.environment.iter().flat_map(super::environment::lines) {
        out.line(key, &words);
    }
    out
}

/// The kernels before the named commit, and what changed in the configuration with it.
pub(super) fn parents(report: &Report) -> Pairs {
    let mut out = Pairs::default();
    for parent in &report.parents {
        let effect = parent.effect.map_or_else(
            || "the good endpoint".to_owned(),
            |effect| format!("{} against good", effect.words(report.metric.direction)),
        );
        let words = format!(
            "{} {}: {effect}; {}, {}",
            parent.commit.short(),
            parent.subject,
            counted(parent.boots as u64, "boot"),
            counted(parent.runs as u64, "run")
        );
        out.line("parent", &words);
    }
    if !report.parents.is_empty() {
        let change = &report.config_change;
        let more = change.len().saturating_sub(SYMBOLS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let words = match change.len() {
            0 => "the same as the parent's".to_owned(),
            _ => format!("{}{more}", change[..change.len().min(SYMBOLS)].join(" ")),
        };
        out.line("configuration", &words);
    }
    out
}

/// What it cost, and what halving would have.
pub(super) fn expense(report: &Report) -> Pairs {
    let mut out = Pairs::default();
    let spent = &report.spent;
    out.line("spent", &super::text::expense(spent));
    if spent.sut_seconds > 0.0 {
        let words = format!(
            "of it the SUT {}, builds {}",
            duration(spent.sut_seconds),
            duration(spent.build_seconds)
        );
        out.line("", &words);
    }
    if let Some(halving) = &spent.halving {
        let words = format!(
            "halving with {} a kernel ({} each), had the noise been known and without a confirmation: {}, {}",
            counted(halving.boots, "boot"),
            counted(halving.runs, "run"),
            counted(halving.kernels, "kernel"),
            duration(halving.seconds)
        );
        out.line("", &words);
    }
    out
}

/// How it is done again, and handed on.
pub(super) fn again(report: &Report) -> Pairs {
    let mut out = Pairs::default();
    if !report.command.is_empty() {
        out.line("again", &report.command);
    }
    out.line("hand on", &format!("sched-bisect export {}", report.session));
    out
}

/// What a stretch of the way is called: its kernel, or what it was for.
pub(super) fn stretch_name(stretch: &Stretch) -> String {
    match stretch.first().phase {
        Phase::Search => stretch.first().commit.short().to_owned(),
        other @ (Phase::Endpoints
        | Phase::Reference
        | Phase::Confirmation
        | Phase::Variant
        | Phase::Revert
        | Phase::Survey) => other.word().to_owned(),
    }
}

/// Why it was taken, and what it told.
pub(super) fn stretch_words(stretch: &Stretch) -> String {
    let (first, last) = (stretch.first(), stretch.last());
    let mut parts = Vec::new();
    if first.phase == Phase::Search && !first.why.is_empty() {
        parts.push(first.why.clone());
    }
    let boots = stretch.steps.iter().filter(|s| s.boot.is_some()).count() as u64;
    let runs = stretch.steps.iter().map(|s| s.runs.len() as u64).sum();
    let mut kernels: Vec<&CommitId> = stretch.steps.iter().map(|s| &s.commit).collect();
    kernels.sort_unstable();
    kernels.dedup();
    let of = if kernels.len() > 1 { format!(" of {} kernels", kernels.len()) } else { String::new() };
    match &first.lost {
        Some(reason) => parts.push(reason.clone()),
        None => parts.push(format!("{}{of}, {}", counted(boots, "boot"), counted(runs, "run"))),
    }
    parts.extend(stretch.steps.iter().flat_map(|s| s.verdicts.iter().cloned()));
    if let (Some(bits), Some((leader, p))) = (last.entropy_bits, last.believed.first()) {
        parts.push(format!("{bits:.2} bits open, {} leads with {}", leader.short(), share(*p)));
    }
    parts.join("; ")
}

/// A probability in per cent that is never rounded up to certainty.
fn share(probability: f64) -> String {
    if probability > 0.999 { "above 99.9 %".to_owned() } else { format!("{:.1} %", probability * 100.0) }
}
