//! Events and status without values of files and graphs, for callers that may not see them.

use super::render;
use crate::api::event_data::AspectChange;
use crate::api::{Event, EventKind};

/// The value in place of a hidden one.
const NOT_SHOWN: &str = "not shown";

/// Returns an event, given as JSON, without the values before and after its changes: in its data, and in its message.
/// The names of the aspects stay. None for an unreadable event: its values cannot be told from the rest.
#[must_use]
pub fn without_values(json: &str) -> Option<String> {
    let mut event: Event = serde_json::from_str(json).ok()?;
    hide_values(&mut event);
    serde_json::to_string(&event).ok()
}

fn hide_values(event: &mut Event) {
    match &mut event.kind {
        EventKind::Changed(changed) => {
            changed.differences.iter_mut().for_each(hide_difference);
            for note in &mut changed.notes {
                hide_note(note, &changed.differences);
            }
        }
        EventKind::Held(held) => held.differences.iter_mut().for_each(hide_difference),
        EventKind::Rejected(why) | EventKind::Bundle(why) => {
            why.reason = without_messages(&why.reason);
        }
        EventKind::LastGoodGraphUsed(used) => used.reason = without_messages(&used.reason),
        // An event of an older version has its values in the message alone.
        EventKind::Old(old) if matches!(old.event.as_str(), "changed" | "held") => {}
        _ => return,
    }
    event.message = render::message(&event.kind);
}

fn hide_difference(one: &mut AspectChange) {
    NOT_SHOWN.clone_into(&mut one.from);
    NOT_SHOWN.clone_into(&mut one.to);
}

/// Shortens a note such as `mode 0640` to the name of its aspect.
fn hide_note(note: &mut String, differences: &[AspectChange]) {
    let Some((word, _)) = note.split_once(' ') else { return };
    if differences.iter().any(|one| one.aspect == word) {
        note.truncate(word.len());
    }
}

/// Returns the problems of a rejected graph without their messages, which quote values of the graph: the place and the
/// code of each problem stay. A text without codes stays as it is.
#[must_use]
pub fn without_messages(text: &str) -> String {
    let problems: Vec<String> = text.lines().filter_map(problem).collect();
    if problems.is_empty() {
        return text.to_owned();
    }
    format!("{}\n  hint: root sees the messages", problems.join("\n"))
}

/// Returns a line such as `graph.yaml:3:42: file[x]: y is not a mode [C208]` without its message.
fn problem(line: &str) -> Option<String> {
    let (rest, code) = line.trim_end().rsplit_once(" [")?;
    let code = code.strip_suffix(']')?;
    let is_code = code.strip_prefix('C')?.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let address = rest.split_once(": ").map(|(address, _)| address).filter(|address| {
        let mut parts = address.rsplit(':');
        parts.next().is_some_and(is_number) && parts.next().is_some_and(is_number)
    });
    is_code.then(|| match address {
        Some(address) => format!("{address}: not shown [{code}]"),
        None => format!("not shown [{code}]"),
    })
}

#[cfg(test)]
mod tests {
    use super::{without_messages, without_values};
    use crate::api::Event;

    fn event(name: &str, data: &str) -> String {
        format!(
            r#"{{"number":1,"at":0,"resource":"line[l]","level":"info","message":"line: pw a -> pw b","event":"{name}","data":{data}}}"#
        )
    }

    #[test]
    fn values_are_hidden_in_the_data_and_in_the_message() {
        let differences = r#"[{"aspect":"line","from":"pw a","to":"pw b"}]"#;
        let run = r#"{"number":1,"cause":"drift"}"#;
        let changed = format!(
            r#"{{"class":"corrective","differences":{differences},"notes":["line pw b","created"],"took":3,"run":{run}}}"#
        );
        let held = format!(
            r#"{{"reason":"would-change","until":null,"differences":{differences},"destructive":false,"run":{run}}}"#
        );
        for (name, data, message) in [
            ("changed", changed.as_str(), "line, created (3 ms, corrective)"),
            ("held", &held, "would change: line"),
            ("changed", r#"{"class":"corrective"}"#, ""),
        ] {
            let hidden = without_values(&event(name, data)).unwrap();
            assert!(!hidden.contains("pw "), "{hidden}");
            let event: Event = serde_json::from_str(&hidden).unwrap();
            assert_eq!((event.number, event.message.as_str()), (Some(1), message), "{hidden}");
        }
        let failed = event("removed", r#"{"text":"pw a"}"#);
        let same: Event = serde_json::from_str(&failed).unwrap();
        let hidden = without_values(&failed).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&hidden).unwrap(), same);
        assert_eq!(without_values("{}"), None);
    }

    #[test]
    fn messages_of_a_rejected_graph_are_hidden() {
        let text = "/g/a.yaml:3:42: file[/a]: PW is not a mode [C208]\n  hint: owner: PW\n\n\
                    the graph has PW: 1 [C103]\n  /g/a.yaml:4:1";
        let hidden = without_messages(text);
        assert!(!hidden.contains("PW"), "{hidden}");
        assert!(hidden.starts_with("/g/a.yaml:3:42: not shown [C208]\nnot shown [C103]\n"));
        assert_eq!(without_messages("no such file [x]"), "no such file [x]");
    }
}
