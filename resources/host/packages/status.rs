//! Parses dpkg's status file.

use std::collections::HashMap;

/// The packages known to dpkg, by name.
#[derive(Debug, Default)]
pub struct Packages {
    by_name: HashMap<String, Vec<Package>>,
    /// The host's own architecture.
    native: String,
}

/// A package known to dpkg.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// The architecture: `all`, or one like `amd64`.
    pub architecture: String,
    /// The present or last version.
    pub version: String,
    /// The package is on hold, which prevents changes.
    pub held: bool,
    /// The state of the installation.
    pub state: State,
}

/// The state of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Completely installed.
    Installed,
    /// Removed except for the configuration.
    Configuration,
    /// Not installed.
    Absent,
    /// Interrupted or failed, with dpkg's own word for the state.
    Broken(String),
}

impl Packages {
    /// Parses a status file; paragraphs without a package name are skipped.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut packages = Self::default();
        for paragraph in text.split("\n\n") {
            let Some((name, package)) = package(paragraph) else { continue };
            if name == "dpkg" {
                packages.native.clone_from(&package.architecture);
            }
            packages.by_name.entry(name.to_owned()).or_default().push(package);
        }
        packages
    }

    /// Returns a package by its name, or by `name:architecture` for a foreign architecture.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Package> {
        let (name, wanted) = match name.split_once(':') {
            Some((name, architecture)) => (name, architecture),
            None => (name, self.native.as_str()),
        };
        let fits = |package: &&Package| {
            package.architecture == wanted
                || (package.architecture == "all" && wanted == self.native)
        };
        self.by_name.get(name)?.iter().find(fits)
    }

    /// Returns the name as apt writes it, without the host's own architecture.
    #[must_use]
    pub fn short<'a>(&self, name: &'a str) -> &'a str {
        match name.split_once(':') {
            Some((short, architecture)) if architecture == self.native => short,
            _ => name,
        }
    }

    /// Returns the name as dpkg accepts it: a package for all architectures has no other name.
    #[must_use]
    pub fn own<'a>(&self, name: &'a str) -> &'a str {
        match (name.split_once(':'), self.get(name)) {
            (Some((short, _)), Some(package)) if package.architecture == "all" => short,
            _ => name,
        }
    }

    /// Returns the packages with an interrupted or failed installation.
    pub fn broken(&self) -> impl Iterator<Item = &str> {
        let is_broken = |package: &Package| matches!(package.state, State::Broken(_));
        self.by_name
            .iter()
            .filter(move |(_, packages)| packages.iter().any(is_broken))
            .map(|(name, _)| name.as_str())
    }
}

fn package(paragraph: &str) -> Option<(&str, Package)> {
    let (mut name, mut status) = (None, "");
    let (mut version, mut architecture) = ("", "");
    for line in paragraph.lines() {
        let Some((key, value)) = line.split_once(": ") else { continue };
        match key {
            "Package" => name = Some(value),
            "Status" => status = value,
            "Version" => version = value,
            "Architecture" => architecture = value,
            _ => {}
        }
    }
    let mut words = status.split(' ');
    let (want, flag, state) = (words.next()?, words.next()?, words.next()?);
    let state = match (state, flag) {
        ("not-installed", _) => State::Absent,
        ("config-files", "ok") => State::Configuration,
        // A package that waits for triggers is installed, and the triggers are pending.
        ("installed" | "triggers-awaited" | "triggers-pending", "ok") => State::Installed,
        (state, _) => State::Broken(state.to_owned()),
    };
    let package = Package {
        architecture: architecture.to_owned(),
        version: version.to_owned(),
        held: want == "hold",
        state,
    };
    Some((name?, package))
}

#[cfg(test)]
mod tests {
    use super::{Packages, State};

    const STATUS: &str = "\
Package: dpkg
Status: install ok installed
Architecture: amd64
Version: 1.21.22
Description: a
 Package: not one
 .

Package: libc6
Status: install ok installed
Architecture: amd64
Multi-Arch: same
Version: 2.36-9

Package: libc6
Status: install ok half-configured
Architecture: i386
Multi-Arch: same
Version: 2.36-8

Package: adduser
Status: hold ok installed
Architecture: all
Version: 3.134

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1:1.0~rc1-1

Package: wrong
Status: install reinstreq installed
Architecture: amd64
Version: 1

Package: never
Status: unknown ok not-installed
Architecture: amd64
";

    #[test]
    fn packages_are_found_by_name_and_architecture() {
        let packages = Packages::parse(STATUS);
        let version = |name| packages.get(name).map(|package| package.version.as_str());
        assert_eq!(version("dpkg"), Some("1.21.22"));
        assert_eq!(version("libc6"), Some("2.36-9"));
        assert_eq!(version("libc6:amd64"), Some("2.36-9"));
        assert_eq!(version("libc6:i386"), Some("2.36-8"));
        assert_eq!(version("libc6:arm64"), None);
        assert_eq!(version("adduser"), Some("3.134"));
        assert_eq!(version("adduser:amd64"), Some("3.134"));
        assert_eq!(version("nothing"), None);
        assert_eq!(version("not one"), None);
        assert_eq!(packages.short("libc6:amd64"), "libc6");
        assert_eq!(packages.short("libc6:i386"), "libc6:i386");
        assert_eq!(packages.own("libc6:i386"), "libc6:i386");
        assert_eq!(packages.own("libc6:amd64"), "libc6:amd64");
        assert_eq!(packages.own("adduser:amd64"), "adduser");
        assert_eq!(packages.own("nothing:amd64"), "nothing:amd64");
    }

    #[test]
    fn each_install_state_is_recognised() {
        let packages = Packages::parse(STATUS);
        let state = |name| packages.get(name).map(|package| package.state.clone());
        assert_eq!(state("dpkg"), Some(State::Installed));
        assert_eq!(state("libc6:i386"), Some(State::Broken("half-configured".to_owned())));
        assert_eq!(state("gone"), Some(State::Configuration));
        assert_eq!(state("wrong"), Some(State::Broken("installed".to_owned())));
        assert_eq!(state("never"), Some(State::Absent));
        assert!(packages.get("adduser").is_some_and(|package| package.held));
        let mut broken: Vec<&str> = packages.broken().collect();
        broken.sort_unstable();
        assert_eq!(broken, ["libc6", "wrong"]);
    }

    #[test]
    fn nonsense_is_no_package() {
        for text in
            ["", "\n\n\n", "Package: a", "Status: install ok installed\n", "Package: a\nStatus: x"]
        {
            assert_eq!(Packages::parse(text).by_name.len(), 0, "{text}");
        }
    }
}
