//! Tests of the digest of copied sources: a check reads and reports the sources only if they matter.

use crate::support::*;
use futures_util::FutureExt as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use steadfast_resources::{CheckRequest, CopyDigest, CopyDigestSlot, Host, Resource};

/// Returns the digest that a check reports if the last successful run copied sources in the state `before`.
fn told(host: &Host, held: &Arc<dyn Resource>, before: Option<u64>) -> Option<CopyDigest> {
    let copies = Arc::new(CopyDigestSlot::since(before));
    let ask = CheckRequest { copies: Some(Arc::clone(&copies)), ..CheckRequest::default() };
    let verdict = held.check(host, ask).now_or_never();
    drop(verdict.expect("a check on a thread never waits"));
    copies.now()
}

/// Replaces a file, and waits until its state is old enough to be trusted.
fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
    let settled = |path: &Path| {
        let changed = fs::metadata(path).unwrap();
        let changed = Duration::new(
            changed.ctime().try_into().unwrap(),
            changed.ctime_nsec().try_into().unwrap(),
        );
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        now.saturating_sub(changed) > Duration::from_millis(50)
    };
    while !settled(path) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// E-20: the metadata identify a source; its content is read if the metadata and the copy differ, or if no
/// earlier state is known.
#[test]
fn copied_sources_are_read_only_if_needed() {
    let (host, dir) = (Host::default(), scratch());
    let source = dir.path().join("from");
    fs::create_dir(&source).unwrap();
    let (one, path) = (source.join("x"), dir.path().join("copy"));
    let name = |path: &Path| path.to_str().unwrap().to_owned();
    let tree = format!("{}/", name(&source));
    let all = dir.path().join("all/");
    let kinds: [(Arc<dyn Resource>, _); 3] = [
        (file(&path, &[("source", &name(&one))]), path),
        (file(dir.path().join("joined"), &[("fragments", &tree)]), dir.path().join("joined")),
        (file(&all, &[("source", &tree), ("recurse", "true")]), all.join("x")),
    ];
    for (held, copy) in kinds {
        write(&one, "1");
        let first = told(&host, &held, None).expect("nothing is known of before");
        assert_eq!(told(&host, &held, Some(first.state)), None, "it differs, for not found");
        made(&host, &held);
        assert_eq!(told(&host, &held, None), Some(first));
        assert_eq!(told(&host, &held, Some(7)), None, "as declared");
        fs::write(&copy, "drift").unwrap();
        assert_eq!(told(&host, &held, Some(first.state)), None);
        write(&one, "1");
        let again = told(&host, &held, Some(first.state)).expect("another state");
        assert!(again.content == first.content && again.state != first.state);
        write(&one, "2");
        let other = told(&host, &held, Some(first.state)).expect("another state");
        assert!(other.content != first.content && other.state != again.state);
        made(&host, &held);
    }
}

/// A source that is too large to read counts as changed if its metadata have changed; a small one is compared
/// by content.
#[test]
fn a_large_source_is_told_by_its_state() {
    let (host, dir) = (Host::default(), scratch());
    let (from, path) = (dir.path().join("from"), dir.path().join("copy"));
    fs::File::create(&from).unwrap().set_len((64 << 20) + 1).unwrap();
    let held = file(&path, &[("source", from.to_str().unwrap())]);
    let first = told(&host, &held, None).expect("nothing is known of before");
    // The content has not changed: reading it would give the old digest.
    chmod(&from, 0o640);
    let other = told(&host, &held, Some(first.state)).expect("another state");
    assert_ne!(first.content, other.content);
    fs::File::options().write(true).open(&from).unwrap().set_len(1).unwrap();
    let small = told(&host, &held, None).expect("nothing is known of before");
    chmod(&from, 0o644);
    let again = told(&host, &held, Some(small.state)).expect("another state");
    assert_eq!(small.content, again.content);
    made(&host, &held);
}
