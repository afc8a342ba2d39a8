//! Claims: the objects of the host that a resource writes.

use crate::dependency::HostObject;
use std::fmt;
use std::path::Path;

/// An object that a resource writes, with the rule for other resources that write the same object.
///
/// A graph with two claims on one object is rejected unless both claims are shared. The removal of an undeclared
/// resource spares each object that another resource claims and creates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The claimed object.
    pub object: HostObject,
    /// The rule for other claims on the object.
    pub mode: ClaimMode,
    /// The resource makes the object exist. A resource that removes an object, or that declares only attributes
    /// of an existing one, creates nothing.
    pub creates: bool,
}

/// The rule for other claims on a claimed object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimMode {
    /// No other resource may claim the object.
    Exclusive,
    /// Other resources may claim the object too, if their claims are shared.
    Shared,
}

impl Claim {
    /// Makes an exclusive claim of a resource that makes the object exist.
    #[must_use]
    pub fn exclusive(object: HostObject) -> Self {
        Self { object, mode: ClaimMode::Exclusive, creates: true }
    }

    /// Makes a shared claim of a resource that does not make the object exist.
    #[must_use]
    pub fn shared(object: HostObject) -> Self {
        Self { object, mode: ClaimMode::Shared, creates: false }
    }

    /// Makes an exclusive claim on the object at a path.
    pub fn path(path: impl Into<std::path::PathBuf>) -> Self {
        Self::exclusive(HostObject::Path(path.into()))
    }

    /// Sets whether the resource makes the object exist.
    #[must_use]
    pub fn creating(self, creates: bool) -> Self {
        Self { creates, ..self }
    }

    /// Returns true if no other resource may claim the object.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        self.mode == ClaimMode::Exclusive
    }

    /// Returns the path of a claimed path; none for every other object.
    #[must_use]
    pub fn as_path(&self) -> Option<&Path> {
        match &self.object {
            HostObject::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Returns the path and takes the claim apart; none for an object that is no path.
    #[must_use]
    pub fn into_path(self) -> Option<std::path::PathBuf> {
        match self.object {
            HostObject::Path(path) => Some(path),
            _ => None,
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}
