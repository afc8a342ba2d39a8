//! The text of a first graph.

use super::collect::{Found, Section};
use crate::cli::inspect::escaped;
use crate::cli::output::{count, plain};
use steadfast_resources::Value;

const HEAD: &str = "\
# This host as `steadfast init` found it: `steadfast plan` changes nothing. Delete what steadfast should not hold, and
# declare what it should. `steadfast explain KIND` shows every field of a kind; `steadfast check` finds mistakes.
";

/// Writes the graph. A resource that is not as declared becomes a comment with the reason.
pub(super) fn graph_text(name: &str, sections: &[Section]) -> String {
    let is_empty = sections.iter().all(|section| count_declared(section) == 0);
    let resources = if is_empty { "resources: {}" } else { "resources:" };
    let mut text = format!("{HEAD}graph: {}\n{resources}\n", scalar(name));
    for section in sections {
        text.push('\n');
        for line in section.about {
            text.push_str(&format!("  # {line}\n"));
        }
        if let Some(problem) = &section.problem {
            text.push_str(&format!("  # They cannot be listed: {}\n", one_line(problem)));
        }
        let indent = if count_declared(section) > 0 { "  " } else { "  # " };
        text.push_str(&format!("{indent}{}:\n", section.kind));
        for found in &section.found {
            text.push_str(&entry(section.kind, found));
        }
    }
    text
}

/// Counts the declared objects: `12 packages, 3 services`.
pub(super) fn summary(sections: &[Section]) -> String {
    let words = sections.iter().map(|section| (count_declared(section), section));
    let words = words.filter(|(number, _)| *number > 0).map(|(number, section)| {
        let one = section.objects.strip_suffix('s').unwrap_or(section.objects);
        match section.objects {
            "files of cron" => format!("{} of cron", count(number, "file")),
            _ => count(number, one),
        }
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "nothing to declare was found".to_owned() } else { words.join(", ") }
}

fn count_declared(section: &Section) -> usize {
    section.found.iter().filter(|found| found.unlike.is_none()).count()
}

fn entry(kind: &str, found: &Found) -> String {
    let name = escaped(kind, "name", &found.name);
    if let Some(why) = &found.unlike {
        return format!("  # - {} is left out: {}\n", scalar(&found.name), one_line(why));
    }
    let usual = |(field, value): &&(&str, Value)| {
        kind == "pkg" && *field == "state" && *value == Value::Text("installed".to_owned())
    };
    let fields: Vec<String> = found
        .fields
        .iter()
        .filter(|field| !usual(field))
        .map(|(field, value)| format!("{field}: {}", value_text(kind, field, value)))
        .collect();
    if fields.is_empty() {
        return format!("    - {}\n", scalar(&name));
    }
    format!("    - {{ name: {}, {} }}\n", scalar(&name), fields.join(", "))
}

fn value_text(kind: &str, field: &str, value: &Value) -> String {
    let text = |text: &String| scalar(&escaped(kind, field, text));
    match value {
        Value::Text(value) if field == "mode" => value.clone(),
        Value::Text(value) => text(value),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Texts(all) => format!("[{}]", all.iter().map(text).collect::<Vec<_>>().join(", ")),
        Value::TextMap(all) => {
            let pairs = all.iter().map(|(key, value)| format!("{}: {}", scalar(key), text(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        // An inspector returns no secret as a value.
        Value::Secret(_) | Value::Sealed(_) => "null".to_owned(),
    }
}

/// Writes a text as a YAML scalar that a flow collection may contain. JSON is YAML.
fn scalar(text: &str) -> String {
    let begins =
        text.starts_with(|letter: char| letter.is_ascii_alphabetic() || "/_".contains(letter));
    let is_plain =
        begins && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+@".contains(c));
    let is_text =
        serde_yaml::from_str::<serde_yaml::Value>(text).is_ok_and(|value| value.is_string());
    // Words that older readers of YAML take for something else.
    let is_old = ["yes", "no", "on", "off", "y", "n"].contains(&&*text.to_ascii_lowercase());
    if is_plain && is_text && !is_old {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

fn one_line(text: &str) -> String {
    plain(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::collect::{Found, Section};
    use super::{graph_text, scalar, summary};
    use proptest::prelude::*;
    use steadfast_resources::Value;

    fn section(kind: &'static str, found: Vec<Found>) -> Section {
        Section { kind, objects: "packages", about: &["About."], found, problem: None }
    }

    fn found(name: &str, unlike: Option<&str>) -> Found {
        let fields = vec![("state", Value::Text("installed".to_owned()))];
        Found { name: name.to_owned(), fields, unlike: unlike.map(str::to_owned) }
    }

    #[test]
    fn a_resource_that_differs_is_a_comment() {
        let all = [section("pkg", vec![found("acl", None), found("bc", Some("held\nback"))])];
        let text = graph_text("h", &all);
        let expected = "graph: h\nresources:\n\n  # About.\n  pkg:\n    - acl\n  # - bc is left out: held back\n";
        assert!(text.ends_with(expected), "{text}");
        assert_eq!(summary(&all), "1 package");
        let none = [section("pkg", vec![found("bc", Some("x"))])];
        assert!(graph_text("h", &none).contains("\n  # pkg:\n"));
    }

    #[test]
    fn texts_that_read_as_something_else_are_quoted() {
        for (text, written) in [
            ("a.b@c", "a.b@c"),
            ("/bin/sh", "/bin/sh"),
            ("true", "\"true\""),
            ("no", "\"no\""),
            ("12", "\"12\""),
            ("", "\"\""),
            ("a, b", "\"a, b\""),
            ("null", "\"null\""),
        ] {
            assert_eq!(scalar(text), written);
        }
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        /// Each text is read back as it was, also within a map.
        #[test]
        fn scalars_are_read_back(text in "[ -~äß]{0,12}") {
            let yaml: serde_yaml::Value = serde_yaml::from_str(&format!("{{ a: {}, b: 1 }}", scalar(&text))).unwrap();
            prop_assert_eq!(yaml["a"].as_str(), Some(&*text));
        }
    }
}
