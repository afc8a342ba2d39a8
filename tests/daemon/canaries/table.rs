//! The table: every field that takes a secret with every supply; each pair has a canary of its own.
//!
//! The fields come from the declarations of the kinds. A new field without a row fails the tests.

use std::collections::BTreeMap;
use steadfast_resources::KindSet;
use steadfast_resources::{FieldSpec, FieldType, KindSpec, Receives, SendSpec};

/// The beginning of every canary.
pub(super) const CANARY: &str = "canary-5f1d9";

/// The supply of a field's secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldPath {
    File,
    Credential,
    Command,
    /// A template that is the secret alone.
    Alone,
    /// A template with other words.
    Template,
    /// A generated password.
    Password,
    /// A value sent by a resource that received the secret.
    Sent,
    /// The output of a command that received the secret.
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

/// A field with its supply.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) number: usize,
    kind: &'static str,
    field: &'static FieldSpec,
    pub(super) way: FieldPath,
}

/// The resources of a graph by kind, as YAML lines.
#[derive(Default)]
pub(super) struct Graph(BTreeMap<&'static str, Vec<String>>);

impl Graph {
    pub(super) fn put(&mut self, kind: &'static str, line: String) {
        self.0.entry(kind).or_default().push(line);
    }

    /// Formats the graph with these secrets.
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

/// Returns the kinds of this build.
fn specs() -> impl Iterator<Item = &'static KindSpec> {
    let all: Vec<_> = KindSet::of_this_build().specs().collect();
    all.into_iter()
}

/// Returns all fields of all kinds.
pub(super) fn fields() -> impl Iterator<Item = (&'static KindSpec, &'static FieldSpec)> {
    let in_use = |field: &&FieldSpec| !field.later && field.ignored.is_none();
    specs().flat_map(move |spec| spec.fields.iter().filter(in_use).map(move |f| (spec, f)))
}

/// Returns each field that takes secrets with each supply.
pub(super) fn rows() -> Vec<Row> {
    let takers = fields().filter(|(_, field)| field.receives >= Receives::Secrets);
    let each = takers.flat_map(|(spec, field)| WAYS.map(|way| (spec.kind, field, way)));
    each.zip(1..).map(|((kind, field, way), number)| Row { number, kind, field, way }).collect()
}

impl Row {
    /// Returns the original supply of the secret; the test does not choose generated passwords.
    pub(super) fn supply(&self) -> FieldPath {
        match self.way {
            FieldPath::File | FieldPath::Credential | FieldPath::Command => self.way,
            _ => WAYS[self.number % 3],
        }
    }

    /// Formats the field with its secret.
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
        let is_template = matches!(self.way, FieldPath::Alone | FieldPath::Template);
        if is_template && name == "content" && field.takes == FieldType::Text {
            let text =
                if self.way == FieldPath::Alone { "{{ a }}" } else { "before {{ a }} {{ b }}" };
            let other = if self.way == FieldPath::Alone { "" } else { ", b: 'value[plain].text'" };
            return format!(
                "template: {{text: \"{text}\"}}, values: {{a: {{secret: s{number}}}{other}}}"
            );
        }
        format!("recv: {{{name}{}: {from}}}", if is_map { ".V" } else { "" })
    }

    /// Returns the good resource of the row, if only the graph supplies the secret.
    pub(super) fn well(&self) -> Option<String> {
        let is_direct =
            matches!(self.way, FieldPath::File | FieldPath::Credential | FieldPath::Command);
        (is_direct && !self.takes_one_line())
            .then(|| format!("{}[well-{}]", self.kind, self.number))
    }

    /// Returns true if the field takes one line, so that it refuses the canaries, which have two.
    fn takes_one_line(&self) -> bool {
        matches!(self.kind, "ini" | "line")
    }

    /// Returns true for a file whose content comes from another file.
    pub(super) fn is_file_of_file(&self) -> bool {
        self.kind == "file" && self.way == FieldPath::File
    }

    /// Formats the name of a resource of this row.
    fn name(&self, what: &str) -> String {
        format!("name: {what}-{}", self.number)
    }

    /// Declares all resources of this row: the suppliers, a good receiver, and one for each sort of failure.
    pub(super) fn declare(&self, graph: &mut Graph) {
        let number = self.number;
        match self.way {
            FieldPath::Password => {
                graph.put("password", format!("name: p{number}, length: 30"));
                // The generated password is written to a file, so that the search knows the value.
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
            ("user", "password") => self.user(graph),
            ("line", "line" | "content") => self.edit(graph, ""),
            ("replace", "replacement") => self.replace(graph),
            ("block", "content") => self.edit(graph, ""),
            ("ini", "value") => self.edit(graph, ", section: a, key: k"),
            ("json" | "yaml" | "toml", "value") => self.edit(graph, ", key: k"),
            ("archive" | "fetch", "password" | "token") => self.download(graph),
            (kind, field) => {
                panic!("S-6: `{kind}` takes secrets by `{field}`: add it to the table")
            }
        }
    }

    /// Returns true if the file `got/NUMBER` must contain the secret.
    pub(super) fn arrives(&self) -> bool {
        // JSON and TOML write a line end as an escape, and YAML may.
        !matches!(
            (self.kind, self.field.name),
            ("test", "map")
                | ("user", "password")
                | ("archive" | "fetch" | "json" | "toml" | "yaml", _)
        ) && !self.takes_one_line()
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

    /// Declares a command that prints its secret wherever possible and records its arguments.
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

    /// Declares users that are absent, and one that is refused because the secret is no hash: the test changes no
    /// account of its host.
    fn user(&self, graph: &mut Graph) {
        let slot = self.slot();
        graph.put("user", format!("{}, state: absent, {slot}", self.name("well")));
        graph.put("user", format!("{}, meta: {{noop: true}}, {slot}", self.name("refused")));
    }

    /// Declares an edit of a new file, one without a directory, and one that its validation refuses.
    fn edit(&self, graph: &mut Graph, rest: &str) {
        let (number, slot) = (self.number, self.slot());
        let script = r#"cat "$1"; cat "$1" >&2; exit 1"#;
        let validate = format!(", validate: [sh, -c, '{script}', sh, '%s']");
        for (what, place, more) in [
            ("well", "got/", ""),
            ("nowhere", "no/such/", ""),
            ("refused", "refused-edit-", validate.as_str()),
        ] {
            let path = format!("path: $DIR/{place}{number}, create: true{more}");
            graph.put(self.kind, format!("{}, {path}{rest}, {slot}", self.name(what)));
        }
    }

    /// Declares a replacement of a whole file, and one in a file that does not exist.
    fn replace(&self, graph: &mut Graph) {
        let (number, slot) = (self.number, self.slot());
        let path = format!("$DIR/got/{number}");
        let old = format!(
            "name: before-{number}, path: {path}, mode: 0600, content: \"old\\n\", replace: false"
        );
        graph.put("file", old);
        let all = format!("path: {path}, match: '^old$', {slot}");
        graph.put(self.kind, format!("{}, {all}", self.name("well")));
        let missing = format!("path: $DIR/no/such/{number}, match: '^old$', {slot}");
        graph.put(self.kind, format!("{}, {missing}", self.name("nowhere")));
    }

    /// Declares the absence of a download, and a download from a server that does not exist.
    fn download(&self, graph: &mut Graph) {
        let (number, slot) = (self.number, self.slot());
        let login = if self.field.name == "password" { ", username: eve" } else { "" };
        let from =
            format!("url: 'http://127.0.0.1:1/x.tar', checksum: 'sha256:{}'", "0".repeat(64));
        for (what, state) in [("well", "state: absent"), ("refused", from.as_str())] {
            let path = format!("path: $DIR/{what}-download-{number}");
            graph.put(self.kind, format!("{}, {path}, {state}{login}, {slot}", self.name(what)));
        }
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

/// Returns a resource of a kind that receives the secret `s1` and sends this value as a secret.
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

/// Returns every text value that a secret-taking kind sends. A user sends columns of
/// /etc/passwd, a download and an archive a declared checksum, an edit the path of its file, which is static, and a
/// file or an edit with a secret no hash (resources/tests/file/extended.rs): none of these values has secrets.
pub(super) fn senders() -> Vec<(&'static str, &'static str)> {
    let takes = |spec: &KindSpec| {
        !["user", "fetch", "archive", "file"].contains(&spec.kind)
            && spec.fields.iter().any(|f| f.receives >= Receives::Secrets)
    };
    let of = |spec: &&'static KindSpec| {
        let is_free = |key: &str| ["path", "hash"].contains(&key);
        let is_text = |send: &&SendSpec| send.gives == FieldType::Text && !is_free(send.key);
        let texts = spec.sends.iter().filter(is_text);
        texts.map(|send| (spec.kind, send.key)).collect::<Vec<_>>()
    };
    specs().filter(|spec| takes(spec)).flat_map(|spec| of(&spec)).collect()
}
