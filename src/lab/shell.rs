//! Text for a POSIX shell.

/// One word that means `text` to the letter, in single quotes.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
