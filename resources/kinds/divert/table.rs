//! The table of diversions of dpkg: three lines for each, with the file, its other name, and the package.

use super::{PACKAGE, TO};
use crate::failure::Failure;
use crate::host::Host;
use crate::parts::text_edit::text_of;
use crate::prior_state::FieldValues;
use std::path::{Path, PathBuf};

/// The table.
pub(super) const TABLE: &str = "/var/lib/dpkg/diversions";

/// The value of a diversion without a package.
pub(super) const LOCAL: &str = "none";

/// The mark of a diversion without a package in the table.
const LOCAL_MARK: &str = ":";

/// A diversion of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diversion {
    pub(crate) to: PathBuf,
    /// The package whose own file keeps its name.
    pub(crate) package: Option<String>,
}

impl Diversion {
    /// Returns the values that are compared and recorded.
    pub(super) fn values(&self) -> FieldValues {
        let package = self.package.clone().unwrap_or_else(|| LOCAL.to_owned());
        vec![(TO, Some(self.to.display().to_string())), (PACKAGE, Some(package))]
    }
}

/// Returns the diversion of a file; none if the file is not diverted.
///
/// # Errors
///
/// Fails if the table cannot be read.
pub(crate) fn find_diversion(host: &Host, path: &Path) -> Result<Option<Diversion>, Failure> {
    let text = text_of(host.files(), Path::new(TABLE))?.unwrap_or_default();
    Ok(parse(&text, path))
}

/// Returns the paths of all diverted files.
///
/// # Errors
///
/// Fails if the table cannot be read.
pub(crate) fn diverted_files(host: &Host) -> Result<Vec<String>, Failure> {
    let text = text_of(host.files(), Path::new(TABLE))?.unwrap_or_default();
    Ok(text.lines().step_by(3).map(str::to_owned).collect())
}

fn parse(text: &str, path: &Path) -> Option<Diversion> {
    let mut lines = text.lines();
    while let (Some(file), Some(to), Some(package)) = (lines.next(), lines.next(), lines.next()) {
        if Path::new(file) == path {
            let package = (package != LOCAL_MARK).then(|| package.to_owned());
            return Some(Diversion { to: PathBuf::from(to), package });
        }
    }
    None
}

/// Returns true if the text can be the name of a package.
pub(super) fn is_package(text: &str) -> bool {
    let is_sign =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    let starts_well = text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    starts_well && text.len() > 1 && text.len() <= 128 && text.bytes().all(is_sign)
}

#[cfg(test)]
mod tests {
    use super::{Diversion, is_package, parse};
    use std::path::Path;

    #[test]
    fn the_row_of_a_file_is_found() {
        let text = "/bin/sh\n/bin/sh.distrib\ndash\n/etc/a\n/etc/a.x\n:\n";
        let local = Diversion { to: "/etc/a.x".into(), package: None };
        assert_eq!(parse(text, Path::new("/etc/a")), Some(local));
        let dash = Diversion { to: "/bin/sh.distrib".into(), package: Some("dash".to_owned()) };
        assert_eq!(parse(text, Path::new("/bin/sh")), Some(dash));
        assert_eq!(parse(text, Path::new("/bin/sh.distrib")), None, "only first lines are files");
        assert_eq!(parse("/etc/a\n", Path::new("/etc/a")), None, "a broken row is none");
    }

    #[test]
    fn names_of_packages_are_checked() {
        assert!(is_package("libc6.1-dev") && is_package("g++"));
        for bad in ["", "a", "-x", "A b", "x/y", "Nginx"] {
            assert!(!is_package(bad), "{bad}");
        }
    }
}
