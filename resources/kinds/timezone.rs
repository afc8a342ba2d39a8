//! `timezone`: the time zone of the host: the link `/etc/localtime` and the name in `/etc/timezone`.

use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::{Fault, said};
use crate::kind::KindSpec;
use crate::parts::FieldReader;
use crate::parts::Sequence;
use crate::parts::alternative::Alternative;
use crate::parts::field_reader::bounded;
use crate::parts::whole_file::{Shape, managed_file};
use crate::resource::Resource;
use crate::secrets::escape::short;
use crate::values::sent_values::SendSpec;
use rustix::fs::FileType;
use std::path::Path;
use std::sync::Arc;

/// The directory of the time zones.
const ZONES: &str = "/usr/share/zoneinfo";

/// The link of the C library.
const LINK: &str = "/etc/localtime";

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "timezone",
    collectible: false,
    doc: "Manages the time zone of the host. The name of the resource is the zone, unless `zone` is given. The zone stays when the resource leaves the graph.",
    fields: &[FieldSpec::new(
        "zone",
        FieldType::Text,
        "Name of a zone below /usr/share/zoneinfo, from the package tzdata; default: the name of the resource. Running programs keep their zone until they start again.",
    ).mode(FieldMode::Value)
    .example("Europe/Berlin")
    .receives(Receives::Shown)],
    sends: &[SendSpec::new("zone", FieldType::Text, "The time zone.")],
    example: "timezone:\n  - name: Europe/Berlin\n",
    restore: None,
    build,
};

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let zone = reader.text("zone").unwrap_or_else(|| name.to_owned());
    if !is_zone(&zone) {
        let what = format!("expected a time zone, found {}", short(&zone, 40));
        let hint = "for example Europe/Berlin or Etc/UTC; `timedatectl list-timezones` shows all";
        reader.reject(Invalid::field("zone", bounded(what)).hint(hint));
    }
    reader.finish(())?;
    let (full, relative) = (format!("{ZONES}/{zone}"), format!("..{ZONES}/{zone}"));
    let link = |target: &str| managed_file(Path::new(LINK), Shape::Link(target), &[]);
    let forms = vec![link(&full)?, link(&relative)?];
    let choose = Box::new(move |host: &Host| choose_link(host, &full, &relative));
    let text = format!("{zone}\n");
    let elements: Vec<Arc<dyn Resource>> = vec![
        Arc::new(Alternative::new(forms, choose)),
        managed_file(Path::new("/etc/timezone"), Shape::Content(&text, "0644"), &[])?,
    ];
    let own = HostObject::Other("timezone", "the time zone of the host".to_owned());
    let zones = HostObject::Package("tzdata".to_owned());
    let extra = Footprint {
        claims: vec![Claim::exclusive(own).creating(false)],
        requires: vec![Need::exact(zones, "contains the time zones")],
        ..Footprint::default()
    };
    Ok(Arc::new(Sequence::new(elements).with_extra(extra).sending("zone", zone)))
}

/// Returns true if the text can be the name of a zone: parts of letters, digits and a few signs, without dots.
fn is_zone(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+".contains(&byte);
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_sign);
    text.len() <= 60 && text.split('/').all(is_part)
}

/// Keeps the form of a link that leads to the zone already: an absolute one, or the relative one of timedatectl.
///
/// # Errors
///
/// Fails if the host does not know the zone.
fn choose_link(host: &Host, full: &str, relative: &str) -> Result<usize, Failure> {
    let files = host.files();
    let zone = Path::new(full);
    let look = || -> Result<bool, Fault> {
        let found = files.origin(zone)?;
        Ok(found.is_some_and(|zone| zone.seen().kind == FileType::RegularFile))
    };
    if !look().map_err(|fault| files.failure(fault, zone))? {
        let failure = said("use", zone, "the host does not know this time zone");
        let hint = "install the package tzdata, or choose one of `timedatectl list-timezones`";
        return Err(failure.hint(hint).passing());
    }
    let path = Path::new(LINK);
    let target = || -> Result<Option<Vec<u8>>, Fault> {
        let Some(spot) = files.open_entry(path)? else { return Ok(None) };
        match spot.look()? {
            Some(seen) if seen.kind == FileType::Symlink => spot.target().map(Some),
            _ => Ok(None),
        }
    };
    let target = target().map_err(|fault| files.failure(fault, path))?;
    Ok(usize::from(target.is_some_and(|target| target == relative.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::is_zone;

    #[test]
    fn names_of_zones_stay_below_their_directory() {
        for good in ["UTC", "Etc/GMT+2", "America/Argentina/Buenos_Aires", "Europe/Berlin"] {
            assert!(is_zone(good), "{good}");
        }
        for bad in
            ["", "/etc/passwd", "../x", "Europe/", "Europe//Berlin", "a b", "Europe/..", "x.tab"]
        {
            assert!(!is_zone(bad), "{bad}");
        }
    }
}
