//! The set of kinds: those of this build, and the names of kinds that exist elsewhere.

use crate::failure::Failure;
use crate::kind::KindSpec;
use crate::kind::Restoring;
use crate::prior_state::FormerValue;
use crate::resource_id::ResourceId;
use std::fmt;
use std::sync::Arc;

static SPECS: [&KindSpec; 40] = [
    &crate::kinds::archive::SPEC,
    &crate::kinds::block::SPEC,
    &crate::kinds::cron::SPEC,
    &crate::kinds::divert::SPEC,
    &crate::kinds::exec::SPEC,
    &crate::kinds::export::SPEC,
    &crate::kinds::fetch::SPEC,
    &crate::kinds::file::SPEC,
    &crate::kinds::firewall::SPEC,
    &crate::kinds::git::SPEC,
    &crate::kinds::group::SPEC,
    &crate::kinds::hostname::SPEC,
    &crate::kinds::hosts::SPEC,
    &crate::kinds::ini::SPEC,
    &crate::kinds::json::SPEC,
    &crate::kinds::kmod::SPEC,
    &crate::kinds::kv::SPEC,
    &crate::kinds::line::SPEC,
    &crate::kinds::locale::SPEC,
    &crate::kinds::mount::SPEC,
    &crate::kinds::msg::SPEC,
    &crate::kinds::noop::SPEC,
    &crate::kinds::password::SPEC,
    &crate::kinds::pkg::SPEC,
    &crate::kinds::print::SPEC,
    &crate::kinds::probe::SPEC,
    &crate::kinds::replace::SPEC,
    &crate::kinds::repo::SPEC,
    &crate::kinds::ssh_authorized_key::SPEC,
    &crate::kinds::svc::SPEC,
    &crate::kinds::swap::SPEC,
    &crate::kinds::sysctl::SPEC,
    &crate::kinds::test::SPEC,
    &crate::kinds::timer::SPEC,
    &crate::kinds::timezone::SPEC,
    &crate::kinds::toml::SPEC,
    &crate::kinds::unit::SPEC,
    &crate::kinds::user::SPEC,
    &crate::kinds::value::SPEC,
    &crate::kinds::yaml::SPEC,
];

/// The kinds that a program knows; none by default. A program makes one set and passes it on; a clone is cheap.
#[derive(Clone, Default)]
pub struct KindSet {
    specs: Arc<[&'static KindSpec]>,
    elsewhere: Arc<[&'static str]>,
}

impl KindSet {
    /// Returns the kinds of this build, by name.
    #[must_use]
    pub fn of_this_build() -> Self {
        Self { specs: SPECS.into(), elsewhere: ELSEWHERE.into() }
    }

    /// Creates a set of given kinds, and of the names of kinds that exist only in other builds.
    #[must_use]
    pub fn new(specs: Vec<&'static KindSpec>, elsewhere: Vec<&'static str>) -> Self {
        Self { specs: specs.into(), elsewhere: elsewhere.into() }
    }

    /// Returns every kind.
    pub fn specs(&self) -> impl Iterator<Item = &'static KindSpec> + use<'_> {
        self.specs.iter().copied()
    }

    /// Returns the name of every kind.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<'_> {
        self.specs().map(|spec| spec.kind)
    }

    /// Returns the kind of this name.
    #[must_use]
    pub fn find(&self, kind: &str) -> Option<&'static KindSpec> {
        self.specs().find(|spec| spec.kind == kind)
    }

    /// Returns true if a graph may use this kind, in this build or another.
    #[must_use]
    pub fn is_known(&self, kind: &str) -> bool {
        self.find(kind).is_some() || self.is_elsewhere(kind)
    }

    /// Returns true if only other builds have a kind of this name.
    #[must_use]
    pub fn is_elsewhere(&self, kind: &str) -> bool {
        self.elsewhere.contains(&kind)
    }

    /// Returns true if the values that the resource (`kind[name]`) sends are made once and last as long as they
    /// are stored.
    #[must_use]
    pub fn is_made_once(&self, identity: &str) -> bool {
        let kind = ResourceId::parse(identity).and_then(|id| self.find(id.kind));
        kind.is_some_and(|spec| spec.sends.iter().any(|sent| sent.once))
    }

    /// Builds the resource (`kind[name]`) that restores the values from before a change.
    ///
    /// # Errors
    ///
    /// Returns the reason if the resource cannot have these values again.
    pub fn restoring(&self, identity: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
        let id = ResourceId::parse(identity);
        let restore = id.and_then(|id| Some((self.find(id.kind)?.restore?, id.name)));
        if let Some((restore, name)) = restore {
            return restore(name, values);
        }
        let what = format!("values of {identity} cannot be restored");
        Err(Failure::new(what).hint("`steadfast history` shows them: set them by hand"))
    }
}

/// Two sets are equal if they have the same names.
impl PartialEq for KindSet {
    fn eq(&self, other: &Self) -> bool {
        self.names().eq(other.names()) && self.elsewhere == other.elsewhere
    }
}

impl fmt::Debug for KindSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// Kinds that exist elsewhere (mgmt, and later builds) and not in this build: they get their own error.
const ELSEWHERE: &[&str] = &[
    "augeas",
    "aws:ec2",
    "container",
    "dhcp:host",
    "dhcp:range",
    "dhcp:server",
    "docker:container",
    "docker:image",
    "firewalld",
    "gsettings",
    "gzip",
    "hetzner:vm",
    "http:server",
    "net",
    "nftables",
    "nspawn",
    "pippet",
    "tar",
    "tftp:server",
    "virt",
    "virt:builder",
];
