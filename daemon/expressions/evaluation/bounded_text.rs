//! Texts of bounded length: the length of a text is known before the text is made.

use minijinja::value::Value;
use minijinja::{Error, ErrorKind};
use std::borrow::Cow;
use std::fmt::{self, Write};
use std::io;

/// The maximum length of a text that a template computes, in bytes.
pub(super) const LONGEST_TEXT: usize = 8 * 1024 * 1024;

/// Checks the length of a text that is about to be made.
///
/// # Errors
/// An error for users if the text would be too long.
pub(super) fn check_length(length: usize) -> Result<(), Error> {
    if length <= LONGEST_TEXT {
        return Ok(());
    }
    let what = format!("the text would be longer than {} MiB", LONGEST_TEXT >> 20);
    Err(Error::new(ErrorKind::InvalidOperation, what))
}

/// A text that refuses more than its maximum length. It is kept only if it is wanted.
#[derive(Debug, Default)]
pub(in crate::expressions) struct BoundedText {
    text: Vec<u8>,
    length: usize,
    is_counted_only: bool,
}

impl BoundedText {
    fn add(&mut self, bytes: &[u8]) -> bool {
        self.length = self.length.saturating_add(bytes.len());
        let fits = self.length <= LONGEST_TEXT;
        if fits && !self.is_counted_only {
            self.text.extend_from_slice(bytes);
        }
        fits
    }

    /// Returns the text.
    pub(in crate::expressions) fn into_text(self) -> String {
        String::from_utf8(self.text).unwrap_or_default()
    }
}

impl Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.add(text.as_bytes()) { Ok(()) } else { Err(fmt::Error) }
    }
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.add(bytes) {
            return Ok(bytes.len());
        }
        let what = format!("would be longer than {} MiB", LONGEST_TEXT >> 20);
        Err(io::Error::other(what))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the text of any value.
///
/// # Errors
/// An error for users if the text would be too long.
pub(super) fn text_of(value: &Value) -> Result<Cow<'_, str>, Error> {
    if let Some(text) = value.as_str() {
        check_length(text.len())?;
        return Ok(Cow::Borrowed(text));
    }
    let mut bounded = BoundedText::default();
    let result = write!(bounded, "{value}");
    check_length(bounded.length)?;
    result?;
    Ok(Cow::Owned(bounded.into_text()))
}

/// Returns the text of a value for people who look for a mistake.
///
/// # Errors
/// An error for users if the text would be too long.
pub(super) fn debug_text_of(value: &Value) -> Result<String, Error> {
    let mut bounded = BoundedText::default();
    let result = write!(bounded, "{value:#?}");
    check_length(bounded.length)?;
    result?;
    Ok(bounded.into_text())
}

/// Returns the length of the text of any value, in quotes if it is one.
///
/// # Errors
/// An error for users if the text would be too long.
pub(super) fn length_in_quotes(value: &Value) -> Result<usize, Error> {
    let mut counted = BoundedText { is_counted_only: true, ..BoundedText::default() };
    let result = write!(counted, "{value:?}");
    check_length(counted.length)?;
    result?;
    Ok(counted.length)
}

/// Returns the length of the text of any value.
///
/// # Errors
/// An error for users if the text would be too long.
pub(super) fn length_of(value: &Value) -> Result<usize, Error> {
    let mut counted = BoundedText { is_counted_only: true, ..BoundedText::default() };
    let result = match value.as_str() {
        Some(text) => counted.write_str(text),
        None => write!(counted, "{value}"),
    };
    check_length(counted.length)?;
    result?;
    Ok(counted.length)
}

/// Returns the length of a text of which some letters are written as entities.
pub(super) fn escaped_length(text: &str) -> usize {
    let is_escaped = |byte: &u8| b"<>&\"'/".contains(byte);
    text.len().saturating_add(text.bytes().filter(is_escaped).count().saturating_mul(5))
}
