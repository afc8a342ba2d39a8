//! Every field that takes a secret, by every way in which one is supplied: each pair has a canary of its own.
//!
//! The fields are those that the kinds themselves declare. One that is new is not in the table, and the tests say so.

use std::collections::BTreeMap;
use steadfast_resources::registry::specs;
use steadfast_resources::{FieldSpec, FieldType, KindSpec, Receives};

/// What every canary begins with.
pub(super) const CANARY: &str = "canary-5f1d9";

/// How a field gets its secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldPath {
    File,
    Credential,
    Command,
    /// All of a template.
    Alone,
    /// Among other words.
    Template,
    /// From a password that is made here.
    Password,
    /// From a resource that has received it itself.
    Sent,
    /// From what a command prints that was given it.
    Printed,
}

const WAYS: [FieldPath; 8] = [
    FieldPath::File,
    FieldPath::Credential,
    FieldPath::Command,
    FieldPath::Alone,
    FieldPath::Template,
    FieldPath::Password,
    FieldPath::Sent,
    FieldPath::Printed,
];

/// A field and a way.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) number: usize,
    kind: &'static str,
    field: &'static FieldSpec,
    pub(super) way: FieldPath,
}

/// Resources as lines of a graph, by kind.
#[derive(Default)]
pub(super) struct Graph(BTreeMap<&'static str, Vec<String>>);

impl Graph {
    pub(super) fn put(&mut self, kind: &'static str, line: String) {
        self.0.entry(kind).or_default().push(line);
    }

    /// The graph with these secrets.
    pub(super) fn text(&self, secrets: &str) -> String {
        let mut text = format!("graph: canaries\nsecrets:\n{secrets}resources:\n");
        for (kind, lines) in &self.0 {
            text += &format!("  {kind}:\n");
            for line in lines {
                text += &format!("  - {{{line}}}\n");
            }
        }
        text
    }
}

/// All fields of all kinds.
pub(super) fn fields() -> impl Iterator<Item = (&'static KindSpec, &'static FieldSpec)> {
    let in_use = |field: &&FieldSpec| !field.later && field.ignored.is_none();
    specs().iter().flat_map(move |spec| spec.fields.iter().filter(in_use).map(move |f| (*spec, f)))
}

/// Each field that takes secrets with each way.
pub(super) fn rows() -> Vec<Row> {
    let takers = fields().filter(|(_, field)| field.receives >= Receives::Secrets);
    let each = takers.flat_map(|(spec, field)| WAYS.map(|way| (spec.kind, field, way)));
    each.zip(1..).map(|((kind, field, way), number)| Row { number, kind, field, way }).collect()
}

impl Row {
    /// Where the secret comes from in the end; that of a password is not ours to choose.
    pub(super) fn supply(&self) -> FieldPath {
        match self.way {
            FieldPath::File | FieldPath::Credential | FieldPath::Command => self.way,
            _ => WAYS[self.number % 3],
        }
    }

    /// The field with its secret.
    fn slot(&self) -> String {
        let Self { number, field, .. } = self;
        let (name, is_map) = (field.name, field.takes == FieldType::TextMap);
        let from = match self.way {
            FieldPath::File | FieldPath::Credential | FieldPath::Command if is_map => {
                return format!("{name}: {{V: {{secret: s{number}}}}}");
            }
            FieldPath::File | FieldPath::Credential | FieldPath::Command => {
                return format!("{name}: {{secret: s{number}}}");
            }
            FieldPath::Alone => {
                format!("{{template: \"${{a}}\", values: {{a: {{secret: s{number}}}}}}}")
            }
            FieldPath::Template => format!(
                "{{template: \"before ${{a}} ${{b}}\", values: {{a: {{secret: s{number}}}, b: 'value[plain].text'}}}}"
            ),
            FieldPath::Password => format!("'password[p{number}].password'"),
            FieldPath::Sent => format!("{{from: 'test[sends-{number}]', key: text}}"),
            FieldPath::Printed => format!("'exec[prints-{number}].output'"),
        };
        format!("recv: {{{name}{}: {from}}}", if is_map { ".V" } else { "" })
    }

    /// The one of it that is well, where nothing but the graph supplies it.
    pub(super) fn well(&self) -> Option<String> {
        let is_direct =
            matches!(self.way, FieldPath::File | FieldPath::Credential | FieldPath::Command);
        is_direct.then(|| format!("{}[well-{}]", self.kind, self.number))
    }

    /// A file that is held to what another file supplies.
    pub(super) fn is_file_of_file(&self) -> bool {
        self.kind == "file" && self.way == FieldPath::File
    }

    /// The name of a resource that takes it.
    fn name(&self, what: &str) -> String {
        format!("name: {what}-{}", self.number)
    }

    /// All resources of this row: those that supply, one that is well, and one for each way in which something goes
    /// wrong.
    pub(super) fn declare(&self, graph: &mut Graph) {
        let number = self.number;
        match self.way {
            FieldPath::Password => {
                graph.put("password", format!("name: p{number}, length: 30"));
                // So that it is known what must not be shown.
                let known = format!("path: $DIR/got/known-{number}, mode: 0644");
                let recv = format!("recv: {{content: 'password[p{number}].password'}}");
                graph.put("file", format!("name: known-{number}, {known}, {recv}"));
            }
            FieldPath::Sent => graph.put(
                "test",
                format!("name: sends-{number}, changed: true, text: {{secret: s{number}}}"),
            ),
            FieldPath::Printed => graph.put(
                "exec",
                format!(
                    "name: prints-{number}, args: [printenv, V], env: {{V: {{secret: s{number}}}}}"
                ),
            ),
            _ => {}
        }
        match (self.kind, self.field.name) {
            ("file", "content") => self.file(graph),
            ("exec", "env") => self.exec(graph, "echo \"$V\""),
            ("exec", "stdin") => self.exec(graph, "cat"),
            ("test", "text") => {
                self.test(graph);
                let to = format!("path: $DIR/got/{number}, mode: 0644");
                let recv = format!("recv: {{content: 'test[well-{number}].text'}}");
                graph.put("file", format!("{}, {to}, {recv}", self.name("sent")));
            }
            ("test", "map") => self.test(graph),
            (kind, field) => {
                panic!("S-6: `{kind}` takes secrets by `{field}`: add it to the table")
            }
        }
    }

    /// Whether the file `got/NUMBER` shows that the secret has arrived.
    pub(super) fn arrives(&self) -> bool {
        (self.kind, self.field.name) != ("test", "map")
    }

    fn file(&self, graph: &mut Graph) {
        let (number, slot) = (self.number, self.slot());
        let put = |graph: &mut Graph, what, rest: String| {
            graph.put("file", format!("{}, mode: 0644, {rest}, {slot}", self.name(what)));
        };
        put(graph, "well", format!("path: $DIR/got/{number}"));
        put(graph, "nowhere", format!("path: $DIR/no/such/{number}"));
        let script = r#"cat "$1"; cat "$1" >&2; exit 1"#;
        let validate = format!("validate: [sh, -c, '{script}', sh, '%s']");
        put(graph, "refused", format!("path: $DIR/refused-{number}, {validate}"));
    }

    /// A command that says what it was given wherever it can; its words are written down.
    fn exec(&self, graph: &mut Graph, says: &str) {
        let (number, slot) = (self.number, self.slot());
        let argv = "tr \"\\000\" \" \" < /proc/$$/cmdline >> $DIR/argv";
        let put = |graph: &mut Graph, what: &str, ends: &str, rest: &str| {
            let to = format!("$DIR/got/{}{number}", if what == "well" { "" } else { what });
            let script = format!("{says} > {to}; cat {to}; cat {to} >&2; {argv}; {ends}");
            let command = format!("args: [sh, -c, '{script}']");
            graph.put("exec", format!("{}, {command}{rest}, {slot}", self.name(what)));
        };
        put(graph, "well", "true", "");
        put(graph, "breaks", "exit 3", "");
        put(graph, "killed", "kill -9 $$", "");
        let guards = ", ifcmd: env, donecmd: printenv V, changed_when: printenv V";
        put(graph, "guarded", "true", guards);
        put(graph, "doubtful", "true", ", ifcmd: env, donecmd: 'false'");
    }

    fn test(&self, graph: &mut Graph) {
        let slot = self.slot();
        for (what, how) in
            [("well", "changed: true"), ("fails", "fail: 1000000"), ("panics", "panic: true")]
        {
            graph.put("test", format!("{}, {how}, {slot}", self.name(what)));
        }
    }
}

/// A resource of a kind that sends this value, and sends it as a secret; it was given `s1`.
pub(super) fn sender(kind: &str, key: &str, name: &str) -> String {
    match (kind, key) {
        ("exec", "output" | "stdout") => {
            format!("name: {name}, args: [printenv, V], env: {{V: {{secret: s1}}}}")
        }
        ("exec", "stderr") => {
            format!("name: {name}, args: [sh, -c, 'cat >&2'], stdin: {{secret: s1}}")
        }
        ("test", "text") => format!("name: {name}, changed: true, text: {{secret: s1}}"),
        _ => panic!("S-6: `{kind}` takes secrets and sends `{key}`: add it to the table"),
    }
}

/// Every text that a kind sends that takes secrets.
pub(super) fn senders() -> Vec<(&'static str, &'static str)> {
    let takes = |spec: &KindSpec| spec.fields.iter().any(|f| f.receives >= Receives::Secrets);
    let of = |spec: &&'static KindSpec| {
        let texts = spec.sends.iter().filter(|send| send.gives == FieldType::Text);
        texts.map(|send| (spec.kind, send.key)).collect::<Vec<_>>()
    };
    specs().iter().filter(|spec| takes(spec)).flat_map(of).collect()
}
