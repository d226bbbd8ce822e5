//! All integration tests, in one binary.

#[path = "common/mod.rs"]
mod common;

#[path = "it/belief.rs"]
mod belief;
#[path = "it/build_host.rs"]
mod build_host;
#[path = "it/cases_engine.rs"]
mod cases_engine;
#[path = "it/cases_failures.rs"]
mod cases_failures;
#[path = "it/cases_history.rs"]
mod cases_history;
#[path = "it/cases_noise.rs"]
mod cases_noise;
#[path = "it/cases_report.rs"]
mod cases_report;
#[path = "it/cases_revert.rs"]
mod cases_revert;
#[path = "it/cli.rs"]
mod cli;
#[path = "it/determinism.rs"]
mod determinism;
#[path = "it/documentation.rs"]
mod documentation;
#[path = "it/driver.rs"]
mod driver;
#[path = "it/environment.rs"]
mod environment;
#[path = "it/forms.rs"]
mod forms;
#[path = "it/guards.rs"]
mod guards;
#[path = "it/guest_bisect.rs"]
mod guest_bisect;
#[path = "it/guest_doctor.rs"]
mod guest_doctor;
#[path = "it/guest_lab.rs"]
mod guest_lab;
#[path = "it/halving.rs"]
mod halving;
#[path = "it/history.rs"]
mod history;
#[path = "it/html.rs"]
mod html;
#[path = "it/html_browser.rs"]
mod html_browser;
#[path = "it/install.rs"]
mod install;
#[path = "it/journal.rs"]
mod journal;
#[path = "it/kbuild.rs"]
mod kbuild;
#[path = "it/kbuild_pack.rs"]
mod kbuild_pack;
#[path = "it/levels.rs"]
mod levels;
#[path = "it/live.rs"]
mod live;
#[path = "it/manual.rs"]
mod manual;
#[path = "it/messages.rs"]
mod messages;
#[path = "it/modes.rs"]
mod modes;
#[path = "it/numerics.rs"]
mod numerics;
#[path = "it/parse.rs"]
mod parse;
#[path = "it/power_hooks.rs"]
mod power_hooks;
#[path = "it/qemu_boot.rs"]
mod qemu_boot;
#[path = "it/report.rs"]
mod report;
#[path = "it/resume.rs"]
mod resume;
#[path = "it/session_random.rs"]
mod session_random;
#[path = "it/setup.rs"]
mod setup;
#[path = "it/simulate.rs"]
mod simulate;
#[path = "it/ssh.rs"]
mod ssh;
#[path = "it/ssh_machine.rs"]
mod ssh_machine;
#[path = "it/statistics.rs"]
mod statistics;
#[path = "it/survey.rs"]
mod survey;
#[path = "it/telling.rs"]
mod telling;
#[path = "it/two_machines.rs"]
mod two_machines;
#[path = "it/variants.rs"]
mod variants;
#[path = "it/worktree.rs"]
mod worktree;
