//! The search for words of the language: a file without them is read as before, without an expansion.

/// The keys of the language, as they stand before a colon.
const KEYS: [&str; 10] = [
    "when",
    "for_each",
    "include",
    "modules",
    "vars",
    "vars_files",
    "assert",
    "exports",
    "params",
    "template",
];

/// Returns true if a text may use the language. A wrong guess costs time and changes nothing.
pub(in crate::config) fn uses_language(text: &str) -> bool {
    if text.contains("${") {
        return true;
    }
    let bytes = text.as_bytes();
    text.match_indices(':').any(|(at, _)| {
        // Most keys are excluded by their last two letters alone.
        let end = at.checked_sub(2).and_then(|from| bytes.get(from..at));
        let may_end = matches!(
            end,
            Some(b"en" | b"ch" | b"de" | b"es" | b"rs" | b"rt" | b"ts" | b"ms" | b"te")
        ) || matches!(end, Some([_, b'"' | b'\'' | b' ']));
        if !may_end {
            return false;
        }
        let before = text.get(..at).unwrap_or_default();
        let before = before.trim_end_matches(' ').trim_end_matches(['"', '\'']);
        KEYS.iter().any(|key| before.ends_with(key) && is_key_start(before, key))
    })
}

/// Returns true if a text ends in a key that begins a word.
fn is_key_start(before: &str, key: &str) -> bool {
    let rest = before.get(..before.len() - key.len()).unwrap_or_default();
    !rest.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
}

#[cfg(test)]
mod tests {
    use super::uses_language;

    #[test]
    fn words_of_the_language_are_found() {
        for text in [
            "when: x",
            "{\"when\": \"x\"}",
            "- {for_each : a}",
            "include: [a]",
            "x: ${vars.a}",
            "  vars:\n",
            "'modules': []",
        ] {
            assert!(uses_language(text), "{text}");
        }
        for text in ["graph: a\nresources:\n  file:\n  - name: /when\n", "x-when: a", "a.vars: b"] {
            assert!(!uses_language(text), "{text}");
        }
    }
}
