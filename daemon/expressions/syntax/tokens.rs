//! The tokens of an expression.

use crate::expressions::error::{Cause, ExpressionError};

/// A token with its byte range.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::expressions) struct Token {
    pub(in crate::expressions) kind: TokenKind,
    pub(in crate::expressions) start: usize,
    pub(in crate::expressions) end: usize,
}

/// The sort of a token.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::expressions) enum TokenKind {
    /// A name or a word such as `and`.
    Word(String),
    Int(i64),
    Float(f64),
    Text(String),
    /// An operator or a bracket.
    Sign(&'static str),
}

/// The operators and brackets; a longer one comes before its beginning.
const SIGNS: &[&str] = &[
    "==", "!=", "<=", ">=", "//", "<", ">", "+", "-", "*", "/", "%", "~", "|", "(", ")", "[", "]",
    ",", ".",
];

/// Signs of other languages with the correct words.
const FOREIGN_SIGNS: &[(&str, &str)] = &[
    ("===", "=="),
    ("!==", "!="),
    ("&&", "and"),
    ("||", "or"),
    ("=~", "matches(text, \"pattern\")"),
    ("=", "=="),
    ("!", "not"),
    ("<>", "!="),
    ("&", "and"),
    ("?", "a if condition else b"),
];

/// Splits an expression into tokens.
pub(in crate::expressions) fn split_tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let Some(first) = rest.chars().next() else { break };
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (kind, length) = next_token(rest, at)?;
        tokens.push(Token { kind, start: at, end: at + length });
        at += length;
    }
    Ok(tokens)
}

/// Reads the token at the start of `rest`, which stands at byte `at`. Returns its length too.
fn next_token(rest: &str, at: usize) -> Result<(TokenKind, usize), ExpressionError> {
    let first = rest.chars().next().unwrap_or(' ');
    if first == '"' || first == '\'' {
        return read_text(rest, first, at);
    }
    if first.is_ascii_digit() {
        return read_number(rest, at);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = word_length(rest);
        let word = rest.get(..length).unwrap_or_default();
        return Ok((TokenKind::Word(word.to_owned()), length));
    }
    if rest.starts_with("${") || rest.starts_with("{{") {
        let message = format!("an expression has no `{}`", rest.get(..2).unwrap_or_default());
        return Err(ExpressionError::new(Cause::Syntax, (at, at + 2), message)
            .hint("write the expression alone, without braces"));
    }
    // A foreign sign of several characters begins with a known one.
    let foreign = |least: usize| {
        FOREIGN_SIGNS.iter().find(|(sign, _)| sign.len() > least && rest.starts_with(sign))
    };
    let known = SIGNS.iter().find(|sign| rest.starts_with(**sign));
    if let Some((sign, correct)) = foreign(1).or_else(|| foreign(0).filter(|_| known.is_none())) {
        let message = format!("`{sign}` is no operator; write `{correct}`");
        return Err(ExpressionError::new(Cause::Syntax, (at, at + sign.len()), message));
    }
    if let Some(sign) = known {
        return Ok((TokenKind::Sign(sign), sign.len()));
    }
    let message = match first {
        '{' | '}' => format!("`{first}` is no part of an expression; maps stand in `vars:`"),
        '$' => "`$` is no part of an expression; a variable is `vars.NAME`".to_owned(),
        _ => format!("`{}` is no part of an expression", first.escape_debug()),
    };
    Err(ExpressionError::new(Cause::Syntax, (at, at + first.len_utf8()), message))
}

/// Returns the length of the word at the start.
fn word_length(rest: &str) -> usize {
    rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len())
}

/// Reads a number: an integer of 64 bits, or digits with a point and an exponent.
fn read_number(rest: &str, at: usize) -> Result<(TokenKind, usize), ExpressionError> {
    let digits =
        |text: &str| text.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(text.len());
    let mut length = digits(rest);
    let mut is_float = false;
    let after = |length: usize| rest.get(length..).unwrap_or_default();
    if after(length).starts_with('.') && after(length + 1).starts_with(|c: char| c.is_ascii_digit())
    {
        is_float = true;
        length += 1;
        length += digits(after(length));
    }
    if after(length).starts_with(['e', 'E']) {
        let sign = usize::from(after(length + 1).starts_with(['+', '-']));
        let exponent = digits(after(length + 1 + sign));
        if exponent > 0 {
            is_float = true;
            length += 1 + sign + exponent;
        }
    }
    let text = rest.get(..length).unwrap_or_default();
    let wrong = |length: usize, message: String| {
        Err(ExpressionError::new(Cause::Syntax, (at, at + length), message))
    };
    let word = word_length(after(length));
    if word > 0 {
        let text = rest.get(..length + word).unwrap_or_default();
        return wrong(length + word, format!("`{text}` is neither a number nor a name"));
    }
    if is_float {
        return match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok((TokenKind::Float(number), length)),
            _ => wrong(length, format!("`{text}` is too large a number")),
        };
    }
    match text.parse() {
        Ok(number) => Ok((TokenKind::Int(number), length)),
        Err(_) => wrong(length, format!("`{text}` is too large an integer (64 bits)")),
    }
}

/// Reads a text in quotes. A backslash before another character than those below stands for itself, as in Jinja.
fn read_text(rest: &str, quote: char, at: usize) -> Result<(TokenKind, usize), ExpressionError> {
    let mut text = String::new();
    let mut letters = rest.char_indices().skip(1);
    while let Some((index, letter)) = letters.next() {
        match letter {
            _ if letter == quote => return Ok((TokenKind::Text(text), index + 1)),
            '\\' => match letters.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, escaped @ ('\\' | '"' | '\''))) => text.push(escaped),
                Some((_, other)) => text.extend(['\\', other]),
                None => break,
            },
            _ => text.push(letter),
        }
    }
    let range = (at, at + rest.len());
    Err(ExpressionError::new(Cause::Syntax, range, "the expression ends inside a text").hint(
        "close the text; if the line has ` #`, YAML began a comment there: quote the whole \
         expression",
    ))
}
