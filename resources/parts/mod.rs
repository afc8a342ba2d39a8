//! The library that most kinds are made of: parts that compare, change and verify one thing each.
//!
//! A part must read and change the host only through [`crate::host`], and must never know a kind.
//!
//! Reading order: `field_reader.rs` (fields to values), `text_edit.rs` (a part of a text file), `managed.rs` (named
//! values, read and written by calls or commands), `sequence.rs` (several resources in one), `commands.rs` (calls of
//! programs with checked ends), `whole_file.rs`.

pub(crate) mod commands;
pub(crate) mod field_reader;
pub(crate) mod managed;
pub(crate) mod sequence;
pub(crate) mod text_edit;
pub(crate) mod whole_file;

pub(crate) use field_reader::FieldReader;
pub(crate) use managed::{Managed, ValueSet, WriteFailure};
pub(crate) use sequence::Sequence;
pub(crate) use text_edit::{Edited, Editor, TextEdit};
