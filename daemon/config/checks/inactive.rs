//! Inactive resources: declarations whose condition is false. Each keeps its name and its place in the order, and has
//! no vertex.

use super::Validator;
use super::metaparams::Delete;
use crate::config::ast::{self, DefaultValue, FieldValues};
use crate::config::document::{Inactivity, Note};
use crate::config::problem::Severity;
use crate::config::problem::location::{Element, Location};
use crate::config::scalar::{self, Scalar};
use crate::config::{Inactive, ast::Reference};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use steadfast_resources::{
    Claim, DeferredResource, FieldSpec, FieldType, HostObject, InputSlot, Invalid, Part, Place,
    TemplatePiece, Value,
};

/// The first number of inactive resources. They are numbered apart from the vertices, in the same table of names.
pub(super) const FIRST: usize = usize::MAX / 2;

/// The number of attempts to find stand-ins for the fields that a kind needs.
const MOST_ATTEMPTS: usize = 3;

/// An inactive resource.
#[derive(Debug)]
pub(in crate::config) struct DraftInactive {
    identity: Arc<str>,
    at: Location,
    line: u32,
    reason: Arc<Inactivity>,
    /// The condition as written; a resource that waits for a value may have one that holds.
    condition: Option<Arc<str>>,
}

impl DraftInactive {
    /// Returns the identity.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the identity and the place.
    pub(super) fn named(&self) -> (Arc<str>, Location) {
        (Arc::clone(&self.identity), self.at)
    }

    /// Returns the place and the condition of a resource that is inactive only because a value waits for a probe.
    pub(super) fn waiting(&self) -> Option<(Location, Option<Arc<str>>)> {
        self.reason.waits_for_probe().then(|| (self.at, self.condition.clone()))
    }

    /// Returns the reason.
    pub(super) fn reason(&self) -> &Inactivity {
        &self.reason
    }
}

/// Writes the default of each received value whose sender is inactive into the fields of its receiver.
fn use_defaults(resource: &mut ast::Resource, inactive: &HashSet<String>) {
    for receive in &mut resource.receives {
        let is_missing = |reference: &Reference| matches!(reference, Reference::Sent(from, _) if inactive.contains(from));
        let missing = receive.values.iter().filter(|(_, reference)| is_missing(reference));
        let missing: Vec<String> = missing.map(|(name, _)| name.clone()).collect();
        let default_of = |name: &String| receive.defaults.iter().find(|it| it.name == *name);
        let defaults: Option<Vec<DefaultValue>> =
            missing.iter().map(|name| default_of(name).cloned()).collect();
        // The check of the receiver reports a wrong target.
        let Ok((field, part)) = super::values::target(resource.spec, &receive.target) else {
            continue;
        };
        let Some(defaults) = defaults.filter(|defaults| !defaults.is_empty()) else { continue };
        receive.values.retain(|(name, _)| !missing.contains(name));
        let Some(mut template) = receive.template.clone() else {
            if let Some(default) = defaults.first() {
                let scalar = Scalar { text: default.text.as_str().into(), plain: default.plain };
                give(&mut resource.given, (field, part), scalar);
                receive.is_default = true;
            }
            continue;
        };
        for default in &defaults {
            let escaped = default.text.replace("${", "$${");
            template = template.replace(&format!("${{{}}}", default.name), &escaped);
        }
        if receive.values.is_empty() {
            let text = template.replace("$${", "${");
            let scalar = Scalar { text: text.into(), plain: false };
            give(&mut resource.given, (field, part), scalar);
            receive.is_default = true;
        } else {
            receive.template = Some(template);
        }
    }
}

/// Gives a field, or a part of one, a value in place of a received one.
fn give(given: &mut FieldValues, (field, part): (&'static FieldSpec, Part), scalar: Scalar<'_>) {
    let value = match part {
        Part::Whole => match scalar::convert(field.takes, scalar) {
            Some(value) => value,
            None => return,
        },
        Part::Key(key) => {
            let mut map = given.fields.clone().text_map(field.name).unwrap_or_default();
            let old = Value::TextMap(map.clone());
            map.push((key, scalar.text.into_owned()));
            return given.replace(field, &old, Value::TextMap(map));
        }
        Part::At(at) => {
            let mut texts = given.fields.clone().texts(field.name).unwrap_or_default();
            let old = Value::Texts(texts.clone());
            texts.insert(at.min(texts.len()), scalar.text.into_owned());
            return given.replace(field, &old, Value::Texts(texts));
        }
    };
    given.insert(field, value);
}

/// The inactive resources that senders can be, as one round of `defer_receivers` finds them.
#[derive(Default)]
struct InactiveSenders {
    /// The inactive resources that an answer of a probe may make active. A default in place of their value would
    /// change the host at each start.
    waiting: HashSet<String>,
    /// The inactive resources that no answer of a probe makes active.
    other: HashSet<String>,
}

impl InactiveSenders {
    fn insert(&mut self, identity: String, is_waiting: bool) {
        if is_waiting {
            self.waiting.insert(identity)
        } else {
            self.other.insert(identity)
        };
    }

    /// Returns the first sender of a resource that is in a set.
    fn first_of(resource: &ast::Resource, set: &HashSet<String>) -> Option<String> {
        let mut senders = resource.receives.iter().flat_map(|receive| &receive.values);
        senders.find_map(|(_, reference)| match reference {
            Reference::Sent(from, _) if set.contains(from) => Some(from.clone()),
            _ => None,
        })
    }

    /// Returns the sender for which a resource waits, and whether an answer of a probe may end that. A default replaces
    /// the value of a sender that no answer makes active.
    fn sender_of(&self, resource: &mut ast::Resource) -> Option<(String, bool)> {
        if let Some(sender) = Self::first_of(resource, &self.waiting) {
            return Some((sender, true));
        }
        use_defaults(resource, &self.other);
        Some((Self::first_of(resource, &self.other)?, false))
    }
}

/// Makes each receiver of a value of an inactive resource inactive too, until nothing changes.
pub(super) fn defer_receivers(files: &mut [ast::GraphFile], prefixes: &[String]) {
    let mut inactive = InactiveSenders::default();
    let mut active: HashSet<String> = HashSet::new();
    let mut waiting = Vec::new();
    for (file, prefix) in files.iter().zip(prefixes) {
        for resource in &file.resources {
            let identity = format!("{prefix}{}[{}]", resource.spec.kind, resource.name);
            match resource.note.as_ref().and_then(|note| note.inactive.as_ref()) {
                Some(reason) if reason.ends_with_answer() => {
                    let probe = reason.unknown_until.clone().unwrap_or_default();
                    waiting.push((identity, probe));
                }
                Some(_) => drop(inactive.other.insert(identity)),
                None => drop(active.insert(identity)),
            }
        }
    }
    // An inactive probe gives no answer.
    loop {
        let is_silent = |(_, probe): &(String, String)| inactive.other.contains(probe);
        let (silent, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_silent);
        waiting = others;
        if silent.is_empty() {
            break;
        }
        inactive.other.extend(silent.into_iter().map(|(identity, _)| identity));
    }
    inactive.waiting.extend(waiting.into_iter().map(|(identity, _)| identity));
    inactive.waiting.retain(|identity| !active.contains(identity));
    inactive.other.retain(|identity| !active.contains(identity));
    while !(inactive.waiting.is_empty() && inactive.other.is_empty()) {
        let mut more = InactiveSenders::default();
        for (file, prefix) in files.iter_mut().zip(prefixes) {
            for resource in &mut file.resources {
                let Some((sender, is_waiting)) = inactive.sender_of(resource) else { continue };
                let note = resource.note.get_or_insert_default();
                if note.inactive.is_none() {
                    let identity = format!("{prefix}{}[{}]", resource.spec.kind, resource.name);
                    more.insert(identity, is_waiting);
                    let unknown_until = Some(format!("{sender} is active"));
                    let reason = Inactivity { unknown_until, ..Inactivity::default() };
                    note.inactive = Some(Arc::new(reason));
                }
            }
        }
        inactive = more;
    }
}

/// Returns a slot for a whole field, whose value is not known.
fn slot(field: &'static FieldSpec) -> InputSlot {
    InputSlot { field, part: Part::Whole, pieces: vec![TemplatePiece::Value(0)] }
}

/// Returns the problems that a resource has with each of several stand-ins for the fields of `unknown`: a word that is
/// not known yet may make another field needed, or exclude it. A field of `unknown` itself has no problem, besides that
/// of a template: its text is right whatever it is.
fn problems_of_fields(recipe: &DeferredResource, unknown: &[&str]) -> Vec<Invalid> {
    let words = |field: &FieldSpec| match field.takes {
        FieldType::Choice(words) => words.len(),
        FieldType::Bool => 2,
        _ => 1,
    };
    let fields = recipe.spec.fields.iter().filter(|field| unknown.contains(&field.name));
    let fields: Vec<&FieldSpec> = fields.filter(|field| words(field) > 1).collect();
    let most = fields.iter().map(|field| words(field)).max().unwrap_or(1);
    let mut common: Option<Vec<Invalid>> = None;
    for number in 0..most {
        let mut recipe = recipe.clone();
        for field in &fields {
            let value = match field.takes {
                FieldType::Choice(words) => {
                    let word = words.get(number % words.len().max(1)).copied();
                    Value::Text(word.unwrap_or_default().to_owned())
                }
                _ => Value::Bool(number % 2 == 1),
            };
            recipe.slots.retain(|slot| slot.field.name != field.name);
            recipe.fields.insert(field.name, value);
        }
        let Err(invalid) = recipe.placeholder() else { return Vec::new() };
        common = Some(match common {
            None => invalid,
            Some(common) => common.into_iter().filter(|it| invalid.contains(it)).collect(),
        });
    }
    let mut problems = common.unwrap_or_default();
    let of_template = recipe.spec.template_field().map(|field| field.name);
    let is_known = |field: &str| !unknown.contains(&field) || of_template == Some(field);
    problems.retain(|it| it.field.is_none_or(is_known));
    problems
}

/// Returns the claims that the fields make. A stand-in replaces each field that the kind needs. Without a footprint,
/// the path alone counts.
fn claims_of(mut recipe: DeferredResource) -> Vec<Claim> {
    for _ in 0..MOST_ATTEMPTS {
        let invalid = match recipe.placeholder() {
            Ok(resource) => return resource.footprint().claims,
            Err(invalid) => invalid,
        };
        let wanted = |field: &&FieldSpec| {
            !recipe.fields.has(field.name)
                && recipe.slots.iter().all(|slot| slot.field.name != field.name)
                && invalid.iter().any(|invalid| invalid.field == Some(field.name))
        };
        let slots: Vec<InputSlot> = recipe.spec.fields.iter().filter(wanted).map(slot).collect();
        if slots.is_empty() {
            break;
        }
        recipe.slots.extend(slots);
    }
    let given = recipe.fields.shown_text("path").unwrap_or(&recipe.name);
    let path = given.starts_with('/').then(|| given.trim_end_matches('/').to_owned());
    path.map(Claim::path).into_iter().collect()
}

impl Validator<'_> {
    /// Registers an inactive resource, and returns its number. A resource with an unknown value keeps its claims; the
    /// paths of each inactive resource are spared by `purge`.
    pub(super) fn inactive_resource(
        &mut self,
        given: &mut ast::Resource,
        (identity, at): (&Arc<str>, Location),
        place: &Place,
        note: &Note,
    ) -> Option<usize> {
        let number = FIRST + self.inactive.len();
        let reason = note.inactive.clone().unwrap_or_default();
        let condition = note.condition.clone();
        let is_waiting = reason.waits_for_probe();
        if is_waiting && self.refuse_second(identity, condition.as_ref(), at) {
            return None;
        }
        let (line, identity) = (given.line, Arc::clone(identity));
        let known = self.numbers.entry(Arc::clone(&identity)).or_insert(number);
        if is_waiting {
            *known = number;
        }
        let draft = DraftInactive { identity: Arc::clone(&identity), at, line, reason, condition };
        self.inactive.push(draft);
        let recipe = self.recipe_of_inactive(given, (identity.as_ref(), at), (place, number), note);
        let claims = claims_of(recipe);
        self.spared.extend(claims.iter().filter_map(|claim| match &claim.object {
            HostObject::Path(path) | HostObject::Content(path) => Some((path.clone(), number)),
            _ => None,
        }));
        if is_waiting {
            self.claim(claims, number, &identity, at);
        }
        Some(number)
    }

    /// Returns the fields of an inactive resource, with stand-ins for those that are not known yet. A resource that
    /// waits for a probe is checked like an active one: a later answer must not make the graph wrong.
    fn recipe_of_inactive(
        &mut self,
        given: &mut ast::Resource,
        (identity, at): (&str, Location),
        (place, number): (&Place, usize),
        note: &Note,
    ) -> DeferredResource {
        let is_checked = note.inactive.is_some() && !note.hides_fields();
        let (mut own, mut recipe) = (None, None);
        if let (true, Element::Name(index)) = (is_checked, at.part) {
            own = Some(self.meta((identity, given.meta.take()), at.file, index));
            recipe = self.receiver(given, place, number, (at.file, index));
        }
        let mut recipe = recipe.map_or_else(
            || DeferredResource {
                spec: given.spec,
                name: given.name.clone(),
                fields: std::mem::take(&mut given.given.fields),
                place: place.clone(),
                slots: Vec::new(),
                origins: Vec::new(),
            },
            |(recipe, _)| recipe,
        );
        let unknown: Vec<&str> = note.unknown_fields.iter().map(AsRef::as_ref).collect();
        let is_unknown = |field: &&FieldSpec| {
            let is_slot = recipe.slots.iter().any(|slot| slot.field.name == field.name);
            unknown.contains(&field.name) && !is_slot
        };
        let fields = recipe.spec.fields.iter().filter(is_unknown);
        let slots: Vec<InputSlot> = fields.map(slot).collect();
        recipe.slots.extend(slots);
        let (Some(own), Element::Name(index)) = (own, at.part) else { return recipe };
        let mut invalid = problems_of_fields(&recipe, &unknown);
        // Of an incomplete resource, only problems of the fields that were read are reported.
        let is_read = |it: &Invalid| it.field.is_some_and(|field| recipe.fields.has(field));
        invalid.retain(|it| !given.broken || is_read(it));
        self.invalid(Severity::Error, &invalid, (identity, at.file, index));
        if own.delete == Delete::Always
            && let Ok(resource) = recipe.placeholder()
        {
            self.removal(resource.as_ref(), (given.spec, &given.name), (at.file, index));
        }
        recipe
    }

    /// Returns the inactive resources that no active declaration replaces.
    pub(super) fn list_inactive(
        inactive: Vec<DraftInactive>,
        numbers: &HashMap<Arc<str>, usize>,
        sources: &dyn Fn(usize) -> usize,
    ) -> Vec<Inactive> {
        let is_listed =
            |it: &DraftInactive| numbers.get(&it.identity).is_some_and(|number| *number >= FIRST);
        let listed = inactive.into_iter().filter(is_listed).map(|it| Inactive {
            identity: it.identity,
            condition: Arc::clone(&it.reason.condition),
            values: Arc::clone(&it.reason.values),
            unknown_until: it.reason.unknown_until.clone(),
            condition_at: it.reason.at.clone(),
            place: (sources(it.at.file), it.line),
        });
        let mut listed: Vec<Inactive> = listed.collect();
        listed.sort_by(|one, other| one.identity.cmp(&other.identity));
        listed.dedup_by(|one, other| one.identity == other.identity);
        listed
    }
}
