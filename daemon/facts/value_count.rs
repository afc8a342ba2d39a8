//! The limit of the values in files of facts. The events of a text are counted before it becomes values.

use granit_parser::{Event, Parser};
use std::collections::HashMap;

/// The maximum number of values in a file of facts, and in all local facts together.
pub(super) const MOST_VALUES: usize = 100_000;

/// Takes the values of a YAML or JSON text from the room that is left; an alias counts as the value that it names.
pub(super) fn take_values(text: &str, room: &mut usize) -> Result<(), String> {
    let mut count = 0_usize;
    // The anchors of the open lists and maps, each with the count at its beginning.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    let options = granit_parser::options! { emit_comments: false };
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| format!("the file is no valid YAML: {error}"))?;
        match event {
            Event::Scalar(_, _, anchor, _) => {
                count = count.saturating_add(1);
                sizes.insert(anchor, 1);
            }
            Event::SequenceStart(_, anchor, _) | Event::MappingStart(_, anchor, _) => {
                open.push((anchor, count));
                count = count.saturating_add(1);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((anchor, start)) = open.pop() {
                    sizes.insert(anchor, count - start);
                }
            }
            Event::Alias(anchor) => {
                count = count.saturating_add(sizes.get(&anchor).copied().unwrap_or(1));
            }
            _ => {}
        }
        if count > *room {
            let (line, column) = (span.start.line(), span.start.col() + 1);
            return Err(format!(
                "more than {MOST_VALUES} values up to line {line}, column {column}: shorten the lists, or leave the data in a file that the program reads which needs them"
            ));
        }
    }
    *room -= count;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_aliases_are_counted() {
        for (text, wanted) in [("a: 1", 3), ("[1, [2]]", 4), ("{a: &x [1, 1], b: *x, c: *x}", 13)] {
            let mut room = 100;
            assert_eq!(take_values(text, &mut room), Ok(()));
            assert_eq!(100 - room, wanted, "{text}");
            assert!(take_values(text, &mut (wanted - 1)).is_err(), "{text}");
        }
    }
}
