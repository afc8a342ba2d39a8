//! Iterates over the entries of a directory.

use rustix::fs::Dir;
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::AsFd;

/// An entry of a directory; `.` and `..` are included.
#[derive(Debug)]
pub(crate) struct Entry(CString);

impl Entry {
    pub(crate) fn file_name(&self) -> &CStr {
        &self.0
    }
}

/// An iterator over the entries of a directory.
pub(crate) enum Entries {
    Kernel(Dir),
    Listed(std::vec::IntoIter<Result<CString, Errno>>),
}

impl Entries {
    /// Makes an iterator over the entries of an open directory.
    pub(crate) fn read_from(directory: impl AsFd) -> Result<Self, Errno> {
        if let Some(names) = super::dispatch::overlay(|overlay| overlay.entries(directory.as_fd()))
        {
            return Ok(Self::Listed(names?.into_iter()));
        }
        #[cfg(feature = "simulated-host")]
        if let Some(names) = super::dispatch::simulated(|host| host.entries(directory.as_fd())) {
            return Ok(Self::Listed(names?.into_iter()));
        }
        Dir::read_from(directory).map(Self::Kernel)
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, Errno>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Kernel(entries) => {
                let entry = entries.next()?;
                Some(entry.map(|entry| Entry(entry.file_name().to_owned())))
            }
            Self::Listed(names) => names.next().map(|name| name.map(Entry)),
        }
    }
}
