//! The work of matching a text with a pattern: each byte of the text is compared with each part of the pattern, and a
//! count such as `{50}` repeats a part.

/// The maximum number of parts that the compiled pattern has: the compiler refuses a larger one.
const MOST_PARTS: u64 = 4096;

/// The parts that are compared for one unit of work.
const PARTS_OF_WORK: u64 = 8;

/// Returns the work of one match.
pub(in crate::expressions) fn work_of_match(text: &str, pattern: &str) -> u64 {
    let parts = parts_of(pattern);
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    parts.saturating_add(parts.saturating_mul(length) / PARTS_OF_WORK)
}

/// Returns the number of parts of a pattern, with the repeated ones.
fn parts_of(pattern: &str) -> u64 {
    // The parts of each open group: those before the last part, and those of the last part.
    let mut groups = vec![(0_u64, 0_u64)];
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        let add = match letter {
            '\\' => {
                letters.next();
                1
            }
            '[' => {
                let mut is_escaped = false;
                let mut is_first = true;
                let mut length = 1;
                for inner in letters.by_ref() {
                    length += 1;
                    if inner == ']' && !is_escaped && !is_first {
                        break;
                    }
                    is_first = is_first && inner == '^';
                    is_escaped = inner == '\\' && !is_escaped;
                }
                length / 4 + 1
            }
            '(' => {
                groups.push((0, 0));
                continue;
            }
            ')' => {
                let (before, last) = groups.pop().unwrap_or_default();
                before.saturating_add(last).saturating_add(2)
            }
            '{' => {
                let inside: String = letters.by_ref().take_while(|inner| *inner != '}').collect();
                let counts = inside.split(',').filter_map(|count| count.trim().parse().ok());
                let count: u64 = counts.max().unwrap_or(1).max(1);
                if let Some((_, last)) = groups.last_mut() {
                    *last = last.saturating_mul(count.saturating_add(1)).min(MOST_PARTS);
                }
                continue;
            }
            _ => 1,
        };
        if groups.is_empty() {
            groups.push((0, 0));
        }
        if let Some((before, last)) = groups.last_mut() {
            *before = before.saturating_add(*last).min(MOST_PARTS);
            *last = add;
        }
    }
    let parts = groups.iter().map(|(before, last)| before.saturating_add(*last));
    parts.fold(1, u64::saturating_add).min(MOST_PARTS)
}

#[cfg(test)]
mod tests {
    use super::parts_of;

    #[test]
    fn repeated_parts_count() {
        assert_eq!(parts_of("^web[0-9]+$"), 9);
        assert!(parts_of(r"^[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}$") < 50);
        assert!(parts_of("(x?){50}") > 150);
        assert_eq!(parts_of("((x{100}){100}){100}"), 4096);
        for wrong in ["))){9}((", "[]a]{9}[^]]\\]{3}", "{", "[", "\\", "a{x,y"] {
            assert!((1..=4096).contains(&parts_of(wrong)), "{wrong}");
        }
    }
}
