//! The world that hosts share, as seen by kinds: values by key. The daemon supplies it; without one a call fails.

use super::Host;
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::permit::{Permit, Revoked};
use std::fmt;
use std::sync::Arc;

/// A key of the world.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorldKey {
    /// One value for all hosts.
    Shared(String),
    /// A value for each host; a host writes only its own.
    Mapped(String),
    /// A resource that this host offers to others, by its identity.
    Export(String),
}

/// The value of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorldValue {
    /// The shared value, or the value of this host.
    pub own: Option<String>,
    /// The values of all hosts by name; empty for a shared value.
    pub by_host: Vec<(String, String)>,
}

/// A right that the world grants to one host at a time, or to a few: a semaphore or a slot of a rolling change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermitRequest {
    /// The id of the semaphore, or the name of the rolling change.
    pub id: String,
    /// The number of holders.
    pub size: u32,
    /// The resource that asks; none for a rolling change, whose slot belongs to the host.
    pub resource: Option<String>,
}

/// A request for a permit. Each request has a number of its own, so that an answer to an earlier request for the same
/// permit is not taken for an answer to this one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NumberedPermit {
    /// The permit.
    pub permit: PermitRequest,
    /// The number of the request; 0 for a permit that an earlier session left.
    pub number: u64,
}

/// The connection to the world.
pub trait SharedWorld: fmt::Debug + Send + Sync {
    /// Returns the value of a key.
    fn read_value<'a>(&'a self, key: &'a WorldKey) -> Answer<'a, Result<WorldValue, Failure>>;

    /// Writes the value of a key, or deletes the key.
    fn write_value<'a>(
        &'a self,
        key: &'a WorldKey,
        value: Option<&'a str>,
    ) -> Answer<'a, Result<(), Failure>>;

    /// Sets the permits that this host wants or holds; all others are given back.
    fn want_permits(&self, wanted: Vec<NumberedPermit>);

    /// Returns true if the permits that end with the lease of this host are still held now. A host that was suspended
    /// may not have heard of their end yet.
    fn has_safe_lease(&self) -> bool {
        true
    }
}

impl Host {
    /// Connects the host to a world.
    #[must_use]
    pub fn with_world(self, world: Arc<dyn SharedWorld>) -> Self {
        Self { world: Some(world), ..self }
    }

    /// Returns the world, if the host has one.
    #[must_use]
    pub fn world(&self) -> Option<&Arc<dyn SharedWorld>> {
        self.world.as_ref()
    }

    /// Reads the value of a key.
    ///
    /// # Errors
    ///
    /// Returns the reason if the value cannot be known.
    pub async fn read_world(&self, key: &WorldKey) -> Result<WorldValue, Failure> {
        self.shared_world()?.read_value(key).await
    }

    /// Writes the value of a key, or deletes the key.
    ///
    /// # Errors
    ///
    /// Returns a revoked permit, or the reason for which the world does not accept the value.
    pub async fn write_world(
        &self,
        permit: &Permit,
        key: &WorldKey,
        value: Option<&str>,
    ) -> Result<Result<(), Failure>, Revoked> {
        permit.check()?;
        match self.shared_world() {
            Ok(world) => Ok(world.write_value(key, value).await),
            Err(failure) => Ok(Err(failure)),
        }
    }

    fn shared_world(&self) -> Result<&Arc<dyn SharedWorld>, Failure> {
        self.world.as_ref().ok_or_else(|| {
            Failure::new("this command has no connection to the world")
                .hint("the daemon connects to it: start `steadfast run`")
                .passing()
        })
    }
}
