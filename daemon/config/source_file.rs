//! One graph file as text, with conversion of offsets to places.

use super::hidden::hidden;
use super::problem::Place;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;
use steadfast_resources::is_deceptive;

/// A part of a file, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    pub(super) fn new(start: usize, end: usize) -> Self {
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        Self { start, end: u32::try_from(end).unwrap_or(u32::MAX).max(start) }
    }
}

/// The part that a text plays in a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Role {
    /// A file that the caller names.
    #[default]
    Graph,
    /// A file that another file names: an included file, a file of a module, a file of variables, a template.
    Used,
    /// The values that come from no file: facts, values of probes, variables of the command line.
    Values,
}

/// One graph file.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// The name of the file in messages.
    pub(super) display: String,
    /// The absolute path; `-` for the standard input.
    pub(super) path: PathBuf,
    /// The absolute directory to which relative paths refer.
    pub(super) base: PathBuf,
    /// The text without a byte order mark.
    pub(super) text: String,
    /// The part that the text plays in the graph.
    pub(super) role: Role,
    /// The offsets of the lines; computed at first use.
    lines: OnceLock<Vec<u32>>,
    /// The number of characters before each block of bytes; computed at first use.
    characters: OnceLock<Vec<u32>>,
    /// The ranges of values that are never shown; computed at first use.
    hidden: OnceLock<Vec<Range<usize>>>,
}

/// The bytes of a block whose characters are counted once.
const BLOCK: usize = 4096;

/// The bytes of a line before and behind a place that its message can show.
const SHOWN: usize = 500;

impl SourceFile {
    /// Creates a file. A last line without a newline gets one, because YAML readers disagree about such a line.
    pub(super) fn new(display: &str, path: PathBuf, base: PathBuf, mut text: String) -> Self {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Self {
            display: clean(display),
            path,
            base,
            text,
            role: Role::Graph,
            lines: OnceLock::new(),
            characters: OnceLock::new(),
            hidden: OnceLock::new(),
        }
    }

    /// Returns the list or map in brackets that begins at an offset, if it ends in the same line.
    pub(super) fn bracketed(&self, start: u32) -> Option<&str> {
        let text = self.text.get(start as usize..)?.lines().next()?;
        let (mut depth, mut quote) = (0_usize, None);
        for (at, letter) in text.char_indices() {
            match (quote, letter) {
                (Some(open), letter) if open == letter => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(letter),
                (None, '[' | '{') => depth += 1,
                (None, ']' | '}') => depth = depth.checked_sub(1)?,
                (None, _) if depth == 0 => return None,
                (None, _) => {}
            }
            if depth == 0 && quote.is_none() {
                return text.get(..=at);
            }
        }
        None
    }

    fn lines(&self) -> &[u32] {
        self.lines.get_or_init(|| {
            let ends = self.text.match_indices('\n');
            let starts = ends.map(|(at, _)| u32::try_from(at + 1).unwrap_or(u32::MAX));
            std::iter::once(0).chain(starts).collect()
        })
    }

    /// Returns the line of a byte, from 1.
    pub(super) fn line(&self, at: u32) -> u32 {
        let line = self.lines().partition_point(|start| *start <= at);
        u32::try_from(line).unwrap_or(u32::MAX)
    }

    /// Returns the line of a byte, and the offset of its beginning.
    pub(super) fn line_text(&self, at: u32) -> (&str, usize) {
        let lines = self.lines();
        let line = self.line(at) as usize;
        let start = lines.get(line.saturating_sub(1)).copied().unwrap_or_default() as usize;
        let end = lines.get(line).map_or(self.text.len(), |next| *next as usize);
        let text = self.text.get(start..end).unwrap_or_default();
        (text.trim_end_matches(['\n', '\r']), start)
    }

    /// Returns the place of a span, with its source line.
    pub(super) fn place(&self, span: Span) -> Place {
        let start = self.floor(span.start as usize);
        let (line, from) = self.line_text(Span::new(start, start).start);
        let before = self.characters_before(start) - self.characters_before(from);
        let end = (span.end as usize).min(from + line.len()).min(start + SHOWN);
        let meant = self.text.get(start..self.floor(end));
        let width = meant.map_or(1, |text| text.trim_end().chars().count()).max(1);
        // A file of one long line can have thousands of problems.
        let near = self.floor(from.max(start.saturating_sub(SHOWN)))
            ..self.floor((from + line.len()).min(start + SHOWN));
        let part = self.text.get(near.clone()).unwrap_or(line);
        let (line_shown, caret) = self.masked(part, near.start, start);
        let (text, caret) = window(&line_shown, caret);
        let room = text.chars().count().saturating_sub(caret).max(1);
        Place {
            file: self.display.clone(),
            line: self.line(Span::new(start, start).start),
            column: number(before + 1),
            text,
            caret: number(caret),
            width: number(width.min(room)),
            label: None,
            chain: Vec::new(),
        }
    }

    /// Returns the number of characters before an offset. A file of one long line can have thousands of problems: a few
    /// bytes are counted for each.
    fn characters_before(&self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let count = |bytes: &[u8]| bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        let before = self.characters.get_or_init(|| {
            let mut sum = 0;
            let blocks = bytes.chunks(BLOCK).map(|block| {
                sum += count(block);
                u32::try_from(sum).unwrap_or(u32::MAX)
            });
            std::iter::once(0).chain(blocks).collect()
        });
        let block = at / BLOCK;
        let whole = before.get(block).copied().unwrap_or_default() as usize;
        whole + count(bytes.get(block * BLOCK..at).unwrap_or_default())
    }

    /// Returns the beginning of the character at an offset.
    fn floor(&self, mut at: usize) -> usize {
        at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }

    /// Returns a line with `***` for hidden values, and the number of its characters before a byte.
    fn masked(&self, line: &str, from: usize, start: usize) -> (String, usize) {
        let hidden = self.hidden.get_or_init(|| hidden(&self.text));
        let mut shown = String::with_capacity(line.len());
        let (mut caret, mut before) = (None, None);
        for (at, character) in line.char_indices().map(|(at, c)| (from + at, c)) {
            let range = hidden.partition_point(|range| range.end <= at);
            let range = hidden.get(range).filter(|range| range.contains(&at));
            if at == start || (caret.is_none() && range.is_some_and(|range| range.contains(&start)))
            {
                let is_inside = range.is_some() && before == range;
                caret = Some(shown.chars().count() - if is_inside { 3 } else { 0 });
            }
            match range {
                Some(range) if before != Some(range) => shown.push_str("***"),
                Some(_) => {}
                None => shown.push(character),
            }
            before = range;
        }
        let caret = caret.unwrap_or_else(|| shown.chars().count());
        (shown, caret)
    }

    /// Returns the place of the whole file.
    pub(super) fn whole(&self) -> Place {
        whole(&self.display)
    }
}

/// Returns the place of a whole file.
pub(super) fn whole(display: &str) -> Place {
    Place {
        file: clean(display),
        line: 0,
        column: 0,
        text: String::new(),
        caret: 0,
        width: 1,
        label: None,
        chain: Vec::new(),
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns the part of a line that is shown around a column, each character one column wide.
fn window(line: &str, before: usize) -> (String, usize) {
    const WIDTH: usize = 96;
    let skip = if before > WIDTH * 3 / 4 { before - WIDTH / 2 } else { 0 };
    let mut text = String::new();
    if skip > 0 {
        text.push('…');
    }
    let shown = line.chars().skip(skip).take(WIDTH);
    text.extend(shown.map(|c| match c {
        '\t' => ' ',
        c if is_plain(c) => c,
        _ => '�',
    }));
    if line.chars().nth(skip + WIDTH).is_some() {
        text.push('…');
    }
    (text, before - skip + usize::from(skip > 0))
}

/// Escapes the control characters of a text, so that the text is safe on a terminal.
pub(super) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_plain(c) {
            out.push(c);
        } else {
            out.extend(c.escape_default());
        }
    }
    out
}

fn is_plain(c: char) -> bool {
    !is_deceptive(c)
}
