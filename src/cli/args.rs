//! The arguments.

use crate::profile::Overrides;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

/// Find the commit that changed a kernel's performance, by measuring.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXIT_STATUS)]
pub(super) struct Cli {
    #[command(flatten)]
    pub place: Place,
    #[command(subcommand)]
    pub command: Command,
}

pub(super) const EXIT_STATUS: &str = "\
Exit status:
   0  culprit found; difference restored; survey complete; command done
   1  fault of the program
   2  usage, profile or repository
   3  suspects only; partly restored; a kernel of a survey is untestable
   4  no difference; opposite sign; revert without effect
   5  infrastructure failure (resumable)
   6  budget used up (resumable)
   7  journal refused; audit found differences
   8  no-op change; reverted already
   9  not monotonic
  10  cannot revert
  11  reverted kernel not measurable; parse: invalid run
  75  interrupted (resumable)";

pub(super) const PARSE_STATUS: &str = "\
Exit status:
   0  read
   2  usage: no such parser, wrong option, file that cannot be read
  11  the run is invalid: the output has no usable numbers, or not the metric; standard error says why

Values go to standard output, reasons and notes to standard error. schbench and stress-ng print on standard error: give
what was recorded of it as FILE or by --stderr.";

/// Where repository and sessions are.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// The git repository (any directory in it)
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub repo: PathBuf,
    /// Where sessions are kept [default: sched-bisect/ in the git common directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Search between two commits for the one that made the difference
    #[command(after_help = EXIT_STATUS)]
    Start(Start),
    /// Go on with a session that was interrupted, halted or ran out of budget
    #[command(after_help = EXIT_STATUS)]
    Resume {
        /// Session [default: the one used last]
        session: Option<String>,
        /// More machine time to allow ("4h")
        #[arg(long, value_name = "TIME")]
        budget: Option<String>,
        /// Once concluded, remove this program's kernels from a machine that is reached by ssh, as `cleanup` does
        #[arg(long)]
        cleanup: bool,
        #[command(flatten)]
        telling: Telling,
    },
    /// Show where a session stands
    Status {
        /// Session [default: the one used last]
        session: Option<String>,
        /// Follow a session at work, from another terminal, until it concludes
        #[arg(long)]
        watch: bool,
        /// With --watch: how often to look
        #[arg(long, value_name = "TIME", default_value = "2s", requires = "watch")]
        interval: String,
    },
    /// List the sessions
    List,
    /// Tell what a session found
    Report {
        /// Session [default: the one used last]
        session: Option<String>,
        /// Form
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
        /// Write it to a file, whole or not at all, instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Of a survey: compare each variant with the baseline under the same one
        #[arg(long)]
        own_baseline: bool,
        /// Of a survey: a further metric as a column (repeatable)
        #[arg(long, value_name = "METRIC")]
        also: Vec<String>,
    },
    /// Write a session to one file for others: plan, journal and logs, without what was built
    Export {
        /// Session [default: the one used last]
        session: Option<String>,
        /// The file [default: SESSION.sched-bisect.tar.gz]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Take in a session from such a file, to be read: status, report, log, audit
    Import {
        /// The file
        file: PathBuf,
        /// Name it gets here [default: its own]
        #[arg(long, value_name = "NAME")]
        session: Option<String>,
    },
    /// Measure kernels under variants beside each other and print a table against a baseline
    #[command(after_help = EXIT_STATUS)]
    Survey(Survey),
    /// Revert one commit on top of bad and measure how much of the difference comes back
    #[command(after_help = EXIT_STATUS)]
    RevertTest(RevertTest),
    /// Print the journal for people
    Log {
        /// Session [default: the one used last]
        session: Option<String>,
        /// As a log that `git bisect replay` accepts
        #[arg(long)]
        git: bool,
    },
    /// Recompute every verdict from the raw samples and list each difference
    Audit {
        /// Session [default: the one used last]
        session: Option<String>,
    },
    /// Tell how often, how surely and at what cost a search finds the culprit in a lab like yours, by simulation
    Simulate(Simulate),
    /// Show what a parser reads from a benchmark's output; without a file what it can report, without a name all of them
    #[command(after_help = PARSE_STATUS)]
    Parse(Parse),
    /// Look at profiles
    Profile {
        #[command(subcommand)]
        what: Profile,
    },
    /// Remove the kernels that were installed on a machine, and put its default entry back
    Cleanup {
        /// Session whose machine it is [default: the one used last]
        session: Option<String>,
        /// The machine of this profile instead
        #[arg(long, value_name = "NAME|FILE", conflicts_with = "session")]
        profile: Option<String>,
    },
    /// Tell what this host has and lacks for a profile, and what mends it
    Doctor {
        /// Profile by name or file
        #[arg(long, value_name = "NAME|FILE", default_value = DEFAULT_PROFILE)]
        profile: String,
        /// Of a machine that is reached by ssh: boot its own kernel once and see that it comes back (two restarts)
        #[arg(long)]
        rehearse: bool,
    },
    /// Print completions for a shell
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Man {
        /// The directory; made if it is not there
        dir: PathBuf,
    },
}

/// The profile used when none is named and no command is given.
pub(super) const DEFAULT_PROFILE: &str = "qemu-hackbench";

/// Form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// For people, in 80 columns
    Text,
    /// For trackers
    Markdown,
    /// For programs, schema 1
    Json,
    /// One self-contained page with plots, for a browser or a printer
    Html,
    /// For maintainers: plain text for git send-email, addressed by the kernel tree's get_maintainer.pl
    Mail,
    /// A row for each run; of a survey for each kernel, variant and metric
    Csv,
}

/// Form of a survey's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TableFormat {
    /// For people, in 80 columns
    Text,
    /// A Markdown table
    Markdown,
    /// A row for each kernel, variant and metric
    Csv,
    /// For programs, schema 1
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// For programs, schema 1
    Json,
}

#[derive(Debug, Subcommand)]
pub(super) enum Profile {
    /// The profiles in the program
    List,
    /// Every value of a profile with its origin
    Show {
        /// Profile by name or file
        profile: String,
    },
    /// Write a profile to begin with, every key commented; without a file to standard output
    New {
        /// File, which must not be there yet
        file: Option<PathBuf>,
    },
    /// Check a profile
    Check {
        /// Profile by name or file
        profile: String,
    },
}

/// `start GOOD BAD`.
#[derive(Debug, Args)]
pub(super) struct Start {
    /// The commit before the change [default: the profile's]
    pub good: Option<String>,
    /// The commit after it [default: the profile's]
    pub bad: Option<String>,
    /// Measure nothing: tell what the search is expected to cost and how likely it finds the culprit
    #[arg(long)]
    pub plan: bool,
    /// Leave the commits of this range out of the search; they stay suspects (repeatable)
    #[arg(long = "skip", value_name = "A..B")]
    pub skip: Vec<String>,
    #[command(flatten)]
    pub options: Options,
}

/// `survey REV...`.
#[derive(Debug, Args)]
pub(super) struct Survey {
    /// The kernels, in the order of the table
    #[arg(required = true, value_name = "REV")]
    pub revs: Vec<String>,
    /// What the others are compared with; stands first where it is not among them [default: the first REV]
    #[arg(long, value_name = "REV")]
    pub baseline: Option<String>,
    /// Boots of each kernel under each variant [default: as many as show the minimum effect, by the profile's guesses]
    #[arg(long, value_name = "N")]
    pub boots: Option<String>,
    /// Counted runs in each boot [default: by the profile's guesses]
    #[arg(long, value_name = "N")]
    pub runs: Option<String>,
    /// Another metric of the workload as a column (repeatable)
    #[arg(long, value_name = "METRIC")]
    pub also: Vec<String>,
    /// Compare each variant with the baseline under the same one, instead of under the first
    #[arg(long)]
    pub own_baseline: bool,
    /// Form of the table
    #[arg(long, value_enum, default_value_t = TableFormat::Text)]
    pub format: TableFormat,
    #[command(flatten)]
    pub options: Options,
}

/// `revert-test COMMIT`.
#[derive(Debug, Args)]
pub(super) struct RevertTest {
    /// The commit to revert
    pub commit: String,
    /// What to revert it on [default: bad of the newest session that names the commit, or the profile's]
    #[arg(long, value_name = "BAD")]
    pub on: Option<String>,
    /// What the difference is against [default: good of that session, or the profile's]
    #[arg(long, value_name = "GOOD")]
    pub against: Option<String>,
    /// For a merge: the parent, counted from 1, whose side stays
    #[arg(long, value_name = "N")]
    pub mainline: Option<u32>,
    #[command(flatten)]
    pub options: Options,
}

/// `parse NAME FILE`.
#[derive(Debug, Args)]
pub(super) struct Parse {
    /// Parser
    #[arg(value_name = "NAME")]
    pub parser: Option<String>,
    /// What the benchmark printed on standard output; - is standard input
    pub file: Option<PathBuf>,
    /// What it printed on standard error
    #[arg(long, value_name = "FILE", requires = "file")]
    pub stderr: Option<PathBuf>,
    /// Its exit status
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub status: i32,
    /// The metric that a session would judge: it must be there
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// For regex: the pattern; each named group is a metric
    #[arg(long, value_name = "PATTERN")]
    pub regex: Option<String>,
    /// For csv: what separates columns [default: ,]
    #[arg(long, value_name = "CHAR")]
    pub separator: Option<String>,
    /// For csv: the row
    #[arg(long, value_name = "COLUMN=VALUE")]
    pub row: Option<String>,
    /// Form
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// `simulate`. Values are read in `simulate`, where errors can say what is wrong with them.
#[derive(Debug, Args)]
pub(super) struct Simulate {
    /// Candidates in a line [default: 400]
    #[arg(long, value_name = "N", conflicts_with = "dag")]
    pub commits: Option<String>,
    /// A graph instead: line N lists the parents of commit N by line number from 0; may be gzipped
    #[arg(long, value_name = "FILE")]
    pub dag: Option<PathBuf>,
    /// Size of the change
    #[arg(long, value_name = "SIZE", default_value = "5%")]
    pub effect: String,
    /// Standard deviation from run to run
    #[arg(long, value_name = "SIZE", default_value = "2%")]
    pub run_noise: String,
    /// Standard deviation from boot to boot
    #[arg(long, value_name = "SIZE", default_value = "1%")]
    pub boot_noise: String,
    /// Standard deviation from build to build (code layout)
    #[arg(long, value_name = "SIZE", default_value = "0%")]
    pub build_noise: String,
    /// Share of runs that are 5 standard deviations too high
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub outliers: String,
    /// Slow drift a run: none, linear:X% or walk:X%
    #[arg(long, value_name = "DRIFT", default_value = "none")]
    pub drift: String,
    /// Share of boots in a second mode, 3 run-to-run standard deviations higher
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub bimodal: String,
    /// Share of commits that do not build
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub unbuildable: String,
    /// Run the program's own search as sessions run: planner, driver, a journal in memory, on a virtual clock; the same
    /// answers, some times slower
    #[arg(long)]
    pub driver: bool,
    /// With --driver: keep the sessions in DIR, to see what their reports look like (`report --state-dir DIR`)
    #[arg(long, value_name = "DIR", requires = "driver")]
    pub keep: Option<PathBuf>,
    /// Nothing changes; --effect is what is believed
    #[arg(long, conflicts_with = "second_culprit")]
    pub no_change: bool,
    /// Size of a second change, before or after the first ("-3%" against it)
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub second_culprit: Option<String>,
    /// What things cost
    #[arg(long, value_name = "COSTS", default_value = "build=20m,boot=3m,run=10m")]
    pub costs: String,
    /// Machine time that one search may take ("12h")
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// How many searches, each with its own culprit and noise
    #[arg(long, value_name = "N", default_value = "200")]
    pub searches: String,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// posterior (this program's), halving, halving-K, sprt, pinpoint, git-bayesect or oracle; several are compared on
    /// the same instances (repeatable) [default: posterior]
    #[arg(long = "strategy", value_name = "NAME")]
    pub strategies: Vec<String>,
    /// Form
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// Who else is told of a session at work. No part of the session: each command gives its own.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Telling {
    /// Command to run when the session concludes or stops, told by SB_EVENT, SB_SESSION, SB_SUMMARY and others
    /// (docs/events.md)
    #[arg(long, value_name = "CMD")]
    pub notify: Option<String>,
    /// Write every event to standard output as a JSON line (docs/events.md), and no report there
    #[arg(long)]
    pub json_events: bool,
}

/// What `start`, `revert-test` and `survey` share.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Profile by name or file [default: qemu-hackbench, or command when --run is given]
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// Search only commits that touch this path first (repeatable)
    #[arg(long = "path", value_name = "P")]
    pub paths: Vec<String>,
    /// The number to judge by
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Which way is better: higher or lower
    #[arg(long, value_name = "higher|lower")]
    pub direction: Option<String>,
    /// Smallest change worth finding ("2%")
    #[arg(long, value_name = "SIZE")]
    pub minimum_effect: Option<String>,
    /// The change that was reported ("12.4%"): the endpoints must show at least half of it, and less is measured to find it
    #[arg(long, value_name = "SIZE")]
    pub expect: Option<String>,
    /// Probability asked of an answer ("0.99")
    #[arg(long, value_name = "P")]
    pub confidence: Option<String>,
    /// What to look for: regression, improvement or any
    #[arg(long, value_name = "WHAT")]
    pub find: Option<String>,
    /// Machine time allowed ("12h")
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Name of the session [default: from the endpoints]
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Set of tunables to measure under, of those that the profile describes; repeated, a search measures the culprit and its
    /// parents under the further ones too, and a survey has a column for each
    #[arg(long = "variant", value_name = "NAME")]
    pub variants: Vec<String>,
    /// How a shell on a role is started, its script on standard input: ldg='ssh root@10.0.0.2 sh'
    #[arg(long = "role", value_name = "NAME=CMD")]
    pub roles: Vec<String>,
    /// Once concluded, remove this program's kernels from a machine that is reached by ssh, as `cleanup` does
    #[arg(long)]
    pub cleanup: bool,
    /// Variable of the profile's [env]
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Command that builds a candidate, instead of the profile's
    #[arg(long, value_name = "CMD")]
    pub build: Option<String>,
    /// Command that boots it
    #[arg(long, value_name = "CMD")]
    pub boot: Option<String>,
    /// Command that runs the workload once and prints a number, or what --parser reads
    #[arg(long, value_name = "CMD")]
    pub run: Option<String>,
    /// How what it prints is read (docs/parsers.md), instead of one number or the profile's way
    #[arg(long, value_name = "NAME")]
    pub parser: Option<String>,
    #[command(flatten)]
    pub telling: Telling,
}

impl Options {
    /// The profile to use.
    pub fn profile(&self) -> &str {
        let default = if self.run.is_some() { "command" } else { DEFAULT_PROFILE };
        self.profile.as_deref().unwrap_or(default)
    }

    /// The profile's values that the command line replaces.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            metric: self.metric.clone(),
            direction: self.direction.clone(),
            minimum_effect: self.minimum_effect.clone(),
            expected_effect: self.expect.clone(),
            confidence: self.confidence.clone(),
            find: self.find.clone(),
            budget: self.budget.clone(),
            build: self.build.clone(),
            boot: self.boot.clone(),
            run: self.run.clone(),
            parser: self.parser.clone(),
            variant: self.variants.first().cloned(),
            roles: self.roles.clone(),
            env: self.env.clone(),
            also: self.variants.iter().skip(1).cloned().collect(),
            paths: self.paths.clone(),
            ..Overrides::default()
        }
    }
}
