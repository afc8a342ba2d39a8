//! The rule for secrets in differences: a hidden content appears in no diff, plan, log or event (S-6, S-19).
//!
//! Every difference that may contain a secret is made with these functions.

use crate::change::Difference;
use crate::host::files::denies_others;

/// The text that stands for a hidden value.
const NOT_SHOWN: &str = "not shown";

/// Returns true for a file content that must be hidden: it is declared sensitive, or a mode that the file has or gets
/// denies others to read it.
pub(crate) fn is_hidden(is_sensitive: bool, modes: impl IntoIterator<Item = u32>) -> bool {
    is_sensitive || modes.into_iter().any(denies_others)
}

/// Makes the difference of a hidden value, without details.
pub(crate) fn hidden_difference(aspect: &'static str) -> Difference {
    Difference { aspect, from: NOT_SHOWN.into(), to: format!("{NOT_SHOWN}, differs"), diff: None }
}

/// Returns a value for a difference: as `show` displays it, or a text that stands for a hidden one. An absent value is
/// empty in both cases.
pub(crate) fn hide_if(is_hidden: bool, value: &str, show: impl Fn(&str) -> String) -> String {
    match value {
        "" => String::new(),
        _ if is_hidden => NOT_SHOWN.to_owned(),
        value => show(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sensitive_or_closed_content_is_hidden() {
        assert!(!is_hidden(false, [0o644, 0o755]));
        assert!(is_hidden(true, [0o644]));
        assert!(is_hidden(false, [0o644, 0o640]));
    }

    #[test]
    fn a_hidden_value_leaves_no_trace() {
        let shown = |value: &str, hides| hide_if(hides, value, ToOwned::to_owned);
        assert_eq!([shown("s3cret", true), shown("", true)], ["not shown", ""]);
        assert_eq!(shown("open", false), "open");
        let difference = hidden_difference("content");
        assert_eq!(
            (difference.from, difference.to.as_str()),
            ("not shown".into(), "not shown, differs")
        );
        assert!(difference.diff.is_none());
    }
}
