//! The prior values of a package, and the package that restores them.

use super::name::{is_name, is_version};
use super::{Answers, Conffiles, Declared, Pkg, Together, Want, declare};
use crate::failure::Failure;
use crate::host::packages::{Packages, State};
use crate::kind::Restoring;
use crate::prior_state::{After, FieldValues, FormerValue};
use std::sync::{Arc, OnceLock};

const VERSION: &str = "version";
const CONFIGURATION: &str = "configuration";
const HOLD: &str = "hold";
const HELD: &str = "held";
const KEPT: &str = "kept";

/// Returns the present values of a package from dpkg.
pub(super) fn values(name: &str, packages: &Packages) -> FieldValues {
    let package = packages.get(name);
    let version = package.and_then(|package| match &package.state {
        State::Installed => Some(package.version.clone()),
        State::Broken(word) => Some(format!("{} ({word})", package.version)),
        State::Configuration | State::Absent => None,
    });
    let is_kept = package.is_some_and(|package| package.state == State::Configuration);
    let is_held = package.is_some_and(|package| package.held);
    let hold = if is_held { HELD } else { "not held" };
    vec![
        (VERSION, version),
        (CONFIGURATION, is_kept.then(|| KEPT.to_owned())),
        (HOLD, Some(hold.to_owned())),
    ]
}

/// Builds the package that restores its values from before a change.
///
/// # Errors
///
/// Returns the reason if the package cannot have these values again.
pub(crate) fn restoring(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    if !is_name(name) {
        return Err(Failure::new(format!("{name} is no name of a package")));
    }
    let of = |field: &str| values.iter().find(|value| value.field == field);
    let before = |field| of(field).and_then(|value| value.before.as_deref());
    let is_gone = |field| of(field).is_some_and(|value| value.after == After::Absent);
    let (want, by_hand) = match before(VERSION) {
        None if before(CONFIGURATION).is_some() && is_gone(CONFIGURATION) && is_gone(VERSION) => {
            let what = format!("the configuration of {name} was purged, and it is not kept");
            return Err(Failure::new(what).hint("put it back from a backup of the host"));
        }
        None => (Want::Absent, format!("apt-get remove {name}")),
        Some(version) if is_version(version) => {
            (Want::Version(version.to_owned()), format!("apt-get install {name}={version}"))
        }
        Some(version) => {
            let what = format!("{name} was not whole before: {version}");
            let hint = "by hand: `dpkg --configure -a`, then `apt-get install` the wanted version";
            return Err(Failure::new(what).hint(hint));
        }
    };
    let declared = Arc::new(Declared {
        name: name.to_owned(),
        hold: (want != Want::Absent).then(|| before(HOLD) == Some(HELD)),
        want,
        purge: false,
        recommends: None,
        conffiles: Conffiles::Keep,
        cache_age: None,
        debconf: Answers(Vec::new()),
        lock_wait: declare::PATIENCE,
    });
    let alone = Together(vec![Arc::clone(&declared)]);
    let resource = Arc::new(Pkg { alone, declared, provided: OnceLock::new() });
    Ok(Restoring { resource, by_hand })
}

#[cfg(test)]
mod tests {
    use super::{After, FormerValue, restoring, values};
    use crate::host::packages::Packages;

    const STATUS: &str = "Package: dpkg\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n\n\
        Package: whole\nStatus: hold ok installed\nArchitecture: amd64\nVersion: 2:1.0-1\n\n\
        Package: left\nStatus: deinstall ok config-files\nArchitecture: all\nVersion: 3\n\n\
        Package: half\nStatus: install ok half-configured\nArchitecture: amd64\nVersion: 4\n\n";

    #[test]
    fn a_package_is_told_by_its_values() {
        let packages = Packages::parse(STATUS);
        let texts = |name: &str| values(name, &packages).into_iter().map(|(_, value)| value);
        let of = |name| texts(name).map(Option::unwrap_or_default).collect::<Vec<_>>();
        assert_eq!(of("whole"), ["2:1.0-1", "", "held"]);
        assert_eq!(of("left"), ["", "kept", "not held"]);
        assert_eq!(of("half"), ["4 (half-configured)", "", "not held"]);
        assert_eq!(of("nowhere"), ["", "", "not held"]);
    }

    #[test]
    fn only_what_a_package_can_be_again_is_put_back() {
        let value = |field: &str, before: Option<&str>, after: Option<&str>| FormerValue {
            field: field.to_owned(),
            before: before.map(ToOwned::to_owned),
            after: After::from(after.map(ToOwned::to_owned)),
        };
        let by_hand = |values: &[FormerValue]| {
            restoring("some", values).map(|found| found.by_hand).map_err(|failure| failure.what)
        };
        let came = [value("version", None, Some("1"))];
        assert_eq!(by_hand(&came).as_deref(), Ok("apt-get remove some"));
        let went = [value("version", Some("1"), None), value("configuration", None, Some("kept"))];
        assert_eq!(by_hand(&went).as_deref(), Ok("apt-get install some=1"));
        let purged = [value("version", None, None), value("configuration", Some("kept"), None)];
        assert!(by_hand(&purged).unwrap_err().contains("purged"));
        let half = [value("version", Some("1 (half-installed)"), Some("1"))];
        assert!(by_hand(&half).unwrap_err().contains("not whole"));
        assert!(restoring("-o", &came).is_err());
    }
}
