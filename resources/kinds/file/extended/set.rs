//! The declared access list, extended attributes and capabilities of one object, as named values.

use super::acl::{self, ACCESS, DEFAULT, Entry, Raw, Tag};
use super::capabilities::{self, Capabilities};
use crate::dependency::Need;
use crate::failure::Failure;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::{Attributes, EntryStat, ExtendedAttributes, Fault, Files, said};
use crate::parts::data::scalars::to_json;
use crate::parts::data::tree::Tree;
use crate::parts::{ValueSet, WriteFailure};
use crate::permit::Permit;
use crate::prior_state::FieldValues;
use crate::resource::Answer;
use rustix::fs::FileType;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// The aspect of the access list.
pub(super) const ACL: &str = "acl";
/// The aspect of the extended attributes.
pub(super) const XATTRS: &str = "xattrs";
/// The aspect of the capabilities.
pub(super) const CAPABILITIES: &str = "capabilities";

/// The declared values; none for an aspect that is not managed.
#[derive(Debug, Default)]
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
    /// An absent object counts as converged. An undo sets this: it may have removed the object.
    pub(super) skips_absent: bool,
}

/// All extended attributes of an object, name and value.
type Found = [(Vec<u8>, Vec<u8>)];

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
            let trouble = said("read attributes of", &self.path, "no file and no directory");
            return Err(Fault::refused(trouble.hint("remove the object at the path")));
        }
        Ok(Some((seen, spot.extended(&seen)?)))
    }

    fn values(&self, files: &Files) -> Result<FieldValues, Failure> {
        let found = self.look(files).map_err(|fault| files.trouble(fault, &self.path))?;
        let Some((_, found)) = found else {
            if self.skips_absent {
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

    fn change(
        &self,
        files: &Files,
        permit: &Permit,
        differing: &[&'static str],
    ) -> Result<(), WriteFailure> {
        let numbered = self.numbered(files).map_err(WriteFailure::untouched)?;
        self.put(files, permit, (&numbered, differing)).map_err(|fault| {
            let touched = fault.touched;
            WriteFailure { trouble: files.trouble(fault, &self.path), touched }
        })
    }

    fn put(
        &self,
        files: &Files,
        permit: &Permit,
        (numbered, differing): (&[(Entry, u32)], &[&'static str]),
    ) -> Result<(), Fault> {
        let Some((seen, found)) = self.look(files)? else { return Err(Fault::moved()) };
        let Some(spot) = files.open_entry(&self.path)? else { return Err(Fault::moved()) };
        if !self.force {
            files.guard_way(&spot)?;
        }
        let mut changes: Vec<(&str, Option<Vec<u8>>)> = Vec::new();
        if differing.contains(&ACL) {
            let split = |is_default: bool| -> Vec<(Entry, u32)> {
                numbered
                    .iter()
                    .filter(|(entry, _)| entry.is_default == is_default)
                    .cloned()
                    .collect()
            };
            let (own, default) = (split(false), split(true));
            if !self.force {
                let given = own.iter().chain(&default).filter(|(entry, _)| entry.tag != Tag::Owner);
                let rights = given.fold(0, |all, (entry, _)| all | u32::from(entry.rights));
                // A list that opens the object counts as a mode that opens it to others.
                let wanted = Attributes { mode: Some(seen.mode | rights), ..Attributes::default() };
                files.guard_private(&spot, &seen, wanted)?;
                files.guard_moved(&spot, &seen, wanted)?;
            }
            let mode = (seen.mode, self.keeps_mode);
            // A list without accounts becomes the mode: the group gets its own rights back.
            let list = acl::build(&own, &list_of(&found, ACCESS), mode);
            changes.push((ACCESS, Some(acl::encode(list))));
            if default.is_empty() {
                changes.extend(value_of(&found, DEFAULT).map(|_| (DEFAULT, None)));
            } else {
                let list = acl::build(&default, &list_of(&found, DEFAULT), (seen.mode, false));
                changes.push((DEFAULT, Some(acl::encode(list))));
            }
        }
        for (name, value) in self.xattrs.iter().flatten().filter(|_| differing.contains(&XATTRS)) {
            let value = value.as_ref().map(|value| value.as_bytes().to_vec());
            changes.push((name, value));
        }
        if let Some(wanted) = self.capabilities.filter(|_| differing.contains(&CAPABILITIES)) {
            if wanted.text().is_some() && !self.force {
                files.guard_privileges(&spot, &seen, None)?;
            }
            changes.push((capabilities::NAME, wanted.text().map(|_| wanted.encode())));
        }
        let changes: Vec<_> =
            changes.iter().map(|(name, value)| (*name, value.as_deref())).collect();
        files.set_extended(permit, (&spot, &seen), &changes)
    }
}

fn text_or_none(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

impl ValueSet for ExtendedSet {
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
