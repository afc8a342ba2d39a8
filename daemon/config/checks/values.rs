//! Received values: the resolution of written names to senders and secrets, before anything runs.

use super::edges::DraftEdge;
use super::{Validator, untrusted};
use crate::config::ast;
use crate::config::ast::Reference;
use crate::config::hash::Stable;
use crate::config::problem::code::Code;
use crate::config::problem::location::{Element as Piece, Location};
use crate::config::problem::{Problem, Severity, quoted};
use crate::config::scalar::wants;
use crate::config::template;
use crate::nearest_name::nearest;
use std::collections::HashMap;
use std::path::PathBuf;
use steadfast_resources::host::Supply;
use steadfast_resources::{
    DeferredResource, FieldMode, FieldSpec, FieldType, InputSlot, KindSpec, Origin, Part, Place,
    Receives, fits,
};

/// The key under which the edge of a received value is reported.
pub(super) const RECEIVED: &str = "recv";

/// A declared secret.
#[derive(Debug)]
pub(in crate::config) struct Secret {
    supply: Supply,
    at: Location,
}

/// A received value whose sender is resolved when all resources are known.
#[derive(Debug)]
pub(in crate::config) struct PendingReceive {
    vertex: usize,
    from: String,
    key: String,
    field: &'static FieldSpec,
    takes: FieldType,
    at: Location,
}

/// A field that receives a secret.
#[derive(Debug)]
pub(in crate::config) struct SecretField {
    vertex: usize,
    field: &'static FieldSpec,
    at: Location,
}

/// Creates a problem of a received value.
fn wrong(what: String) -> Problem {
    Problem::new(Code::Receive, what)
}

impl Validator<'_> {
    /// Collects the secrets of all files.
    pub(in crate::config) fn declare_secrets(&mut self, files: &mut [ast::GraphFile]) {
        for (file, read) in files.iter_mut().enumerate() {
            for (index, given) in std::mem::take(&mut read.secrets).into_iter().enumerate() {
                let at = Location { file, part: Piece::Secret(index) };
                self.declare_secret(given, at);
            }
        }
    }

    fn declare_secret(&mut self, given: ast::Supplied, at: Location) {
        let name = quoted(&given.name);
        let supply = match given.supply {
            Supply::Credential(id) if id.is_empty() || id.contains('/') || id.starts_with('.') => {
                let what = format!("`{}` is not the name of a credential", quoted(&id));
                let problem = Problem::new(Code::Secret, what);
                let hint = "use the part before the colon in LoadCredential=";
                return self.problems.push(problem.hint(hint).at(self.atlas.place(at)));
            }
            Supply::File(path) => {
                let base = self.atlas.sources.get(at.file).map(|source| source.base.clone());
                Supply::File(base.unwrap_or_default().join(path))
            }
            other => other,
        };
        if let Some(first) = self.secrets.get(&given.name) {
            let problem = Problem::new(Code::Secret, format!("`{name}` is declared twice"));
            let problem = problem.at(self.atlas.place(at));
            let first = self.atlas.labelled(first.at, "first declared here");
            return self.problems.push(problem.at(first));
        }
        self.doubt_supply(&name, &supply, at);
        self.secrets.insert(given.name, Secret { supply, at });
    }

    /// S-11: warns about the program of a secret's command if its absolute path is untrusted.
    fn doubt_supply(&mut self, name: &str, supply: &Supply, at: Location) {
        let Supply::Command(argv) = supply else { return };
        let program = argv.first().map(PathBuf::from).filter(|program| program.is_absolute());
        for doubt in untrusted(program.as_slice()) {
            let what = format!("the secret `{name}`: {}", doubt.what);
            let problem = Problem::new(Code::Doubt, what).warning().hint_if(doubt.hint.as_ref());
            self.problems.push(problem.at(self.atlas.place(at)));
        }
    }

    /// Returns the deferred resource of a resource that receives values, and the hash of these values.
    pub(in crate::config) fn receiver(
        &mut self,
        given: &mut ast::Resource,
        place: &Place,
        vertex: usize,
        (file, index): (usize, usize),
    ) -> Option<(DeferredResource, u64)> {
        let receives = std::mem::take(&mut given.receives);
        if receives.iter().all(|receive| receive.is_default) {
            return None;
        }
        let mut recipe = DeferredResource {
            spec: given.spec,
            name: given.name.clone(),
            fields: given.given.fields.clone(),
            place: place.clone(),
            slots: Vec::new(),
            origins: Vec::new(),
        };
        let mut sum = 0_u64;
        let sent = receives.iter().enumerate().filter(|(_, receive)| !receive.is_default);
        for (number, receive) in sent {
            let at = Location { file, part: Piece::Receive(index, number) };
            match self.slot(receive, &mut recipe, vertex, at) {
                Ok(slot) => recipe.slots.push(slot),
                Err(problem) => {
                    let name = format!("{}[{}]", given.spec.kind, quoted(&given.name));
                    let problem = Problem { what: format!("{name}: {}", problem.what), ..problem };
                    self.problems.push(problem.at(self.atlas.place(at)));
                }
            }
            sum = sum.wrapping_add(self.sum(receive));
        }
        recipe.slots.sort_by_key(|slot| match slot.part {
            Part::At(at) => at,
            Part::Whole | Part::Key(_) => 0,
        });
        self.refuse_gaps(&recipe, Location { file, part: Piece::Name(index) });
        Some((recipe, sum))
    }

    /// Returns a hash of a received value by its names, for secrets also of their sources.
    fn sum(&self, receive: &ast::Receive) -> u64 {
        let hash = Stable::new().text(&receive.target);
        let hash = hash.text(receive.template.as_deref().unwrap_or("${}"));
        let values = receive.values.iter();
        let sum = values.fold(hash, |hash, (name, reference)| match reference {
            Reference::Sent(from, key) => hash.text(name).text(from).text(key),
            Reference::World(key) => hash.text(name).text("world").text(key),
            Reference::Secret(secret) => {
                let supply = self.secrets.get(secret).map(|secret| format!("{:?}", secret.supply));
                hash.text(name).text(secret).text(&supply.unwrap_or_default())
            }
        });
        sum.finish()
    }

    fn slot(
        &mut self,
        receive: &ast::Receive,
        recipe: &mut DeferredResource,
        vertex: usize,
        at: Location,
    ) -> Result<InputSlot, Problem> {
        let (field, part) = target(recipe.spec, &receive.target)?;
        refuse_twice(recipe, field, &part)?;
        let mut origins = Vec::new();
        for (name, reference) in &receive.values {
            origins.push((name.as_str(), recipe.origins.len()));
            recipe.origins.push(self.origin(reference, field)?);
        }
        let pieces = match &receive.template {
            Some(text) => template::pieces(text, &origins)?,
            None => origins
                .iter()
                .map(|(_, number)| steadfast_resources::TemplatePiece::Value(*number))
                .collect(),
        };
        let slot = InputSlot { field, part, pieces };
        refuse_template(&slot)?;
        let takes = slot.takes();
        for (_, reference) in &receive.values {
            match reference {
                Reference::Sent(from, key) => {
                    let (from, key) = (from.clone(), key.clone());
                    self.awaited.push(PendingReceive { vertex, from, key, field, takes, at });
                }
                Reference::World(_) => {}
                Reference::Secret(_) => self.confided.push(SecretField { vertex, field, at }),
            }
        }
        Ok(slot)
    }

    fn origin(&self, reference: &Reference, field: &FieldSpec) -> Result<Origin, Problem> {
        let name = match reference {
            Reference::Sent(from, key) => {
                let (by, key) = (from.as_str().into(), key.as_str().into());
                return Ok(Origin::Sent { by, key });
            }
            Reference::Secret(name) => name,
            Reference::World(key) => {
                return Err(wrong(format!("the key `{}` of the world was not read", quoted(key))));
            }
        };
        if field.receives < Receives::Secrets {
            let what = format!("`{}` accepts no secret: the value would be shown", field.name);
            return Err(wrong(what));
        }
        let Some(secret) = self.secrets.get(name) else {
            // The name may be the secret itself, written here by mistake, and is not shown.
            let what = format!("the secret that `{}` names is not declared", field.name);
            let near = nearest(name, self.secrets.keys().map(String::as_str));
            let declared: Vec<&str> = self.secrets.keys().map(String::as_str).take(3).collect();
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None if declared.is_empty() => {
                    "declare the secret: `secrets: { name: { file: /etc/steadfast/… } }`".to_owned()
                }
                None => format!("declared: {}; declare it below `secrets`", declared.join(", ")),
            };
            return Err(Problem::new(Code::Secret, what).hint(hint));
        };
        Ok(Origin::Secret(secret.supply.clone()))
    }

    /// Rejects a received element whose index is beyond the end of the list.
    fn refuse_gaps(&mut self, recipe: &DeferredResource, at: Location) {
        let mut lengths: HashMap<&str, usize> = HashMap::new();
        for slot in &recipe.slots {
            let Part::At(number) = slot.part else { continue };
            let written = || recipe.fields.clone().texts(slot.field.name).unwrap_or_default().len();
            let length = lengths.entry(slot.field.name).or_insert_with(written);
            if number > *length {
                let what =
                    format!("index out of range: `{}` follows {length} elements", slot.name());
                let problem = wrong(what).hint("indices start at 0, in the final list");
                self.problems.push(problem.at(self.atlas.place(at)));
            }
            *length += 1;
        }
    }

    /// Resolves the senders of received values, and makes the receivers depend on them.
    pub(in crate::config) fn tie_values(&mut self) {
        for awaited in std::mem::take(&mut self.awaited) {
            let Some(sender) = self.find(&awaited.from, awaited.at) else { continue };
            let (from, to, at) = (sender, awaited.vertex, awaited.at);
            match self.match_types(&awaited, sender) {
                Ok(false) => {}
                Ok(true) => {
                    self.confided.push(SecretField { vertex: to, field: awaited.field, at });
                }
                Err(problem) => self.problems.push(problem.at(self.atlas.place(at))),
            }
            self.ties.push(DraftEdge { from, to, notify: false, key: RECEIVED, because: None, at });
        }
    }

    /// Warns about fields that receive secrets, as far as known at load; each field once.
    pub(in crate::config) fn doubt_confided(&mut self) {
        let mut told: Vec<(usize, &str)> = Vec::new();
        for SecretField { vertex, field, at } in std::mem::take(&mut self.confided) {
            let Some(candidate) = self.vertices.get(vertex) else { continue };
            let resource = candidate.resource.as_ref();
            let doubt = resource.and_then(|resource| resource.doubts_of_secret(field.name));
            let (Some(doubt), Piece::Receive(index, _)) = (doubt, at.part) else { continue };
            if told.contains(&(vertex, field.name)) {
                continue;
            }
            told.push((vertex, field.name));
            let identity = candidate.identity.to_string();
            self.invalid(Severity::Warning, &[doubt], (&identity, at.file, index));
        }
    }

    /// Checks that a sent value fits its field; returns true if the value is a secret.
    fn match_types(&self, awaited: &PendingReceive, sender: usize) -> Result<bool, Problem> {
        let Some(candidate) = self.vertices.get(sender) else { return Ok(false) };
        let (name, key) = (quoted(&candidate.identity), quoted(&awaited.key));
        let resource = candidate.resource.as_ref();
        let is_given = |key: &str| resource.is_none_or(|resource| resource.sends_key(key));
        let mut sends = candidate.spec.sends.iter();
        let Some(send) = sends.find(|send| send.key == awaited.key && is_given(send.key)) else {
            let all = candidate.spec.sends.iter().map(|send| send.key);
            let all: Vec<&str> = all.filter(|key| is_given(key)).collect();
            let hint = match all.as_slice() {
                [] => format!("the kind {} sends nothing", candidate.spec.kind),
                keys => format!("the kind sends {}", keys.join(", ")),
            };
            return Err(wrong(format!("`{name}` sends no `{key}`")).hint(hint));
        };
        let field = awaited.field;
        if send.secret && field.receives < Receives::Secrets {
            let what =
                format!("`{}` accepts no secret, but `{name}.{key}` is a secret", field.name);
            return Err(wrong(what).hint(
                "the value would be shown; send the secret to a field that accepts secrets",
            ));
        }
        if !fits(send.gives, awaited.takes) {
            let (takes, gives) = (wants(awaited.takes), wants(send.gives));
            let what = format!("`{}` should be {takes}, but `{name}.{key}` is {gives}", field.name);
            return Err(wrong(what));
        }
        Ok(send.secret)
    }
}

/// Returns the field and the part that a target names.
pub(super) fn target(
    spec: &'static KindSpec,
    text: &str,
) -> Result<(&'static FieldSpec, Part), Problem> {
    let find = |name: &str| spec.fields.iter().find(|field| field.name == name);
    let (name, rest) = match text.split_once('.') {
        Some((name, rest)) if find(text).is_none() => (name, Some(rest)),
        _ => (text, None),
    };
    let takers = || spec.fields.iter().filter(|field| field.receives > Receives::Nothing);
    let takers = || takers().map(|field| field.name).collect::<Vec<_>>().join(", ");
    let Some(field) = find(name) else {
        let hint = nearest(name, spec.fields.iter().map(|field| field.name));
        let hint = hint.map_or_else(
            || format!("fields that can receive: {}", takers()),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(wrong(format!("the kind has no field `{}`", quoted(name))).hint(hint));
    };
    if field.receives == Receives::Nothing {
        let is_text_of_command = |field: &FieldSpec| matches!(field.mode, Some(FieldMode::Argv(shell)) if !shell.is_empty());
        let is_command = spec.fields.iter().any(is_text_of_command);
        let hint = match (takers().as_str(), is_command) {
            ("", _) => format!("the kind {} receives nothing", spec.kind),
            (fields, true) => {
                format!(
                    "values are never inserted into the text of a command; fields that can receive: {fields}"
                )
            }
            (fields, _) => format!("fields that can receive: {fields}"),
        };
        return Err(wrong(format!("`{}` cannot be received", field.name)).hint(hint));
    }
    let part = match (field.takes, rest) {
        (FieldType::TextMap, Some(key)) if !key.is_empty() => Part::Key(key.to_owned()),
        (FieldType::Texts, Some(number)) => {
            let what =
                || format!("`{}` should end in an index, for example {name}.0", quoted(text));
            Part::At(number.parse().ok().ok_or_else(|| wrong(what()))?)
        }
        (FieldType::TextMap, _) => {
            let what = format!("`{name}` is a map: expected one entry of the map");
            return Err(wrong(what).hint(format!("write {name}.KEY")));
        }
        (_, Some(_)) => return Err(wrong(format!("`{name}` has no parts"))),
        (_, None) => Part::Whole,
    };
    Ok((field, part))
}

/// Rejects a template for a list or a number: a template produces a text.
fn refuse_template(slot: &InputSlot) -> Result<(), Problem> {
    let takes = slot.field.takes;
    let takes_text = matches!(takes, FieldType::Text | FieldType::Anything | FieldType::Choice(_));
    if takes_text || slot.part != Part::Whole || !slot.is_template() {
        return Ok(());
    }
    let name = slot.field.name;
    let (sort, instead) = match takes {
        FieldType::Texts => ("a list", format!("such as {name}.0")),
        _ => (wants(takes), "or receive the plain value with `from` and `key`".to_owned()),
    };
    let what = format!("`{name}` is {sort}, but a template produces a string");
    Err(wrong(what).hint(format!("use a field or part of type string, {instead}")))
}

/// Rejects a value that is both received and written, or received twice.
fn refuse_twice(recipe: &DeferredResource, field: &FieldSpec, part: &Part) -> Result<(), Problem> {
    let map = || recipe.fields.clone().text_map(field.name).unwrap_or_default();
    let written = match part {
        Part::Whole => recipe.fields.has(field.name),
        Part::Key(key) => map().iter().any(|(written, _)| written == key),
        Part::At(_) => false,
    };
    let received = recipe.slots.iter().filter(|slot| slot.field.name == field.name);
    let mut parts = received.map(|slot| &slot.part);
    let overlaps = |other: &Part| other == part || *other == Part::Whole || *part == Part::Whole;
    if written || parts.any(overlaps) {
        let what = format!("`{}` is given twice", field.name);
        return Err(wrong(what).hint("keep either the written or the received value"));
    }
    Ok(())
}
