//! The final owner, group and mode of an existing object, from its declaration, its source and its present state.

use crate::host::files::{
    Attributes, Content, EntryStat, Fault, SET_ID, denies_others, grants_group_more, own_gid,
};
use crate::kinds::file::Shape;
use crate::kinds::file::check::compare::{Look, Want};
use crate::kinds::file::declare::content::Body;
use rustix::fs::FileType;

/// The rights of others to read and enter a directory.
const ENTERED_BY_OTHERS: u32 = 0o005;

/// The set-group-ID bit: new objects in such a directory get its group.
const SET_GID: u32 = 0o2000;

/// The final attributes of an existing object.
pub(in crate::kinds::file) struct End {
    /// The declared owner and group, as numbers of this host.
    pub(in crate::kinds::file) declared: Attributes,
    /// The mode before the declared changes.
    pub(in crate::kinds::file) base: u32,
    /// A new file in this place gets the old group if none is declared.
    pub(in crate::kinds::file) keeps_group: bool,
}

/// The mode of a directory of a source tree.
#[derive(Clone, Copy, Debug)]
pub(in crate::kinds::file) struct SourceMode {
    /// The mode of a new copy.
    born: u32,
    /// The rights that this directory and all directories above it in the source have in common.
    reach: u32,
}

impl SourceMode {
    /// The rights in common at the top of a source tree.
    pub(in crate::kinds::file) const TOP: u32 = 0o777;

    /// Returns the mode of a source directory with these bits, below directories with these rights in common.
    pub(in crate::kinds::file) fn of(bits: u32, above: u32) -> Self {
        let born = (bits & 0o755) | 0o700;
        Self { born, reach: above & born }
    }

    pub(in crate::kinds::file) fn creation_mode(self) -> u32 {
        self.born
    }

    pub(in crate::kinds::file) fn reach(self) -> u32 {
        self.reach
    }

    /// Returns true if others may not read or not enter the directory in the source.
    pub(in crate::kinds::file) fn is_closed(self) -> bool {
        self.reach & ENTERED_BY_OTHERS != ENTERED_BY_OTHERS
    }
}

impl Look<'_> {
    /// Returns the final owner, group and mode, from the declaration and the found object.
    pub(in crate::kinds::file) fn end(
        &self,
        seen: &EntryStat,
        content: Option<&Content<'_>>,
    ) -> Result<End, Fault> {
        let mut declared = self.declared()?;
        let is_narrow = self.is_narrow(content);
        let is_strangers = self.files.is_strangers(seen);
        let private = self.private_source(seen, declared.owner)?;
        let is_closed = is_narrow
            || private.is_some()
            || content.is_some_and(|content| self.is_closed(content));
        let is_privileged = content.is_some() && self.gives_set_id(content);
        if (is_closed || is_privileged) && declared.owner.is_none() && is_strangers {
            declared.owner = Some(self.files.own_uid());
        }
        if private.is_some() && self.files.leaves_stranger(seen, declared.owner) {
            declared.group = declared.group.or_else(|| Some(own_gid()));
        }
        let mut base = self.files.base_mode(self.spot, seen, (declared.owner, declared.group))?;
        base &= private.map_or(0o7777, |source| source.reach | 0o7000);
        let mut keeps_group = true;
        if let Some(content) = content {
            if self.files.leaves_stranger(seen, declared.owner) {
                base &= 0o755;
                if content.denies_others() {
                    base &= self.file.creation_mode(Some(content));
                }
                keeps_group = !is_narrow && self.files.is_private_place(self.spot)?;
            } else if base & SET_ID != 0
                && !self.files.is_trusted(self.spot, seen, declared.owner.or(Some(seen.uid)))?
            {
                base &= !SET_ID;
            }
        }
        let mut base = if is_narrow { base & 0o700 } else { base };
        if declared.group.is_none() && self.loses_group(seen, declared.owner) {
            declared.group = Some(own_gid());
        } else if declared.group.is_none() && self.is_strangers_group(seen, declared.owner)? {
            let is_directory = seen.kind == FileType::Directory;
            // New objects in a directory with the bit would get the group.
            let passed_on = if is_directory { SET_GID } else { 0 };
            let declared_bit = self.file.mode_over(base & !passed_on, is_directory) & passed_on;
            if declared_bit != 0 || grants_group_more(self.file.mode_over(base, is_directory)) {
                declared.group = Some(own_gid());
            } else {
                base &= !passed_on;
            }
        }
        Ok(End { declared, base, keeps_group })
    }

    /// Returns true if the object has its final owner, group and mode.
    pub(in crate::kinds::file) fn has_end(&self, seen: &EntryStat) -> Result<bool, Fault> {
        let (_, differences) = self.drift(seen, &self.end(seen, None)?);
        Ok(differences.is_empty())
    }

    /// Returns the mode of a source directory that is closed to others, if a stranger can have prepared the
    /// present directory: it gets no more rights than its source.
    fn private_source(
        &self,
        seen: &EntryStat,
        owner: Option<u32>,
    ) -> Result<Option<SourceMode>, Fault> {
        let Want::Directory(Some(source)) = self.want else { return Ok(None) };
        let is_private = source.is_closed() && !self.files.is_trusted(self.spot, seen, owner)?;
        Ok(is_private.then_some(source))
    }

    /// Returns true if other users may not read the content, by the declared mode or by the mode of its source.
    fn is_closed(&self, content: &Content<'_>) -> bool {
        let declared = self.file.mode_over(self.file.creation_mode(Some(content)), false);
        content.denies_others() || (self.file.mode.is_some() && denies_others(declared))
    }

    /// Returns true if the object loses its undeclared group together with the stranger who owned it: a later mode
    /// could give this group a right.
    fn loses_group(&self, seen: &EntryStat, owner: Option<u32>) -> bool {
        seen.kind != FileType::Symlink
            && seen.gid != own_gid()
            && self.files.is_root()
            && self.files.leaves_stranger(seen, owner)
    }

    /// Returns true if a stranger can have chosen the group of the object, which lies in the directory of another user:
    /// without a declaration this group gets no right that others do not have.
    fn is_strangers_group(&self, seen: &EntryStat, owner: Option<u32>) -> Result<bool, Fault> {
        let after = owner.or(Some(seen.uid));
        Ok(seen.gid != own_gid() && self.files.is_in_strangers_directory(self.spot, after)?)
    }

    /// Returns true if the declared mode gives set-id bits: who can change the file gets the rights of its owner or
    /// group.
    fn gives_set_id(&self, content: Option<&Content<'_>>) -> bool {
        let declared = self.file.mode_over(self.file.creation_mode(content), false);
        self.files.is_root() && self.file.mode.is_some() && declared & SET_ID != 0
    }

    /// Returns true if the content is for its owner alone unless a mode says otherwise.
    fn is_narrow(&self, content: Option<&Content<'_>>) -> bool {
        let is_sealed = matches!(self.file.shape, Shape::Regular(Body::Sealed(_)));
        self.file.sensitive && (content.is_some() || is_sealed)
    }
}
