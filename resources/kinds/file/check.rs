//! What is there against what is declared: nothing is changed, and little is read.

use super::diff;
use super::plan::{Finding, Plan, Work};
use super::{File, Shape};
use crate::change::{Change, Difference, Verdict};
use crate::host::files::{
    AccountKind, Attributes, Fault, Files, Seen, Spot, Why, account_name, printable, said,
};
use crate::trouble::Trouble;
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// What a new file has when nothing is declared.
const FILE_MODE: u32 = 0o644;

/// How often it is looked again at something that moves.
const LOOKS: usize = 3;

impl File {
    pub(super) fn verdict(&self, files: &Files, cancel: &CancellationToken) -> Verdict {
        match self.inspect(files, cancel) {
            Ok(None) => Verdict::Same,
            Ok(Some(finding)) => Verdict::Differs(Change {
                differences: finding.differences,
                destructive: finding.destructive,
                premise: Box::new(finding.plan),
            }),
            Err(trouble) => Verdict::Unknown(trouble),
        }
    }

    /// Looks until it stands still; what could not be looked at is told in words.
    pub(super) fn inspect(
        &self,
        files: &Files,
        cancel: &CancellationToken,
    ) -> Result<Option<Finding>, Trouble> {
        let mut looks = 1;
        loop {
            match self.look(files, cancel) {
                Ok(finding) => return Ok(finding),
                Err(fault) if matches!(fault.why, Why::Moved) && looks < LOOKS => looks += 1,
                Err(fault) => return Err(files.trouble(fault, &self.path)),
            }
        }
    }

    fn look(&self, files: &Files, cancel: &CancellationToken) -> Result<Option<Finding>, Fault> {
        let Some(spot) = files.spot(&self.path)? else {
            return match self.shape {
                Shape::Absent | Shape::IfThere { .. } => Ok(None),
                Shape::Regular(_) | Shape::Directory | Shape::Link(_) => {
                    Err(Fault::refused(Files::no_directory(&self.path)))
                }
            };
        };
        let found = spot.look()?;
        let look = Look { file: self, files, spot: &spot, cancel };
        let finding = match found {
            None => look.nothing_there()?,
            Some(seen) => look.something_there(seen)?,
        };
        if let (Some(finding), Some(seen)) = (&finding, &found)
            && matches!(finding.plan.work, Work::Write { .. } | Work::Attributes(_))
        {
            files.guard_links(&spot, seen)?;
        }
        Ok(finding)
    }
}

/// One look at one spot.
struct Look<'a> {
    file: &'a File,
    files: &'a Files,
    spot: &'a Spot<'a>,
    cancel: &'a CancellationToken,
}

impl Look<'_> {
    fn nothing_there(&self) -> Result<Option<Finding>, Fault> {
        self.create(None, false)
    }

    fn something_there(&self, seen: Seen) -> Result<Option<Finding>, Fault> {
        let forced = self.file.force;
        match (&self.file.shape, seen.kind) {
            (Shape::Absent, kind) => {
                if kind == FileType::Directory && !forced && !self.spot.is_empty()? {
                    return Err(self.refuse("remove", "the directory is not empty"));
                }
                Ok(Some(Finding {
                    plan: Plan { found: Some(seen), clear: true, work: Work::Remove },
                    differences: vec![state(word(kind), "absent")],
                    destructive: true,
                }))
            }
            (Shape::Regular(content), FileType::RegularFile) => {
                self.file_there(&seen, content.as_deref())
            }
            (Shape::Link(target), FileType::Symlink) => self.link_there(&seen, target),
            (Shape::IfThere { .. }, FileType::Symlink) => Err(Fault::refused(
                said("manage", self.spot.path(), "it is a link, which is not followed")
                    .hint("declare the path that the link means, or symlink"),
            )),
            (Shape::IfThere { is_directory: true }, kind) if kind != FileType::Directory => {
                let why = format!("expected a directory, found a {}", word(kind));
                Err(Fault::refused(said("manage", self.spot.path(), &why)))
            }
            (Shape::Directory, FileType::Directory) | (Shape::IfThere { .. }, _) => {
                self.attributes_of(&seen)
            }
            (Shape::Regular(_) | Shape::Link(_) | Shape::Directory, kind) => {
                self.may_go(&seen)?;
                let in_one_step =
                    kind != FileType::Directory && !matches!(self.file.shape, Shape::Directory);
                self.create(Some(seen), !in_one_step)
            }
        }
    }

    /// Whether a thing of another type may go: what holds nothing may, anything else wants `force`.
    fn may_go(&self, seen: &Seen) -> Result<(), Fault> {
        if self.file.force {
            return Ok(());
        }
        let holds = match seen.kind {
            FileType::Symlink => return Ok(()),
            FileType::RegularFile if seen.size == 0 => return Ok(()),
            FileType::RegularFile => "a file with content is there",
            FileType::Directory if self.spot.is_empty()? => return Ok(()),
            FileType::Directory => "a directory that is not empty is there",
            _ => "a socket, fifo or device is there",
        };
        Err(self.refuse("replace", holds))
    }

    fn refuse(&self, doing: &str, why: &str) -> Fault {
        Fault::refused(
            said(doing, self.spot.path(), why)
                .hint("move it away, or write force: true if it may be lost"),
        )
    }

    /// A new thing, in the place of another or of nothing.
    fn create(&self, found: Option<Seen>, clear: bool) -> Result<Option<Finding>, Fault> {
        let declared = self.declared()?;
        let (mode, is) = match &self.file.shape {
            Shape::Absent | Shape::IfThere { .. } => return Ok(None),
            Shape::Regular(_) => (Some(self.mode_over(FILE_MODE, false)), "file"),
            Shape::Directory => {
                (self.file.mode.as_ref().map(|mode| mode.over(0o755, true)), "directory")
            }
            Shape::Link(_) => (None, "symlink"),
        };
        let from = found.map_or("absent", |seen| word(seen.kind));
        let mut differences = vec![state(from, is)];
        let work = match &self.file.shape {
            Shape::Regular(content) => {
                let mode = mode.unwrap_or(FILE_MODE);
                if let Some(content) = content.as_deref().filter(|content| !content.is_empty()) {
                    differences.push(if self.is_secret(mode, None) {
                        diff::secret()
                    } else {
                        diff::content(None, Some(b""), content.as_bytes())
                    });
                }
                Work::Write { attributes: declared, mode }
            }
            Shape::Link(target) => {
                differences.push(symlink(String::new(), target));
                Work::Link(declared)
            }
            _ => Work::Directory(Attributes { mode, ..declared }),
        };
        self.show_declared(&mut differences, mode);
        let destructive = found.is_some();
        Ok(Some(Finding { plan: Plan { found, clear, work }, differences, destructive }))
    }

    /// The attributes of a new thing, as they will be shown.
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

    fn file_there(&self, seen: &Seen, content: Option<&str>) -> Result<Option<Finding>, Fault> {
        let Some(content) = content else { return self.attributes_of(seen) };
        let same_size = seen.size == content.len() as u64;
        // An empty file needs no reading.
        let same = same_size
            && (content.is_empty() || self.spot.holds(content.as_bytes(), self.cancel)?);
        if same {
            return self.attributes_of(seen);
        }
        let declared = self.declared()?;
        let (_, mut differences) = self.drift(seen, declared);
        let kept = seen.kept_mode(declared.owner, declared.group);
        let mode = self.mode_over(kept, false);
        let shown = if self.is_secret(mode, Some(seen.mode)) {
            diff::secret()
        } else {
            let old = if seen.size <= diff::SHOWN_AT_MOST as u64 {
                // A file that may be written and not read is replaced all the same.
                self.spot.content(diff::SHOWN_AT_MOST).unwrap_or_default()
            } else {
                None
            };
            diff::content(Some(seen.size), old.as_deref(), content.as_bytes())
        };
        differences.insert(0, shown);
        let attributes = Attributes {
            owner: declared.owner.or(Some(seen.uid)),
            group: declared.group.or(Some(seen.gid)),
            mode: None,
        };
        let work = Work::Write { attributes, mode };
        let plan = Plan { found: Some(*seen), clear: false, work };
        Ok(Some(Finding { plan, differences, destructive: false }))
    }

    fn link_there(&self, seen: &Seen, target: &str) -> Result<Option<Finding>, Fault> {
        let old = self.spot.target()?;
        if old == target.as_bytes() {
            return self.attributes_of(seen);
        }
        let declared = self.declared()?;
        let (_, mut differences) = self.drift(seen, declared);
        differences.insert(0, symlink(printable(Path::new(OsStr::from_bytes(&old))), target));
        let attributes = Attributes {
            owner: declared.owner.or(Some(seen.uid)),
            group: declared.group.or(Some(seen.gid)),
            mode: None,
        };
        let plan = Plan { found: Some(*seen), clear: false, work: Work::Link(attributes) };
        Ok(Some(Finding { plan, differences, destructive: false }))
    }

    fn attributes_of(&self, seen: &Seen) -> Result<Option<Finding>, Fault> {
        let (drift, differences) = self.drift(seen, self.declared()?);
        if differences.is_empty() {
            return Ok(None);
        }
        let plan = Plan { found: Some(*seen), clear: false, work: Work::Attributes(drift) };
        Ok(Some(Finding { plan, differences, destructive: false }))
    }

    /// Owner and group as numbers of this host.
    fn declared(&self) -> Result<Attributes, Fault> {
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

    /// Which attributes differ, and how that is shown.
    fn drift(&self, seen: &Seen, declared: Attributes) -> (Attributes, Vec<Difference>) {
        let mut differences = Vec::new();
        let mut show = |aspect, from: String, to: String| {
            differences.push(Difference { aspect, from, to, diff: None });
        };
        let owner = declared.owner.filter(|uid| *uid != seen.uid);
        if let (Some(_), Some(text)) = (owner, &self.file.owner) {
            show("owner", account_name(AccountKind::User, seen.uid), text.clone());
        }
        let group = declared.group.filter(|gid| *gid != seen.gid);
        if let (Some(_), Some(text)) = (group, &self.file.group) {
            show("group", account_name(AccountKind::Group, seen.gid), text.clone());
        }
        let is_directory = seen.kind == FileType::Directory;
        let has_mode = seen.kind != FileType::Symlink;
        let wanted = self.file.mode.as_ref().map(|mode| mode.over(seen.mode, is_directory));
        let differs = wanted.filter(|mode| has_mode && *mode != seen.mode);
        if let Some(mode) = differs {
            show("mode", octal(seen.mode), octal(mode));
        }
        // A change of hands takes set-id bits away, which a declared mode wants back.
        let lost = wanted.filter(|mode| (owner.is_some() || group.is_some()) && mode & 0o6000 != 0);
        (Attributes { owner, group, mode: differs.or(lost) }, differences)
    }

    fn mode_over(&self, now: u32, is_directory: bool) -> u32 {
        self.file.mode.as_ref().map_or(now, |mode| mode.over(now, is_directory))
    }

    /// Whether nothing of the content may be shown: said so, or denied to others by a mode (S-19).
    fn is_secret(&self, mode: u32, now: Option<u32>) -> bool {
        let denies_others = |mode: u32| mode & 0o004 == 0;
        self.file.sensitive || denies_others(mode) || now.is_some_and(denies_others)
    }
}

fn state(from: &str, to: &str) -> Difference {
    Difference { aspect: "state", from: from.into(), to: to.into(), diff: None }
}

fn symlink(from: String, to: &str) -> Difference {
    Difference { aspect: "symlink", from, to: printable(Path::new(to)), diff: None }
}

pub(super) fn octal(mode: u32) -> String {
    format!("{mode:04o}")
}

fn word(kind: FileType) -> &'static str {
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
