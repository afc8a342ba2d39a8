//! The fast reader: one typed pass of `serde_yaml`, guided by the kinds' tables. It declines without a reason; the slow
//! reader then reads the file.

use super::deserialize::{Entries, Items, List, Map, OneOrMany, Reader, declined};
use crate::config::ast::{Edge, End, FieldValues, GraphFile, Link, Relation, Resource, Seen};
use crate::config::checks::metaparams::{ALIASES, META};
use crate::config::source_file::SourceFile;
use serde::Deserialize as _;
use serde::de::{DeserializeSeed as _, IgnoredAny, MapAccess, SeqAccess};
use std::borrow::Cow;
use steadfast_resources::KindSet;
use steadfast_resources::{FieldSpec, KindSpec, Place, Value};

/// Reads a file; returns `None` if something needs the slow reader.
pub(in crate::config) fn read(source: &SourceFile, kinds: &KindSet) -> Option<GraphFile> {
    let deserializer = serde_yaml::Deserializer::from_str(&source.text);
    let place = Place { base: source.base.clone() };
    Map(Top(Reader { source, kinds, place: &place })).deserialize(deserializer).ok().flatten()
}

/// Checks that `serde_yaml` accepts the text as one YAML document.
pub(in crate::config) fn accepts(source: &SourceFile) -> Result<(), serde_yaml::Error> {
    IgnoredAny::deserialize(serde_yaml::Deserializer::from_str(&source.text)).map(|_| ())
}

/// A reader of the whole file.
struct Top<'a>(Reader<'a>);

impl<'de> Entries<'de> for Top<'_> {
    type Out = GraphFile;
    fn read<A: MapAccess<'de>>(self, mut map: A) -> Result<GraphFile, A::Error> {
        let (mut file, mut seen) = (GraphFile::default(), Seen::default());
        while let Some(key) = self.0.key(&mut map)? {
            let index = match key.text.as_ref() {
                "graph" => {
                    file.name = Some(self.0.text(&key, &mut map)?);
                    0
                }
                "comment" => {
                    file.comment = self.0.scalar(&key, &mut map)?.map(|s| s.text.into_owned());
                    1
                }
                "resources" => {
                    let resources = map.next_value_seed(Map(Kinded(self.0)))?;
                    file.resources = resources.unwrap_or_default();
                    2
                }
                "edges" => {
                    file.edges = map.next_value_seed(List(Edges(self.0)))?.unwrap_or_default();
                    3
                }
                _ => return Err(declined()),
            };
            if !seen.first(index) {
                return Err(declined());
            }
        }
        Ok(file)
    }
}

/// A reader of `resources`: lists by kind.
struct Kinded<'a>(Reader<'a>);

impl<'de> Entries<'de> for Kinded<'_> {
    type Out = Vec<Resource>;
    fn read<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Out, A::Error> {
        let (mut all, mut seen) = (Vec::new(), Vec::new());
        while let Some(key) = self.0.key(&mut map)? {
            let spec = self.0.kinds.find(&key.text).ok_or_else(declined)?;
            if seen.contains(&spec.kind) {
                return Err(declined());
            }
            seen.push(spec.kind);
            map.next_value_seed(List(OfKind { reader: self.0, spec, all: &mut all }))?;
        }
        Ok(all)
    }
}

/// A reader of the resources of one kind.
struct OfKind<'a, 'o> {
    reader: Reader<'a>,
    spec: &'static KindSpec,
    all: &'o mut Vec<Resource>,
}

impl<'de> Items<'de> for OfKind<'_, '_> {
    type Out = ();
    fn read<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let (reader, spec) = (self.reader, self.spec);
        while let Some(resource) = list.next_element_seed(Map(One { reader, spec }))? {
            self.all.push(resource.ok_or_else(declined)?);
        }
        Ok(())
    }
}

/// A reader of one resource.
struct One<'a> {
    reader: Reader<'a>,
    spec: &'static KindSpec,
}

impl<'de> Entries<'de> for One<'_> {
    type Out = Resource;
    fn read<A: MapAccess<'de>>(self, mut map: A) -> Result<Resource, A::Error> {
        let (mut seen, mut own) = (Seen::default(), Seen::default());
        let (mut name, mut at, mut meta) = (None, None, None);
        let (mut links, mut given) = (Vec::new(), FieldValues::default());
        let mut aliases = Vec::new();
        while let Some(key) = self.reader.key(&mut map)? {
            if at.is_none() {
                let Cow::Borrowed(text) = &key.text else { return Err(declined()) };
                at = self.reader.offset(text);
            }
            let first = if key.text == "name" {
                name = Some(self.reader.text(&key, &mut map)?);
                own.first(0)
            } else if key.text == "meta" {
                meta = map.next_value_seed(Map(Table { reader: self.reader, table: META }))?;
                own.first(1)
            } else if let Some(relation) = Relation::parse(&key.text) {
                let targets = OneOrMany { reader: self.reader, list_only: false };
                let targets = map.next_value_seed(targets)?.unwrap_or_default();
                links.extend(targets.into_iter().map(|target| Link { relation, target }));
                own.first(2 + relation as usize)
            } else if key.text == ALIASES.name {
                if let Some(Value::Texts(texts)) = self.reader.field(&ALIASES, &key, &mut map)? {
                    aliases = texts;
                }
                own.first(2 + Relation::NAMES.len())
            } else {
                let index = position(self.spec.fields, &key.text).ok_or_else(declined)?;
                let field = self.spec.fields.get(index).ok_or_else(declined)?;
                if let Some(value) = self.reader.field(field, &key, &mut map)? {
                    given.insert(field, value);
                }
                seen.first(index)
            };
            if !first {
                return Err(declined());
            }
        }
        let (Some(name), Some(at)) = (name, at) else { return Err(declined()) };
        // The resource is built here, so that only the fields of one resource are in memory.
        if crate::config::checks::wrong_name(self.spec.kind, &name).is_some() {
            return Err(declined());
        }
        let fields = std::mem::take(&mut given.fields);
        let built = self.spec.build_resource(&name, fields, self.reader.place);
        let built = built.ok().ok_or_else(declined::<A::Error>)?;
        Ok(Resource {
            spec: self.spec,
            name,
            given,
            built: Some(built),
            meta: meta.map(Box::new),
            links: links.into_boxed_slice(),
            aliases: aliases.into_boxed_slice(),
            receives: Box::default(),
            line: self.reader.source.line(u32::try_from(at).unwrap_or(u32::MAX)),
            broken: false,
            export: None,
            withdraws: false,
            note: None,
            labels: Box::default(),
        })
    }
}

fn position(table: &[FieldSpec], name: &str) -> Option<usize> {
    table.iter().position(|field| field.name == name)
}

/// A reader of a map whose keys are in a table.
struct Table<'a> {
    reader: Reader<'a>,
    table: &'static [FieldSpec],
}

impl<'de> Entries<'de> for Table<'_> {
    type Out = FieldValues;
    fn read<A: MapAccess<'de>>(self, mut map: A) -> Result<FieldValues, A::Error> {
        let (mut given, mut seen) = (FieldValues::default(), Seen::default());
        while let Some(key) = self.reader.key(&mut map)? {
            let index = position(self.table, &key.text).ok_or_else(declined)?;
            let field = self.table.get(index).ok_or_else(declined)?;
            if !seen.first(index) {
                return Err(declined());
            }
            if let Some(value) = self.reader.field(field, &key, &mut map)? {
                given.insert(field, value);
            }
        }
        Ok(given)
    }
}

/// A reader of `edges`.
struct Edges<'a>(Reader<'a>);

impl<'de> Items<'de> for Edges<'_> {
    type Out = Vec<Edge>;
    fn read<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Out, A::Error> {
        let mut edges = Vec::new();
        while let Some(edge) = list.next_element_seed(Map(OneEdge(self.0)))? {
            edges.push(edge.ok_or_else(declined)?);
        }
        Ok(edges)
    }
}

struct OneEdge<'a>(Reader<'a>);

impl<'de> Entries<'de> for OneEdge<'_> {
    type Out = Edge;
    fn read<A: MapAccess<'de>>(self, mut map: A) -> Result<Edge, A::Error> {
        let (mut seen, mut from, mut to, mut notify) = (Seen::default(), None, None, false);
        while let Some(key) = self.0.key(&mut map)? {
            let index = match key.text.as_ref() {
                "name" => {
                    self.0.scalar(&key, &mut map)?;
                    0
                }
                "from" => {
                    from = map.next_value_seed(Map(OneEnd(self.0)))?;
                    1
                }
                "to" => {
                    to = map.next_value_seed(Map(OneEnd(self.0)))?;
                    2
                }
                "notify" => {
                    if let Some(scalar) = self.0.scalar(&key, &mut map)? {
                        notify = scalar.boolean().ok_or_else(declined)?;
                    }
                    3
                }
                _ => return Err(declined()),
            };
            if !seen.first(index) {
                return Err(declined());
            }
        }
        let (Some(from), Some(to)) = (from, to) else { return Err(declined()) };
        Ok(Edge { from, to, notify })
    }
}

struct OneEnd<'a>(Reader<'a>);

impl<'de> Entries<'de> for OneEnd<'_> {
    type Out = End;
    fn read<A: MapAccess<'de>>(self, mut map: A) -> Result<End, A::Error> {
        let (mut kind, mut name) = (None, None);
        while let Some(key) = self.0.key(&mut map)? {
            let slot = match key.text.as_ref() {
                "kind" => &mut kind,
                "name" => &mut name,
                _ => return Err(declined()),
            };
            if slot.replace(self.0.text(&key, &mut map)?).is_some() {
                return Err(declined());
            }
        }
        let (Some(kind), Some(name)) = (kind, name) else { return Err(declined()) };
        Ok(End { kind, name })
    }
}
