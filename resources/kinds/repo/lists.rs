//! Names of the files in which apt stores the lists of a repository.

use crate::host::packages::LISTS;
use crate::host::{Host, PathInfo};
use std::path::{Path, PathBuf};

/// The possible names of one suite's list of contents. A folder without a signature has only its list of packages,
/// which apt keeps compressed if its settings say so.
const NAMES: [&str; 7] = [
    "InRelease",
    "Release",
    "Packages",
    "Packages.gz",
    "Packages.xz",
    "Packages.lz4",
    "Packages.zst",
];

/// The lists of a repository: for each suite of each address, the address and the common beginning of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ListNames(Vec<(String, PathBuf)>);

impl ListNames {
    /// Returns the names for these addresses and suites.
    pub(super) fn new(uris: &[String], suites: &[String]) -> Self {
        let names = uris.iter().flat_map(|uri| suites.iter().map(move |suite| (uri, suite)));
        let names = names.map(|(uri, suite)| {
            let (base, whole) = (uri.trim_end_matches('/'), suite.ends_with('/'));
            let folder = if whole { suite.clone() } else { format!("dists/{suite}/") };
            (uri.clone(), Path::new(LISTS).join(file_name(&format!("{base}/{folder}"))))
        });
        Self(names.collect())
    }

    /// Returns the possible paths of the lists.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.0.iter().flat_map(|(_, start)| candidates(start))
    }

    /// Returns the files of lists that exist.
    pub(super) async fn present(&self, host: &Host) -> Vec<PathBuf> {
        let mut present = Vec::new();
        for (_, start) in &self.0 {
            for path in candidates(start) {
                if host.look(&path).await.is_ok() {
                    present.push(path);
                }
            }
        }
        present
    }

    /// Returns the lists that exist, each with what tells it from another one.
    pub(super) async fn states(&self, host: &Host) -> Vec<(PathBuf, PathInfo)> {
        let mut states = Vec::new();
        for path in self.paths() {
            if let Ok(found) = host.look(&path).await {
                states.push((path, found));
            }
        }
        states
    }

    /// Returns an address whose lists apt has not read.
    pub(super) async fn missing(&self, host: &Host) -> Option<&str> {
        for (uri, start) in &self.0 {
            let mut is_read = false;
            for path in candidates(start) {
                is_read = is_read || host.look(&path).await.is_ok();
            }
            if !is_read {
                return Some(uri);
            }
        }
        None
    }
}

fn candidates(start: &Path) -> impl Iterator<Item = PathBuf> {
    NAMES.iter().map(move |name| {
        let mut path = start.as_os_str().to_owned();
        path.push(name);
        PathBuf::from(path)
    })
}

/// Returns the file name that apt makes of an address: without scheme and account, quoted, with `_` for `/`.
fn file_name(uri: &str) -> String {
    let rest = match uri.split_once("://") {
        Some((_, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            if host.is_empty() { format!("/{path}") } else { format!("{host}/{path}") }
        }
        None => uri.split_once(':').map_or(uri, |(_, path)| path).to_owned(),
    };
    let mut name = String::with_capacity(rest.len());
    for byte in rest.bytes() {
        match byte {
            b'/' => name.push('_'),
            _ if !(0x21..0x7f).contains(&byte) || b"\\|{}[]<>\"^~_=!@#$%&*".contains(&byte) => {
                name.push_str(&format!("%{byte:02x}"));
            }
            _ => name.push(char::from(byte)),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::{ListNames, file_name};

    #[test]
    fn names_are_those_of_apt() {
        for (uri, name) in [
            (
                "http://deb.debian.org/debian/dists/bookworm/",
                "deb.debian.org_debian_dists_bookworm_",
            ),
            ("https://me:pw@host:8443/a_b/./", "host:8443_a%5fb_._"),
            ("copy:/repo/./", "_repo_._"),
            ("file:///repo/./", "_repo_._"),
        ] {
            assert_eq!(file_name(uri), name, "{uri}");
        }
    }

    #[test]
    fn every_suite_of_every_address_has_lists() {
        let (uris, suites) = (["http://a/x/".into(), "http://b".into()], ["s".into(), "f/".into()]);
        let ListNames(names) = ListNames::new(&uris, &suites);
        let names: Vec<_> = names.iter().map(|(_, path)| path.file_name().unwrap()).collect();
        assert_eq!(names, ["a_x_dists_s_", "a_x_f_", "b_dists_s_", "b_f_"]);
    }
}
