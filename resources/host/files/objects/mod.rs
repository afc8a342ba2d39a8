//! Single steps on objects: attributes, links and directories, removal, and the accounts that own them.
//!
//! A step never follows a link and never crosses a mount.
//!
//! Reading order: `accounts`, `attributes`, `xattr`, `access_list`, `extended`, `create`, `remove`.

pub(in crate::host::files) mod access_list;
pub(in crate::host::files) mod accounts;
pub(in crate::host::files) mod attributes;
pub(in crate::host::files) mod create;
pub(in crate::host::files) mod extended;
pub(in crate::host::files) mod remove;
pub(in crate::host::files) mod xattr;
