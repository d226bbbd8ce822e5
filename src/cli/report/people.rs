//! Who a mail is from and goes to: git knows the author and who asks, the kernel tree's own script the maintainers.

use crate::cli::args::Place;
use crate::history::{History, git};
use crate::model::CommitId;
use crate::report::{People, Report, say};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// The kernel's script that knows the maintainers of what a patch touches, below the top of its tree.
const SCRIPT: &str = "scripts/get_maintainer.pl";

/// Where regressions are tracked.
const REGRESSIONS: &str = "regressions@lists.linux.dev";

/// The script reads a file of some 25,000 lines; it takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// As far as they can be found: a mail without them is still one, and what is missing is said.
pub(super) fn of(place: &Place, facts: &Report) -> People {
    let Ok(history) = History::open(&place.repo) else {
        say("note: no repository here, so the mail has no addresses; give --repo DIR");
        return People::default();
    };
    let mut people = People { cc: vec![REGRESSIONS.to_owned()], ..People::default() };
    let commit = facts.conclusion.commit.as_ref();
    people.to.extend(commit.and_then(|commit| history.author(commit).ok()));
    match asked(&history, commit) {
        Ok((from, lines)) => {
            people.from = from;
            match lines {
                Ok(lines) => sort_in(&mut people, &lines),
                Err(reason) => say(&format!("note: maintainers are not in the mail: {reason}")),
            }
        }
        Err(reason) => say(&format!("note: the mail has no addresses: {reason}")),
    }
    people
}

/// Who writes, and what the tree's script says of the commit, if there is one.
type Asked = (String, Result<String, String>);

fn asked(history: &History, commit: Option<&CommitId>) -> Result<Asked, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("failed to start the event loop: {error}"))?;
    Ok(runtime.block_on(async {
        let lines = match commit {
            Some(commit) => maintainers(history, commit).await,
            None => Ok(String::new()),
        };
        (identity(history.common_dir()).await.unwrap_or_default(), lines)
    }))
}

/// As git itself is configured; the library reads fewer of its files.
async fn identity(repository: &Path) -> Option<String> {
    let mut values = Vec::new();
    for key in ["user.name", "user.email"] {
        let output = git::command(repository).args(["config", "--get", key]).output().await.ok()?;
        values.push(String::from_utf8(output.stdout).ok()?.trim().to_owned());
    }
    match values.as_slice() {
        [name, mail] if !mail.is_empty() => Some(format!("{name} <{mail}>").trim().to_owned()),
        _ => None,
    }
}

/// "Name <mail> (role:SUBSYSTEM)": who maintains is written to, reviewers and lists get a copy.
fn sort_in(people: &mut People, lines: &str) {
    for line in lines.lines() {
        let (who, role) = line.split_once(" (").unwrap_or((line, ""));
        let who = who.trim();
        if who.is_empty() || !who.contains('@') {
            continue;
        }
        let mail = |text: &str| {
            text.rsplit_once('<').map_or(text, |(_, mail)| mail).trim_end_matches('>').to_lowercase()
        };
        if people.to.iter().chain(&people.cc).any(|known| mail(known) == mail(who)) {
            continue;
        }
        if role.starts_with("maintainer") || role.starts_with("supporter") {
            people.to.push(who.to_owned());
        } else {
            people.cc.push(who.to_owned());
        }
    }
}

async fn maintainers(history: &History, commit: &CommitId) -> Result<String, String> {
    let tree = history.checkout().ok_or("the repository has no checkout")?;
    if !tree.join(SCRIPT).is_file() {
        return Err(format!("{} is not there", tree.join(SCRIPT).display()));
    }
    let asked = ask(history.common_dir(), &tree, commit);
    tokio::time::timeout(PATIENCE, asked).await.map_err(|_| format!("{SCRIPT} took too long"))?
}

async fn ask(repository: &Path, tree: &Path, commit: &CommitId) -> Result<String, String> {
    let mut patch = git::command(repository);
    patch.args(["format-patch", "-1", "--stdout", "--no-signature", commit.as_str()]).kill_on_drop(true);
    let patch = patch.output().await.map_err(|error| format!("git: {error}"))?;
    let mut script = Command::new("perl");
    // Who signed off is not asked: that takes minutes, and the author is known.
    script.arg(SCRIPT).args(["--nogit", "--nogit-fallback"]).current_dir(tree).kill_on_drop(true);
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = script.spawn().map_err(|error| format!("perl: {error}"))?;
    let mut input = child.stdin.take().ok_or("perl has no input")?;
    let written = async move {
        // A script that reads no further says why by its status.
        let _ = input.write_all(&patch.stdout).await;
    };
    let (output, ()) = tokio::join!(child.wait_with_output(), written);
    let output = output.map_err(|error| format!("{SCRIPT}: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        return Err(format!("{SCRIPT}: {words} ({})", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maintainers_are_written_to_and_others_get_a_copy_once() {
        let mut people = People { to: vec!["Ada <ada@k.example>".to_owned()], ..People::default() };
        sort_in(
            &mut people,
            "\"Ada B\" <ADA@k.example> (maintainer:SCHEDULER)\nBob <bob@k.example> (maintainer:SCHEDULER)\n\
             Cy <cy@k.example> (reviewer:SCHEDULER)\nlinux-kernel@vger.kernel.org (open list:SCHEDULER)\nBad divisor\n",
        );
        assert_eq!(people.to, ["Ada <ada@k.example>", "Bob <bob@k.example>"]);
        assert_eq!(people.cc, ["Cy <cy@k.example>", "linux-kernel@vger.kernel.org"]);
    }
}
