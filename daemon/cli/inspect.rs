//! `steadfast inspect`: live objects of this host, written as a graph.

use super::args::Inspect;
use super::exit::Exit;
use super::output::{eprint, error, plain, print};
use crate::config::kind_for_word;
use crate::nearest_name::hint_with_pointer;
use serde_yaml::{Mapping, Value as Yaml};
use steadfast_resources::inspect::{
    ContainerInspector, Field, Inspected, Inspector, SOURCES, container_inspectors, inspectors,
    not_inspected,
};
use steadfast_resources::{Failure, FieldMode, Host, KindSet, Value};

/// Prints the objects as YAML.
pub(super) fn inspect(args: &Inspect) -> Exit {
    let Some(reader) = Reader::find(&args.kind) else { return unknown_kind(&args.kind) };
    if args.names.is_empty() && !args.all {
        let hint = format!("`steadfast inspect --all {}` prints all objects", plain(&args.kind));
        error("expected the names of objects, found none", Some(&hint));
        return Exit::Usage;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => {
            error(format!("cannot start: {why}"), None);
            return Exit::Failed;
        }
    };
    match runtime.block_on(reader.read_objects(args)) {
        Ok(found) => {
            let is_whole = found.failures.is_empty();
            for comment in &found.comments {
                print(format!("# {}", plain(comment)));
            }
            if is_whole && found.objects.is_empty() {
                let accepted = "`steadfast check --allow-empty` accepts this graph";
                print(format!("# no {} to print on this host: {accepted}", args.kind));
            }
            if is_whole || !found.objects.is_empty() {
                note_sources(&found.objects);
                print(document(&args.kind, found.objects));
            }
            for failure in found.failures {
                error(failure.what, failure.hint.as_deref());
            }
            if is_whole { Exit::Well } else { Exit::Failed }
        }
        Err(failure) => {
            error(failure.what, failure.hint.as_deref());
            Exit::Failed
        }
    }
}

/// Tells which files belong beside the printed graph.
fn note_sources(objects: &[Inspected]) {
    for object in objects {
        let is_source = |(name, field): &(&str, Field)| {
            *name == "source"
                && matches!(field, Field::Shown(Value::Text(path)) if path.starts_with(SOURCES))
        };
        if object.fields.iter().any(is_source) {
            let name = plain(&object.name);
            eprint("note: the content is no short text; copy it beside the graph:");
            eprint(format!("  install -D {name} {SOURCES}{name}"));
        }
    }
}

/// Returns the kinds whose objects can be read back, sorted.
pub(super) fn inspected_kinds() -> Vec<&'static str> {
    let mut known: Vec<&str> = inspectors().iter().map(|inspector| inspector.kind).collect();
    known.extend(container_inspectors().iter().map(|inspector| inspector.kind));
    known.sort_unstable();
    known
}

fn unknown_kind(kind: &str) -> Exit {
    if let Some(why) = not_inspected(kind) {
        error(format!("`{}` cannot be inspected", plain(kind)), Some(why));
        return Exit::Usage;
    }
    let what = format!("unknown kind `{}`", plain(kind));
    let known = inspected_kinds();
    let hint = match kind_for_word(kind).filter(|here| known.contains(here)) {
        Some(here) => format!("write: steadfast inspect {here} NAME"),
        None => hint_with_pointer(kind, &known, ("kinds", "steadfast inspect --help")),
    };
    error(what, Some(&hint));
    Exit::Usage
}

/// The reader of the objects of a kind.
enum Reader {
    /// Each name is that of an object.
    Single(&'static Inspector),
    /// Each name is that of a file or an account with objects.
    Container(&'static ContainerInspector),
}

/// The objects that could be read, and the reasons for the others.
#[derive(Default)]
struct Found {
    objects: Vec<Inspected>,
    /// Objects of `--all` that could not be read.
    comments: Vec<String>,
    /// Objects that were named, and could not be read.
    failures: Vec<Failure>,
}

impl Reader {
    fn find(kind: &str) -> Option<Self> {
        let single = inspectors().iter().find(|it| it.kind == kind).map(Self::Single);
        let container = || container_inspectors().iter().find(|it| it.kind == kind);
        single.or_else(|| container().map(Self::Container))
    }

    fn describe_missing(&self, name: &str) -> Failure {
        Failure::new(match self {
            Self::Single(own) => {
                format!("{}[{}] does not exist on this host", own.kind, plain(name))
            }
            Self::Container(own) => {
                format!("the {} {} does not exist on this host", own.container, plain(name))
            }
        })
    }

    async fn list_names(&self, host: &Host) -> Result<Vec<String>, Failure> {
        let (kind, all, noun) = match self {
            Self::Single(own) => (own.kind, own.all, "object"),
            Self::Container(own) => (own.kind, own.all, own.container),
        };
        let Some(list) = all else {
            let what = format!("{kind} objects cannot be listed");
            return Err(Failure::new(what).hint(format!("name each {noun}")));
        };
        list(host).await
    }

    async fn read_objects(&self, args: &Inspect) -> Result<Found, Failure> {
        let host = Host::default();
        let names = if args.all { self.list_names(&host).await? } else { args.names.clone() };
        let mut found = Found::default();
        for name in names {
            let objects = match self {
                Self::Single(own) => {
                    (own.one)(&host, &name).await.map(|object| object.map(|object| vec![object]))
                }
                Self::Container(own) => (own.read)(&host, &name).await,
            };
            match objects {
                Ok(Some(objects)) => found.objects.extend(objects),
                Ok(None) if args.all => {}
                Ok(None) => found.failures.push(self.describe_missing(&name)),
                Err(failure) if args.all => {
                    let hint = failure.hint.map_or_else(String::new, |hint| format!(" ({hint})"));
                    let what = failure.what.lines().next().unwrap_or_default();
                    found.comments.push(format!("omitted {name}: {what}{hint}"));
                }
                Err(failure) => found.failures.push(failure),
            }
        }
        Ok(found)
    }
}

/// Writes the objects as a graph, after comments with their notes; each secret is declared with a file that the user
/// fills.
fn document(kind: &str, objects: Vec<Inspected>) -> String {
    let mut secrets = Mapping::new();
    let mut list = Vec::new();
    let mut notes = String::new();
    for object in objects {
        if let Some(note) = &object.note {
            notes.push_str(&format!("# {kind}[{}]: {}\n", plain(&object.name), plain(note)));
        }
        let mut map = Mapping::new();
        map.insert("name".into(), escaped(kind, "name", &object.name).into());
        for (field, value) in object.fields {
            let value = match value {
                Field::Shown(value) => yaml_of((kind, field), value),
                Field::Secret(name) => {
                    let path = format!("/etc/steadfast/secrets/{name}");
                    secrets.insert(name.as_str().into(), mapping("file", path.into()));
                    mapping("secret", name.into())
                }
            };
            map.insert(field.into(), value);
        }
        list.push(Yaml::Mapping(map));
    }
    let mut graph = Mapping::new();
    graph.insert("graph".into(), "inspected".into());
    if !secrets.is_empty() {
        graph.insert("secrets".into(), Yaml::Mapping(secrets));
    }
    let resources = mapping(kind, Yaml::Sequence(list));
    graph.insert("resources".into(), resources);
    let graph = serde_yaml::to_string(&Yaml::Mapping(graph)).unwrap_or_default();
    notes + graph.trim_end()
}

/// Doubles the `$` of `${`, which begins an expression, unless the field is literal.
pub(super) fn escaped(kind: &str, field: &str, text: &str) -> String {
    let spec = KindSet::of_this_build().find(kind);
    let mode = spec.and_then(|spec| spec.fields.iter().find(|known| known.name == field));
    match mode.and_then(|field| field.mode) {
        Some(FieldMode::Literal(_)) => text.to_owned(),
        _ => text.replace("${", "$${"),
    }
}

fn mapping(key: &str, value: Yaml) -> Yaml {
    let mut map = Mapping::new();
    map.insert(key.into(), value);
    Yaml::Mapping(map)
}

fn yaml_of((kind, field): (&str, &str), value: Value) -> Yaml {
    let of_text = |text: String| Yaml::from(escaped(kind, field, &text));
    match value {
        Value::Text(text) => of_text(text),
        Value::Bool(truth) => truth.into(),
        Value::Int(number) => number.into(),
        Value::Float(number) => number.into(),
        Value::Texts(texts) => Yaml::Sequence(texts.into_iter().map(of_text).collect()),
        Value::TextMap(map) => {
            Yaml::Mapping(map.into_iter().map(|(key, text)| (key.into(), of_text(text))).collect())
        }
        // An inspector never returns a secret as a value.
        Value::Secret(_) | Value::Sealed(_) => Yaml::Null,
    }
}
