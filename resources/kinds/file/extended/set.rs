//! The declared access list, extended attributes and capabilities of one object, as named values.

use super::acl::{self, ACCESS, DEFAULT, Entry, Raw, Tag};
use super::capabilities::{self, Capabilities};
use crate::check_request::Answer;
use crate::dependency::Need;
use crate::failure::Failure;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::{
    Attributes, Entry as PathEntry, EntryStat, ExtendedAttributes, Fault, Files, said,
};
use crate::parts::data::scalars::to_json;
use crate::parts::data::tree::Tree;
use crate::parts::{ValueSet, WriteFailure};
use crate::permit::Permit;
use crate::prior_state::FieldValues;
use rustix::fs::FileType;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The aspect of the access list.
pub(super) const ACL: &str = "acl";
/// The aspect of the extended attributes.
pub(super) const XATTRS: &str = "xattrs";
/// The aspect of the capabilities.
pub(super) const CAPABILITIES: &str = "capabilities";

/// The declared values; none for an aspect that is not managed.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the fields of a declaration")]
pub(super) struct ExtendedSet {
    pub(super) path: PathBuf,
    /// All entries with accounts; others only as far as they are declared.
    pub(super) acl: Option<Vec<Entry>>,
    /// The mode is declared too, so its group bits stay.
    pub(super) keeps_mode: bool,
    /// The attributes by name; none for one that must not exist.
    pub(super) xattrs: Option<Vec<(String, Option<String>)>>,
    pub(super) capabilities: Option<Capabilities>,
    /// Capabilities and access are also given to objects that others can have put there.
    pub(super) force: bool,
    /// The content is declared: a file that others can have open is written anew.
    pub(super) has_content: bool,
    /// The values are those of an undo. An absent object counts as converged: the undo may have removed it.
    /// Capabilities do not come back: the content of the program may be another one.
    pub(super) is_undo: bool,
    /// The whole access lists at the last look, for the history.
    pub(super) recorded_lists: Mutex<Option<String>>,
}

/// All extended attributes of an object, name and value.
type Found = [(Vec<u8>, Vec<u8>)];

/// Changes of extended attributes: the name, and the new value; none to remove the attribute.
type Changes<'a> = Vec<(&'a str, Option<Vec<u8>>)>;

fn value_of<'f>(found: &'f Found, name: &str) -> Option<&'f [u8]> {
    found.iter().find(|(own, _)| own == name.as_bytes()).map(|(_, value)| value.as_slice())
}

fn list_of(found: &Found, name: &str) -> Vec<Raw> {
    value_of(found, name).and_then(acl::decode).unwrap_or_default()
}

/// Returns the entries with accounts of both lists.
pub(super) fn entries_of(found: &Found) -> Vec<Entry> {
    let mut all = acl::shown(&list_of(found, ACCESS), &[], false);
    all.extend(acl::shown(&list_of(found, DEFAULT), &[], true));
    all
}

/// Returns the entries of both lists for a record.
fn recorded_lists(found: &Found) -> Vec<Entry> {
    let mut all = acl::recorded(&list_of(found, ACCESS), false);
    all.extend(acl::recorded(&list_of(found, DEFAULT), true));
    all
}

/// Returns attributes as JSON: null stands for an absent one.
pub(super) fn xattrs_text(all: &[(String, Option<String>)]) -> String {
    let entry = |(name, value): &(String, Option<String>)| {
        (name.clone(), value.clone().map_or(Tree::Null, Tree::Text))
    };
    to_json(&Tree::Map(all.iter().map(entry).collect()), None)
}

impl ExtendedSet {
    /// Returns the declared entries with the numbers of their accounts.
    fn numbered(&self, files: &Files) -> Result<Vec<(Entry, u32)>, Failure> {
        let entries = self.acl.iter().flatten();
        entries.map(|entry| Ok((entry.clone(), entry.number(files.accounts())?))).collect()
    }

    /// Reads the object; none if there is none.
    fn look(&self, files: &Files) -> Result<Option<(EntryStat, ExtendedAttributes)>, Fault> {
        let Some(spot) = files.open_entry(&self.path)? else { return Ok(None) };
        let Some(seen) = spot.look()? else { return Ok(None) };
        if !matches!(seen.kind, FileType::RegularFile | FileType::Directory) {
            let failure = said("read attributes of", &self.path, "no file and no directory");
            return Err(Fault::refused(failure.hint("remove the object at the path")));
        }
        Ok(Some((seen, spot.extended(&seen)?)))
    }

    fn values(&self, files: &Files) -> Result<FieldValues, Failure> {
        let found = self.look(files).map_err(|fault| files.failure(fault, &self.path))?;
        let Some((_, found)) = found else {
            if self.is_undo {
                return Ok(self.wanted());
            }
            let aspects = self.wanted().into_iter();
            return Ok(aspects.map(|(aspect, _)| (aspect, None)).collect());
        };
        let mut values = FieldValues::new();
        if self.acl.is_some() {
            let declared = self.numbered(files)?;
            let mut all = acl::shown(&list_of(&found, ACCESS), &declared, false);
            all.extend(acl::shown(&list_of(&found, DEFAULT), &declared, true));
            *self.recorded_lists.lock().unwrap_or_else(PoisonError::into_inner) =
                text_or_none(acl::text_of(recorded_lists(&found)));
            values.push((ACL, text_or_none(acl::text_of(all))));
        }
        if let Some(xattrs) = &self.xattrs {
            let present = xattrs.iter().map(|(name, _)| {
                let value = value_of(&found, name);
                (name.clone(), value.map(|value| String::from_utf8_lossy(value).into_owned()))
            });
            values.push((XATTRS, Some(xattrs_text(&present.collect::<Vec<_>>()))));
        }
        if self.capabilities.is_some() {
            let present = value_of(&found, capabilities::NAME).and_then(Capabilities::decode);
            values.push((CAPABILITIES, present.and_then(Capabilities::text)));
        }
        Ok(values)
    }

    /// Rejects capabilities of a file whose content others can have chosen, before the file is taken over.
    pub(super) fn guard_capabilities(
        &self,
        files: &Files,
        changes_hands: bool,
    ) -> Result<(), Failure> {
        let wanted = self.capabilities.filter(|wanted| wanted.text().is_some());
        let Some(wanted) = wanted.filter(|_| !self.force && !self.has_content) else {
            return Ok(());
        };
        let judge = || -> Result<(), Fault> {
            let Some((seen, found)) = self.look(files)? else { return Ok(()) };
            let Some(spot) = files.open_entry(&self.path)? else { return Ok(()) };
            let present = value_of(&found, capabilities::NAME).and_then(Capabilities::decode);
            if present == Some(wanted) && !changes_hands {
                return Ok(());
            }
            files.guard_privileges(&spot, &seen, None)
        };
        judge().map_err(|fault| files.failure(fault, &self.path))
    }

    fn change(
        &self,
        files: &Files,
        permit: &Permit,
        differing: &[&'static str],
    ) -> Result<(), WriteFailure> {
        let numbered = self.numbered(files).map_err(WriteFailure::untouched)?;
        self.put(files, permit, (&numbered, differing)).map_err(|fault| {
            let touched = fault.touched;
            WriteFailure { failure: files.failure(fault, &self.path), touched }
        })
    }

    /// Takes the rights of undeclared accounts off the access list, before the file changes: a mode that opens the
    /// mask of the list would give them these rights for a moment. Returns true if there were such rights.
    ///
    /// # Errors
    ///
    /// Fails if the object was replaced, the permit was revoked, or the kernel returned an error.
    pub(super) fn narrow(&self, files: &Files, permit: &Permit) -> Result<bool, WriteFailure> {
        if self.acl.is_none() {
            return Ok(false);
        }
        let numbered = self.numbered(files).map_err(WriteFailure::untouched)?;
        self.narrow_list(files, permit, &numbered).map_err(|fault| {
            let touched = fault.touched;
            WriteFailure { failure: files.failure(fault, &self.path), touched }
        })
    }

    fn narrow_list(
        &self,
        files: &Files,
        permit: &Permit,
        numbered: &[(Entry, u32)],
    ) -> Result<bool, Fault> {
        let Some((seen, found)) = self.look(files)? else { return Ok(false) };
        let present = list_of(&found, ACCESS);
        let narrowed = acl::narrowed(&present, numbered);
        if narrowed == present {
            return Ok(false);
        }
        let Some(spot) = files.open_entry(&self.path)? else { return Err(Fault::moved()) };
        if !self.force {
            files.guard_way(&spot)?;
        }
        let before = text_or_none(acl::text_of(recorded_lists(&found)));
        let record = permit.keeper_of(0).map(|keeper| {
            let number = keeper.keep_values(vec![(ACL, before)]);
            (keeper, number)
        });
        let list = acl::encode(narrowed.clone());
        let changes: [(&str, Option<&[u8]>); 1] = [(ACCESS, Some(&list))];
        let done = files.set_extended(permit, (&spot, &seen), (&changes, seen.mode));
        if let Some((keeper, number)) = record {
            let is_made = !matches!(&done, Err(fault) if !fault.touched);
            let after = if is_made { &narrowed } else { &present };
            let after = text_or_none(acl::text_of(acl::recorded(after, false)));
            keeper.settle_values(number, vec![(ACL, after)]);
        }
        done.map(|()| true)
    }

    /// Writes the aspects that differ: the access list first, which closes the object to others.
    fn put(
        &self,
        files: &Files,
        permit: &Permit,
        (numbered, differing): (&[(Entry, u32)], &[&'static str]),
    ) -> Result<(), Fault> {
        let Some(spot) = files.open_entry(&self.path)? else { return Err(Fault::moved()) };
        if !self.force {
            files.guard_way(&spot)?;
        }
        let mut touched = false;
        for aspect in [ACL, XATTRS, CAPABILITIES] {
            if !differing.contains(&aspect) {
                continue;
            }
            let write = || -> Result<(), Fault> {
                let Some(now) = self.look(files)? else { return Err(Fault::moved()) };
                let (changes, opened) = match aspect {
                    ACL => self.list_changes(files, &spot, (&now, numbered))?,
                    XATTRS => (self.attribute_changes(), now.0.mode),
                    _ => (self.capability_change(files, &spot, &now.0)?, now.0.mode),
                };
                let changes: Vec<_> =
                    changes.iter().map(|(name, value)| (*name, value.as_deref())).collect();
                files.set_extended(permit, (&spot, &now.0), (&changes, opened))
            };
            write().map_err(|fault| fault.after(touched))?;
            touched = true;
        }
        Ok(())
    }

    /// Returns the changes of the access lists, and the mode that gives others at least the rights of the list.
    fn list_changes(
        &self,
        files: &Files,
        spot: &PathEntry<'_>,
        ((seen, found), numbered): (&(EntryStat, ExtendedAttributes), &[(Entry, u32)]),
    ) -> Result<(Changes<'_>, u32), Fault> {
        let split = |is_default: bool| -> Vec<(Entry, u32)> {
            numbered.iter().filter(|(entry, _)| entry.is_default == is_default).cloned().collect()
        };
        let (own, default) = (split(false), split(true));
        let given = own.iter().chain(&default).filter(|(entry, _)| entry.tag != Tag::Owner);
        let rights = given.fold(0, |all, (entry, _)| all | u32::from(entry.rights));
        // A list that opens the object counts as a mode that opens it to others.
        let opened = seen.mode | rights;
        if !self.force {
            let wanted = Attributes { mode: Some(opened), ..Attributes::default() };
            files.guard_private(spot, seen, wanted)?;
            files.guard_moved(spot, seen, wanted)?;
        }
        let mode = (seen.mode, self.keeps_mode);
        // A list without accounts becomes the mode: the group gets its own rights back.
        let list = acl::build(&own, &list_of(found, ACCESS), mode);
        let mut changes: Changes<'_> = vec![(ACCESS, Some(acl::encode(list)))];
        if default.is_empty() {
            changes.extend(value_of(found, DEFAULT).map(|_| (DEFAULT, None)));
        } else {
            let list = acl::build(&default, &list_of(found, DEFAULT), (seen.mode, false));
            changes.push((DEFAULT, Some(acl::encode(list))));
        }
        Ok((changes, opened))
    }

    fn attribute_changes(&self) -> Changes<'_> {
        let bytes = |value: &Option<String>| value.as_ref().map(|value| value.as_bytes().to_vec());
        let all = self.xattrs.iter().flatten();
        all.map(|(name, value)| (name.as_str(), bytes(value))).collect()
    }

    fn capability_change(
        &self,
        files: &Files,
        spot: &PathEntry<'_>,
        seen: &EntryStat,
    ) -> Result<Changes<'_>, Fault> {
        let wanted = self.capabilities.unwrap_or_default();
        let text = wanted.text();
        if let Some(text) = text.as_ref().filter(|_| self.is_undo && files.is_root()) {
            let why = "its content was not recorded";
            let hint = format!("check the program, and then run setcap {text} by hand");
            return Err(Fault::refused(
                said("put back the capabilities of", &self.path, why).hint(hint),
            ));
        }
        if text.is_some() && !self.force {
            files.guard_privileges(spot, seen, None)?;
        }
        Ok(vec![(capabilities::NAME, text.map(|_| wanted.encode()))])
    }
}

fn text_or_none(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

impl ValueSet for ExtendedSet {
    fn complete_record(&self, before: &mut FieldValues) {
        let lists = self.recorded_lists.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, value)) = before.iter_mut().find(|(aspect, _)| *aspect == ACL) {
            *value = lists;
        }
    }

    fn wanted(&self) -> FieldValues {
        let acl = self.acl.clone().map(|entries| (ACL, text_or_none(acl::text_of(entries))));
        let xattrs = self.xattrs.as_ref().map(|all| (XATTRS, Some(xattrs_text(all))));
        let capabilities = self.capabilities.map(|it| (CAPABILITIES, it.text()));
        acl.into_iter().chain(xattrs).chain(capabilities).collect()
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        _cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        Box::pin(async move { self.values(host.files()) })
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(async move { self.change(host.files(), permit, differing) })
    }

    fn footprint(&self) -> Footprint {
        let need = |entry: &Entry| match entry.tag {
            Tag::User => Need::user(&entry.name, "has rights by the access list"),
            Tag::Group => Need::group(&entry.name, "has rights by the access list"),
            _ => None,
        };
        let requires = self.acl.iter().flatten().filter_map(need).collect();
        Footprint { requires, uses_only_files: true, ..Footprint::default() }
    }
}
