//! Protection against other users: objects that they prepared, moved, or can still write.
//!
//! The folder judges and marks; it never changes the content of an object.
//!
//! Reading order: `other_users` (attributes that stay on a takeover), `marks` (what they are), `takeover_mark`,
//! `handover_mark`, `made_mark` (how they are set and asked), `moved_objects`, `privileges`, `fs_identity`.

pub(in crate::host::files) mod fs_identity;
pub(in crate::host::files) mod handover_mark;
pub(in crate::host::files) mod made_mark;
pub(in crate::host::files) mod marks;
pub(in crate::host::files) mod moved_objects;
pub(in crate::host::files) mod other_users;
pub(in crate::host::files) mod privileges;
pub(in crate::host::files) mod takeover_mark;
