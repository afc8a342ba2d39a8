//! The library that most kinds are made of: parts that compare, change and verify one thing each.
//!
//! A part must read and change the host only through [`crate::host`], and must never know a kind.
//!
//! Reading order: `field_reader.rs` (fields to values), `text_edit/` (a part of a text file), with `edit_fields.rs`,
//! `edit_share.rs` (memory), `file_turn.rs` (one edit of a file at a time), `text_lines.rs` and, for tests,
//! `edit_support.rs`; `data/` (one value of a data file), `managed.rs` (named values, read and written by calls or
//! commands), `sequence.rs` (several resources in one), `commands.rs` (calls of programs with checked ends),
//! `whole_file.rs`, `fstab.rs` (rows of /etc/fstab, and the kernel's tables alike), `guarded_removal.rs`,
//! `alternative.rs` (one of several forms), `assignment.rs` (`KEY=value`), `account_tools.rs`, `parent_directory.rs`,
//! `blocking.rs`, `checksum.rs`, `file_values.rs`, `shell_words.rs`, `validate_command.rs`, `staging.rs`,
//! `download.rs`, `text_bytes.rs`, `tree_listing.rs`.

pub(crate) mod account_tools;
pub(crate) mod alternative;
pub(crate) mod assignment;
pub(crate) mod blocking;
pub(crate) mod checksum;
pub(crate) mod commands;
pub(crate) mod data;
pub(crate) mod download;
pub(crate) mod edit_fields;
pub(crate) mod edit_share;
#[cfg(test)]
pub(crate) mod edit_support;
pub(crate) mod field_reader;
pub(crate) mod file_turn;
pub(crate) mod file_values;
pub(crate) mod fstab;
pub(crate) mod guarded_removal;
pub(crate) mod managed;
pub(crate) mod parent_directory;
pub(crate) mod sequence;
pub(crate) mod shell_words;
pub(crate) mod staging;
pub(crate) mod text_bytes;
pub(crate) mod text_edit;
pub(crate) mod text_lines;
pub(crate) mod tree_listing;
pub(crate) mod validate_command;
pub(crate) mod whole_file;

pub(crate) use blocking::on_thread;
pub(crate) use field_reader::FieldReader;
pub(crate) use managed::{Managed, ValueSet, WriteFailure};
pub(crate) use parent_directory::ParentDirectory;
pub(crate) use sequence::{Declaration, Precondition, Sequence};
pub(crate) use text_edit::{Edited, Editor, TextEdit};
