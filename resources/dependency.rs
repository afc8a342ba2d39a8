//! What a resource offers to others and what it needs of them: the graph makes automatic edges of it.

use std::path::{Component, Path, PathBuf};

/// Something of the host that one resource makes and others need.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostObject {
    /// What is at this path (normalised, absolute).
    Path(PathBuf),
    /// A user, by name.
    User(String),
    /// A group, by name.
    Group(String),
    /// The definition of a unit of systemd: its file, or a drop-in.
    Unit {
        /// It is one of the user's, not the machine's.
        session: bool,
        /// Its whole name.
        name: String,
    },
}

/// Something that must be there before a resource can be as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// It.
    pub token: HostObject,
    /// Who else will do.
    pub scope: Match,
    /// Why, in a few words that follow on "automatic:".
    pub because: &'static str,
}

/// Who else serves a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// Nobody: whoever offers just that, all of them.
    Exact,
    /// Of a path that nobody offers, the nearest directory above it.
    OrAbove,
    /// Of a path, also all that is offered below it; where there is none of either, the nearest directory above it.
    AndBelow,
}

impl Need {
    /// Whoever offers just this.
    #[must_use]
    pub fn exact(token: HostObject, because: &'static str) -> Self {
        Self { token, scope: Match::Exact, because }
    }

    /// What is at this path, or the nearest directory above it.
    pub fn path(path: impl Into<PathBuf>, because: &'static str) -> Self {
        Self { token: HostObject::Path(plain(&path.into())), scope: Match::OrAbove, because }
    }

    /// What is at this path and below it.
    pub fn tree(path: impl Into<PathBuf>, because: &'static str) -> Self {
        Self { token: HostObject::Path(plain(&path.into())), scope: Match::AndBelow, because }
    }

    /// A user by name; a number needs nobody.
    #[must_use]
    pub fn user(name: &str, because: &'static str) -> Option<Self> {
        is_name(name).then(|| Self::exact(HostObject::User(name.to_owned()), because))
    }

    /// A group by name; a number needs nobody.
    #[must_use]
    pub fn group(name: &str, because: &'static str) -> Option<Self> {
        is_name(name).then(|| Self::exact(HostObject::Group(name.to_owned()), because))
    }
}

fn is_name(text: &str) -> bool {
    !text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Without a slash at its end, and without empty parts and dots.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

/// Where units of the machine and of its users are defined.
const FOLDERS: [(&str, bool); 7] = [
    ("/etc/systemd/system", false),
    ("/run/systemd/system", false),
    ("/usr/lib/systemd/system", false),
    ("/lib/systemd/system", false),
    ("/etc/systemd/user", true),
    ("/run/systemd/user", true),
    ("/usr/lib/systemd/user", true),
];

impl HostObject {
    /// The unit that a file at this path defines, or adds to (`NAME.d/x.conf`).
    #[must_use]
    pub fn unit_of(path: &Path) -> Option<Self> {
        let mut folders = FOLDERS.into_iter();
        let (rest, session) = folders
            .find_map(|(folder, session)| Some((path.strip_prefix(folder).ok()?, session)))
            .or_else(|| Some((below_home(path)?, true)))?;
        let mut parts = rest.components().map(|part| part.as_os_str().to_str());
        let (first, second) = (parts.next()??, parts.next());
        let name = match second {
            None => first,
            Some(Some(drop_in)) if suffix(drop_in) == "conf" => first.strip_suffix(".d")?,
            Some(_) => return None,
        };
        let is_unit = parts.next().is_none() && !matches!(suffix(name), "" | "conf" | "d");
        is_unit.then(|| Self::Unit { session, name: name.to_owned() })
    }
}

fn suffix(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, suffix)| suffix)
}

/// What follows on `.config/systemd/user`, in whoever's home.
fn below_home(path: &Path) -> Option<&Path> {
    let folder = Path::new(".config/systemd/user");
    let home = path.ancestors().find(|above| above.ends_with(folder))?;
    path.strip_prefix(home).ok()
}

#[cfg(test)]
mod tests {
    use super::{HostObject, Need};
    use std::path::Path;

    #[test]
    fn files_of_units_are_known_by_their_path() {
        for (path, unit) in [
            ("/etc/systemd/system/web.service", Some((false, "web.service"))),
            ("/etc/systemd/system/web.service.d/limits.conf", Some((false, "web.service"))),
            ("/usr/lib/systemd/system/web@.service", Some((false, "web@.service"))),
            ("/home/eve/.config/systemd/user/a.timer", Some((true, "a.timer"))),
            ("/etc/systemd/user/a.timer.d/x.conf", Some((true, "a.timer"))),
            ("/etc/systemd/system/multi-user.target.wants/web.service", None),
            ("/etc/systemd/system/web.service.d", None),
            ("/etc/systemd/system", None),
            ("/etc/systemd/system.conf", None),
            ("/srv/web.service", None),
        ] {
            let expected = unit.map(|(session, name)| {
                let name = name.to_owned();
                HostObject::Unit { session, name }
            });
            assert_eq!(HostObject::unit_of(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn numbers_need_nobody_and_paths_are_plain() {
        assert_eq!(Need::user("0", ""), None);
        assert!(Need::user("www-data", "").is_some() && Need::group("adm", "").is_some());
        assert_eq!(Need::path("/a/./b/", "").token, HostObject::Path("/a/b".into()));
    }
}
