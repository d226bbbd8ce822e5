//! A bare number on the last line of standard output.

use super::{Declared, Invalid, Metrics, Output, excerpt};

/// Its name and direction are those of the metric that the profile judges.
pub(super) const METRICS: &[Declared] =
    &[Declared::neither("value", "the profile's", "goes by the name of the metric that the profile judges")];

/// Reads it as the metric `name`.
pub(super) fn parse(name: &str, output: &Output) -> Result<Metrics, Invalid> {
    let mut metrics = Metrics::default();
    metrics.put(name, last_line(output)?)?;
    Ok(metrics)
}

/// The number on the last line that is not blank. Lines before it are talk.
fn last_line(output: &Output) -> Result<f64, Invalid> {
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(last) = text.lines().rev().map(str::trim).find(|line| !line.is_empty()) else {
        return Err(Invalid::because("it printed nothing on standard output, where a number should be"));
    };
    match last.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err(Invalid::because(format!("the last line {} is not a finite number", excerpt(last)))),
        Err(_) => Err(Invalid::because(format!("the last line {} is not a number", excerpt(last)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stdout: &str) -> Result<f64, Invalid> {
        last_line(&Output { stdout: stdout.as_bytes().to_vec(), ..Output::default() })
    }

    #[test]
    fn the_last_line_is_the_number_whatever_came_before() {
        assert_eq!(read("warming up 1\n2\n3.5\n"), Ok(3.5));
        assert_eq!(read("-1e3"), Ok(-1000.0));
        assert_eq!(read("12.25\r\n\n"), Ok(12.25), "a terminal's line ends");
    }

    #[test]
    fn what_is_not_one_finite_number_is_invalid() {
        for text in
            ["", "\n \n", "NaN\n", "inf\n", "1 2\n", "3.5 s\n", "3.5\ndone\n", "1,5\n", "0x10\n", "1e999\n"]
        {
            assert!(read(text).is_err(), "{text:?} was read as {:?}", read(text));
        }
    }
}
