//! The objects that a package brings: its settings and units.
//!
//! The lists of dpkg name the files of an installed package. A package that is not installed yet brings what packages
//! with its name usually bring.

use super::Declared;
use crate::dependency::HostObject;
use crate::host::packages::PackagedFiles;
use std::path::PathBuf;

/// The usual places of the settings of a package.
const USUAL: [(&str, &str); 6] = [
    ("/etc/", ""),
    ("/etc/", ".conf"),
    ("/etc/default/", ""),
    ("/etc/logrotate.d/", ""),
    ("/var/lib/", ""),
    ("/usr/share/", ""),
];

/// Returns what the package brings.
pub(super) fn provided_objects(declared: &Declared) -> Vec<HostObject> {
    let (name, _) = declared.name.split_once(':').unwrap_or((&declared.name, ""));
    if !declared.is_to_be_there() {
        return Vec::new();
    }
    let found = PackagedFiles::read(name);
    let usual = USUAL.iter().map(|(start, end)| PathBuf::from(format!("{start}{name}{end}")));
    let paths = usual.chain(found.settings).map(HostObject::Packaged);
    let unit = |name: String| HostObject::Unit { session: false, name };
    let units = found.units.into_iter().chain([format!("{name}.service")]);
    let mut all: Vec<HostObject> = paths.chain(units.map(unit)).collect();
    all.push(HostObject::Package(name.to_owned()));
    all.sort();
    all.dedup();
    all
}
