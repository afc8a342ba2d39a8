//! Manages everything below a directory: copies from a source, sets attributes, and purges undeclared
//! objects.
//!
//! One walk serves both the check, which only records, and the apply. The walk goes through directory
//! descriptors, never across a mount and never through a link. It stores only the names in the directories on
//! its present path.

use crate::host::files::{
    Content, DirWalk, Entered, Entry, EntryStat, Fault, Files, Why, is_temporary, said,
};
use crate::host::input_trust::Reader;
use crate::kinds::file::File;
use crate::kinds::file::Shape;
use crate::kinds::file::apply::steps::Hands;
use crate::kinds::file::check::compare::{Look, Want, word};
use crate::kinds::file::check::copy_digest::Sum;
use crate::kinds::file::check::end_state::SourceMode;
use crate::kinds::file::check::plan::{Below, Work};
use crate::kinds::file::declare::content;
use crate::kinds::file::tree::faults::TreeFaults;
use crate::kinds::file::tree::owners::Owners;
use crate::kinds::file::tree::report::{Report, TreeChange};
use crate::permit::Revoked;
use rustix::fs::FileType;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The number of attempts on an object that changes meanwhile.
const LOOKS: usize = 3;

/// One walk over a tree.
pub(in crate::kinds::file) struct Tree<'a> {
    pub(in crate::kinds::file) file: &'a File,
    pub(in crate::kinds::file) files: &'a Files,
    /// The user on whose behalf the source is read.
    reader: Reader,
    cancel: &'a CancellationToken,
    /// The context of an apply; none for a check.
    pub(in crate::kinds::file) hands: Option<Hands<'a>>,
    /// The paths to examine; none means all, as in a check.
    only: Option<&'a Below>,
    pub(in crate::kinds::file) report: Report,
    /// The rights that all directories on the present path of the source have in common.
    reach: u32,
    /// The hash of the source contents, where they are read.
    read: Option<Sum>,
    /// Something was changed in the present directory.
    pub(in crate::kinds::file) done_here: bool,
    touched: bool,
    /// The last object must not be changed.
    is_refused: bool,
    /// The owners of the directories on the present path.
    pub(in crate::kinds::file) owners: Owners,
    /// The top directory as the check has judged it, by its identity.
    judged: Option<(u64, u64)>,
    /// The failures of single entries; the walk goes on with the others.
    faults: TreeFaults,
}

impl<'a> Tree<'a> {
    pub(in crate::kinds::file) fn new(
        file: &'a File,
        files: &'a Files,
        cancel: &'a CancellationToken,
        apply: Option<(Hands<'a>, &'a Below)>,
    ) -> Self {
        let report = Report::default();
        let (hands, only) = apply.unzip();
        let reader = file.reader(files);
        let (read, done_here, touched) = (None, false, false);
        let faults = TreeFaults::default();
        let reach = SourceMode::TOP;
        Self {
            file,
            files,
            reader,
            cancel,
            hands,
            only,
            report,
            reach,
            read,
            done_here,
            touched,
            is_refused: false,
            owners: Owners::Doubtful,
            judged: None,
            faults,
        }
    }

    /// Sets the top directory that the check of this apply has judged.
    pub(in crate::kinds::file) fn judged(self, judged: Option<(u64, u64)>) -> Self {
        Self { judged, ..self }
    }

    /// Reads the whole source, and returns the sums of its metadata and of its contents.
    pub(in crate::kinds::file) fn read(mut self) -> Result<(Sum, Sum), Fault> {
        self.read = Some(Sum::default());
        let source = self.source()?;
        self.directory(source.as_ref(), None, Path::new(""))?;
        if let Some(fault) = self.faults.into_fault(self.files, &self.file.path) {
            return Err(fault);
        }
        Ok((self.report.origins, self.read.unwrap_or_default()))
    }

    /// Manages everything below the directory at an entry, which exists or will be made. A failure of one object
    /// does not stop the walk: a check reports all failures, and an apply fails with all of them after the rest
    /// is done. The found directory is given with its owner before any change, who can have moved entries there.
    pub(in crate::kinds::file) fn hold(
        mut self,
        spot: &Entry<'_>,
        found: Option<(&EntryStat, u32)>,
    ) -> Result<Report, Fault> {
        let walked = self.all(spot, found);
        walked.map_err(|fault| fault.after(self.touched))?;
        if self.hands.is_none() {
            self.report.faults = self.faults;
            return Ok(self.report);
        }
        match self.faults.into_fault(self.files, &self.file.path) {
            Some(fault) => Err(fault.after(self.touched)),
            None => Ok(self.report),
        }
    }

    fn all(&mut self, spot: &Entry<'_>, found: Option<(&EntryStat, u32)>) -> Result<(), Fault> {
        let all = self.looks_at_others();
        if let Some((found, _)) = found.filter(|_| self.file.rare().purge && !self.file.force) {
            self.files.guard_purge(spot, found)?;
        }
        if let Some((found, owner)) = found {
            let is_doubtful = self.files.is_doubtful_tree(spot, found)?;
            self.owners = Owners::of_top(owner, is_doubtful);
            let is_copied = matches!(self.file.shape, Shape::Directory(Some(_)));
            // The directory of the check was judged before it got its owner and mode.
            if is_copied && !self.file.force && self.judged != Some(found.identity) {
                self.files.guard_filling(spot, found)?;
            }
        }
        let top = found.map(|(found, _)| spot.branch(found, all)).transpose()?;
        let source = self.source()?;
        self.directory(source.as_ref(), top.as_ref(), Path::new(""))
    }

    fn source(&self) -> Result<Option<DirWalk>, Fault> {
        let Shape::Directory(Some(path)) = &self.file.shape else { return Ok(None) };
        content::tree_source(self.files, path, self.reader)?.branch().map(Some)
    }

    /// Manages one directory: first the objects of the source, then the other objects.
    fn directory(
        &mut self,
        source: Option<&DirWalk>,
        target: Option<&DirWalk>,
        below: &Path,
    ) -> Result<(), Fault> {
        let outside = std::mem::take(&mut self.done_here);
        let mut walked = self.entries(source, target, below);
        if let Some(target) = target.filter(|_| self.done_here) {
            walked = walked.and_then(|()| self.files.sync_branch(target));
        }
        self.done_here = outside;
        walked
    }

    fn entries(
        &mut self,
        source: Option<&DirWalk>,
        target: Option<&DirWalk>,
        below: &Path,
    ) -> Result<(), Fault> {
        if let Some(source) = source {
            for name in source.names()? {
                let below = below.join(&name);
                if !is_temporary(&name) && !self.leaves(&below) {
                    let copied = self.copy(source, target, &below);
                    self.go_on(&below, copied)?;
                }
            }
        }
        match target.filter(|_| self.looks_at_others()) {
            Some(target) => self.others(source, target, below),
            None => Ok(()),
        }
    }

    /// Records a failure of one object, so that the walk goes on with the next one.
    pub(in crate::kinds::file) fn go_on(
        &mut self,
        below: &Path,
        done: Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Err(fault) = done else { return Ok(()) };
        self.touched |= fault.touched;
        // The objects below were not examined, so an apply examines everything.
        self.report.below = Below::Much;
        self.faults.note(&self.file.path.join(below), fault)
    }

    /// Returns true if the walk must also handle objects that the source does not have.
    fn looks_at_others(&self) -> bool {
        self.file.rare().purge || matches!(self.file.shape, Shape::Directory(None))
    }

    /// Returns true if an object is left alone: the check found no difference, the object is excluded, or another
    /// resource declares it.
    pub(in crate::kinds::file) fn leaves(&self, below: &Path) -> bool {
        let rare = self.file.rare();
        self.only.is_some_and(|only| !only.concerns(below))
            || rare.excludes.iter().any(|pattern| pattern.means(below))
            || rare.claims.hold(&self.file.path.join(below))
    }

    /// Manages one object of the source.
    fn copy(
        &mut self,
        source: &DirWalk,
        target: Option<&DirWalk>,
        below: &Path,
    ) -> Result<(), Fault> {
        let path = source.path().join(below.file_name().unwrap_or_default());
        let spot = source.open_entry(&path);
        // The object has just gone.
        let Some(seen) = spot.look()? else { return Err(Fault::moved()) };
        self.report.origins.add_state(below, &seen);
        match seen.kind {
            FileType::RegularFile => {
                Files::guard_trust(&path, &seen, self.reader)?;
                let mut content = Content::default();
                content.push(self.files.origin_at(&spot, &seen)?);
                self.files.guard_copied(&spot, &seen, self.reader)?;
                if let Some(read) = &mut self.read {
                    read.add_file(below, &content, self.cancel)?;
                }
                self.entry(target, below, Want::Regular(Some(&content)))?;
            }
            FileType::Symlink => {
                Files::guard_trust(&path, &seen, self.reader)?;
                let text = OsString::from_vec(spot.target()?);
                if let Some(read) = &mut self.read {
                    read.add_other(below, Some(text.as_bytes()));
                }
                self.entry(target, below, Want::Link(&text))?;
            }
            FileType::Directory => {
                Files::guard_trust(&path, &seen, self.reader)?;
                self.files.guard_copied(&spot, &seen, self.reader)?;
                let Entered::Branch(source) = source.enter(&spot, &seen)? else {
                    return Err(mounted(&path));
                };
                if let Some(read) = &mut self.read {
                    read.add_other(below, None);
                }
                let mode = SourceMode::of(seen.mode, self.reach);
                self.entry(target, below, Want::Directory(Some(mode)))?;
                let inside = target.map(|target| self.inside(target, below, mode)).transpose()?;
                let outside = std::mem::replace(&mut self.reach, mode.reach());
                let done = self.directory(Some(&source), inside.flatten().as_ref(), below);
                self.reach = outside;
                done?;
            }
            kind => {
                let why = format!("a {} cannot be copied", word(kind));
                return Err(Fault::refused(
                    said("copy", &path, &why).hint("remove the object, or add it to excludes"),
                ));
            }
        }
        Ok(())
    }

    /// Opens the directory of this name if there is one (a check runs before the directory is made). An apply
    /// enters a copy of a closed directory only with its final attributes, because another user may have put
    /// another directory there.
    fn inside(
        &self,
        target: &DirWalk,
        below: &Path,
        mode: SourceMode,
    ) -> Result<Option<DirWalk>, Fault> {
        let path = self.file.path.join(below);
        let spot = target.open_entry(&path);
        let Some(seen) = spot.look()?.filter(|seen| seen.kind == FileType::Directory) else {
            return Ok(None);
        };
        let (file, files, cancel) = (self.file, self.files, self.cancel);
        let want = Want::Directory(Some(mode));
        let look = Look { file, files, spot: &spot, want, cancel };
        if self.hands.is_some() && mode.is_closed() && !look.has_end(&seen)? {
            return Err(Fault::moved());
        }
        match target.enter(&spot, &seen)? {
            Entered::Branch(branch) => Ok(Some(branch)),
            Entered::Mounted => Err(mounted(&path)),
        }
    }

    /// Manages one object, without the objects below.
    pub(in crate::kinds::file) fn entry(
        &mut self,
        target: Option<&DirWalk>,
        below: &Path,
        want: Want<'_>,
    ) -> Result<(), Fault> {
        if self.cancel.is_cancelled() {
            return Err(Revoked.into());
        }
        let Some(target) = target else {
            self.report.note(TreeChange::Added, below, Vec::new());
            return Ok(());
        };
        let mut looks = 1;
        loop {
            match self.try_entry(target, below, want) {
                Err(fault)
                    if matches!(fault.why, Why::Moved) && !fault.touched && looks < LOOKS =>
                {
                    looks += 1;
                }
                other => return other,
            }
        }
    }

    fn try_entry(&mut self, target: &DirWalk, below: &Path, want: Want<'_>) -> Result<(), Fault> {
        let path = self.file.path.join(below);
        let spot = target.open_entry(&path);
        let (file, files, cancel) = (self.file, self.files, self.cancel);
        let look = Look { file, files, spot: &spot, want, cancel };
        let looked = look.look();
        self.is_refused = looked.as_ref().is_err_and(|fault| matches!(fault.why, Why::Refused(_)));
        let Some(finding) = looked.map_err(|fault| fault.named(&path))? else { return Ok(()) };
        if let Some(seen) = finding.plan.found.filter(|_| self.owners == Owners::Doubtful)
            && !file.force
            && matches!(finding.plan.work, Work::Write { .. } | Work::Link(_) | Work::Remove)
        {
            files.guard_purged(("replace", &spot), &seen, self.owner()?)?;
        }
        if let Some(hands) = self.hands {
            let done = hands.carry_out(&spot, &finding.plan, want);
            done.map_err(|fault| fault.named(&path))?;
            self.did();
        }
        let deed = match (want, finding.plan.found) {
            (Want::Absent, _) => TreeChange::Removed,
            (_, None) => TreeChange::Added,
            (_, Some(_)) => TreeChange::Changed,
        };
        self.report.destructive |= finding.destructive;
        self.report.note(deed, below, finding.differences);
        Ok(())
    }

    pub(in crate::kinds::file) fn did(&mut self) {
        self.done_here = true;
        self.touched = true;
    }

    /// Manages the objects of a directory that the source does not have.
    fn others(
        &mut self,
        source: Option<&DirWalk>,
        target: &DirWalk,
        below: &Path,
    ) -> Result<(), Fault> {
        for name in target.names()? {
            let below = below.join(&name);
            let held = self.not_copied(source, target, &below);
            self.go_on(&below, held)?;
        }
        Ok(())
    }

    fn not_copied(
        &mut self,
        source: Option<&DirWalk>,
        target: &DirWalk,
        below: &Path,
    ) -> Result<(), Fault> {
        let path = self.file.path.join(below);
        let spot = target.open_entry(&path);
        if self.leaves(below)
            || self.files.is_in_use(&spot)
            || has(source, spot.name())?
            || spot.is_mounted()
        {
            return Ok(());
        }
        let rare = self.file.rare();
        let must_stay = rare.claims.are_below(&path);
        if rare.purge && !must_stay {
            self.purge(target, below).map(drop)
        } else if rare.recurse {
            self.other(target, below)
        } else {
            Ok(())
        }
    }

    /// Manages an object that stays and has no source: sets the attributes of the object and of everything below.
    fn other(&mut self, target: &DirWalk, below: &Path) -> Result<(), Fault> {
        let copies = matches!(self.file.shape, Shape::Directory(Some(_)));
        let path = self.file.path.join(below);
        let spot = target.open_entry(&path);
        // The owner before any change is the one who can have moved the directory.
        let owner = spot.look()?.map(|seen| seen.uid);
        if !copies {
            // A directory that cannot be changed does not prevent the management of its contents; one that is
            // refused may be another one than the declared one.
            let is_in_place = spot.look()?.is_some_and(|seen| self.owners.can_move_only_own(&seen));
            let held = self.entry(Some(target), below, Want::Whatever { is_in_place });
            let is_refused = held.is_err() && std::mem::take(&mut self.is_refused);
            self.go_on(below, held)?;
            if is_refused {
                return Ok(());
            }
        }
        let Some(seen) = spot.look()?.filter(|seen| seen.kind == FileType::Directory) else {
            return Ok(());
        };
        match target.enter(&spot, &seen)? {
            Entered::Branch(inside) => {
                let above = self.owners.enter(owner.unwrap_or(seen.uid));
                let done = self.directory(None, Some(&inside), below);
                self.owners = above;
                done
            }
            Entered::Mounted => Ok(()),
        }
    }
}

/// Returns true if the source has an object of this name.
fn has(source: Option<&DirWalk>, name: &OsStr) -> Result<bool, Fault> {
    let Some(source) = source.filter(|_| !is_temporary(name)) else { return Ok(false) };
    let path = source.path().join(name);
    Ok(source.open_entry(&path).look()?.is_some())
}

fn mounted(path: &Path) -> Fault {
    Fault::refused(
        said("hold all below", path, "the path is a mount point")
            .hint("add the path to excludes, and declare it as a separate resource"),
    )
}
