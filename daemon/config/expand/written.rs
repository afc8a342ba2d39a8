//! An expression as it is written in a file.

use super::Context;
use crate::config::source_file::Span;

/// An expression in a file: its text, and the place of its first byte.
#[derive(Clone, Copy, Debug)]
pub(in crate::config::expand) struct Written<'t> {
    pub(in crate::config::expand) text: &'t str,
    /// The offset in the file, if the text stands there as it is.
    pub(in crate::config::expand) start: Option<usize>,
    /// The scalar that holds the expression.
    pub(in crate::config::expand) span: Span,
}

impl<'t> Written<'t> {
    /// Finds an expression in the scalar at a span.
    pub(in crate::config::expand) fn find(context: &Context, text: &'t str, span: Span) -> Self {
        let (start, end) = (span.start as usize, span.end as usize);
        let source = context.parsed.file.text.get(start..end).unwrap_or_default();
        // Most scalars are the expression itself, with or without quotes: a search prepares the whole text.
        let at = (0..=1).find(|at| source.get(*at..).is_some_and(|rest| rest.starts_with(text)));
        let at = at.or_else(|| source.find(text));
        Self { text, start: at.map(|at| start + at), span }
    }

    /// Finds an expression behind an offset of the scalar at a span; the offset moves behind the expression.
    pub(in crate::config::expand) fn find_next(
        context: &Context,
        text: &'t str,
        (span, from): (Span, &mut usize),
    ) -> Self {
        let rest = Span {
            start: span.start.saturating_add(u32::try_from(*from).unwrap_or(u32::MAX)),
            ..span
        };
        let found = Self::find(context, text, rest);
        if let Some(start) = found.start {
            *from = start + text.len() - span.start as usize;
        }
        Self { span, ..found }
    }

    /// Returns the span of a byte of the expression, or of the whole scalar.
    pub(in crate::config::expand) fn span_at(&self, at: usize) -> Span {
        match self.start {
            Some(start) => {
                let end = start + self.text.len();
                let at = (start + at).min(end.saturating_sub(1));
                Span::new(at, end.max(at + 1))
            }
            None => self.span,
        }
    }
}
