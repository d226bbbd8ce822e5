//! Long work on another machine: it runs by itself there, whatever becomes of the link, and its end is known by what it left.
//!
//! Invariants: a job is started once, however often its start is asked for; its end counts only by the status that the far
//! side wrote; a job that is given up is gone with all its processes before this says so. While a job runs nothing looks
//! at it there: a script waits on a pipe.

use super::far::{Far, FarError, Script, Told};
use super::link::Link;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the far side waits for an end before it tells that there is none yet.
const LONG_LOOK: Duration = Duration::from_secs(60);

/// How long it waits once it has started a job: most are over by then.
const FIRST_LOOK: Duration = Duration::from_secs(20);

/// For a script of ours that only looks or ends something.
const SHORT: Duration = Duration::from_secs(60);

/// Behind a job's deadline before the far side ends it by itself, should we be gone by then.
const SLACK: Duration = Duration::from_secs(60);

/// Between two tries to reach a machine that was lost.
const PAUSE: Duration = Duration::from_secs(1);

/// Exit statuses of timeout(1).
const ENDED_THERE: [i32; 2] = [124, 137];

const START: &str = concat!(
    include_str!("sut/job-base.sh"),
    include_str!("sut/job-start.sh"),
    include_str!("sut/job-wait.sh")
);
const WAIT: &str = concat!(
    include_str!("sut/job-base.sh"),
    include_str!("sut/job-look.sh"),
    include_str!("sut/job-wait.sh")
);
const FETCH: &str = concat!(include_str!("sut/job-base.sh"), include_str!("sut/job-fetch.sh"));
const END: &str = include_str!("sut/job-end.sh");

/// Work to do on another machine.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// Names it there, and marks its processes: letters, digits and dashes; never used before.
    pub mark: &'a str,
    /// The job before, whose files nobody needs any more: they go with the start of this one.
    pub before: Option<&'a str>,
    /// A script for `sh`.
    pub body: &'a str,
    /// Its environment, beside what the machine gives.
    pub env: &'a [(String, String)],
    /// When to give up.
    pub deadline: Duration,
    /// Bytes of each stream that are taken; a job that printed more has no output.
    pub most: u64,
    /// The machine's boot id; a job does not go on in another boot.
    pub boot_id: &'a str,
    /// Whether what it left in the background may live on, once it ended with status 0.
    pub leaves_processes: bool,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    /// By itself.
    Exit {
        /// Its status.
        status: i32,
        /// Standard output.
        stdout: Vec<u8>,
        /// Standard error.
        stderr: Vec<u8>,
    },
    /// It printed so many bytes, more than are taken.
    TooMuch(u64),
    /// Its deadline passed; nothing of it is left.
    Late,
    /// It was killed there, by somebody else.
    Died,
    /// The machine is in another boot, with this id: it restarted meanwhile.
    Restarted(String),
}

/// Runs a job to its end. A link that is lost is made again until the job's deadline; the error is what it is after that.
pub async fn run(link: &mut Link, job: Job<'_>) -> Result<JobEnd, FarError> {
    let until = Instant::now() + job.deadline;
    let stands = follow(link, &job, until).await?;
    let grace = Instant::now() + SLACK;
    // One that ended in time while the link was lost has its output all the same.
    let stands = match stands {
        Some(stands) => stands,
        None => persistently(link, grace, async |link| look_at(link, &job, Duration::ZERO).await).await?,
    };
    if stands.boot_id != job.boot_id {
        return Ok(JobEnd::Restarted(stands.boot_id));
    }
    let is_late = Instant::now() >= until;
    let end = match stands.state {
        _ if stands.largest() > job.most => JobEnd::TooMuch(stands.largest()),
        State::Ended(status) if !(is_late && ENDED_THERE.contains(&status)) => {
            let fetched = persistently(link, grace, async |link| streams(link, &job, &stands).await).await?;
            let [stdout, stderr] = fetched;
            JobEnd::Exit { status, stdout, stderr }
        }
        State::Ended(_) | State::Runs => JobEnd::Late,
        State::Died | State::Unknown => JobEnd::Died,
    };
    match &end {
        JobEnd::Exit { status: 0, .. } if job.leaves_processes => {}
        JobEnd::Exit { .. } | JobEnd::TooMuch(_) | JobEnd::Late | JobEnd::Died | JobEnd::Restarted(_) => {
            let mark = format!("{}$", job.mark);
            persistently(link, grace, async |link| end_all(link, &mark).await).await?;
        }
    }
    Ok(end)
}

/// Starts it and waits until there is something to decide; `None`: its deadline passed first.
async fn follow(link: &mut Link, job: &Job<'_>, until: Instant) -> Result<Option<Stands>, FarError> {
    let mut is_started = false;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let looked = match is_started {
            false => start(link, job, left.min(FIRST_LOOK)).await,
            true => look_at(link, job, left.min(LONG_LOOK)).await,
        };
        let stands = match looked {
            Err(FarError::NotUp { .. } | FarError::Lost { .. } | FarError::Late { .. }) => {
                sleep(PAUSE).await;
                continue;
            }
            other => other?,
        };
        is_started = true;
        let is_over = match stands.state {
            State::Runs => stands.largest() > job.most || stands.boot_id != job.boot_id,
            State::Ended(_) | State::Died | State::Unknown => true,
        };
        if is_over {
            return Ok(Some(stands));
        }
    }
}

/// Ends every process of earlier jobs there whose mark begins so; one that ends in `$` is a whole mark.
pub async fn end_all(link: &mut Link, marks: &str) -> Result<(), FarError> {
    let script = Script { what: "end what an earlier job left", text: END, args: &[marks], deadline: SHORT };
    let told = link.sh(script).await?;
    super::put::accepted(script.what, &told)
}

/// Does it again while the link is what fails.
async fn persistently<T>(
    link: &mut Link,
    until: Instant,
    mut act: impl AsyncFnMut(&mut Link) -> Result<T, FarError>,
) -> Result<T, FarError> {
    loop {
        match act(link).await {
            Err(FarError::NotUp { .. } | FarError::Lost { .. } | FarError::Late { .. })
                if Instant::now() + PAUSE < until =>
            {
                sleep(PAUSE).await;
            }
            other => return other,
        }
    }
}

/// Starts it, and waits a little for its end.
async fn start(link: &mut Link, job: &Job<'_>, look: Duration) -> Result<Stands, FarError> {
    let (size, within) = (job.body.len().to_string(), (job.deadline + SLACK).as_secs().to_string());
    let wait = look.as_secs().max(1).to_string();
    let env: Vec<String> = job.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut args = vec![job.mark, job.mark, &size, &within, job.before.unwrap_or("-"), &wait];
    args.extend(env.iter().map(String::as_str));
    let script = Script { what: "start a job", text: START, args: &args, deadline: look + SHORT };
    let told = link.sh_with(script, job.body.as_bytes()).await?;
    if told.status == 3 {
        return Err(link.lost(script.what, "its script did not arrive whole"));
    }
    super::put::accepted(script.what, &told)?;
    stands(link, script.what, &told)
}

async fn look_at(link: &mut Link, job: &Job<'_>, within: Duration) -> Result<Stands, FarError> {
    let seconds = within.as_secs().max(1).to_string();
    let args = [job.mark, &seconds];
    let script = Script { what: "look at a job", text: WAIT, args: &args, deadline: within + SHORT };
    let told = link.sh(script).await?;
    stands(link, script.what, &told)
}

/// Both streams, in the sizes that were told.
async fn streams(link: &mut Link, job: &Job<'_>, stands: &Stands) -> Result<[Vec<u8>; 2], FarError> {
    if stands.largest() == 0 {
        return Ok([Vec::new(), Vec::new()]);
    }
    let [out, err] = [stands.out, stands.err].map(|size| size.to_string());
    let args = [job.mark, &out, &err];
    let script = Script { what: "fetch a job's output", text: FETCH, args: &args, deadline: LONG_LOOK * 5 };
    let told = link.sh(script).await?;
    super::put::accepted(script.what, &told)?;
    let mut stdout = told.stdout;
    let wanted = usize::try_from(stands.out).unwrap_or(usize::MAX);
    if stdout.len() as u64 != stands.out + stands.err || wanted > stdout.len() {
        return Err(link.lost(script.what, "it did not arrive whole"));
    }
    let stderr = stdout.split_off(wanted);
    Ok([stdout, stderr])
}

/// What is known of a job.
struct Stands {
    boot_id: String,
    state: State,
    /// Bytes that it printed.
    out: u64,
    err: u64,
}

enum State {
    Runs,
    Ended(i32),
    Died,
    Unknown,
}

fn stands(link: &Link, what: &str, told: &Told) -> Result<Stands, FarError> {
    Stands::parse(&told.stdout).filter(|_| told.status == 0).ok_or_else(|| {
        let said = String::from_utf8_lossy(&told.stderr).trim().to_owned();
        link.lost(what, format!("it answered what is no answer (status {}): {said}", told.status))
    })
}

impl Stands {
    fn largest(&self) -> u64 {
        self.out.max(self.err)
    }

    fn parse(stdout: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(stdout);
        let mut stands = Self { boot_id: String::new(), state: State::Unknown, out: 0, err: 0 };
        let mut is_told = false;
        for line in text.lines() {
            match line.split_once(' ')? {
                ("boot", id) => id.clone_into(&mut stands.boot_id),
                ("job", words) => {
                    is_told = true;
                    stands.state = match words.split_once(' ') {
                        Some(("ended", status)) => State::Ended(status.parse().ok()?),
                        _ if words == "runs" => State::Runs,
                        _ if words == "died" => State::Died,
                        _ if words == "unknown" => State::Unknown,
                        _ => return None,
                    };
                }
                ("out", size) => stands.out = size.parse().unwrap_or(0),
                ("err", size) => stands.err = size.parse().unwrap_or(0),
                _ => return None,
            }
        }
        (is_told && !stands.boot_id.is_empty()).then_some(stands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_job_stands_is_read_whole_or_not_at_all() {
        let stands = Stands::parse(b"boot 1-2\njob ended 255\nout 12\nerr 0\n").expect("an answer");
        assert!(
            matches!(stands.state, State::Ended(255)) && stands.boot_id == "1-2" && stands.largest() == 12
        );
        for broken in [
            "",
            "boot 1\n",
            "job runs\n",
            "boot 1\njob ended\n",
            "boot 1\njob ended x\n",
            "boot 1\njob eats\n",
            "hello\n",
        ] {
            assert!(Stands::parse(broken.as_bytes()).is_none(), "{broken:?}");
        }
    }
}
