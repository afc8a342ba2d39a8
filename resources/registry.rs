//! Which kinds there are, here and elsewhere.

use crate::failure::Failure;
use crate::kind::KindSpec;
use crate::prior_state::FormerValue;
use crate::resource::Resource;
use std::sync::Arc;

static SPECS: [&KindSpec; 11] = [
    &crate::kinds::exec::SPEC,
    &crate::kinds::file::SPEC,
    &crate::kinds::msg::SPEC,
    &crate::kinds::noop::SPEC,
    &crate::kinds::password::SPEC,
    &crate::kinds::pkg::SPEC,
    &crate::kinds::print::SPEC,
    &crate::kinds::svc::SPEC,
    &crate::kinds::test::SPEC,
    &crate::kinds::timer::SPEC,
    &crate::kinds::value::SPEC,
];

/// Every kind of this build, by name.
#[must_use]
pub fn specs() -> &'static [&'static KindSpec] {
    &SPECS
}

/// The kind of that name.
#[must_use]
pub fn find(kind: &str) -> Option<&'static KindSpec> {
    specs().iter().copied().find(|spec| spec.kind == kind)
}

/// Whether what a resource (`kind[name]`) sends is made once, and is there as long as it is kept.
#[must_use]
pub fn is_made_once(identity: &str) -> bool {
    let kind = identity.split_once('[').and_then(|(kind, _)| find(kind));
    kind.is_some_and(|spec| spec.sends.iter().any(|sent| sent.once))
}

/// A resource as it was before a change.
#[derive(Debug)]
pub struct Restoring {
    /// It is checked and applied as one that a graph declares.
    pub resource: Arc<dyn Resource>,
    /// The command that does the same by hand.
    pub by_hand: String,
}

/// A resource (`kind[name]`) with the values that it had before a change; or why it cannot have them again.
pub fn restoring(identity: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    let parts =
        identity.split_once('[').and_then(|(kind, rest)| Some((kind, rest.strip_suffix(']')?)));
    if let Some(("pkg", name)) = parts {
        return crate::kinds::pkg::restoring(name, values);
    }
    let what = format!("values of {identity} cannot be put back");
    Err(Failure::new(what).hint("`steadfast history` shows them: set them by hand"))
}

/// Kinds that exist elsewhere (mgmt, and later builds) and not yet here: they get their own error.
pub const ELSEWHERE: &[&str] = &[
    "archive",
    "augeas",
    "aws:ec2",
    "block",
    "container",
    "cron",
    "dhcp:host",
    "dhcp:range",
    "dhcp:server",
    "docker:container",
    "docker:image",
    "fetch",
    "firewall",
    "firewalld",
    "git",
    "group",
    "gsettings",
    "gzip",
    "hetzner:vm",
    "hostname",
    "hosts",
    "http:server",
    "ini",
    "json",
    "kmod",
    "kv",
    "line",
    "locale",
    "mount",
    "net",
    "nftables",
    "nspawn",
    "pippet",
    "probe",
    "repo",
    "ssh:authorized_key",
    "swap",
    "sysctl",
    "tar",
    "tftp:server",
    "timezone",
    "toml",
    "unit",
    "user",
    "virt",
    "virt:builder",
    "yaml",
];
