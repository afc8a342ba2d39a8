//! Compares the object, and everything below a directory, with the declaration; changes nothing.

use crate::change::{Change, CheckResult};
use crate::check_request::CheckRequest;
use crate::failure::Failure;
use crate::host::files::{AccountKind, Content, Entry, EntryStat, Fault, Files, Why, said};
use crate::host::input_trust::Reader;
use crate::kinds::file::File;
use crate::kinds::file::Shape;
use crate::kinds::file::check::compare::{Look, Want};
use crate::kinds::file::check::copy_digest::{Sum, state_of};
use crate::kinds::file::check::loss_digest;
use crate::kinds::file::check::plan::{Found, Plan, Premise};
use crate::kinds::file::declare::content::Body;
use crate::kinds::file::tree::walk::Tree;
use crate::secrets::secret_text::KeyedHashOf;
use rustix::fs::FileType;
use std::ffi::OsStr;
use tokio_util::sync::CancellationToken;

/// The size limit in bytes of a received text.
const SEALED_AT_MOST: usize = 16 << 20;

/// The number of attempts on an object that changes meanwhile.
const LOOKS: usize = 3;

impl File {
    pub(in crate::kinds::file) fn verdict(&self, files: &Files, ask: &CheckRequest) -> CheckResult {
        let known = match &self.shape {
            Shape::Regular(Body::Sealed(sealed)) => self.is_sealed_there(sealed, files),
            _ => Ok(()),
        };
        match known.and_then(|()| self.inspect(files, ask)) {
            Ok(None) => CheckResult::Same,
            Ok(Some(found)) => CheckResult::Differs(Change {
                premise_digest: found.premise_digest(),
                differences: found.differences,
                destructive: found.destructive,
                creates: found.premise.top.as_ref().is_some_and(|top| top.found.is_none()),
                replaces: found.premise.top.as_ref().is_some_and(Plan::replaces),
                premise: Box::new(found.premise),
            }),
            Err(failure) => CheckResult::Unknown(failure),
        }
    }

    /// Fails unless the present content matches a secret that is only known by its hash: such a content can be
    /// compared and not written.
    fn is_sealed_there(&self, sealed: &KeyedHashOf, files: &Files) -> Result<(), Failure> {
        let content = || -> Result<Option<Vec<u8>>, Fault> {
            let Some(origin) = files.origin(&self.path)? else { return Ok(None) };
            if origin.seen().kind != FileType::RegularFile {
                return Ok(None);
            }
            let mut content = Content::default();
            content.push(origin);
            content.bytes(SEALED_AT_MOST)
        };
        match content() {
            Ok(Some(bytes)) if sealed.is_of(&bytes) => Ok(()),
            Ok(_) => Err(said("restore", &self.path, "the former secret is not stored").hint(
                "`steadfast forget` of its sender makes a new secret; `saved: true` stores it",
            )),
            Err(fault) => Err(files.failure(fault, &self.path)),
        }
    }

    /// Repeats the comparison until nothing changes meanwhile.
    ///
    /// # Errors
    ///
    /// Returns a failure if the object could not be examined.
    pub(in crate::kinds::file) fn inspect(
        &self,
        files: &Files,
        ask: &CheckRequest,
    ) -> Result<Option<Found>, Failure> {
        let mut looks = 1;
        loop {
            match self.look(files, &ask.cancel) {
                Ok((found, state)) => {
                    if let Some(copies) = &ask.copies {
                        let differs = found.is_some();
                        self.report_copy_digest(files, (copies, state), (differs, &ask.cancel));
                    }
                    return Ok(found);
                }
                Err(fault) if matches!(fault.why, Why::Moved) && looks < LOOKS => looks += 1,
                Err(fault) => return Err(files.failure(fault, &self.path)),
            }
        }
    }

    /// Returns the differences, and the state of the copied sources.
    fn look(
        &self,
        files: &Files,
        cancel: &CancellationToken,
    ) -> Result<(Option<Found>, Sum), Fault> {
        let Some(spot) = files.open_entry(&self.path)? else {
            return match self.shape {
                Shape::Absent | Shape::IfThere { .. } => Ok((None, Sum::default())),
                Shape::Regular(_) | Shape::Directory(_) | Shape::Link(_) => {
                    Err(Fault::refused(Files::no_directory(&self.path)))
                }
            };
        };
        let content = self.content(files)?;
        let mut copied = content.as_ref().map(state_of).unwrap_or_default();
        let want = self.want(content.as_ref());
        let finding = Look { file: self, files, spot: &spot, want, cancel }.look()?;
        let below = if self.holds_below() {
            let there = spot.look()?.filter(|seen| seen.kind == FileType::Directory);
            let tree = Tree::new(self, files, cancel, None);
            let report = tree.hold(&spot, there.as_ref().map(|seen| (seen, seen.uid)))?;
            copied = report.origins;
            if finding.is_none() && report.is_empty() {
                let failed = report.faults.into_fault(files, &self.path);
                return failed.map_or(Ok((None, copied)), Err);
            }
            Some(report)
        } else {
            None
        };
        if finding.is_none() && below.is_none() {
            return Ok((None, copied));
        }
        self.guard_place(files, &spot)?;
        let mut below = below;
        let differs = below.as_mut().map(|report| std::mem::take(&mut report.below));
        let mut found = Found {
            premise: Premise {
                top: None,
                below: differs.unwrap_or_default(),
                origins: origins(content.as_ref()),
            },
            differences: Vec::new(),
            destructive: false,
            lost: None,
        };
        if let Some(finding) = finding {
            let lost = finding.plan.found.filter(|_| finding.destructive);
            found.lost = lost.map(|seen| loss_digest::digest(&spot, &seen, cancel)).transpose()?;
            found.premise.top = Some(finding.plan);
            found.differences = finding.differences;
            found.destructive = finding.destructive;
        }
        if let Some(report) = below {
            found.destructive |= report.destructive;
            found.differences.extend(report.differences(files));
        }
        Ok((Some(found), copied))
    }

    /// Rejects a change below a closed directory that another user can have moved to its name. `force` consents to
    /// it, except for a removal: `force` there means the loss of what the declared object holds.
    pub(in crate::kinds::file) fn guard_place(
        &self,
        files: &Files,
        spot: &Entry<'_>,
    ) -> Result<(), Fault> {
        if self.force {
            let is_removal = matches!(self.shape, Shape::Absent);
            return if is_removal { files.guard_way(spot) } else { Ok(()) };
        }
        files.guard_file(spot, self.owner_number(files))
    }

    /// Returns the declared content in its present state.
    pub(in crate::kinds::file) fn content(
        &self,
        files: &Files,
    ) -> Result<Option<Content<'_>>, Fault> {
        match &self.shape {
            Shape::Regular(body) => body.content(files, &|| self.reader(files)),
            Shape::Directory(_) | Shape::Link(_) | Shape::Absent | Shape::IfThere { .. } => {
                Ok(None)
            }
        }
    }

    /// Returns the user on whose behalf sources are read. The declared owner could change the copy anyway, so
    /// that user may also change the source.
    pub(in crate::kinds::file) fn reader(&self, files: &Files) -> Reader {
        Reader::here().on_behalf_of(self.owner_number(files)).with_consent(self.force)
    }

    /// Returns the number of the declared owner; none also for an unknown one, whose change fails later.
    fn owner_number(&self, files: &Files) -> Option<u32> {
        let number = |owner: &String| files.accounts().number(AccountKind::User, owner).ok();
        self.owner.as_ref().and_then(number)
    }

    /// Returns the object that must be at the path.
    pub(in crate::kinds::file) fn want<'a>(&'a self, content: Option<&'a Content<'a>>) -> Want<'a> {
        match &self.shape {
            Shape::Regular(_) => Want::Regular(content),
            Shape::Directory(_) => Want::Directory(None),
            Shape::Link(target) => Want::Link(OsStr::new(target)),
            Shape::Absent => Want::Absent,
            Shape::IfThere { is_directory } => Want::IfThere { is_directory: *is_directory },
        }
    }

    /// Returns true if the resource manages anything below its path.
    pub(in crate::kinds::file) fn holds_below(&self) -> bool {
        matches!(self.shape, Shape::Directory(_)) && (self.rare().recurse || self.rare().purge)
    }
}

/// Returns the state of all copied sources.
pub(in crate::kinds::file) fn origins(content: Option<&Content<'_>>) -> Vec<EntryStat> {
    content.into_iter().flat_map(Content::origins).map(|origin| *origin.seen()).collect()
}
