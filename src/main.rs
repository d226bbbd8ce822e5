//! The `sched-bisect` program; see the library's head comment for how it is built.

use std::process::ExitCode;

fn main() -> ExitCode {
    sched_bisect::cli::main()
}
