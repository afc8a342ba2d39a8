//! Expiry dates: days since 1970 in `/etc/shadow`, written as YYYY-MM-DD in a graph.

/// The word for an account without an expiry date.
pub(super) const NEVER: &str = "never";

/// Returns the date of a day since 1970, in the Gregorian calendar (the algorithm of Howard Hinnant).
pub(super) fn date_of(day: i64) -> String {
    let shifted = day.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Returns the written date if it is `never`, or a day from 1970 to 2999 that exists.
pub(super) fn normal(text: &str) -> Option<String> {
    if text == NEVER {
        return Some(text.to_owned());
    }
    let mut parts = text.split('-');
    let mut number = |digits: usize| -> Option<i64> {
        let part = parts.next().filter(|part| part.len() == digits)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let is_valid =
        parts.next().is_none() && (1970..3000).contains(&year) && (1..=days).contains(&day);
    is_valid.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{date_of, normal};

    #[test]
    fn days_become_dates() {
        for (day, date) in [
            (0, "1970-01-01"),
            (1, "1970-01-02"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (19_722, "2023-12-31"),
            (20_454, "2026-01-01"),
        ] {
            assert_eq!(date_of(day), date);
        }
        assert!(!date_of(i64::MAX).is_empty() && !date_of(i64::MIN).is_empty());
    }

    #[test]
    fn only_existing_days_are_accepted() {
        for good in ["never", "2024-02-29", "2030-12-31", "1970-01-01"] {
            assert_eq!(normal(good).as_deref(), Some(good));
        }
        for bad in
            ["", "2023-02-29", "2030-13-01", "2030-1-1", "1969-12-31", "tomorrow", "2030-01-01-"]
        {
            assert_eq!(normal(bad), None, "{bad}");
        }
    }
}
