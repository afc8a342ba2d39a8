//! The sorts of lines: structure, values that go on over several lines, texts of block scalars, comments, empty lines.

/// The sort of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    Empty,
    Comment,
    /// A line that begins with a key, a dash or a value.
    Structure,
    /// A line within brackets, quotes or a plain text of several lines.
    Continued,
    /// A line of a block scalar.
    Text,
}

/// The state of the scanner between two lines.
#[derive(Default)]
struct Scan {
    /// The number of open brackets.
    brackets: usize,
    /// The open quote.
    quote: Option<char>,
}

impl Scan {
    const fn is_open(&self) -> bool {
        self.brackets > 0 || self.quote.is_some()
    }

    /// Reads a line, or the part from a value on; returns the line without its comment.
    fn read<'t>(&mut self, line: &'t str) -> &'t str {
        let mut before = ' ';
        let mut letters = line.char_indices();
        while let Some((at, letter)) = letters.next() {
            match (self.quote, letter) {
                (Some('"'), '\\') => {
                    letters.next();
                }
                (Some(open), _) if letter == open => self.quote = None,
                (Some(_), _) => {}
                (None, '#') if before == ' ' || before == '\t' => {
                    return line.get(..at).unwrap_or(line).trim_end();
                }
                // A quote within a plain text is a letter.
                (None, '"' | '\'') if " [{,:-\t".contains(before) => self.quote = Some(letter),
                (None, '[' | '{') if self.brackets > 0 || " \t".contains(before) => {
                    self.brackets += 1;
                }
                (None, ']' | '}') if self.brackets > 0 => self.brackets -= 1,
                _ => {}
            }
            before = letter;
        }
        line.trim_end()
    }
}

/// Returns the sort of each line.
pub(super) fn classify_lines<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<LineKind> {
    let mut kinds = Vec::new();
    let mut scan = Scan::default();
    // The column of the parent of a block scalar.
    let mut block: Option<usize> = None;
    // The column of a key whose plain value may go on.
    let mut plain: Option<usize> = None;
    for line in lines {
        let trimmed = line.trim();
        let indent = line.len() - line.trim_start_matches(' ').len();
        if let Some(parent) = block {
            if trimmed.is_empty() || indent > parent {
                kinds.push(LineKind::Text);
                continue;
            }
            block = None;
            // Empty lines at the end of a kept block belong to it; others are between two entries.
        }
        let kind = if scan.is_open() {
            scan.read(line);
            plain = None;
            LineKind::Continued
        } else if trimmed.is_empty() {
            LineKind::Empty
        } else if trimmed.starts_with('#') {
            LineKind::Comment
        } else if plain.is_some_and(|parent| indent > parent) && !is_key_or_dash(trimmed) {
            scan.read(line);
            LineKind::Continued
        } else {
            let code = scan.read(line);
            let column = key_column(code);
            let value = value_of(code);
            block = is_block_header(value).then_some(column);
            plain = (!value.is_empty() && block.is_none() && !scan.is_open()).then_some(column);
            LineKind::Structure
        };
        kinds.push(kind);
    }
    kinds
}

/// Returns true if a line begins with a key or a dash.
fn is_key_or_dash(trimmed: &str) -> bool {
    trimmed == "-" || trimmed.starts_with("- ") || trimmed.ends_with(':') || trimmed.contains(": ")
}

/// Returns the column of the last key or dash that the line opens.
fn key_column(code: &str) -> usize {
    let mut column = code.len() - code.trim_start_matches(' ').len();
    let mut rest = code.trim_start_matches(' ');
    while let Some(after) = rest.strip_prefix("- ") {
        let inner = after.trim_start_matches(' ');
        let is_item = inner.starts_with("- ") || value_key(inner).is_some();
        if !is_item {
            return column;
        }
        column += 2 + after.len() - inner.len();
        rest = inner;
    }
    column
}

/// Returns the value after the key or dash of a line.
fn value_of(code: &str) -> &str {
    let mut rest = code.trim_start_matches(' ');
    while let Some(after) = rest.strip_prefix("- ") {
        rest = after.trim_start_matches(' ');
    }
    if rest == "-" {
        return "";
    }
    value_key(rest).unwrap_or(rest)
}

/// Returns the text after `key:`, if the text begins with a key.
fn value_key(text: &str) -> Option<&str> {
    if let Some(quote) = text.chars().next().filter(|first| *first == '"' || *first == '\'') {
        let end = text.get(1..)?.find(quote)? + 2;
        let after = text.get(end..)?.strip_prefix(':')?;
        return (after.is_empty() || after.starts_with(' ')).then(|| after.trim_start());
    }
    if text.starts_with(['[', '{']) {
        return None;
    }
    match text.split_once(": ") {
        Some((_, value)) => Some(value.trim_start()),
        None => text.ends_with(':').then_some(""),
    }
}

/// Returns true for `|` and `>` with their indicators.
fn is_block_header(value: &str) -> bool {
    let value = value.trim();
    value.starts_with(['|', '>'])
        && value
            .chars()
            .skip(1)
            .all(|letter| letter == '-' || letter == '+' || letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::LineKind::{Comment, Continued, Empty, Structure, Text};
    use super::classify_lines;

    #[test]
    fn lines_have_their_sorts() {
        let text = "a: |\n  x\n\n  # y\n# c\nb: {x: 1,\n  y: 2}\n\nc: one\n  two\nd: 'it''s # no'\n- - e: >-\n      t\n";
        let wanted = [
            Structure, Text, Text, Text, Comment, Structure, Continued, Empty, Structure,
            Continued, Structure, Structure, Text,
        ];
        assert_eq!(classify_lines(text.lines()), wanted);
    }
}
