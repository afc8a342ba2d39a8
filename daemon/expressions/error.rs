//! A problem of an expression, with its place in the text.

use std::fmt;

/// A problem of an expression: a byte range of its text, a message and advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// The first byte of the wrong part, counted from the start of the parsed text.
    pub offset: usize,
    /// The number of bytes of the wrong part; 0 at the end of the text.
    pub length: usize,
    /// The sort of the problem.
    pub cause: Cause,
    /// One line: the expected and the found thing.
    pub message: String,
    /// Advice for the user.
    pub hint: Option<String>,
}

/// The sort of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The text is no expression of the language.
    Syntax,
    /// A name is unknown, or not allowed at this place.
    Name,
    /// A type does not fit.
    Type,
    /// A value stops the evaluation: a division by zero, an overflow, a text that is no number, an absent value.
    Value,
}

impl ExpressionError {
    /// Creates an error for the bytes from `start` to `end`.
    pub(super) fn new(
        cause: Cause,
        (start, end): (usize, usize),
        message: impl Into<String>,
    ) -> Self {
        let length = end.saturating_sub(start);
        Self { offset: start, length, cause, message: message.into(), hint: None }
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds advice, if there is some.
    #[must_use]
    pub(super) fn hint_if(mut self, hint: Option<String>) -> Self {
        self.hint = self.hint.or(hint);
        self
    }

    /// Moves the place by the bytes before the expression.
    #[must_use]
    pub fn shifted(mut self, bytes: usize) -> Self {
        self.offset += bytes;
        self
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ExpressionError {}
