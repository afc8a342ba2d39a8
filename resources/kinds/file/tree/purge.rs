//! The purge of undeclared objects below a directory.

use crate::host::files::{AccountKind, DirWalk, Entered, Entry, EntryStat, Fault, Reach, Why};
use crate::kinds::file::check::compare::Want;
use crate::kinds::file::tree::owners::Owners;
use crate::kinds::file::tree::report::TreeChange;
use crate::kinds::file::tree::walk::Tree;
use crate::prior_state::Loss;
use rustix::fs::FileType;
use std::path::Path;

impl Tree<'_> {
    /// Purges an undeclared object. Returns true if the object is gone, or would be.
    pub(in crate::kinds::file) fn purge(
        &mut self,
        target: &DirWalk,
        below: &Path,
    ) -> Result<bool, Fault> {
        let path = self.file.path.join(below);
        let spot = target.open_entry(&path);
        let Some(seen) = spot.look()? else { return Ok(true) };
        if self.owners == Owners::Doubtful && !self.file.force {
            self.files.guard_purged(("purge", &spot), &seen, self.owner()?)?;
        }
        match seen.kind {
            FileType::RegularFile | FileType::Symlink => {}
            FileType::Directory if self.file.rare().recurse => {
                return self.purge_directory(target, &spot, &seen, below);
            }
            FileType::Directory => return Ok(false),
            _ if self.file.force => {}
            _ => return Ok(false),
        }
        self.entry(Some(target), below, Want::Absent)?;
        Ok(true)
    }

    /// Returns the declared owner as a number of this host.
    pub(in crate::kinds::file) fn owner(&self) -> Result<Option<u32>, Fault> {
        let accounts = self.files.accounts();
        let owner = self.file.owner.as_deref();
        let number = owner.map(|text| accounts.number(AccountKind::User, text));
        number.transpose().map_err(Fault::refused)
    }

    /// Purges an object in a directory; returns false if the object stays for any reason.
    fn purge_one(&mut self, target: &DirWalk, below: &Path) -> Result<bool, Fault> {
        match self.purge(target, below) {
            Ok(gone) => Ok(gone),
            Err(fault) => self.go_on(below, Err(fault)).map(|()| false),
        }
    }

    fn purge_directory(
        &mut self,
        target: &DirWalk,
        spot: &Entry<'_>,
        seen: &EntryStat,
        below: &Path,
    ) -> Result<bool, Fault> {
        let Entered::Branch(inside) = target.enter(spot, seen)? else { return Ok(false) };
        let outside = std::mem::take(&mut self.done_here);
        let mut all_gone = true;
        for name in inside.names()? {
            let below = below.join(&name);
            let path = self.file.path.join(&below);
            let spot = inside.open_entry(&path);
            let stays = self.leaves(&below) || self.files.is_in_use(&spot) || spot.is_mounted();
            all_gone &= !stays && self.purge_one(&inside, &below)?;
        }
        if self.done_here && !all_gone {
            self.files.sync_branch(&inside)?;
        }
        self.done_here = outside;
        if !all_gone {
            return Ok(false);
        }
        if let Some(hands) = self.hands {
            let Some(now) = spot.look()?.filter(|now| now.identity == seen.identity) else {
                return Err(Fault::moved());
            };
            let losing =
                Loss { content: true, secret: false, purged: true, edited: None, what: "removed" };
            let noted = spot.note(hands.permit, Some(&now), losing);
            let removed = noted.and_then(|noted| {
                noted.after(self.files.remove(hands.permit, spot, &now, Reach::One))
            });
            match removed {
                // A cleanup of temporary files may remove the object first.
                Err(fault) if matches!(fault.why, Why::Moved) && spot.look()?.is_none() => {}
                other => other.map_err(|fault| fault.named(spot.path()))?,
            }
            self.did();
        }
        self.report.destructive = true;
        self.report.note(TreeChange::Removed, below, Vec::new());
        Ok(true)
    }
}
