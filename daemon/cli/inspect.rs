//! `steadfast inspect`: live objects of this host, written as a graph.

use super::args::Inspect;
use super::exit::Exit;
use super::output::{error, plain, print};
use serde_yaml::{Mapping, Value as Yaml};
use steadfast_resources::inspect::{Field, Inspected, Inspector, inspectors};
use steadfast_resources::{Failure, FieldMode, Host, KindSet, Value};

/// Prints the objects as YAML.
pub(super) fn inspect(args: &Inspect) -> Exit {
    let Some(inspector) = inspectors().iter().find(|inspector| inspector.kind == args.kind) else {
        let known: Vec<&str> = inspectors().iter().map(|inspector| inspector.kind).collect();
        let what = format!("`{}` cannot be inspected", plain(&args.kind));
        error(what, Some(&format!("the kinds are: {}", known.join(", "))));
        return Exit::Usage;
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => {
            error(format!("cannot start: {why}"), None);
            return Exit::Failed;
        }
    };
    match runtime.block_on(read_objects(inspector, args)) {
        Ok(found) if found.missing.is_empty() => {
            print(document(inspector.kind, found.objects));
            Exit::Well
        }
        Ok(found) => {
            if !found.objects.is_empty() {
                print(document(inspector.kind, found.objects));
            }
            for name in found.missing {
                error(format!("{}[{}] does not exist on this host", args.kind, plain(&name)), None);
            }
            Exit::Failed
        }
        Err(failure) => {
            error(failure.what, failure.hint.as_deref());
            Exit::Failed
        }
    }
}

/// The objects that exist, and the names of the others.
struct Found {
    objects: Vec<Inspected>,
    missing: Vec<String>,
}

async fn read_objects(inspector: &Inspector, args: &Inspect) -> Result<Found, Failure> {
    let host = Host::default();
    let names = if args.all {
        let Some(list) = inspector.all else {
            let what = format!("{} objects cannot be listed", inspector.kind);
            return Err(Failure::new(what).hint("name the objects"));
        };
        list(&host).await?
    } else {
        args.names.clone()
    };
    let mut found = Found { objects: Vec::new(), missing: Vec::new() };
    for name in names {
        match (inspector.one)(&host, &name).await? {
            Some(object) => found.objects.push(object),
            None if args.all => {}
            None => found.missing.push(name),
        }
    }
    Ok(found)
}

/// Writes the objects as a graph; each secret is declared with a command that the user replaces.
fn document(kind: &str, objects: Vec<Inspected>) -> String {
    let mut secrets = Mapping::new();
    let mut list = Vec::new();
    for object in objects {
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
    serde_yaml::to_string(&Yaml::Mapping(graph)).unwrap_or_default().trim_end().to_owned()
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
