//! The content of files: read in pieces, and written whole by a staged file that replaces the old file.
//!
//! A file is never changed in place, and never replaced before the staged file is synced. Kernel parameters are the
//! exception (`tunable`).
//!
//! Reading order: `read`, `shared_content`, `new_content`, `write`, `former_file`, `staged_file`, `temp_names`,
//! `temp_cleanup`, `sync`, `tunable`.

pub(in crate::host::files) mod former_file;
pub(in crate::host::files) mod new_content;
pub(in crate::host::files) mod read;
pub(in crate::host::files) mod shared_content;
pub(in crate::host::files) mod staged_file;
pub(in crate::host::files) mod sync;
pub(in crate::host::files) mod temp_cleanup;
pub(in crate::host::files) mod temp_names;
pub(in crate::host::files) mod tunable;
pub(in crate::host::files) mod write;
