//! What the end of a job on a machine means for the step that it belongs to.

use super::far::FarError;
use super::job::JobEnd;
use crate::lab::stage::Called;
use crate::model::{InfraFailure, InfraKind, Untestable, UntestableKind};
use crate::workload::Output;

/// Longest quotation of what a step said last, in characters.
const QUOTED: usize = 300;

/// Sorts a job's end by the contract of hooks/README.md. `said` is what the console shows of a kernel that died meanwhile;
/// `is_sut`: the machine runs the candidate.
pub(super) fn called(what: &str, end: JobEnd, is_sut: bool, said: Option<String>) -> Called {
    match end {
        JobEnd::Exit { status: 0, stdout, stderr } => Called::Done(Output { stdout, stderr, status: 0 }),
        JobEnd::Exit { status, stdout, stderr } => exited(what, status, &stdout, stderr),
        JobEnd::TooMuch(bytes) => Called::Invalid(format!("it printed {bytes} bytes, more than is kept")),
        JobEnd::Late => Called::Late,
        JobEnd::Died => Called::Infra(InfraFailure {
            kind: InfraKind::Killed,
            reason: format!("the {what} command was ended on the machine by somebody else"),
        }),
        JobEnd::Restarted(_) if is_sut => Called::Untestable(Untestable {
            kind: UntestableKind::Panic,
            reason: match said {
                Some(splat) => format!("{splat} (under load: during the {what})"),
                None => format!("died under load: the machine restarted by itself during the {what}"),
            },
        }),
        JobEnd::Restarted(_) => Called::Infra(InfraFailure {
            kind: InfraKind::Unreachable,
            reason: format!("a machine beside the SUT restarted during the {what}"),
        }),
    }
}

fn exited(what: &str, status: i32, stdout: &[u8], stderr: Vec<u8>) -> Called {
    let said = last_words(&stderr)
        .or_else(|| last_words(stdout))
        .map_or(String::new(), |words| format!(": {words}"));
    let infra = |kind, reason| Called::Infra(InfraFailure { kind, reason });
    match status {
        75 => {
            infra(InfraKind::TryAgain, format!("the {what} command asked to be tried again (exit 75){said}"))
        }
        125 => Called::CannotMeasure(format!(
            "the {what} command says that this commit cannot be measured (exit 125){said}"
        )),
        126 | 127 => infra(
            InfraKind::BrokenCommand,
            format!(
                "the {what} command is broken (exit {status}: {}){said}; run it by hand on the machine",
                if status == 126 { "not executable" } else { "not found" }
            ),
        ),
        // How a shell reports that its child died of a signal.
        129..=192 => infra(
            InfraKind::Killed,
            format!("the {what} command was killed by signal {}{said}", status - 128),
        ),
        _ => Called::Failed { reason: format!("the {what} command failed with exit {status}{said}"), stderr },
    }
}

fn last_words(stream: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&stream[stream.len().saturating_sub(4096)..]).into_owned();
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(QUOTED).collect())
}

/// A failure of the link is ours.
impl From<FarError> for InfraFailure {
    fn from(error: FarError) -> Self {
        let kind = match &error {
            FarError::NotUp { .. } | FarError::Lost { .. } => InfraKind::Unreachable,
            FarError::Refused { .. } => InfraKind::Missing,
            FarError::Late { .. } => InfraKind::Timeout,
            FarError::File { .. } => InfraKind::Other,
        };
        Self { kind, reason: format!("failed to {error}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(status: i32) -> Called {
        called("run", JobEnd::Exit { status, stdout: Vec::new(), stderr: b"oops\n".to_vec() }, true, None)
    }

    #[test]
    fn case_58_each_status_means_what_the_contract_says_and_255_is_only_a_status() {
        assert!(matches!(exit(0), Called::Done(_)));
        for status in [1, 3, 124, 193, 255] {
            let Called::Failed { reason, .. } = exit(status) else { panic!("{status} is the workload's") };
            assert!(reason.contains(&status.to_string()) && reason.ends_with("oops"), "{reason}");
        }
        assert!(matches!(exit(125), Called::CannotMeasure(_)));
        let kind = |status| {
            let Called::Infra(failure) = exit(status) else { panic!("{status} is ours") };
            failure.kind
        };
        assert_eq!(
            [75, 126, 127, 137].map(kind),
            [InfraKind::TryAgain, InfraKind::BrokenCommand, InfraKind::BrokenCommand, InfraKind::Killed]
        );
    }

    #[test]
    fn case_45_a_machine_that_restarts_under_load_died_and_was_not_slow() {
        let end = || JobEnd::Restarted("new".to_owned());
        let Called::Untestable(told) = called("run", end(), true, None) else { panic!("a fact") };
        assert!(told.kind == UntestableKind::Panic && told.reason.starts_with("died under load"), "{told:?}");
        let panic = Some("Kernel panic - not syncing: x".to_owned());
        let Called::Untestable(told) = called("run", end(), true, panic) else { panic!("a fact") };
        assert!(told.reason.starts_with("Kernel panic"), "{told:?}");
        assert!(
            matches!(called("step", end(), false, None), Called::Infra(_)),
            "the load generator is no candidate"
        );
    }
}
