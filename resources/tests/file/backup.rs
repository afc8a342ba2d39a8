//! Tests of the backup copies of `backup`: bounded in number, and sparse (M6).

use crate::support::*;
use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::{Host, Resource};

fn sparse(path: &Path, size: u64) {
    fs::File::create(path).unwrap().set_len(size).unwrap();
}

fn held(dir: &Path) -> (Arc<dyn Resource>, PathBuf) {
    let kept = dir.join("kept");
    fs::create_dir(&kept).unwrap();
    chmod(&kept, 0o700);
    let given = [("content", "declared\n"), ("backup", kept.to_str().unwrap())];
    (file(dir.join("big"), &given), kept)
}

#[test]
fn a_large_file_is_not_replaced_where_a_copy_is_declared() {
    let (host, dir) = (Host::default(), scratch());
    let (held, kept) = held(dir.path());
    sparse(&dir.path().join("big"), 3 << 30);
    let words = refused(&host, &held);
    assert!(words.contains("more than a backup keeps"), "{words}");
    assert_eq!(names(&kept), [""; 0]);
    assert_eq!(fs::metadata(dir.path().join("big")).unwrap().len(), 3 << 30);
}

#[test]
fn a_copy_takes_no_room_for_zeros() {
    let (host, dir) = (Host::default(), scratch());
    let (held, kept) = held(dir.path());
    let big = dir.path().join("big");
    sparse(&big, 9 << 20);
    let file = fs::File::options().write(true).open(&big).unwrap();
    // In the middle of a page, across two pages, and at the end.
    for (at, text) in [(100, "first"), (8190, "second"), (600_000, "third")] {
        file.write_all_at(text.as_bytes(), at).unwrap();
    }
    let before = fs::read(&big).unwrap();
    made(&host, &held);
    let copy = kept.join(&names(&kept)[0]);
    assert!(fs::read(&copy).unwrap() == before);
    assert!(fs::metadata(&copy).unwrap().blocks() * 512 < 1 << 20);
    // A file that ends in data.
    fs::write(&big, [vec![0; 300_000], b"end".to_vec()].concat()).unwrap();
    made(&host, &held);
    let copy = kept.join(&names(&kept)[1]);
    assert!(fs::read(&copy).unwrap() == [vec![0; 300_000], b"end".to_vec()].concat());
}

/// A user cannot fill the disk by new names in a purged directory.
#[test]
fn copies_of_files_of_users_are_bounded() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (held, kept) = held(dir.path());
    for number in 0..10_000 {
        fs::File::create(kept.join(format!("x{number}"))).unwrap();
    }
    let big = dir.path().join("big");
    fs::write(&big, "a file of root").unwrap();
    made(&host, &held);
    fs::write(&big, "a file of a user").unwrap();
    std::os::unix::fs::chown(&big, Some(65534), None).unwrap();
    let words = refused(&host, &held);
    assert!(words.contains("the backup directory has 10001 files"), "{words}");
    assert_eq!(fs::read_to_string(&big).unwrap(), "a file of a user");
}
