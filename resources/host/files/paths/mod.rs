//! Names and paths: a path becomes an [`entry::Entry`], which is a name in an open directory.
//!
//! The folder changes nothing, and no other folder of `files/` resolves the path of a managed object again.
//!
//! Reading order: `entry`, `safe_path` (the directory of a managed file, also below directories of other users),
//! `tree_walk`, `protected_paths`, `directory_identity`, `path_forecast`.

pub(in crate::host::files) mod directory_identity;
pub(in crate::host::files) mod entry;
pub(in crate::host::files) mod path_forecast;
pub(in crate::host::files) mod protected_paths;
pub(in crate::host::files) mod safe_path;
pub(in crate::host::files) mod tree_walk;
