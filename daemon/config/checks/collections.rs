//! The world in a graph: exported resources, collections of exported resources, and values received from the world.
//!
//! This step runs before all other checks and leaves ordinary resources: an export is a resource of the kind `export`,
//! a collected resource belongs to the instance `@HOST`, and `{world: KEY}` reads a `kv` resource.

use super::Validator;
use crate::config::ast::{Collect, Export, FieldValues, GraphFile, Receive, Reference, Resource};
use crate::config::ast::{ResourceSpots, Spans};
use crate::config::problem::code::Code;
use crate::config::problem::location::{Element, Location};
use crate::config::problem::{Problem, quoted};
use crate::world::records::{ExportRecord, ExportedField, SCHEMA};
use crate::world::selector::CollectionSelector;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};
use steadfast_resources::KindSet;
use steadfast_resources::{FieldSpec, FieldType, ForeignValue, KindSpec, Place, Value};

/// An exported resource as this host knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectedExport {
    /// The host that exports the resource.
    pub host: String,
    /// The exported resource.
    pub record: ExportRecord,
    /// True if the export has vanished: it is not collected, and a collection with `on_remove: delete` removes it.
    pub has_vanished: bool,
}

impl Validator<'_> {
    /// Replaces exports, collections and values of the world by ordinary resources.
    pub(in crate::config) fn expand_world(
        &mut self,
        files: &mut Vec<GraphFile>,
        known: Option<&[CollectedExport]>,
    ) {
        let mut collects = Vec::new();
        for (number, file) in files.iter_mut().enumerate() {
            let prefix = self.atlas.documents.get(number).map(|it| it.origin.prefix());
            let prefix = prefix.unwrap_or_default();
            for index in 0..file.resources.len() {
                self.expand_export(file, (number, index), &prefix);
            }
            let spots = self.atlas.spots.get_mut(number).and_then(Option::as_mut);
            read_world_values(file, &prefix, spots, self.kinds);
            collects.extend(std::mem::take(&mut file.collects).into_iter().map(|it| (number, it)));
        }
        let mut collected: BTreeMap<String, Vec<Resource>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for (number, collect) in collects {
            let errors = self.problems.errors();
            let Some(spec) = self.check_collect(number, &collect) else { continue };
            if self.problems.errors() > errors {
                continue;
            }
            let selector = CollectionSelector {
                kind: collect.kind.clone(),
                from: collect.from.clone(),
                splay: collect.splay,
            };
            let is_asked =
                |export: &&CollectedExport| selector.selects(&export.host, &export.record.kind);
            for export in known.unwrap_or_default().iter().filter(is_asked) {
                match make_collected(spec, &collect, export) {
                    Ok(resource) if export.has_vanished => {
                        let name = format!("{}[{}]", spec.kind, resource.name);
                        let identity = format!("{}/{name}", instance_of(export));
                        self.vanished.insert(identity.into());
                    }
                    Ok(resource) => {
                        let instance = instance_of(export);
                        let key = (instance.clone(), spec.kind, resource.name.clone());
                        // Two collections may ask for the same export.
                        let resource = seen.insert(key).then_some(resource);
                        collected.entry(instance).or_default().extend(resource);
                    }
                    Err(_) if export.has_vanished => {}
                    // A host that exports nonsense must not stop the others.
                    Err(why) => self.problems.push(uncollected(export, &why)),
                }
            }
            self.collections.insert(selector);
        }
        for (instance, resources) in collected {
            files.push(GraphFile { resources, instance, ..GraphFile::default() });
        }
    }

    /// Turns an exported resource into a resource of the kind `export`. `prefix` is the one of the identities in the
    /// file: two instances of a module may export the same name.
    fn expand_export(
        &mut self,
        file: &mut GraphFile,
        (number, index): (usize, usize),
        prefix: &str,
    ) {
        let Some(resource) = file.resources.get_mut(index) else { return };
        let bare = resource.name.strip_prefix("@@").filter(|name| !name.is_empty());
        let bare = bare.map(str::to_owned);
        let export = resource.export.or_else(|| bare.as_ref().map(|_| Export { apply: false }));
        let Some(export) = export else { return };
        if let Some(bare) = bare {
            resource.name = bare;
        }
        let at = Location { file: number, part: Element::Name(index) };
        let identity = format!("{}[{}]", resource.spec.kind, resource.name);
        let mut refuse = |what: String, hint: &str| {
            let problem = Problem::new(Code::World, what).hint(hint);
            self.problems.push(problem.at(self.atlas.place(at)));
        };
        let is_secret = |receive: &Receive| {
            receive.values.iter().any(|(_, reference)| matches!(reference, Reference::Secret(_)))
        };
        if resource.receives.iter().any(is_secret) {
            let what = format!("`{}` is exported and receives a secret", quoted(&identity));
            return refuse(what, "secrets never leave the host; export a reference instead");
        }
        let mut fields = BTreeMap::new();
        for field in resource.spec.fields {
            if let Some(value) = exported_field(&mut resource.given.fields.clone(), field) {
                fields.insert(field.name.to_owned(), value);
            }
        }
        let record = ExportRecord {
            schema: SCHEMA,
            kind: resource.spec.kind.to_owned(),
            module: prefix.trim_end_matches('/').to_owned(),
            name: resource.name.clone(),
            fields,
        };
        let Some(spec) = self.kinds.find("export") else { return };
        let mut given = FieldValues::default();
        let text = serde_json::to_string(&record).unwrap_or_default();
        let values = [("record", text), ("identity", format!("{prefix}{identity}"))];
        for (name, text) in values {
            let field = spec.fields.iter().find(|field| field.name == name);
            if let Some(field) = field {
                given.insert(field, Value::Text(text));
            }
        }
        let receives = resource.receives.iter().map(|receive| Receive {
            target: format!("values.{}", receive.target),
            template: receive.template.clone(),
            values: receive.values.clone(),
            defaults: receive.defaults.clone(),
            is_default: receive.is_default,
        });
        let offer = Resource {
            spec,
            name: identity,
            given,
            meta: None,
            links: Box::default(),
            aliases: Box::default(),
            receives: receives.collect(),
            line: resource.line,
            broken: resource.broken,
            export: None,
            withdraws: true,
            note: resource.note.clone(),
            labels: resource.labels.clone(),
        };
        resource.export = None;
        if export.apply {
            file.resources.push(offer);
            let spots = self.atlas.spots.get_mut(number).and_then(Option::as_mut);
            if let Some(spots) = spots {
                let name = spots.resources.get(index).map(|it| it.name).unwrap_or_default();
                spots.resources.push(ResourceSpots { name, ..ResourceSpots::default() });
            }
        } else {
            // Its edges and metaparameters hold for the offer.
            let Resource { links, meta, .. } =
                std::mem::replace(resource, Resource { links: Box::default(), ..offer });
            resource.links = links;
            resource.meta = meta;
        }
    }

    /// Returns true if a collected resource contradicts another one, and warns about it.
    pub(super) fn leaves_out(&mut self, given: &Resource, identity: &str, place: &Place) -> bool {
        let fields = given.given.fields.clone();
        let Ok(resource) = given.spec.build_resource(&given.name, fields, place) else {
            return false;
        };
        let Some(object) = self.contradiction(&resource.footprint().claims) else { return false };
        let what = format!(
            "{} is not collected: {} is declared already",
            quoted(identity),
            quoted(&object)
        );
        self.problems.push(Problem::new(Code::World, what).warning());
        true
    }

    /// Reports what a collection must not take from other hosts. Returns its kind.
    fn check_collect(&mut self, file: usize, collect: &Collect) -> Option<&'static KindSpec> {
        let place = self
            .atlas
            .sources
            .get(self.atlas.source_of(file))
            .map(|source| source.place(collect.span));
        let mut refuse = |what: String, hint: String| {
            let problem = Problem::new(Code::World, what).hint(hint);
            self.problems.push(problem.at(place.clone()));
        };
        let kind = quoted(&collect.kind);
        let Some(spec) = self.kinds.find(&collect.kind) else {
            refuse(
                format!("unknown kind `{kind}` in `collect`"),
                "see `steadfast explain`".to_owned(),
            );
            return None;
        };
        let has_name = collect.set.iter().any(|(name, _)| name == "name");
        if !spec.collectible && !has_name {
            let what =
                format!("`collect` of {kind} would take an object of this host from another host");
            refuse(
                what,
                format!(
                    "set the name: set: {{ name: … }}; or collect {}",
                    collectible_kinds(self.kinds)
                ),
            );
        }
        for field in &collect.fields {
            let name = quoted(field);
            let path = spec.path_field().map(|field| field.name).unwrap_or_default();
            let has_place = collect.below.is_some() || collect.set.iter().any(|(it, _)| it == path);
            let known = spec.fields.iter().find(|it| it.name == *field);
            match known.map(|field| field.foreign) {
                None => refuse(
                    format!("{kind} has no field `{name}`"),
                    "list fields of the kind".to_owned(),
                ),
                Some(ForeignValue::BelowFolder) if collect.below.is_none() => {
                    let what =
                        format!("`{name}` of {kind} comes from another host only with `below`");
                    refuse(what, "below: /etc/steadfast/collected".to_owned());
                }
                Some(ForeignValue::AtOwnPlace) if !has_place => {
                    let what = format!(
                        "`{name}` comes from another host, so the collector sets the place"
                    );
                    refuse(what, format!("set: {{ {path}: … }}, or below: DIR"));
                }
                Some(ForeignValue::Refused) => {
                    let what = format!("`{name}` of {kind} cannot come from another host");
                    refuse(what, format!("set the field here: set: {{ {field}: … }}"));
                }
                Some(_) => {}
            }
        }
        if let Some(below) = &collect.below
            && !Path::new(below).is_absolute()
        {
            let what = format!("`below` should be an absolute path, found `{}`", quoted(below));
            refuse(what, "for example /etc/steadfast/collected".to_owned());
        }
        Some(spec)
    }
}

/// Returns the kinds whose name may come from another host.
fn collectible_kinds(kinds: &KindSet) -> String {
    let kinds = kinds.specs().filter(|spec| spec.collectible);
    kinds.map(|spec| spec.kind).collect::<Vec<_>>().join(", ")
}

/// Returns the value of a field for other hosts.
fn exported_field(
    fields: &mut steadfast_resources::Fields,
    field: &FieldSpec,
) -> Option<ExportedField> {
    let name = field.name;
    Some(match field.takes {
        FieldType::Bool => ExportedField::Bool(fields.bool(name)?),
        FieldType::Int | FieldType::Seconds | FieldType::Milliseconds => {
            ExportedField::Int(fields.int(name)?)
        }
        FieldType::Float | FieldType::Duration => ExportedField::Float(fields.float(name)?),
        FieldType::Texts => ExportedField::Texts(fields.texts(name)?),
        FieldType::TextMap => ExportedField::TextMap(fields.text_map(name)?.into_iter().collect()),
        FieldType::Text | FieldType::Choice(_) | FieldType::Anything => {
            ExportedField::Text(fields.text(name)?)
        }
    })
}

/// Returns a field of another host as a value of a type; none if it is of another type.
fn collected_value(takes: FieldType, field: &ExportedField) -> Option<Value> {
    Some(match (takes, field.clone()) {
        (FieldType::Bool, ExportedField::Bool(truth)) => Value::Bool(truth),
        (
            FieldType::Int | FieldType::Seconds | FieldType::Milliseconds,
            ExportedField::Int(number),
        ) => Value::Int(number),
        (FieldType::Float | FieldType::Duration, ExportedField::Float(number)) => {
            Value::Float(number)
        }
        #[expect(clippy::cast_precision_loss, reason = "a float is wanted")]
        (FieldType::Float | FieldType::Duration, ExportedField::Int(number)) => {
            Value::Float(number as f64)
        }
        (FieldType::Texts, ExportedField::Texts(texts)) => Value::Texts(texts),
        (FieldType::TextMap, ExportedField::TextMap(map)) => {
            Value::TextMap(map.into_iter().collect())
        }
        (
            FieldType::Text | FieldType::Choice(_) | FieldType::Anything,
            ExportedField::Text(text),
        ) => Value::Text(text),
        _ => return None,
    })
}

/// Returns the instance to which a collected resource belongs: `@web1`, or `@web1/shop` of a module.
fn instance_of(export: &CollectedExport) -> String {
    let CollectedExport { host, record, .. } = export;
    if record.module.is_empty() { format!("@{host}") } else { format!("@{host}/{}", record.module) }
}

/// Returns true if the instance of a module can be one: parts between slashes that no identity confuses.
fn is_instance(module: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with(['.', '@']);
    let is_plain = |letter: char| !letter.is_control() && !matches!(letter, '[' | ']' | '*');
    module.len() <= 1000 && module.split('/').all(is_part) && module.chars().all(is_plain)
}

/// Returns the warning about an export that cannot be collected.
fn uncollected(export: &CollectedExport, why: &str) -> Problem {
    let id = format!("{}/{}[{}]", instance_of(export), export.record.kind, export.record.name);
    let what = format!("{} is not collected: {why}", quoted(&id));
    Problem::new(Code::World, what).warning()
}

/// Builds the resource of one export. The values come from another host: they are untrusted.
fn make_collected(
    spec: &'static KindSpec,
    collect: &Collect,
    export: &CollectedExport,
) -> Result<Resource, String> {
    let record = &export.record;
    if record.name.is_empty()
        || record.name.len() > 1000
        || record.name.chars().any(char::is_control)
    {
        return Err("its name is no line of visible characters".to_owned());
    }
    if !record.module.is_empty() && !is_instance(&record.module) {
        return Err("its module is no instance of a module".to_owned());
    }
    let mut given = FieldValues::default();
    let path = spec.path_field();
    let is_path = |name: &str| path.is_some_and(|field| field.name == name);
    for name in collect.fields.iter().filter(|name| !is_path(name)) {
        let Some(field) = spec.fields.iter().find(|field| field.name == *name) else { continue };
        if let Some(found) = record.fields.get(name) {
            let value = collected_value(field.takes, found);
            given.insert(field, value.ok_or_else(|| format!("`{name}` is of another type"))?);
        }
    }
    let fill = |text: &str| text.replace("${host}", &export.host).replace("${name}", &record.name);
    let mut name = record.name.clone();
    let mut has_path = false;
    for (key, text) in &collect.set {
        if key == "name" {
            name = fill(text);
            continue;
        }
        let field = spec.fields.iter().find(|field| field.name == *key);
        let field = field.ok_or_else(|| format!("`set` names the unknown field `{key}`"))?;
        has_path |= is_path(key);
        // The name of another host must not lead to another folder.
        if text.contains("${name}") && (record.name.contains('/') || record.name.starts_with('.')) {
            return Err("its name is no plain file name, and `set` uses ${name}".to_owned());
        }
        let scalar = crate::config::scalar::Scalar::plain(fill(text));
        let value = crate::config::scalar::convert(field.takes, scalar);
        given.insert(field, value.ok_or_else(|| format!("`set: {key}` is of another type"))?);
    }
    if let Some(below) = &collect.below {
        let field =
            path.ok_or_else(|| format!("`below` needs a kind with `path`, not {}", spec.kind))?;
        given.insert(field, Value::Text(path_below(below, (collect, field.name), record)?));
        has_path = true;
    }
    if let Some(field) =
        path.filter(|field| field.foreign == ForeignValue::BelowFolder && !has_path)
    {
        let (kind, name) = (spec.kind, field.name);
        return Err(format!("a collected {kind} needs `set: {{ {name}: … }}` or `below`"));
    }
    // The name stands for a missing path.
    if path.is_some() && !has_path && name.starts_with('/') {
        return Err("its name is a path, and the collection sets no path".to_owned());
    }
    if super::wrong_name(spec.kind, &name).is_some() {
        return Err("its name is no name of a resource".to_owned());
    }
    let place = Place { base: "/".into() };
    if let Err(invalid) = spec.build_resource(&name, given.fields.clone(), &place) {
        let why = invalid.into_iter().next().map(|invalid| invalid.what).unwrap_or_default();
        return Err(quoted(&why));
    }
    Ok(Resource {
        spec,
        name,
        given,
        meta: collect.meta.clone(),
        links: Box::default(),
        aliases: Box::default(),
        receives: Box::default(),
        line: collect.line,
        broken: false,
        export: None,
        withdraws: false,
        note: None,
        labels: Box::default(),
    })
}

/// Returns the path of a collected object below the folder of the collector: the last part of the exporter's path, or
/// of its name.
fn path_below(
    below: &str,
    (collect, field): (&Collect, &str),
    record: &ExportRecord,
) -> Result<String, String> {
    let takes_path = collect.fields.iter().any(|it| it == field);
    let own = match record.fields.get(field).filter(|_| takes_path) {
        Some(ExportedField::Text(path)) => path.as_str(),
        _ => record.name.as_str(),
    };
    match Path::new(own).components().next_back() {
        Some(Component::Normal(last)) => {
            Ok(Path::new(below).join(last).to_string_lossy().into_owned())
        }
        _ => Err("its path has no last part".to_owned()),
    }
}

/// Makes a `kv` resource for each key of the world that a field receives.
fn read_world_values(
    file: &mut GraphFile,
    prefix: &str,
    mut spots: Option<&mut Spans>,
    kinds: &KindSet,
) {
    let mut keys = BTreeMap::new();
    for (index, resource) in file.resources.iter_mut().enumerate() {
        for (_, reference) in resource.receives.iter_mut().flat_map(|receive| &mut receive.values) {
            if let Reference::World(key) = reference {
                keys.entry(key.clone()).or_insert((index, resource.line));
                let name = format!("{prefix}kv[world:{key}]");
                *reference = Reference::Sent(name, "value".to_owned());
            }
        }
    }
    let Some(spec) = kinds.find("kv").filter(|_| !keys.is_empty()) else { return };
    let key_field = spec.fields.iter().find(|field| field.name == "key");
    for (key, (index, line)) in keys {
        let mut given = FieldValues::default();
        if let Some(field) = key_field {
            given.insert(field, Value::Text(key.clone()));
        }
        file.resources.push(Resource {
            spec,
            name: format!("world:{key}"),
            given,
            meta: None,
            links: Box::default(),
            aliases: Box::default(),
            receives: Box::default(),
            line,
            broken: false,
            export: None,
            withdraws: false,
            note: None,
            labels: Box::default(),
        });
        if let Some(spots) = spots.as_deref_mut() {
            let name = spots.resources.get(index).map(|it| it.name).unwrap_or_default();
            spots.resources.push(ResourceSpots { name, ..ResourceSpots::default() });
        }
    }
}
