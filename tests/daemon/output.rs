//! The result of a command (exit code, standard output, standard error) with its assertions.

use serde_json::Value;

pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "code {}\n-- stdout\n{}-- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

impl Output {
    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{self}");
        assert!(!self.stderr.contains("panicked"), "{self}");
        self
    }

    /// Asserts that the standard output contains these words.
    #[track_caller]
    pub(crate) fn prints(&self, words: &str) -> &Self {
        assert!(self.stdout.contains(words), "`{words}` should be printed\n{self}");
        self
    }

    #[track_caller]
    pub(crate) fn prints_nothing_of(&self, words: &str) -> &Self {
        assert!(!self.stdout.contains(words), "`{words}` should not be printed\n{self}");
        self
    }

    /// Asserts that the standard output contains these words in this order.
    #[track_caller]
    pub(crate) fn prints_in_order(&self, all: &[&str]) -> &Self {
        let mut rest = self.stdout.as_str();
        for words in all {
            let Some((_, after)) = rest.split_once(words) else {
                panic!("`{words}` should be printed, after those before it\n{self}");
            };
            rest = after;
        }
        self
    }

    /// Asserts that the standard error contains these words.
    #[track_caller]
    pub(crate) fn says(&self, words: &str) -> &Self {
        assert!(self.stderr.contains(words), "`{words}` should be said\n{self}");
        self
    }

    /// Asserts that the last line of the standard output begins with these words.
    #[track_caller]
    pub(crate) fn ends_with_line(&self, words: &str) -> &Self {
        let last = self.stdout.lines().last().unwrap_or_default();
        assert!(last.starts_with(words), "the last line should begin with `{words}`\n{self}");
        self
    }

    /// Parses the standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    /// Returns the sorted identities on output lines that begin with this word.
    pub(crate) fn named_after(&self, word: &str) -> Vec<String> {
        let lines =
            self.stdout.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
        let mut names: Vec<String> =
            lines.map(|rest| format!("{}]", rest.split(']').next().unwrap_or_default())).collect();
        names.sort();
        names
    }
}
