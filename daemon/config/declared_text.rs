//! The declaration of one resource, as text of its graph file, without values that may be secret.

use super::hidden::hidden;

/// The replacement of a value that may be secret.
const NOT_SHOWN: &str = "(not shown)";

/// The maximum number of lines of a declaration.
const LONGEST: usize = 200;

/// Returns the lines of the list entry that begins at a line (1 is the first), without the common indentation. Values
/// that may be secret are replaced.
#[must_use]
pub fn declared_lines(text: &str, line: usize) -> Vec<String> {
    let mut starts = vec![0];
    starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
    let Some(start) = line.checked_sub(1).and_then(|line| starts.get(line).copied()) else {
        return Vec::new();
    };
    let end = start + entry_length(text.get(start..).unwrap_or_default());
    let mut shown = String::new();
    let mut at = start;
    for range in hidden(text).into_iter().filter(|range| range.start < end && range.end > start) {
        let value = text.get(range.start.max(start)..range.end.min(end)).unwrap_or_default();
        shown.push_str(text.get(at..range.start.max(at)).unwrap_or_default());
        shown.push_str(NOT_SHOWN);
        if value.ends_with('\n') {
            shown.push('\n');
        }
        at = range.end.min(end);
    }
    shown.push_str(text.get(at..end).unwrap_or_default());
    let lines: Vec<&str> = shown.lines().collect();
    let indent = lines.first().map_or(0, |first| indentation(first));
    let cut =
        |line: &&str| line.get(indent.min(indentation(line))..).unwrap_or_default().to_owned();
    lines.iter().take(LONGEST).map(cut).collect()
}

/// Returns the length of the entry at the begin of a text: up to the next line that is not indented deeper.
fn entry_length(text: &str) -> usize {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next() else { return 0 };
    let indent = indentation(first);
    let (mut length, mut end) = (first.len(), first.len());
    for line in lines {
        let is_blank = line.trim().is_empty();
        if !is_blank && indentation(line) <= indent {
            break;
        }
        length += line.len();
        // Blank lines at the end belong to no entry.
        end = if is_blank { end } else { length };
    }
    end
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests {
    use super::declared_lines;

    const TEXT: &str = "graph: g\nresources:\n  file:\n    - name: a\n      path: /a\n      content: |\n        one\n        two\n      mode: 0644\n\n    - {name: b, content: \"x\", mode: 0600}\n  svc:\n    - name: s\n";

    #[test]
    fn an_entry_is_shown_without_what_may_be_secret() {
        let shown = declared_lines(TEXT, 4);
        assert_eq!(shown[..2], ["- name: a", "  path: /a"]);
        assert!(shown.iter().any(|line| line.contains("(not shown)")), "{shown:?}");
        assert!(
            !shown.iter().any(|line| line.contains("one") || line.contains("two")),
            "{shown:?}"
        );
        assert_eq!(shown.last().map(String::as_str), Some("  mode: 0644"));
        let flow = declared_lines(TEXT, 11);
        assert_eq!(flow.len(), 1);
        assert!(flow[0].starts_with("- {name: b, content: (not shown)"), "{flow:?}");
        assert_eq!(declared_lines(TEXT, 13), ["- name: s"]);
        assert!(declared_lines(TEXT, 99).is_empty() && declared_lines(TEXT, 0).is_empty());
    }
}
