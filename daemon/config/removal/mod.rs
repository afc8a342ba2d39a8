//! Removal vertices: each removes an object that an earlier graph declared, by its stored removal data.
//!
//! No graph declares these vertices; this folder must not decide which resources are removed (`driver/removal` does).
//! Reading order: this file, `recorded_edges`.

pub(super) mod recorded_edges;

use super::hash::Stable;
use super::maintenance_window::Window;
use super::{Link, LoadedGraph, Vertex};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use steadfast_engine::{Meta, WindowId};
use steadfast_resources::{
    Claim, FieldType, KindSet, KindSpec, Removal, Resource, ResourceId, Value,
};

/// The key of the fields that may change while the object stays the same one.
const DATA: &str = "data";

/// The key of the text that names the object besides the fields.
const NAME: &str = "name";

/// The key of the resources that a removal refreshes.
const NOTIFIES: &str = "notifies";

impl Vertex {
    /// Returns a hash of the object that a removal would remove, equal in every process; `None` if the resource cannot
    /// be removed.
    #[must_use]
    pub fn thing(resource: &dyn Resource) -> Option<u64> {
        resource.footprint().removal.map(|removal| hash_of(&removal))
    }

    /// Returns the removal data of a resource, with its window and the resources that the removal refreshes: the text
    /// for [`LoadedGraph::remove`].
    #[must_use]
    pub fn removal(
        resource: &dyn Resource,
        window: Option<&str>,
        notifies: &[Arc<str>],
    ) -> Option<String> {
        let removal = resource.footprint().removal?;
        let mut text = json!({ "fields": to_json(removal.fields())? });
        if !removal.data().is_empty() {
            text[DATA] = to_json(removal.data())?.into();
        }
        if let Some(name) = removal.name() {
            text[NAME] = name.into();
        }
        if let Some(window) = window {
            text["when_allowed"] = window.into();
        }
        if !notifies.is_empty() {
            text[NOTIFIES] = notifies.iter().map(AsRef::as_ref).collect::<Vec<&str>>().into();
        }
        Some(text.to_string())
    }

    /// Returns the resources that a removal refreshes, from its text.
    #[must_use]
    pub fn notified_by_removal(text: &str) -> Vec<Arc<str>> {
        // Most texts name none, so that parsing is avoided.
        if !text.contains(NOTIFIES) {
            return Vec::new();
        }
        let json: Json = serde_json::from_str(text).unwrap_or_default();
        let names = json[NOTIFIES].as_array().into_iter().flatten();
        names.filter_map(|name| Some(name.as_str()?.into())).collect()
    }

    /// Returns the claims of the object that stored removal data name; none if the data cannot be read.
    #[must_use]
    pub fn removed_claims(
        kinds: &KindSet,
        identity: &str,
        (thing, text): (u64, &str),
    ) -> Option<Vec<Claim>> {
        let resource = removing_resource(kinds, identity, (thing, text)).ok()?;
        Some(resource.footprint().claims)
    }

    /// Returns the definition of the removal vertex of an identity.
    #[must_use]
    pub fn removal_definition(identity: &str, text: &str) -> u64 {
        Stable::new().text("removal").text(identity).text(text).finish()
    }
}

impl LoadedGraph {
    /// Adds the vertex that removes an object by its stored removal data, and returns its index.
    ///
    /// # Errors
    /// The reason why the object cannot be removed.
    pub fn remove(
        &mut self,
        identity: &Arc<str>,
        (thing, text): (u64, &str),
    ) -> Result<usize, String> {
        let resource = removing_resource(&self.kinds, identity, (thing, text))?;
        let json: Json = serde_json::from_str(text).unwrap_or_default();
        let window = self.window(json["when_allowed"].as_str());
        let meta = match window {
            Some(window) => Arc::new(Meta { window: Some(window), ..Meta::clone(&self.usual) }),
            None => Arc::clone(&self.usual),
        };
        self.vertices.push(Vertex {
            identity: Arc::clone(identity),
            resource,
            recipe: None,
            definition: Vertex::removal_definition(identity, text),
            meta,
            rewatch: true,
            autogroup: true,
            delete: false,
            protect: false,
            removes: true,
            failure_blocks: true,
            aliases: Box::default(),
            after: Arc::default(),
            notifies: Arc::default(),
            labels: Arc::default(),
            place: (usize::MAX, 0),
        });
        Ok(self.vertices.len() - 1)
    }

    /// Adds edges: in each pair, the first vertex is before the second.
    pub fn add_edges(&mut self, pairs: &[(usize, usize)]) {
        self.put_edges(pairs, false);
    }

    /// Adds notifying edges: in each pair, the first vertex refreshes the second.
    pub fn put_notifications(&mut self, pairs: &[(usize, usize)]) {
        self.put_edges(pairs, true);
    }

    fn put_edges(&mut self, pairs: &[(usize, usize)], notify: bool) {
        self.edges.extend(pairs.iter().map(|(from, to)| Link { from: *from, to: *to, notify }));
        self.edges.sort_unstable();
        self.edges.dedup_by_key(|link| (link.from, link.to));
    }

    fn window(&mut self, text: Option<&str>) -> Option<WindowId> {
        // The text was valid when it was stored.
        let window = Window::parse(text?).ok()??;
        let known = self.windows.iter().position(|(_, other)| *other == window);
        let number = known.unwrap_or_else(|| {
            self.windows.push((text.unwrap_or_default().to_owned(), window));
            self.windows.len() - 1
        });
        u32::try_from(number).ok().map(WindowId)
    }
}

/// Builds the resource that removes an object by its stored removal data.
///
/// # Errors
/// The reason why the object cannot be removed.
fn removing_resource(
    kinds: &KindSet,
    identity: &str,
    (thing, text): (u64, &str),
) -> Result<Arc<dyn Resource>, String> {
    let unreadable = || "the stored removal data cannot be read".to_owned();
    let ResourceId { kind, name, .. } = ResourceId::parse(identity).ok_or_else(unreadable)?;
    let Some(spec) = kinds.find(kind) else {
        return Err(format!("kind `{kind}` is not in this build"));
    };
    let json: Json = serde_json::from_str(text).map_err(|_malformed| unreadable())?;
    let removal = read(spec, &json).ok_or_else(unreadable)?;
    if hash_of(&removal) != thing {
        let what =
            "the stored removal data belongs to another object; discard it with `steadfast forget`";
        return Err(what.to_owned());
    }
    spec.build_removal(&removal, name)
        .map_err(|invalid| invalid.first().map_or_else(unreadable, |invalid| invalid.what.clone()))
}

/// Returns fields as JSON; `None` for a type that no removal has.
fn to_json(fields: &[(&'static str, Value)]) -> Option<Map<String, Json>> {
    let one = |(name, value): &(&'static str, Value)| {
        let value = match value {
            Value::Text(text) => Json::from(text.as_str()),
            Value::Bool(truth) => Json::from(*truth),
            _ => return None,
        };
        Some(((*name).to_owned(), value))
    };
    fields.iter().map(one).collect()
}

/// Returns the hash of the object that a removal names.
fn hash_of(removal: &Removal) -> u64 {
    // A kind adds the fields in any order.
    let mut fields: Vec<_> = removal.fields().iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    let hash = fields.into_iter().fold(Stable::new(), |hash, (name, value)| {
        let hash = hash.text(name);
        match value {
            Value::Text(text) => hash.text(text),
            Value::Bool(truth) => hash.number(u64::from(*truth)),
            // No removal has fields of other types.
            _ => hash,
        }
    });
    removal.name().map_or(hash, |name| hash.text("name").text(name)).finish()
}

/// Reads the fields of a removal in the order of the kind.
fn read(spec: &KindSpec, json: &Json) -> Option<Removal> {
    let fields = read_fields(spec, &json["fields"])?;
    let data = json.get(DATA).map_or_else(|| Some(Vec::new()), |data| read_fields(spec, data))?;
    let removal =
        fields.into_iter().fold(Removal::new(), |all, (name, value)| all.with(name, value));
    let removal = data.into_iter().fold(removal, |all, (name, value)| all.with_data(name, value));
    Some(match json[NAME].as_str() {
        Some(name) => removal.naming(name.to_owned()),
        None => removal,
    })
}

fn read_fields(spec: &KindSpec, fields: &Json) -> Option<Vec<(&'static str, Value)>> {
    let fields = fields.as_object()?;
    let known = spec.fields.iter().filter_map(|field| Some((field, fields.get(field.name)?)));
    let mut all = Vec::new();
    for (field, value) in known {
        let value = match field.takes {
            FieldType::Text | FieldType::Choice(_) => Value::Text(value.as_str()?.to_owned()),
            FieldType::Bool => Value::Bool(value.as_bool()?),
            _ => return None,
        };
        all.push((field.name, value));
    }
    (all.len() == fields.len()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::{Vertex, hash_of, read};
    use serde_json::Value as Json;
    use std::path::PathBuf;
    use steadfast_resources::{Fields, KindSet, Place, Value};

    /// B-19: stored removal data is recognized as that of the same object, with any fields.
    #[test]
    fn removal_data_match_their_identity() {
        let text = |text: &str| Value::Text(text.to_owned());
        let kinds = [
            ("file", vec![("path", text("/d/f"))]),
            ("file", vec![("path", text("/d/")), ("force", Value::Bool(true))]),
            ("file", vec![("backup", text("/b")), ("path", text("/f")), ("content", text("c"))]),
            ("svc", vec![("state", text("running"))]),
            ("svc", vec![("session", Value::Bool(true)), ("startup", text("enabled"))]),
            ("pkg", vec![]),
            ("line", vec![("line", text("a")), ("path", text("/etc/f"))]),
            ("ini", vec![("key", text("k")), ("section", text("s")), ("path", text("/etc/f"))]),
            ("cron", vec![("job", text("true")), ("minute", text("5"))]),
            ("firewall", vec![("content", text("table inet t {\n}\n"))]),
        ];
        for (kind, given) in kinds {
            let spec = KindSet::of_this_build().find(kind).expect("it is there");
            let mut fields = Fields::default();
            for (name, value) in given {
                fields.insert(name, value);
            }
            let place = Place { base: PathBuf::from("/") };
            let resource = (spec.build)("it", fields, &place).expect("valid");
            let text = Vertex::removal(resource.as_ref(), None, &[]).expect("it can be removed");
            let json: Json = serde_json::from_str(&text).expect("JSON");
            let removal = read(spec, &json).expect("as it was written");
            assert_eq!(Some(hash_of(&removal)), Vertex::thing(resource.as_ref()), "{text}");
        }
    }

    /// An object whose content changes stays the same object; one with another path does not.
    #[test]
    fn a_change_of_data_names_the_same_object() {
        let thing = |kind: &str, given: &[(&'static str, &str)]| {
            let mut fields = Fields::default();
            for (name, value) in given {
                fields.insert(name, Value::Text((*value).to_owned()));
            }
            let spec = KindSet::of_this_build().find(kind).expect("it is there");
            let place = Place { base: PathBuf::from("/") };
            Vertex::thing((spec.build)("it", fields, &place).expect("valid").as_ref()).unwrap()
        };
        for (kind, one, same, other) in [
            (
                "file",
                &[("path", "/f"), ("content", "c"), ("backup", "/b")][..],
                &[("path", "/f"), ("content", "c")][..],
                &[("path", "/g"), ("content", "c")][..],
            ),
            (
                "line",
                &[("path", "/f"), ("match", "^a"), ("line", "a 1")],
                &[("path", "/f"), ("match", "^a"), ("line", "a 2")],
                &[("path", "/f"), ("match", "^b"), ("line", "b 1")],
            ),
        ] {
            assert_eq!(thing(kind, one), thing(kind, same), "{kind}");
            assert_ne!(thing(kind, one), thing(kind, other), "{kind}");
        }
        let table = |rule: &str| {
            let content = format!("table inet t {{\n chain c {{ {rule} }}\n}}\n");
            thing("firewall", &[("content", &content)])
        };
        assert_eq!(table("tcp dport 1 accept"), table("tcp dport 2 accept"));
    }
}
