//! A table of every preparation by an untrusted user, combined with every way in which `file` takes an object
//! over. The tests run as root.
//!
//! A cell is *safe* if the user has no access to the object that root then owns, or if the file rejects the
//! takeover and the object still belongs to the user. A cell without a remedy names the reason and its actual
//! end.

use crate::other_users::strangers::{self, ACCESS, DEFAULT, Lease, STRANGER, can_read, can_write};
use crate::support::*;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use steadfast_resources::host::files::RestoredDirectories;
use steadfast_resources::{
    Host, NotRecorded, Outcome, PriorContent, PriorEntry, PriorShape, PriorState,
};
use tokio_util::sync::CancellationToken;

/// An attribute that the untrusted user prepares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prepared {
    Owner,
    Group,
    WideMode,
    SetUid,
    SetGid,
    SetGidWithoutExecute,
    Sticky,
    AccessList,
    InheritedList,
    UserAttribute,
    Capability,
    HardLink,
    PrivateFile,
    OpenDescriptor,
    Lease,
    /// A file of root's that the user has open, and could write by an access list that an earlier run removed.
    ClosedList,
}

const PREPARED: [Prepared; 16] = [
    Prepared::Owner,
    Prepared::Group,
    Prepared::WideMode,
    Prepared::SetUid,
    Prepared::SetGid,
    Prepared::SetGidWithoutExecute,
    Prepared::Sticky,
    Prepared::AccessList,
    Prepared::InheritedList,
    Prepared::UserAttribute,
    Prepared::Capability,
    Prepared::HardLink,
    Prepared::PrivateFile,
    Prepared::OpenDescriptor,
    Prepared::Lease,
    Prepared::ClosedList,
];

/// A way in which a file takes an object over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takeover {
    /// Only the owner is declared.
    AdoptByOwner,
    /// Owner, group and a relative mode are declared, and no content.
    Adopt,
    /// The object already has the declared content.
    SameContent,
    /// The declared content differs.
    Replace,
    /// A secret content, with neither owner nor mode declared.
    Secret,
    /// A mount point, which no other file can replace.
    InPlace,
    /// An object in a tree with declared attributes.
    Recurse,
    /// An object in the target of a copied tree.
    SourceTree,
    /// An object with a backup before the replacement.
    Backup,
    /// An undo with a stored content, which restores root's file.
    Restore,
    /// An undo with stored attributes alone.
    Undo,
    /// An undo with stored attributes alone, of a set-user-ID program.
    UndoSetUid,
    /// Owner, group, mode and capabilities are declared, and no content.
    Capabilities,
}

const WAYS: [Takeover; 13] = [
    Takeover::AdoptByOwner,
    Takeover::Adopt,
    Takeover::SameContent,
    Takeover::Replace,
    Takeover::Secret,
    Takeover::InPlace,
    Takeover::Recurse,
    Takeover::SourceTree,
    Takeover::Backup,
    Takeover::Restore,
    Takeover::Undo,
    Takeover::UndoSetUid,
    Takeover::Capabilities,
];

/// The end of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Root owns the object, and the user has no access.
    Taken,
    /// The object is unchanged: rejected, or already as declared.
    Refused,
    /// Root owns the object, and the preparation stays, for a reason.
    Stays(&'static str),
}

const OPEN: &str = "a descriptor outlives every change of an inode whose content nobody declares";
const DATA: &str = "user.* attributes are data of the file, and lend no right";

fn end(prepared: Prepared, way: Takeover) -> End {
    let keeps_inode = matches!(
        way,
        Takeover::AdoptByOwner | Takeover::Adopt | Takeover::Recurse | Takeover::Undo
    );
    match (prepared, way) {
        // Nobody knows who has written the content that would get these rights.
        (_, Takeover::UndoSetUid | Takeover::Capabilities) => End::Refused,
        (Prepared::ClosedList, _) if keeps_inode => End::Stays(OPEN),
        // Root's own object, under a second name or renamed.
        (Prepared::HardLink, _) => End::Refused,
        (Prepared::PrivateFile, Takeover::Adopt | Takeover::Recurse) => End::Refused,
        // The change would show a private file to others, and another user can have moved the file there.
        (Prepared::Group | Prepared::AccessList, Takeover::Adopt | Takeover::Recurse) => {
            End::Refused
        }
        // Nothing can replace a mount point, and its inode belongs to the user.
        (_, Takeover::InPlace) if prepared != Prepared::PrivateFile => End::Refused,
        // The backup cannot read the file until the kernel breaks the lease (after 45 seconds at most).
        (Prepared::Lease, Takeover::Backup) => End::Refused,
        (Prepared::OpenDescriptor, _) if keeps_inode => End::Stays(OPEN),
        (Prepared::UserAttribute, _) if keeps_inode => End::Stays(DATA),
        _ => End::Taken,
    }
}

/// One cell: a directory where everybody may write, with an object.
struct Cell {
    dir: tempfile::TempDir,
    shared: PathBuf,
    path: PathBuf,
    open: Option<fs::File>,
    lease: Option<Lease>,
}

const THEIRS: &str = "theirs";

impl Cell {
    fn new(prepared: Prepared) -> Self {
        let dir = scratch();
        let shared = dir.path().join("shared");
        fs::create_dir(&shared).unwrap();
        chmod(&shared, 0o1777);
        let path = shared.join("f");
        let mut cell = Self { dir, shared, path, open: None, lease: None };
        cell.prepare(prepared);
        cell
    }

    fn prepare(&mut self, prepared: Prepared) {
        let path = &self.path;
        let mode = match prepared {
            Prepared::Group => 0o660,
            Prepared::WideMode => 0o666,
            Prepared::SetUid => 0o4755,
            Prepared::SetGid => 0o2755,
            Prepared::SetGidWithoutExecute => 0o2644,
            Prepared::Sticky => 0o1644,
            _ => 0o644,
        };
        strangers::write(path, THEIRS, mode);
        match prepared {
            Prepared::AccessList => strangers::set(path, ACCESS, &strangers::list()),
            // The list comes from a directory that the user made.
            Prepared::InheritedList => {
                chown(&self.shared, Some(STRANGER), None).unwrap();
                strangers::set(&self.shared, DEFAULT, &strangers::list());
            }
            Prepared::UserAttribute => strangers::set(path, "user.note", b"x"),
            // cap_net_raw=ep. An untrusted user cannot set a capability; the test covers it all the same.
            Prepared::Capability => {
                let raw = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                strangers::set(path, "security.capability", &raw);
            }
            Prepared::HardLink | Prepared::PrivateFile => {
                fs::remove_file(path).unwrap();
                fs::write(self.canary(), "root's").unwrap();
                chmod(self.canary(), 0o600);
                if prepared == Prepared::HardLink {
                    fs::hard_link(self.canary(), path).unwrap();
                } else {
                    fs::rename(self.canary(), path).unwrap();
                }
            }
            Prepared::OpenDescriptor => {
                self.open = Some(fs::File::options().append(true).open(path).unwrap());
            }
            Prepared::ClosedList => {
                chown(path, Some(0), Some(0)).unwrap();
                strangers::set(path, ACCESS, &strangers::list());
                chmod(path, 0o664);
                self.open = Some(fs::File::options().append(true).open(path).unwrap());
                made(&Host::default(), &file(path, &[("acl", "")]));
            }
            Prepared::Lease => self.lease = Some(Lease::take(path)),
            _ => {}
        }
    }

    fn canary(&self) -> PathBuf {
        self.dir.path().join("canary")
    }

    /// Takes the object over in one way.
    fn take(&self, way: Takeover) -> Outcome {
        let host = Host::default();
        let root = [("owner", "root"), ("group", "root")];
        let with = |rest: &[(&'static str, &'static str)]| {
            hold(&host, &file(&self.path, &[&root[..], rest].concat()))
        };
        match way {
            Takeover::AdoptByOwner => hold(&host, &file(&self.path, &[("owner", "root")])),
            Takeover::Adopt => with(&[("mode", "g-w,o+r")]),
            Takeover::SameContent => with(&[("mode", "0640"), ("content", THEIRS)]),
            Takeover::Replace => with(&[("mode", "0640"), ("content", "roots")]),
            Takeover::Secret => {
                let given = [("content", "roots"), ("sensitive", "true")];
                hold(&host, &file(&self.path, &given))
            }
            Takeover::InPlace => {
                let given = [&root[..], &[("mode", "0640"), ("content", "roots")]].concat();
                let below = self.dir.path().join("below");
                fs::rename(&self.path, &below).unwrap();
                fs::write(&self.path, "").unwrap();
                mount(&["--bind", below.to_str().unwrap()], &self.path);
                let outcome = hold(&host, &file(&self.path, &given));
                unmount(&self.path);
                fs::rename(&below, &self.path).unwrap();
                outcome
            }
            Takeover::Recurse => {
                let given = [&root[..], &[("recurse", "true"), ("mode", "u=rwX,g=rX,o=rX")]];
                hold(&host, &file(self.tree(), &given.concat()))
            }
            Takeover::SourceTree => {
                let source = self.dir.path().join("source");
                fs::create_dir(&source).unwrap();
                fs::write(source.join("f"), "roots").unwrap();
                chmod(source.join("f"), 0o640);
                let source = format!("{}/", source.display());
                let given = [("recurse", "true"), ("source", &source), ("mode", "0640")];
                hold(&host, &file(self.tree(), &[&root[..], &given].concat()))
            }
            Takeover::Backup => {
                let kept = self.kept();
                fs::create_dir(&kept).unwrap();
                chmod(&kept, 0o700);
                let kept = kept.to_str().unwrap();
                let given = [("mode", "0640"), ("content", "roots"), ("backup", kept)];
                hold(&host, &file(&self.path, &[&root[..], &given].concat()))
            }
            Takeover::Restore => self.undo(&host, 0o640, PriorContent::Bytes(THEIRS.into())),
            Takeover::Undo => self.undo(&host, 0o640, PriorContent::NotRecorded(NotRecorded::Same)),
            Takeover::UndoSetUid => {
                let mode = 0o4000 | mode(&self.path);
                self.undo(&host, mode, PriorContent::NotRecorded(NotRecorded::Same))
            }
            Takeover::Capabilities => with(&[("mode", "0755"), ("capabilities", "cap_net_raw=ep")]),
        }
    }

    fn tree(&self) -> String {
        format!("{}/", self.shared.display())
    }

    fn kept(&self) -> PathBuf {
        self.dir.path().join("kept")
    }

    fn undo(&self, host: &Host, mode: u32, content: PriorContent) -> Outcome {
        let shape = PriorShape::File(THEIRS.len() as u64, content);
        let extended = Vec::new();
        let former = PriorState::Thing(PriorEntry {
            shape,
            mode,
            uid: 0,
            gid: 0,
            extended,
            enclosure: None,
        });
        let permit = permit(&CancellationToken::new());
        match host.files().restore(
            &permit,
            (&self.path, &former),
            &mut RestoredDirectories::default(),
        ) {
            Ok(done) => Outcome::Changed(done.iter().map(|word| (*word).to_owned()).collect()),
            Err(fault) => {
                let touched = fault.touched;
                Outcome::Failed { failure: host.files().failure(fault, &self.path), touched }
            }
        }
    }

    /// Returns every access that the user still has to root's object.
    fn dangers(&mut self, way: Takeover) -> Vec<String> {
        let path = &self.path;
        let mut dangers = Vec::new();
        let mut danger = |is: bool, what: &str| dangers.extend(is.then(|| what.to_owned()));
        danger(owner(path).0 != 0, "it is not root's");
        danger(mode(path) & 0o6000 != 0, "it has set-id bits");
        for name in [ACCESS, DEFAULT, "user.note", "security.capability"] {
            danger(strangers::has(path, name), name);
        }
        danger(can_write(path), "the stranger can write it");
        let is_open = matches!(way, Takeover::AdoptByOwner | Takeover::Adopt | Takeover::Recurse);
        danger(!is_open && can_read(path), "the stranger can read it");
        if let Some(open) = &mut self.open {
            let before = fs::read(path).unwrap();
            open.write_all(b"more").unwrap();
            danger(fs::read(path).unwrap() != before, "the stranger still has it open");
        }
        for copy in fs::read_dir(self.dir.path().join("kept")).into_iter().flatten().flatten() {
            let copy = copy.path();
            danger((mode(&copy), owner(&copy)) != (0o600, (0, 0)), "the copy is not root's alone");
            for name in [ACCESS, "user.note", "security.capability"] {
                danger(strangers::has(&copy, name), "the copy has attributes");
            }
        }
        dangers
    }
}

/// Returns everything about an object that a rejection must not change.
fn portrait(path: &Path) -> (u32, (u32, u32), Vec<u8>, [bool; 4]) {
    let lists = [ACCESS, DEFAULT, "user.note", "security.capability"];
    // Reading would break a lease.
    let content = if mode(path) == 0o644 { Vec::new() } else { fs::read(path).unwrap() };
    (mode(path), owner(path), content, lists.map(|name| strangers::has(path, name)))
}

#[test]
fn nothing_that_a_stranger_prepared_is_of_use_afterwards() {
    demand_root();
    let mut wrong = Vec::new();
    for prepared in PREPARED {
        for way in WAYS {
            let mut cell = Cell::new(prepared);
            let before = portrait(&cell.path);
            let outcome = cell.take(way);
            let end = end(prepared, way);
            let is_refused = matches!(outcome, Outcome::Failed { .. });
            let found = match end {
                End::Refused => {
                    let is_same = portrait(&cell.path) == before;
                    let is_left = is_refused || outcome == Outcome::Unchanged;
                    (!is_left || !is_same).then(|| format!("{outcome:?}, same: {is_same}"))
                }
                End::Taken | End::Stays(_) => {
                    let dangers = cell.dangers(way);
                    let is_as_told = dangers.is_empty() == (end == End::Taken);
                    (is_refused || !is_as_told).then(|| format!("{dangers:?}, {outcome:?}"))
                }
            };
            wrong.extend(found.map(|found| format!("{prepared:?} × {way:?} ({end:?}): {found}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An attribute of a directory, by name, and the function that prepares it.
type Preparation = (&'static str, fn(&Path));

/// A new object below a directory that an untrusted user prepared belongs to root alone, in every way.
#[test]
fn nothing_is_inherited_from_a_directory_that_a_stranger_prepared() {
    demand_root();
    let prepared: [Preparation; 5] = [
        ("mode", |path| chmod(path, 0o777)),
        ("set-gid", |path| chmod(path, 0o2777)),
        ("access list", |path| strangers::set(path, ACCESS, &strangers::list())),
        ("default list", |path| strangers::set(path, DEFAULT, &strangers::list())),
        ("a directory below", |path| {
            strangers::make_directory(&path.join("below"), 0o777);
            strangers::set(&path.join("below"), DEFAULT, &strangers::list());
        }),
    ];
    let root = [("owner", "root"), ("group", "root"), ("mode", "u=rwX,g=rX,o=")];
    for (what, prepare) in prepared {
        for recurse in ["false", "true"] {
            let (host, dir) = (Host::default(), scratch());
            let path = dir.path().join("d");
            strangers::make_directory(&path, 0o755);
            prepare(&path);
            let given = [&root[..], &[("recurse", recurse)]].concat();
            made(&host, &file(format!("{}/", path.display()), &given));
            let mut places = vec![path.clone()];
            places.extend(Some(path.join("below")).filter(|path| path.exists()));
            for place in places {
                let has_lists = strangers::has(&place, ACCESS) || strangers::has(&place, DEFAULT);
                let stays_theirs = owner(&place).0 == STRANGER;
                assert!(stays_theirs || !has_lists, "{what}, {recurse}: {place:?}");
                // An undeclared group is that of root too.
                let given = [("content", "x"), ("mode", "0640")];
                made(&host, &file(place.join("new"), &given));
                assert!(!can_read(&place.join("new")), "{what}, {recurse}: {place:?}");
                assert!(!strangers::has(&place.join("new"), ACCESS), "{what}, {recurse}");
            }
        }
    }
}
