//! Objects that a resource offers to others or needs from them; the graph derives automatic edges from both.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// An object of the host. Claims, provided objects and required objects use this one vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostObject {
    /// The object at this path (normalised, absolute): its existence, owner and mode.
    Path(PathBuf),
    /// The bytes of the file at this path.
    Content(PathBuf),
    /// A part of a text file: a line, a key, a block, a table row.
    Part(PathBuf, Arc<str>),
    /// A value of a data file, by the keys down to it.
    Key(PathBuf, Arc<[String]>),
    /// A user, by name.
    User(String),
    /// A group, by name.
    Group(String),
    /// The membership of a user in a group.
    Member {
        /// The name of the group.
        group: String,
        /// The name of the user.
        user: String,
    },
    /// All members of a group.
    MembersOf(String),
    /// All supplementary groups of a user.
    GroupsOf(String),
    /// A systemd unit; as a provided object, the definition of the unit (its file, or a drop-in).
    Unit {
        /// True for a unit of a user's systemd, false for one of the machine's.
        session: bool,
        /// The full name of the unit.
        name: String,
    },
    /// A package, whatever its architecture.
    Package(String),
    /// A file or folder that a package brings, or the home directory that a user gets. Resources that write it, or
    /// something below it, come after its provider.
    Brought(PathBuf),
    /// A package repository, by the name of its list.
    Repository(String),
    /// The file system that is mounted at this path.
    Mount(PathBuf),
    /// A kernel parameter, by its path below /proc/sys.
    Sysctl(String),
    /// A loaded kernel module, with `_` for `-`.
    KernelModule(String),
    /// An object of another sort: the name of the sort, and the name of the object.
    Other(&'static str, String),
}

impl HostObject {
    /// The absence of the users that a graph removes. The groups that it removes come after it: a group can be the
    /// primary group of such a user.
    #[must_use]
    pub fn removed_users() -> Self {
        Self::Other("absence", "the removed users".to_owned())
    }

    /// The absence of a mount, after which its directory can be removed.
    #[must_use]
    pub fn ended_mount(point: &Path) -> Self {
        Self::Other("absence", format!("the mount at {}", point.display()))
    }

    /// Returns the larger objects that include this one: all members of the group of a membership, the values
    /// above a value. An exclusive claim on one of them contradicts a claim on this object.
    #[must_use]
    pub fn includers(&self) -> Vec<Self> {
        match self {
            Self::Member { group, user } => {
                vec![Self::MembersOf(group.clone()), Self::GroupsOf(user.clone())]
            }
            Self::Key(path, keys) => {
                let above = (1..keys.len()).filter_map(|count| keys.get(..count));
                above.map(|keys| Self::Key(path.clone(), keys.into())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the path of the object, if the object lies at a path.
    #[must_use]
    pub fn as_path(&self) -> Option<&Path> {
        match self {
            Self::Path(path)
            | Self::Content(path)
            | Self::Part(path, _)
            | Self::Key(path, _)
            | Self::Mount(path) => Some(path),
            _ => None,
        }
    }
}

impl fmt::Display for HostObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Content(path) => write!(f, "the content of {}", path.display()),
            Self::Part(path, part) => write!(f, "{part} in {}", path.display()),
            Self::Key(path, keys) => {
                write!(f, "the value {} in {}", keys.join("."), path.display())
            }
            Self::Member { group, user } => write!(f, "the membership of {user} in {group}"),
            Self::MembersOf(group) => write!(f, "the members of {group}"),
            Self::GroupsOf(user) => write!(f, "the groups of {user}"),
            Self::Brought(path) => path.display().fmt(f),
            Self::Mount(path) => write!(f, "the mount at {}", path.display()),
            Self::User(name)
            | Self::Group(name)
            | Self::Unit { name, .. }
            | Self::Package(name)
            | Self::Repository(name)
            | Self::Sysctl(name)
            | Self::KernelModule(name)
            | Self::Other(_, name) => f.write_str(name),
        }
    }
}

/// An object that must exist before a resource can be as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The needed object.
    pub token: HostObject,
    /// The other objects that satisfy the need.
    pub scope: Match,
    /// The reason, in a few words that follow "automatic:".
    pub because: &'static str,
}

/// The rule for objects that satisfy a need besides the exact one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// Only the exact object; every resource that offers the object.
    Exact,
    /// Every offered repository, whatever its name.
    EveryRepository,
    /// The exact path; if no resource offers the path, the nearest offered directory above.
    OrAbove,
    /// The path and everything offered below; if neither is offered, the nearest offered directory above.
    AndBelow,
}

impl Need {
    /// Makes a need for exactly this object.
    #[must_use]
    pub fn exact(token: HostObject, because: &'static str) -> Self {
        Self { token, scope: Match::Exact, because }
    }

    /// Makes a need for the object at a path, or else for the nearest directory above.
    pub fn path(path: impl Into<PathBuf>, because: &'static str) -> Self {
        Self { token: HostObject::Path(plain(&path.into())), scope: Match::OrAbove, because }
    }

    /// Makes a need for the object at a path and everything below.
    pub fn tree(path: impl Into<PathBuf>, because: &'static str) -> Self {
        Self { token: HostObject::Path(plain(&path.into())), scope: Match::AndBelow, because }
    }

    /// Makes a need for every repository of packages.
    #[must_use]
    pub fn repositories(because: &'static str) -> Self {
        let token = HostObject::Repository(String::new());
        Self { token, scope: Match::EveryRepository, because }
    }

    /// Makes a need for a user by name; a number makes no need.
    #[must_use]
    pub fn user(name: &str, because: &'static str) -> Option<Self> {
        is_name(name).then(|| Self::exact(HostObject::User(name.to_owned()), because))
    }

    /// Makes a need for a group by name; a number makes no need.
    #[must_use]
    pub fn group(name: &str, because: &'static str) -> Option<Self> {
        is_name(name).then(|| Self::exact(HostObject::Group(name.to_owned()), because))
    }
}

fn is_name(text: &str) -> bool {
    !text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the path without a trailing slash, empty parts and dots.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

/// The folders with unit definitions, each with a flag for units of users.
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
    /// Returns the unit that a file at this path defines or extends (`NAME.d/x.conf`).
    #[must_use]
    pub fn unit_of(path: &Path) -> Option<Self> {
        // All folders of units are below a folder of this name; few paths are.
        if !path.as_os_str().as_encoded_bytes().windows(9).any(|part| part == b"/systemd/") {
            return None;
        }
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

/// Returns the rest of the path after `.config/systemd/user` in a home directory.
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
