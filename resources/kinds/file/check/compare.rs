//! Compares one object with its declaration, with few reads and no change.

use crate::change::Difference;
use crate::host::files::{
    AccountKind, Attributes, Comparison, Content, Entry, EntryStat, Fault, Files, SET_ID, SET_UID,
    account_name, denies_others, is_temporary, printable, said,
};
use crate::kinds::file::File;
use crate::kinds::file::OldContent;
use crate::kinds::file::check::diff;
use crate::kinds::file::check::end_state::{End, SourceMode};
use crate::kinds::file::check::plan::{Finding, Plan, Work};
use crate::secrets::hidden_difference::hidden_difference;
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The object that must be at a path.
#[derive(Clone, Copy, Debug)]
pub(in crate::kinds::file) enum Want<'a> {
    /// A regular file, with this content if one is declared.
    Regular(Option<&'a Content<'a>>),
    /// A directory; a new one gets the mode of its source, if there is one, before the declared changes of mode.
    Directory(Option<SourceMode>),
    /// A symbolic link with this target.
    Link(&'a OsStr),
    /// No object.
    Absent,
    /// Any object except a link, or none.
    IfThere { is_directory: bool },
    /// Any object, including a link.
    Whatever {
        /// Only the owner can have moved the object into the tree.
        is_in_place: bool,
    },
}

/// The comparison of one object.
#[derive(Clone, Copy)]
pub(in crate::kinds::file) struct Look<'a> {
    pub(in crate::kinds::file) file: &'a File,
    pub(in crate::kinds::file) files: &'a Files,
    pub(in crate::kinds::file) spot: &'a Entry<'a>,
    pub(in crate::kinds::file) want: Want<'a>,
    pub(in crate::kinds::file) cancel: &'a CancellationToken,
}

impl Look<'_> {
    /// Returns the finding if anything differs.
    pub(in crate::kinds::file) fn look(&self) -> Result<Option<Finding>, Fault> {
        let found = self.spot.look()?;
        let finding = match found {
            None => self.create(None, false)?,
            Some(seen) => self.something_there(seen)?,
        };
        if let (Some(finding), Some(seen)) = (&finding, &found)
            && seen.kind == FileType::RegularFile
            && matches!(finding.plan.work, Work::Write { .. } | Work::Attributes(_))
        {
            self.files.guard_links(self.spot, seen)?;
        }
        Ok(finding)
    }

    fn something_there(&self, seen: EntryStat) -> Result<Option<Finding>, Fault> {
        match (self.want, seen.kind) {
            (Want::Absent, kind) => {
                self.files.guard_removal(self.spot, &seen)?;
                if kind == FileType::Directory && !self.file.force && !self.spot.is_empty()? {
                    return Err(self.refuse("remove", "the directory is not empty"));
                }
                self.files.guard_emptying(self.spot, &seen)?;
                Ok(Some(Finding {
                    plan: Plan { found: Some(seen), clear: true, work: Work::Remove },
                    differences: [state(word(kind), "absent")]
                        .into_iter()
                        .chain(self.unrecorded_content(&seen))
                        .collect(),
                    destructive: true,
                }))
            }
            (Want::Regular(content), FileType::RegularFile) => self.file_there(&seen, content),
            (Want::Link(target), FileType::Symlink) => self.link_there(&seen, target),
            (Want::IfThere { .. }, FileType::Symlink) => Err(Fault::refused(
                said("manage", self.spot.path(), "the path is a link, and links are not followed")
                    .hint("declare the target path of the link, or use symlink"),
            )),
            (Want::IfThere { is_directory: true }, kind) if kind != FileType::Directory => {
                let why = format!("expected a directory, found a {}", word(kind));
                Err(Fault::refused(said("manage", self.spot.path(), &why)))
            }
            (Want::Directory(_), FileType::Directory)
            | (Want::IfThere { .. } | Want::Whatever { .. }, _) => self.attributes_of(&seen),
            (Want::Regular(_) | Want::Link(_) | Want::Directory(_), kind) => {
                self.may_go(&seen)?;
                let in_one_step =
                    kind != FileType::Directory && !matches!(self.want, Want::Directory(_));
                self.create(Some(seen), !in_one_step)
            }
        }
    }

    /// Rejects the loss of an object of another type: empty objects may go, anything else needs `force`.
    fn may_go(&self, seen: &EntryStat) -> Result<(), Fault> {
        if self.file.rare().claims.are_below(self.spot.path()) {
            return Err(Fault::refused(
                said(
                    "replace",
                    self.spot.path(),
                    "another resource declares a path below the directory",
                )
                .hint("exclude the path from this tree, or remove that resource"),
            ));
        }
        if self.file.force {
            self.files.guard_removal(self.spot, seen)?;
            return self.files.guard_emptying(self.spot, seen);
        }
        let holds = match seen.kind {
            FileType::Symlink => return Ok(()),
            FileType::RegularFile if seen.size == 0 => return Ok(()),
            FileType::RegularFile => "a file with content exists",
            FileType::Directory if self.spot.is_empty()? => return Ok(()),
            FileType::Directory => "a directory that is not empty exists",
            _ => "a socket, fifo or device exists",
        };
        Err(self.refuse("replace", holds))
    }

    /// Returns the difference of an irrecoverable loss: a sensitive content (S-6) without a declared backup.
    fn unrecorded_content(&self, seen: &EntryStat) -> Option<Difference> {
        let holds = seen.kind == FileType::RegularFile && seen.size > 0;
        let is_kept = self.file.rare().backup.is_some();
        let is_unrecorded = self.is_unrecorded(seen.mode, Some(seen.mode));
        (holds && !is_kept && is_unrecorded).then(diff::unrecorded_content)
    }

    fn refuse(&self, doing: &str, why: &str) -> Fault {
        Fault::refused(
            said(doing, self.spot.path(), why)
                .hint("move the object away, or set force: true if it may be lost"),
        )
    }

    /// Plans a new object, in an empty place or instead of another one.
    fn create(&self, found: Option<EntryStat>, clear: bool) -> Result<Option<Finding>, Fault> {
        let declared = self.declared()?;
        let (mode, is) = match self.want {
            Want::Absent | Want::IfThere { .. } | Want::Whatever { .. } => return Ok(None),
            Want::Regular(content) => {
                (Some(self.file.mode_over(self.file.creation_mode(content), false)), "file")
            }
            Want::Directory(born) => {
                (self.directory_mode(born.map(SourceMode::creation_mode)), "directory")
            }
            Want::Link(_) => (None, "symlink"),
        };
        let from = found.map_or("absent", |seen| word(seen.kind));
        let mut differences = vec![state(from, is)];
        differences.extend(found.and_then(|seen| self.unrecorded_content(&seen)));
        let work = match self.want {
            Want::Regular(content) => {
                let mode = mode.unwrap_or_else(|| self.file.creation_mode(content));
                if let Some(content) = content.filter(|content| content.size() > 0) {
                    differences.push(if self.is_secret(mode, None) {
                        hidden_difference("content")
                    } else {
                        let new = content.bytes(diff::SHOWN_AT_MOST)?;
                        diff::content(None, Some(b""), (content.size(), new.as_deref()))
                    });
                }
                Work::Write { attributes: declared, mode }
            }
            Want::Link(target) => {
                differences.push(symlink(String::new(), target));
                Work::Link(declared)
            }
            _ => Work::Directory(Attributes { mode, ..declared }),
        };
        self.show_declared(&mut differences, mode);
        let destructive = found.is_some();
        Ok(Some(Finding { plan: Plan { found, clear, work }, differences, destructive }))
    }

    fn directory_mode(&self, born: Option<u32>) -> Option<u32> {
        match (&self.file.mode, born) {
            (Some(_), born) => Some(self.file.mode_over(born.unwrap_or(0o755), true)),
            (None, born) => born,
        }
    }

    /// Appends the declared attributes of a new object.
    fn show_declared(&self, differences: &mut Vec<Difference>, mode: Option<u32>) {
        let texts = [
            ("owner", self.file.owner.clone()),
            ("group", self.file.group.clone()),
            ("mode", mode.map(octal)),
        ];
        for (aspect, text) in texts {
            if let Some(to) = text {
                differences.push(Difference { aspect, from: String::new(), to, diff: None });
            }
        }
    }

    fn file_there(
        &self,
        seen: &EntryStat,
        content: Option<&Content<'_>>,
    ) -> Result<Option<Finding>, Fault> {
        // With `replace: false`, the content of an existing file is not managed.
        let content = content.filter(|_| self.file.rare().replace);
        let Some(content) = content else { return self.attributes_of(seen) };
        let mut end = self.end(seen, Some(content))?;
        let (drift, mut differences) = self.drift(seen, &end);
        let mode = self.file.mode_over(end.base, false);
        let after = Attributes { mode: Some(mode), ..end.declared };
        let is_open = self.files.may_be_open(self.spot, seen, after);
        // Set-id bits go only to an inode that this run writes.
        let is_privileged = self.files.is_root() && mode & SET_ID & !seen.mode != 0;
        let compared = match content.size() {
            size if size != seen.size => Comparison::Different,
            0 if self.files.is_marked_open(self.spot, seen) => Comparison::EqualInMarkedFile,
            0 => Comparison::Equal,
            _ => self.compare(seen, content, is_open)?,
        };
        if compared == Comparison::Equal && !is_open && !is_privileged {
            return Ok(attributes_work(seen, drift, differences));
        }
        let owner = end.declared.owner.or(Some(seen.uid));
        end.base = self.files.mode_once_replaced(self.spot, seen, (end.base, owner))?;
        (_, differences) = self.drift(seen, &end);
        if compared == Comparison::Different {
            let mode = self.file.mode_over(end.base, false);
            differences.insert(0, self.content_difference(seen, content, mode)?);
        }
        if differences.is_empty() {
            differences.push(diff::open_elsewhere());
        }
        Ok(Some(self.write_anew(seen, &end, differences)))
    }

    /// Plans a new file in place of the found one.
    fn write_anew(&self, seen: &EntryStat, end: &End, differences: Vec<Difference>) -> Finding {
        let attributes = Attributes {
            owner: end.declared.owner.or(Some(seen.uid)),
            group: end.declared.group.or_else(|| end.keeps_group.then_some(seen.gid)),
            mode: None,
        };
        let work = Work::Write { attributes, mode: self.file.mode_over(end.base, false) };
        let plan = Plan { found: Some(*seen), clear: false, work };
        Finding { plan, differences, destructive: false }
    }

    /// Compares the content. A file that will be rewritten in any case need not be readable.
    fn compare(
        &self,
        seen: &EntryStat,
        content: &Content<'_>,
        is_open: bool,
    ) -> Result<Comparison, Fault> {
        let known = &self.file.rare().known;
        let pair = known.as_ref().and_then(|known| known.pair(self.spot.path(), seen, content));
        if let (Some(known), Some(pair)) = (known, pair)
            && known.are_equal(pair)
        {
            return Ok(Comparison::Equal);
        }
        let own = self.files.owns(seen);
        let readable_then = self.file.mode_over(seen.mode, false) & 0o400 != 0;
        let compared = match self.spot.compare(seen, content, self.cancel) {
            // The owner may rewrite the file despite its mode; the declared mode makes the file readable.
            Err(fault) if own && readable_then && fault.is_denied() => {
                return Ok(Comparison::Different);
            }
            // The owner of the file may hold a lease on it.
            Err(fault)
                if fault.errno().is_some()
                    && (is_open || self.files.is_marked_open(self.spot, seen)) =>
            {
                return Ok(Comparison::Different);
            }
            answer => answer?,
        };
        // The result is cached only if the object has not changed during the comparison.
        if let (Comparison::Equal, Some(known), Some(pair)) = (compared, known, pair)
            && self.spot.look()?.as_ref() == Some(seen)
        {
            known.note(pair);
        }
        Ok(compared)
    }

    fn link_there(&self, seen: &EntryStat, target: &OsStr) -> Result<Option<Finding>, Fault> {
        let old = self.spot.target()?;
        let end = self.end(seen, None)?;
        let declared = end.declared;
        // An old link would not be followed: root makes it again.
        let owner = declared.owner.unwrap_or(seen.uid);
        if old == target.as_bytes() && !self.files.is_old_link(self.spot, owner) {
            return self.attributes_of(seen);
        }
        let (_, mut differences) = self.drift(seen, &end);
        differences.insert(0, symlink(printable(Path::new(OsStr::from_bytes(&old))), target));
        let attributes = Attributes {
            owner: declared.owner.or(Some(seen.uid)),
            group: declared.group.or(Some(seen.gid)),
            mode: None,
        };
        let plan = Plan { found: Some(*seen), clear: false, work: Work::Link(attributes) };
        Ok(Some(Finding { plan, differences, destructive: false }))
    }

    fn attributes_of(&self, seen: &EntryStat) -> Result<Option<Finding>, Fault> {
        let end = self.end(seen, None)?;
        let (drift, differences) = self.drift(seen, &end);
        if differences.is_empty() {
            return Ok(None);
        }
        let is_empty = matches!(self.want, Want::Regular(None))
            && seen.kind == FileType::RegularFile
            && seen.size == 0;
        let after = Attributes { mode: Some(self.file.mode_over(end.base, false)), ..end.declared };
        if is_empty && self.files.may_be_open(self.spot, seen, after) {
            return Ok(Some(self.write_anew(seen, &end, differences)));
        }
        self.files.guard_links(self.spot, seen)?;
        if !self.file.force {
            let wanted = Attributes { owner: end.declared.owner, ..drift };
            self.files.guard_private(self.spot, seen, wanted)?;
            match self.want {
                Want::Whatever { is_in_place: true } => {}
                _ => self.files.guard_moved(self.spot, seen, wanted)?,
            }
            if matches!(self.want, Want::IfThere { .. }) {
                self.files.guard_given(self.spot, seen, wanted)?;
            }
            // The owner may choose the program that gets the owner's rights, but not the one that gets those of a
            // group.
            let set_id = after.mode.unwrap_or_default() & SET_ID;
            if set_id != 0 {
                let owner = end.declared.owner.or(Some(seen.uid)).filter(|_| set_id == SET_UID);
                self.files.guard_privileges(self.spot, seen, owner)?;
            }
        }
        Ok(attributes_work(seen, drift, differences))
    }

    /// Returns the declared owner and group as numbers of this host.
    pub(in crate::kinds::file) fn declared(&self) -> Result<Attributes, Fault> {
        let number = |kind, text: &Option<String>| {
            let accounts = self.files.accounts();
            text.as_deref().map(|text| accounts.number(kind, text)).transpose()
        };
        Ok(Attributes {
            owner: number(AccountKind::User, &self.file.owner).map_err(Fault::refused)?,
            group: number(AccountKind::Group, &self.file.group).map_err(Fault::refused)?,
            mode: None,
        })
    }

    /// Returns the attributes that differ, with the differences for display.
    pub(in crate::kinds::file) fn drift(
        &self,
        seen: &EntryStat,
        end: &End,
    ) -> (Attributes, Vec<Difference>) {
        let mut differences = Vec::new();
        let mut show = |aspect, from: String, to: String| {
            differences.push(Difference { aspect, from, to, diff: None });
        };
        let name = |kind, id, text: &Option<String>| {
            text.clone().unwrap_or_else(|| account_name(kind, id))
        };
        let owner = end.declared.owner.filter(|uid| *uid != seen.uid);
        if let Some(uid) = owner {
            let from = account_name(AccountKind::User, seen.uid);
            show("owner", from, name(AccountKind::User, uid, &self.file.owner));
        }
        let group = end.declared.group.filter(|gid| *gid != seen.gid);
        if let Some(gid) = group {
            let from = account_name(AccountKind::Group, seen.gid);
            show("group", from, name(AccountKind::Group, gid, &self.file.group));
        }
        let is_directory = seen.kind == FileType::Directory;
        let has_mode = seen.kind != FileType::Symlink;
        let wanted = has_mode.then(|| self.file.mode_over(end.base, is_directory));
        let differs = wanted.filter(|mode| *mode != seen.mode);
        if let Some(mode) = differs {
            show("mode", octal(seen.mode), octal(mode));
        }
        // A change of owner or group clears the set-id bits, so the declared mode must be set again.
        let lost = wanted.filter(|mode| (owner.is_some() || group.is_some()) && mode & SET_ID != 0);
        (Attributes { owner, group, mode: differs.or(lost) }, differences)
    }

    /// Returns true if the history must not store the content. A declared `sensitive: false` overrides the mode.
    /// A leftover under a temporary name of this program may contain anything, so it is never stored.
    pub(in crate::kinds::file) fn is_unrecorded(&self, mode: u32, now: Option<u32>) -> bool {
        if is_temporary(self.spot.name()) {
            return true;
        }
        self.file.rare().old_content != OldContent::Recorded && self.is_secret(mode, now)
    }
}

/// Plans a change of attributes of an object that stays; none if no attribute differs.
fn attributes_work(
    seen: &EntryStat,
    drift: Attributes,
    differences: Vec<Difference>,
) -> Option<Finding> {
    let plan = Plan { found: Some(*seen), clear: false, work: Work::Attributes(drift) };
    let finding = Finding { plan, differences, destructive: false };
    (!finding.differences.is_empty()).then_some(finding)
}

impl File {
    pub(in crate::kinds::file) fn mode_over(&self, now: u32, is_directory: bool) -> u32 {
        let Some(mode) = &self.mode else { return now };
        let bits = mode.over(now, is_directory);
        if !self.rare().recurse {
            return bits;
        }
        if !is_directory {
            // Set-id bits of a tree are for its directories: they pass the group on. A program needs its own line.
            return bits & !SET_ID;
        }
        // One number cannot fit files and directories: in a tree, a reader of a directory may also enter it.
        if mode.is_exact() { bits | ((bits & 0o444) >> 2) } else { bits }
    }
}

impl Content<'_> {
    pub(in crate::kinds::file) fn denies_others(&self) -> bool {
        self.origins().any(|origin| denies_others(origin.seen().mode))
    }
}

pub(in crate::kinds::file) fn state(from: &str, to: &str) -> Difference {
    Difference { aspect: "state", from: from.into(), to: to.into(), diff: None }
}

fn symlink(from: String, to: &OsStr) -> Difference {
    Difference { aspect: "symlink", from, to: printable(Path::new(to)), diff: None }
}

pub(in crate::kinds::file) fn octal(mode: u32) -> String {
    format!("{mode:04o}")
}

pub(in crate::kinds::file) fn word(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
        FileType::CharacterDevice | FileType::BlockDevice => "device",
        FileType::Unknown => "unknown",
    }
}
