//! The access list, extended attributes and capabilities of a file: a resource around the file itself.
//!
//! The folder must never follow a link, and must not examine attributes that are not declared.
//!
//! Reading order: `acl.rs` and `capabilities.rs` (texts and the forms of the kernel), `set.rs` (the values of one
//! object), this file (the fields, and the resource).

mod acl;
mod capabilities;
mod set;

use crate::change::{Change, CheckResult, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::failure::Failure;
use crate::fields::field_values::{Fields, Invalid, Value};
use crate::footprint::ClosedDirectory;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::inspect::Field;
use crate::kind::Restoring;
use crate::parts::data::scalars::parse_tree;
use crate::parts::data::tree::Tree;
use crate::parts::field_reader::normal_path;
use crate::parts::shell_words::shell_word;
use crate::parts::{Managed, WriteFailure};
use crate::permit::Permit;
use crate::prior_state::{After, FormerValue};
use crate::resource::{Resource, Traits};
use crate::values::sent_values::Sent;
use acl::Entry;
use capabilities::Capabilities;
use set::{ACL, CAPABILITIES, ExtendedSet, XATTRS};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// A file with declared access list, extended attributes or capabilities.
#[derive(Debug)]
struct ExtendedFile {
    file: Arc<dyn Resource>,
    attributes: Arc<Managed<ExtendedSet>>,
}

/// The premise of a change: the change of the file, if the file itself differs.
struct Premise(Option<Change>);

/// The declared fields, before the path is known.
#[derive(Debug, Default)]
pub(super) struct ExtendedFields(Option<ExtendedSet>);

/// Takes the fields.
pub(super) fn read_fields(
    fields: &mut Fields,
    force: bool,
    wrong: &mut Vec<Invalid>,
) -> ExtendedFields {
    let keeps_mode = fields.has("mode");
    let has_content = ["content", "source", "fragments"].iter().any(|field| fields.has(field));
    let entries = fields.texts("acl").map(|texts| {
        let mut entries = Vec::new();
        for text in &texts {
            match Entry::parse(text) {
                Ok(entry) => entries.push(entry),
                Err(what) => wrong.push(Invalid::field("acl", what)),
            }
        }
        entries
    });
    let xattrs = fields.text_map("xattrs").map(|all| {
        for (name, _) in &all {
            let is_own = ["security.capability", "security.ima", "security.evm"];
            let is_free = ["user.", "trusted.", "security."].iter().any(|it| name.starts_with(it))
                && !name.starts_with("trusted.steadfast.")
                && !is_own.contains(&name.as_str());
            if !is_free {
                let what = "expected names like user.origin";
                let hint = "access lists and capabilities have fields of their own";
                wrong.push(Invalid::field("xattrs", what).hint(hint));
            }
        }
        let mut all: Vec<_> = all
            .into_iter()
            .map(|(name, value)| (name, Some(value).filter(|value| !value.is_empty())))
            .collect();
        all.sort();
        all
    });
    let capabilities = fields.text("capabilities").and_then(|text| {
        let parsed = Capabilities::parse(&text);
        parsed.map_err(|what| wrong.push(Invalid::field("capabilities", what))).ok()
    });
    if entries.is_none() && xattrs.is_none() && capabilities.is_none() {
        return ExtendedFields(None);
    }
    let path = PathBuf::new();
    ExtendedFields(Some(ExtendedSet {
        path,
        acl: entries,
        keeps_mode,
        xattrs,
        capabilities,
        force,
        has_content,
        is_undo: false,
        recorded_lists: Mutex::default(),
    }))
}

impl ExtendedFields {
    /// Returns the fields that only an object of one type can have, with a flag for each given one.
    pub(super) fn is_given(&self) -> bool {
        self.0.is_some()
    }

    /// Returns true if an access list is declared.
    pub(super) fn has_list(&self) -> bool {
        self.0.as_ref().is_some_and(|set| set.acl.is_some())
    }

    /// Returns true if capabilities are declared, which only a regular file has.
    pub(super) fn has_capabilities(&self) -> bool {
        self.0.as_ref().is_some_and(|set| set.capabilities.is_some())
    }

    /// Puts the attributes around a file.
    pub(super) fn around(self, file: Arc<dyn Resource>, path: &Path) -> Arc<dyn Resource> {
        match self.0 {
            None => file,
            Some(set) => {
                let set = ExtendedSet { path: path.to_owned(), ..set };
                Arc::new(ExtendedFile { file, attributes: Arc::new(Managed::new(set)) })
            }
        }
    }
}

impl ExtendedFile {
    fn with_file(&self, file: Arc<dyn Resource>) -> Arc<dyn Resource> {
        Arc::new(Self { file, attributes: Arc::clone(&self.attributes) })
    }

    async fn look(&self, host: &Host, ask: CheckRequest) -> CheckResult {
        let plain = CheckRequest { cancel: ask.cancel.clone(), ..CheckRequest::default() };
        let file = match self.file.check(host, ask).await {
            CheckResult::Unknown(failure) => return CheckResult::Unknown(failure),
            CheckResult::Same => None,
            CheckResult::Differs(change) => Some(change),
        };
        // A change of owner or group clears the capabilities.
        let is_handed = file.iter().flat_map(|change| &change.differences);
        let is_handed = is_handed.into_iter().any(|it| matches!(it.aspect, "owner" | "group"));
        if let Err(failure) = self.attributes.set().guard_capabilities(host.files(), is_handed) {
            return CheckResult::Unknown(failure);
        }
        let own = match self.attributes.check(host, plain).await {
            CheckResult::Differs(change) => Some(change),
            CheckResult::Same => None,
            // The change of the file may remove the cause.
            CheckResult::Unknown(_) if file.is_some() => None,
            CheckResult::Unknown(failure) => return CheckResult::Unknown(failure),
        };
        match (file, own) {
            (None, None) => CheckResult::Same,
            (None, Some(own)) => {
                CheckResult::Differs(Change { premise: Box::new(Premise(None)), ..own })
            }
            (Some(file), own) => {
                let mut differences = file.differences.clone();
                differences.extend(own.iter().flat_map(|own| own.differences.clone()));
                let premise_digest = own.map_or(file.premise_digest, |own| {
                    file.premise_digest.rotate_left(7) ^ own.premise_digest
                });
                CheckResult::Differs(Change {
                    differences,
                    premise_digest,
                    destructive: file.destructive,
                    creates: file.creates,
                    replaces: file.replaces,
                    premise: Box::new(Premise(Some(file))),
                })
            }
        }
    }

    /// Applies the file, and then the attributes. An access list that takes the right to write from a user marks the
    /// file: a declared content then goes into a new inode, in a second round.
    async fn make_so(&self, host: &Host, permit: &Permit, change: Change) -> Outcome {
        let premise = change.premise.downcast::<Premise>().ok();
        let (mut next, mut done) = (premise.and_then(|premise| premise.0), Vec::new());
        if next.is_some() {
            match self.attributes.set().narrow(host.files(), permit) {
                Ok(true) => done.push("acl of undeclared accounts closed".to_owned()),
                Ok(false) => {}
                Err(_) if permit.check().is_err() => return Outcome::Interrupted,
                Err(WriteFailure { failure, touched }) => {
                    return Outcome::Failed { failure, touched };
                }
            }
        }
        for is_last in [false, true] {
            if let Some(change) = next.take() {
                match self.file.apply(host, permit, change).await {
                    Outcome::Unchanged => {}
                    Outcome::Changed(notes) => done.extend(notes),
                    other => return after(other, &done),
                }
            }
            if permit.check().is_err() {
                return Outcome::Interrupted;
            }
            let outcome = match self.attributes.check(host, CheckRequest::default()).await {
                CheckResult::Same => Outcome::Unchanged,
                CheckResult::Unknown(failure) => Outcome::Failed { failure, touched: false },
                CheckResult::Differs(change) => self.attributes.apply(host, permit, change).await,
            };
            let is_touched =
                matches!(outcome, Outcome::Changed(_) | Outcome::Failed { touched: true, .. });
            if is_touched
                && !is_last
                && let CheckResult::Differs(change) =
                    self.file.check(host, CheckRequest::default()).await
            {
                if let Outcome::Changed(notes) = outcome {
                    done.extend(notes);
                }
                next = Some(change);
                continue;
            }
            match outcome {
                Outcome::Changed(notes) => done.extend(notes),
                Outcome::Unchanged => {}
                other => return after(other, &done),
            }
            break;
        }
        if done.is_empty() { Outcome::Unchanged } else { Outcome::Changed(done) }
    }
}

/// Returns the outcome of a step after steps that were done.
fn after(outcome: Outcome, done: &[String]) -> Outcome {
    match outcome {
        Outcome::Failed { failure, touched } => {
            Outcome::Failed { failure, touched: touched || !done.is_empty() }
        }
        other => other,
    }
}

impl Resource for ExtendedFile {
    fn footprint(&self) -> Footprint {
        let mut own = self.file.footprint();
        own.requires.extend(self.attributes.footprint().requires);
        own
    }

    fn doubts_of_secret(&self, field: &str) -> Option<Invalid> {
        self.file.doubts_of_secret(field)
    }

    fn left_alone_reason(&self) -> Option<String> {
        self.file.left_alone_reason()
    }

    fn with_claims(&self, claimed: Vec<PathBuf>) -> Option<Arc<dyn Resource>> {
        self.file.with_claims(claimed).map(|file| self.with_file(file))
    }

    fn with_closed_directory(&self, directory: ClosedDirectory) -> Option<Arc<dyn Resource>> {
        self.file.with_closed_directory(directory).map(|file| self.with_file(file))
    }

    fn sends_key(&self, key: &str) -> bool {
        self.file.sends_key(key)
    }

    fn read_sent<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Option<Answer<'a, Result<Sent, Failure>>> {
        self.file.read_sent(host, cancel)
    }

    fn traits(&self) -> Traits {
        self.file.traits()
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(self.look(host, ask))
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(self.make_so(host, permit, change))
    }
}

/// Returns the fields of found attributes: the access list, the attributes of users, and the capabilities.
pub(crate) fn inspect_extended(found: &[(Vec<u8>, Vec<u8>)]) -> Vec<(&'static str, Field)> {
    let mut fields = Vec::new();
    let entries = set::entries_of(found);
    if !entries.is_empty() {
        let texts = entries.iter().map(Entry::text).collect();
        fields.push((ACL, Field::Shown(Value::Texts(texts))));
    }
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let pairs = found.iter().filter_map(|(name, value)| {
        let name = text(name).filter(|name| name.starts_with("user."))?;
        Some((name, text(value).filter(|value| !value.is_empty())?))
    });
    let pairs: Vec<(String, String)> = pairs.collect();
    if !pairs.is_empty() {
        fields.push((XATTRS, Field::Shown(Value::TextMap(pairs))));
    }
    let capabilities = found.iter().find(|(name, _)| name == capabilities::NAME.as_bytes());
    let capabilities = capabilities.and_then(|(_, bytes)| Capabilities::decode(bytes)?.text());
    fields.extend(capabilities.map(|it| (CAPABILITIES, Field::Shown(Value::Text(it)))));
    fields
}

/// Builds the attributes that restore their values from before a change; the file itself has records of its own.
///
/// # Errors
///
/// Returns the reason if the values cannot be restored.
pub(super) fn restore(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    let refused = |what: &str| {
        Failure::new(what.to_owned()).hint("`steadfast history` shows the values: set them by hand")
    };
    let path = normal_path(name).ok_or_else(|| refused("the resource has not its path as name"))?;
    let word = shell_word(&path.display().to_string());
    let mut set = ExtendedSet { path, is_undo: true, ..ExtendedSet::default() };
    let mut by_hand = Vec::new();
    for value in values {
        let before = value.before.clone().unwrap_or_default();
        match value.field.as_str() {
            ACL => {
                let entries = before.split(',').filter(|entry| !entry.is_empty());
                let entries = entries.map(Entry::parse_recorded);
                let entries: Result<Vec<Entry>, String> = entries.collect();
                set.acl = Some(entries.map_err(|_why| refused("the former list cannot be read"))?);
                by_hand.push(if before.is_empty() {
                    format!("setfacl --remove-all {word}")
                } else {
                    format!("setfacl --modify {} {word}", shell_word(&before))
                });
            }
            XATTRS => {
                let after = match &value.after {
                    After::Value(text) => text.clone(),
                    After::Unknown | After::Absent => String::new(),
                };
                set.xattrs = Some(former_xattrs(&before, &after));
                by_hand.push(format!("setfattr --name NAME --value VALUE {word}"));
            }
            CAPABILITIES => {
                let former = Capabilities::parse(&before);
                let former = former.map_err(|_why| refused("the former value cannot be read"))?;
                set.capabilities = Some(former);
                by_hand.push(match former.text() {
                    Some(text) => format!("setcap {} {word}", shell_word(&text)),
                    None => format!("setcap -r {word}"),
                });
            }
            _ => {}
        }
    }
    Ok(Restoring { resource: Arc::new(Managed::new(set)), by_hand: by_hand.join(" && ") })
}

/// Returns the former attributes; those that the change has added must not exist.
fn former_xattrs(before: &str, after: &str) -> Vec<(String, Option<String>)> {
    let entries = |text: &str| match parse_tree(text) {
        Ok(Tree::Map(entries)) => entries,
        _ => Vec::new(),
    };
    let text = |tree: Tree| match tree {
        Tree::Text(text) => Some(text),
        _ => None,
    };
    let mut all: Vec<_> =
        entries(before).into_iter().map(|(name, value)| (name, text(value))).collect();
    for (name, _) in entries(after) {
        if !all.iter().any(|(own, _)| *own == name) {
            all.push((name, None));
        }
    }
    all.sort();
    all
}
