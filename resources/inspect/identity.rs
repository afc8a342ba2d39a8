//! Inspection of the host's name and time zone.

use super::{Inspected, Inspector, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::host::Host;
use crate::parts::assignment::value_of;
use crate::parts::text_edit::text_of;
use rustix::fs::FileType;
use std::path::Path;

pub(super) const HOSTNAME: Inspector =
    Inspector { kind: "hostname", one: one_name, all: Some(all_names) };

pub(super) const TIMEZONE: Inspector =
    Inspector { kind: "timezone", one: one_zone, all: Some(all_zones) };

/// The present name of the kernel.
const KERNEL_NAME: &str = "/proc/sys/kernel/hostname";

const ZONES: &str = "/usr/share/zoneinfo/";

/// Returns the first line of a file.
fn first_line(host: &Host, path: &str) -> Result<Option<String>, Failure> {
    let content = text_of(host.files(), Path::new(path))?;
    let line = content.as_deref().and_then(|content| content.lines().next());
    Ok(line.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()))
}

fn one_name<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let found = first_line(host, "/etc/hostname")?;
        if found.as_deref() != Some(name) {
            return Ok(None);
        }
        let machine = text_of(host.files(), Path::new("/etc/machine-info"))?.unwrap_or_default();
        let pretty = value_of(&machine, "PRETTY_HOSTNAME");
        let pretty = pretty.map(|value| text("pretty_hostname", &value));
        let path = Path::new(KERNEL_NAME);
        let kernel = host.files().kernel_file(path);
        let kernel = kernel.map_err(|fault| host.files().failure(fault, path))?;
        let kernel = String::from_utf8_lossy(&kernel.unwrap_or_default()).trim().to_owned();
        let is_other = !kernel.is_empty() && kernel != name;
        let transient = is_other.then(|| text("transient_hostname", kernel));
        let fields = transient.into_iter().chain(pretty).collect();
        Ok(Some(Inspected::new(name.to_owned(), fields)))
    })
}

fn all_names(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move { Ok(first_line(host, "/etc/hostname")?.into_iter().collect()) })
}

/// Returns the name of the zone that /etc/localtime links to.
fn zone_of(host: &Host) -> Result<Option<String>, Failure> {
    let path = Path::new("/etc/localtime");
    let read = || {
        let Some(spot) = host.files().open_entry(path)? else { return Ok(None) };
        match spot.look()? {
            Some(seen) if seen.kind == FileType::Symlink => spot.target().map(Some),
            _ => Ok(None),
        }
    };
    let target = read().map_err(|fault| host.files().failure(fault, path))?;
    let target = target.and_then(|target| String::from_utf8(target).ok());
    let zone = target.as_deref().and_then(|target| {
        target.strip_prefix(ZONES).or_else(|| target.strip_prefix("../usr/share/zoneinfo/"))
    });
    Ok(zone.map(ToOwned::to_owned))
}

fn one_zone<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let found = zone_of(host)?.filter(|zone| zone == name);
        Ok(found.map(|name| Inspected::new(name, Vec::new())))
    })
}

fn all_zones(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move { Ok(zone_of(host)?.into_iter().collect()) })
}
