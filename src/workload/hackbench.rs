//! hackbench of rt-tests.
//!
//! It prints one line `Time: <seconds>.<3 digits>` on standard output. Ended by a signal it still prints that
//! line, with the small time until then, and exits 0: read as it stands that is an enormous gain. Two marks
//! give it away.

use super::text::lines;
use super::{Declared, Invalid, Metrics, Output, excerpt};

/// The one metric.
pub(super) const METRICS: &[Declared] =
    &[Declared::lower("time", "s", "time of the whole run, resolution 1 ms").in_steps_of(0.001)];

/// Printed (on standard output and standard error) by a hackbench that was told to end; with the number of
/// workers in between.
const CUT_SHORT: [&str; 2] = ["worker threads to terminate", "longjmp'ed out"];

/// Reads the one "Time:" line.
pub(super) fn parse(output: &Output) -> Result<Metrics, Invalid> {
    let mut metrics = Metrics::default();
    metrics.put("time", time(output)?)?;
    Ok(metrics)
}

fn time(output: &Output) -> Result<f64, Invalid> {
    let stdout = lines(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    // Which stream has which mark differs between its versions.
    for line in stdout.lines().chain(stderr.lines()) {
        if CUT_SHORT.iter().any(|mark| line.contains(mark)) {
            return Err(Invalid::because(format!(
                "hackbench was ended before it was done: {}",
                excerpt(line.trim())
            )));
        }
    }
    let mut times = stdout.lines().filter_map(|line| line.trim().strip_prefix("Time:"));
    let Some(text) = times.next() else {
        return Err(Invalid::because("hackbench printed no \"Time:\" line"));
    };
    if times.next().is_some() {
        return Err(Invalid::because(
            "hackbench printed more than one \"Time:\" line: one run is one hackbench",
        ));
    }
    seconds(text.trim())
}

fn seconds(text: &str) -> Result<f64, Invalid> {
    // Stricter than a float: "nan", "1e3" and "-1" are parse results that no hackbench prints.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match text.parse::<f64>() {
        Ok(value) if digits && value.is_finite() && value > 0.0 => Ok(value),
        Ok(0.0) if digits => Err(Invalid::because(
            "hackbench's time is 0, below its resolution of 1 ms: give it more to do (-l)",
        )),
        Ok(_) | Err(_) => Err(Invalid::because(format!("hackbench's time {} is not a time", excerpt(text)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stdout: &str, stderr: &str) -> Result<f64, Invalid> {
        time(&Output { stdout: stdout.as_bytes().to_vec(), stderr: stderr.as_bytes().to_vec(), status: 0 })
    }

    #[test]
    fn recorded_outputs_are_read() {
        assert_eq!(read(include_str!("../../tests/golden/outputs/hackbench-process.txt"), ""), Ok(0.279));
        assert_eq!(
            read(include_str!("../../tests/golden/outputs/hackbench-pipe-threads.txt"), ""),
            Ok(0.100)
        );
        assert_eq!(read(include_str!("../../tests/golden/outputs/hackbench-datasize.txt"), ""), Ok(0.030));
    }

    #[test]
    fn a_hackbench_that_was_killed_is_not_a_fast_one() {
        let stdout = include_str!("../../tests/golden/outputs/hackbench-killed.txt");
        let stderr = include_str!("../../tests/golden/outputs/hackbench-killed.stderr");
        for (stdout, stderr) in [(stdout, stderr), (stdout, ""), ("Time: 0.998\n", stderr)] {
            let reason = read(stdout, stderr).expect_err("it was cut short").reason;
            assert!(reason.contains("ended before it was done"), "{reason}");
        }
    }

    #[test]
    fn no_time_two_times_and_impossible_times_are_invalid() {
        for text in
            ["", "Running in process mode\n", "Time:\n", "Time: 0.000\n", "Time: -1.0\n", "Time: nan\n"]
        {
            assert!(read(text, "").is_err(), "{text:?}");
        }
        let reason = read("Time: 0.279\nTime: 0.281\n", "").expect_err("two runs in one").reason;
        assert!(reason.contains("more than one"), "{reason}");
    }
}
