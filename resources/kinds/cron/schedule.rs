//! The time of a job: five fields, or one word such as `@daily`.

/// The words that replace the five fields.
pub(super) const SPECIAL: [&str; 8] =
    ["@reboot", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// One of the five fields: its name, its range, and the names of its values.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) field: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The five fields in the order of a crontab.
pub(super) const SPANS: [Span; 5] = [
    Span { field: "minute", least: 0, most: 59, names: &[] },
    Span { field: "hour", least: 0, most: 23, names: &[] },
    Span { field: "day", least: 1, most: 31, names: &[] },
    Span { field: "month", least: 1, most: 12, names: &MONTHS },
    Span { field: "weekday", least: 0, most: 7, names: &DAYS },
];

impl Span {
    /// Returns a description of the mistake in a field, if there is one.
    pub(super) fn mistake(&self, text: &str) -> Option<String> {
        text.split(',').find_map(|item| self.wrong_item(item))
    }

    fn wrong_item(&self, item: &str) -> Option<String> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        let step_is_valid = step.is_none_or(|step| number(step).is_some_and(|it| it > 0));
        let is_valid = match range.split_once('-') {
            _ if range == "*" => true,
            Some((from, to)) => {
                matches!((self.value(from), self.value(to)), (Some(from), Some(to)) if from <= to)
            }
            // A step needs a range: cron rejects `5/10`.
            None => step.is_none() && self.value(range).is_some(),
        };
        let Self { field, least, most, .. } = self;
        (!is_valid || !step_is_valid).then(|| {
            let item = crate::secrets::escape::short(item, 20);
            format!("expected {least}-{most}, *, a-b, */n or a list in `{field}`, found `{item}`")
        })
    }

    /// Returns the text with the names that cron knows, for a text with whole names: `mon-fri` for `monday-friday`.
    pub(super) fn with_short_names(&self, text: &str) -> Option<String> {
        let mut short = String::with_capacity(text.len());
        for piece in text.split_inclusive(['-', ',', '/']) {
            let end = piece.trim_end_matches(['-', ',', '/']);
            let lower = end.to_ascii_lowercase();
            let known = self.names.iter().find(|name| end.len() > 3 && lower.starts_with(**name));
            short.push_str(known.map_or(end, |name| name));
            short.push_str(piece.strip_prefix(end).unwrap_or_default());
        }
        (short != text && self.mistake(&short).is_none()).then_some(short)
    }

    fn value(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let value = match named {
            Some(at) => u32::try_from(at).ok()? + self.least,
            None => number(text)?,
        };
        (self.least..=self.most).contains(&value).then_some(value)
    }
}

/// Returns the fields of a schedule that is one text, as the graph writes them: `minute: 0, hour: 7` for `0 7 * * *`,
/// and `special: "@daily"` for `daily`. None for another text.
#[must_use]
pub fn cron_fields(text: &str) -> Option<String> {
    let text = text.trim();
    let is_word = |word: &&&str| word.strip_prefix('@') == Some(text.trim_start_matches('@'));
    if let Some(word) = SPECIAL.iter().find(is_word) {
        return Some(format!("special: \"{word}\""));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() != SPANS.len() {
        return None;
    }
    let mut fields = Vec::new();
    for (span, word) in SPANS.iter().zip(words) {
        let short = span.with_short_names(word);
        let word = short.as_deref().unwrap_or(word);
        if span.mistake(word).is_some() {
            return None;
        }
        let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match word {
            "*" => {}
            word if is_plain => fields.push(format!("{}: {word}", span.field)),
            word => fields.push(format!("{}: \"{word}\"", span.field)),
        }
    }
    Some(if fields.is_empty() { "minute: \"*\"".to_owned() } else { fields.join(", ") })
}

fn number(text: &str) -> Option<u32> {
    let is_number =
        !text.is_empty() && text.len() < 4 && text.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{SPANS, cron_fields};
    use proptest::prelude::*;

    #[test]
    fn fields_are_judged_as_cron_does() {
        for (at, good) in [
            (0, "*"),
            (0, "0"),
            (0, "59"),
            (0, "*/5"),
            (0, "0,15,30-45/5"),
            (1, "23"),
            (2, "1-31"),
            (3, "jan"),
            (3, "Feb-apr"),
            (3, "12"),
            (4, "7"),
            (4, "mon-fri"),
            (4, "sun"),
            (4, "0-7"),
        ] {
            assert_eq!(SPANS[at].mistake(good), None, "{good}");
        }
        for (at, bad) in [
            (0, ""),
            (0, "60"),
            (0, "-1"),
            (0, "5/10"),
            (0, "*/0"),
            (0, "*/"),
            (0, "1,,2"),
            (0, "10-5"),
            (0, "1 2"),
            (0, "0~30"),
            (0, "jan"),
            (1, "24"),
            (2, "0"),
            (2, "32"),
            (3, "0"),
            (3, "13"),
            (3, "january"),
            (4, "8"),
            (4, "L"),
            (0, "+5"),
            (0, "1-2-3"),
            (0, "@daily"),
        ] {
            let mistake = SPANS[at].mistake(bad).unwrap_or_else(|| panic!("{bad} is accepted"));
            assert!(mistake.chars().count() <= 100, "{mistake}");
        }
    }

    #[test]
    fn a_schedule_of_one_text_is_split() {
        for (text, fields) in [
            ("0 7 * * *", Some("minute: 0, hour: 7")),
            ("*/5 * * * monday-friday", Some("minute: \"*/5\", weekday: \"mon-fri\"")),
            ("@daily", Some("special: \"@daily\"")),
            ("daily", Some("special: \"@daily\"")),
            ("* * * * *", Some("minute: \"*\"")),
            ("0 25 * * *", None),
            ("0 7 * *", None),
            ("often", None),
        ] {
            assert_eq!(cron_fields(text).as_deref(), fields, "{text}");
        }
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        #[test]
        fn any_text_is_judged(text in "\\PC{0,40}", at in 0_usize..5) {
            if let Some(mistake) = SPANS[at].mistake(&text) {
                prop_assert!(mistake.chars().count() <= 100);
            } else {
                prop_assert!(!text.contains(char::is_whitespace) && !text.is_empty());
            }
        }
    }
}
