//! The files that an installed package brings, from the lists of dpkg.

use crate::host::kernel::is_bound_to_thread;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The folder of the lists.
const LISTS: &str = "/var/lib/dpkg/info";

/// The largest list in bytes.
const LARGEST: u64 = 8 << 20;

/// The folders of unit files.
const UNITS: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];

/// The settings and units of an installed package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackagedFiles {
    /// The files below /etc.
    pub settings: Vec<PathBuf>,
    /// The names of the units.
    pub units: Vec<String>,
}

impl PackagedFiles {
    /// Reads the list of a package; an unknown package and a simulated host have none.
    #[must_use]
    pub fn read(package: &str) -> Self {
        if is_bound_to_thread() {
            return Self::default();
        }
        let folder = Path::new(LISTS);
        let plain = folder.join(format!("{package}.list"));
        let own = || folder.join(format!("{package}:{}.list", architecture()));
        let text = read_list(&plain).or_else(|| read_list(&own()));
        text.map(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// Parses a list: one path a line, each folder before its files.
    fn parse(text: &str) -> Self {
        let parent = |line: &'_ str| line.rsplit_once('/').map(|(parent, _)| parent.to_owned());
        let folders: HashSet<String> = text.lines().filter_map(parent).collect();
        let files = text.lines().filter(|line| !folders.contains(*line));
        let mut found = Self::default();
        for line in files {
            let path = Path::new(line);
            if path.starts_with("/etc") {
                found.settings.push(path.to_owned());
            } else if path
                .parent()
                .is_some_and(|parent| UNITS.iter().any(|it| parent == Path::new(it)))
                && let Some(name) = path.file_name().and_then(|name| name.to_str())
            {
                found.units.push(name.to_owned());
            }
        }
        found
    }
}

fn read_list(path: &Path) -> Option<String> {
    let size = std::fs::metadata(path).ok()?.len();
    (size <= LARGEST).then(|| std::fs::read_to_string(path).ok()).flatten()
}

/// Returns the name that Debian gives to the architecture of this program.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "i386",
        "arm" => "armhf",
        "powerpc64" => "ppc64el",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::PackagedFiles;
    use std::path::PathBuf;

    #[test]
    fn settings_and_units_are_found() {
        let text = "/.\n/etc\n/etc/ssh\n/etc/ssh/moduli\n/etc/default\n/etc/default/ssh\n/usr\n\
            /usr/lib/systemd/system\n/usr/lib/systemd/system/ssh.service\n\
            /usr/lib/systemd/system/ssh.service.d\n/usr/lib/systemd/system/ssh.service.d/a.conf\n\
            /usr/sbin/sshd\n";
        let found = PackagedFiles::parse(text);
        assert_eq!(found.settings, ["/etc/ssh/moduli", "/etc/default/ssh"].map(PathBuf::from));
        assert_eq!(found.units, ["ssh.service"]);
        assert_eq!(PackagedFiles::parse(""), PackagedFiles::default());
    }
}
