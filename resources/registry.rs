//! The registry of kinds: those of this build, and the names of kinds that exist elsewhere.

use crate::failure::Failure;
use crate::kind::KindSpec;
pub use crate::kind::Restoring;
use crate::prior_state::FormerValue;
use crate::resource_id::ResourceId;

static SPECS: [&KindSpec; 38] = [
    &crate::kinds::archive::SPEC,
    &crate::kinds::block::SPEC,
    &crate::kinds::cron::SPEC,
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

/// Returns every kind of this build, by name.
#[must_use]
pub fn specs() -> &'static [&'static KindSpec] {
    &SPECS
}

/// Returns the kind of this name.
#[must_use]
pub fn find(kind: &str) -> Option<&'static KindSpec> {
    specs().iter().copied().find(|spec| spec.kind == kind)
}

/// Returns true if the values that the resource (`kind[name]`) sends are made once and last as long as they
/// are stored.
#[must_use]
pub fn is_made_once(identity: &str) -> bool {
    let kind = ResourceId::parse(identity).and_then(|id| find(id.kind));
    kind.is_some_and(|spec| spec.sends.iter().any(|sent| sent.once))
}

/// Builds the resource (`kind[name]`) that restores the values from before a change.
///
/// # Errors
///
/// Returns the reason if the resource cannot have these values again.
pub fn restoring(identity: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    let id = ResourceId::parse(identity);
    let restore = id.and_then(|id| Some((find(id.kind)?.restore?, id.name)));
    if let Some((restore, name)) = restore {
        return restore(name, values);
    }
    let what = format!("values of {identity} cannot be restored");
    Err(Failure::new(what).hint("`steadfast history` shows them: set them by hand"))
}

/// Kinds that exist elsewhere (mgmt, and later builds) and not in this build: they get their own error.
pub const ELSEWHERE: &[&str] = &[
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
