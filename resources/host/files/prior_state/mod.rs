//! The state of an object before a change: recorded, restored, or kept as a backup copy.
//!
//! A change never begins before its prior state is recorded.
//!
//! Reading order: `record`, `enclosure`, `restore`, `restore_part`, `backup`.

pub(in crate::host::files) mod backup;
pub(in crate::host::files) mod enclosure;
pub(in crate::host::files) mod record;
pub(in crate::host::files) mod restore;
pub(in crate::host::files) mod restore_part;
