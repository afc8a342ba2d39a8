//! F-17: for random present and declared states, an apply that changed something leaves the resource
//! converged, and an apply that failed without a change has changed nothing. The test runs as root.

use crate::support::*;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::Path;
use steadfast_resources::{CheckResult, Host, Outcome};

/// A change by another user at the path.
#[derive(Clone, Copy, Debug)]
enum Meddling {
    Nothing,
    Gone,
    Empty,
    Content(&'static str),
    Directory,
    FullDirectory,
    Link(&'static str),
    Fifo,
    Chmod(u32),
    Chown(u32, u32),
    SecondName,
}

fn meddlings() -> impl Strategy<Value = Meddling> {
    prop_oneof![
        Just(Meddling::Nothing),
        Just(Meddling::Gone),
        Just(Meddling::Empty),
        prop_oneof![Just("a\n"), Just("b\n"), Just("\u{1b}[2J")].prop_map(Meddling::Content),
        Just(Meddling::Directory),
        Just(Meddling::FullDirectory),
        prop_oneof![Just("other"), Just("/nowhere"), Just("held")].prop_map(Meddling::Link),
        Just(Meddling::Fifo),
        prop_oneof![Just(0), Just(0o644), Just(0o6755), Just(0o1777), Just(0o600)]
            .prop_map(Meddling::Chmod),
        (0_u32..3, 0_u32..3).prop_map(|(uid, gid)| Meddling::Chown(uid * 12, gid * 17)),
        Just(Meddling::SecondName),
    ]
}

fn meddle(path: &Path, meddling: Meddling) {
    let clear = || {
        if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir()) {
            fs::remove_dir_all(path).unwrap();
        } else if fs::symlink_metadata(path).is_ok() {
            fs::remove_file(path).unwrap();
        }
    };
    let is_link = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    match meddling {
        Meddling::Gone => clear(),
        Meddling::Empty | Meddling::Content(_) => {
            clear();
            let Meddling::Content(text) = meddling else { return fs::write(path, "").unwrap() };
            fs::write(path, text).unwrap();
        }
        Meddling::Directory | Meddling::FullDirectory => {
            clear();
            fs::create_dir(path).unwrap();
            if matches!(meddling, Meddling::FullDirectory) {
                fs::create_dir(path.join("below")).unwrap();
            }
        }
        Meddling::Link(target) => {
            clear();
            symlink(target, path).unwrap();
        }
        Meddling::Fifo => {
            clear();
            nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        Meddling::Chmod(mode) if path.exists() && !is_link => chmod(path, mode),
        Meddling::Chown(uid, gid) if path.exists() && !is_link => {
            chown(path, Some(uid), Some(gid)).unwrap();
        }
        Meddling::SecondName if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file()) => {
            drop(fs::hard_link(path, path.with_file_name("second")));
        }
        Meddling::Nothing | Meddling::Chmod(_) | Meddling::Chown(..) | Meddling::SecondName => {}
    }
}

type Fields = Vec<(&'static str, &'static str)>;

fn declarations() -> impl Strategy<Value = (bool, Fields)> {
    let thing = prop_oneof![
        3 => prop_oneof![Just(""), Just("a\n"), Just("b\n")].prop_map(|text| (false, vec![("content", text)])),
        1 => Just((false, vec![])),
        2 => Just((true, vec![])),
        2 => prop_oneof![Just("other"), Just("/nowhere")].prop_map(|text| (false, vec![("symlink", text)])),
        1 => Just((false, vec![("state", "absent")])),
        1 => any::<bool>().prop_map(|slash| (slash, vec![("state", "undefined")])),
    ];
    let owner = proptest::option::of(prop_oneof![Just("root"), Just("12"), Just("nobody")]);
    let group = proptest::option::of(prop_oneof![Just("root"), Just("34")]);
    let mode = proptest::option::of(prop_oneof![
        Just("0644"),
        Just("0600"),
        Just("04755"),
        Just("u=rw,g=r"),
        Just("a+rX,u+s")
    ]);
    (thing, owner, group, mode, any::<bool>()).prop_map(
        |((slash, mut given), owner, group, mode, force)| {
            let absent = given.contains(&("state", "absent"));
            let link = given.iter().any(|(field, _)| *field == "symlink");
            given.extend(owner.filter(|_| !absent).map(|text| ("owner", text)));
            given.extend(group.filter(|_| !absent).map(|text| ("group", text)));
            given.extend(mode.filter(|_| !absent && !link).map(|text| ("mode", text)));
            given.extend(force.then_some(("force", "true")));
            (slash, given)
        },
    )
}

/// Returns everything visible in the directory.
fn portrait(dir: &Path) -> Vec<String> {
    let mut seen = Vec::new();
    for name in names(dir) {
        let path = dir.join(&name);
        let meta = fs::symlink_metadata(&path).unwrap();
        let what = (meta.ino(), meta.mode(), meta.uid(), meta.gid(), meta.size());
        let when = (meta.ctime(), meta.ctime_nsec());
        seen.push(format!("{name} {what:?} {when:?}"));
        if meta.is_dir() {
            seen.extend(portrait(&path));
        }
    }
    seen
}

fn one_step(
    host: &Host,
    dir: &Path,
    meddling: Meddling,
    declared: &(bool, Fields),
) -> Result<(), TestCaseError> {
    let path = dir.join("held");
    meddle(&path, meddling);
    let slash = if declared.0 { "/" } else { "" };
    let held = file(format!("{}{slash}", path.display()), &declared.1);
    let before = portrait(dir);
    let outcome = match check(host, &held) {
        CheckResult::Same => Outcome::Unchanged,
        CheckResult::Unknown(failure) => Outcome::Failed { failure, touched: false },
        CheckResult::Differs(change) => {
            prop_assert!(!change.differences.is_empty());
            prop_assert_eq!(&portrait(dir), &before, "a check changes nothing");
            let outcome = apply(host, &held, change);
            prop_assert!(
                matches!(outcome, Outcome::Changed(_)),
                "what the plan promised was not done: {:?}",
                outcome
            );
            outcome
        }
    };
    if let Outcome::Changed(done) = outcome {
        prop_assert!(!done.is_empty());
        prop_assert_ne!(portrait(dir), before);
        let again = check(host, &held);
        prop_assert!(matches!(again, CheckResult::Same), "{:?} after {:?}", again, done);
    } else {
        prop_assert_eq!(portrait(dir), before);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_apply_is_right_at_once(
        steps in proptest::collection::vec((meddlings(), declarations()), 1..8),
    ) {
        demand_root();
        let (host, dir) = (Host::default(), scratch());
        for (meddling, declared) in &steps {
            one_step(&host, dir.path(), *meddling, declared)?;
        }
        prop_assert!(names(dir.path()).iter().all(|name| !name.starts_with('.')), "no stray");
    }
}
