//! Signed bundles, and each attack on them: none yields a bundle that a host would run.

use std::collections::BTreeMap;
use steadfast::world::bundle::{
    Bundle, BundleError, Expected, Manifest, make_bundle, matches_pattern, peek_manifest,
    public_key_of, read_public_keys, unpack_bundle, verify_bundle,
};

/// A private key that `openssl genpkey -algorithm ed25519` made for these tests alone.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIFIaNEusy9WIhLHZBeBgdoYOZCjYpn/2GzcRD0Jkbe5K\n-----END PRIVATE KEY-----\n";
const OTHER_KEY: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIEbPiPRcblt3SP20cCaOrOTYbh7E0rnZGaZ4tcM8lKB9\n-----END PRIVATE KEY-----\n";

fn manifest() -> Manifest {
    Manifest {
        schema: 1,
        cluster: "prod".to_owned(),
        hosts: vec!["web*".to_owned(), "db1".to_owned()],
        sequence: 7,
        created: 1000,
        valid_until: 2000,
        files: BTreeMap::new(),
    }
}

fn files() -> BTreeMap<String, Vec<u8>> {
    let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
    [file("site.yaml", "graph: a\n"), file("files/motd", "hello\n")].into()
}

fn expected() -> Expected<'static> {
    Expected { cluster: "prod", host: "web3", now: 1500, last_sequence: 6, digest: None }
}

fn verify(bytes: &[u8], expected: &Expected<'_>) -> Result<Bundle, BundleError> {
    let public = public_key_of(KEY).unwrap();
    verify_bundle(bytes, &read_public_keys([public.as_str()]), expected)
}

#[test]
fn a_signed_bundle_is_accepted_and_unpacked() {
    let bytes = make_bundle(manifest(), &files(), KEY).unwrap();
    let bundle = verify(&bytes, &expected()).unwrap();
    assert_eq!(bundle.files, files());
    assert_eq!(peek_manifest(&bytes).unwrap(), (bundle.manifest.clone(), bundle.digest.clone()));
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("7");
    unpack_bundle(&bundle, &to).unwrap();
    assert_eq!(std::fs::read_to_string(to.join("files/motd")).unwrap(), "hello\n");
    assert!(unpack_bundle(&bundle, &to).is_err(), "nothing is overwritten");
}

#[test]
fn a_replayed_bundle_is_rejected() {
    let bytes = make_bundle(manifest(), &files(), KEY).unwrap();
    for last_sequence in [7, 8] {
        let expected = Expected { last_sequence, ..expected() };
        assert_eq!(verify(&bytes, &expected), Err(BundleError::Replayed(last_sequence, 7)));
    }
}

#[test]
fn a_bundle_of_another_cluster_or_host_or_time_is_rejected() {
    let bytes = make_bundle(manifest(), &files(), KEY).unwrap();
    let other = Expected { cluster: "test", ..expected() };
    assert!(matches!(verify(&bytes, &other), Err(BundleError::OtherCluster(..))));
    let other = Expected { host: "db2", ..expected() };
    assert!(matches!(verify(&bytes, &other), Err(BundleError::OtherHost(_))));
    let other = Expected { now: 2001, ..expected() };
    assert_eq!(verify(&bytes, &other), Err(BundleError::Expired(2000)));
    let other = Expected { digest: Some("00"), ..expected() };
    assert!(matches!(verify(&bytes, &other), Err(BundleError::OtherManifest(..))));
}

#[test]
fn a_bundle_of_an_unknown_or_removed_key_is_rejected() {
    let bytes = make_bundle(manifest(), &files(), OTHER_KEY).unwrap();
    assert_eq!(verify(&bytes, &expected()), Err(BundleError::Untrusted));
    let bytes = make_bundle(manifest(), &files(), KEY).unwrap();
    assert_eq!(verify_bundle(&bytes, &[], &expected()), Err(BundleError::Untrusted));
}

/// A truncated bundle and a bundle with one changed byte are rejected, wherever the change is.
#[test]
fn a_damaged_bundle_is_rejected() {
    let bytes = make_bundle(manifest(), &files(), KEY).unwrap();
    for cut in (0..bytes.len()).step_by(37).chain([bytes.len() - 1]) {
        assert!(verify(&bytes[..cut], &expected()).is_err(), "cut at {cut}");
    }
    for at in (0..bytes.len()).step_by(11) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x20;
        assert!(verify(&changed, &expected()).is_err(), "changed at {at}");
    }
}

/// A file of another bundle, which the same key signed, is no file of this one.
#[test]
fn a_swapped_added_or_missing_file_is_rejected() {
    let bytes = make_bundle(manifest(), &files(), KEY).unwrap();
    let mut others = files();
    others.insert("site.yaml".to_owned(), b"graph: b\n".to_vec());
    let other = make_bundle(manifest(), &others, KEY).unwrap();
    assert_eq!(bytes.len(), other.len());
    // The manifest and its signature are the first four blocks or so; the files follow.
    let (text, ()) = peek_manifest(&bytes).map(|_| (bytes.clone(), ())).unwrap();
    let head =
        bytes.windows(9).rposition(|part| part == b"hello\n\0\0\0").unwrap() / 512 * 512 - 512;
    let swapped = [&text[..head], &other[head..]].concat();
    assert!(verify(&swapped, &expected()).is_err(), "swapped");
    let end = bytes.len() - 1024;
    let added = [&bytes[..end], &bytes[end - 1024..]].concat();
    assert!(verify(&added, &expected()).is_err(), "added");
    let missing = [&bytes[..end - 1024], &bytes[end..]].concat();
    assert!(verify(&missing, &expected()).is_err(), "missing");
}

#[test]
fn names_that_leave_the_folder_are_refused() {
    for name in ["../x", "/x", "a//b", "a/./b", "a/..", "", "a\nb", "manifest.json", "manifest.sig"]
    {
        let files = [(name.to_owned(), b"x".to_vec())].into();
        assert!(make_bundle(manifest(), &files, KEY).is_err(), "{name}");
    }
}

#[test]
fn patterns_match_whole_names() {
    for (pattern, name, is_match) in [
        ("web1", "web1", true),
        ("web1", "web10", false),
        ("web*", "web10", true),
        ("*", "x", true),
        ("*.eu.*", "a.eu.example", true),
        ("*.eu.*", "a.us.example", false),
        ("a*b*c", "aXbYc", true),
        ("a*b*c", "aXc", false),
    ] {
        assert_eq!(matches_pattern(pattern, name), is_match, "{pattern} {name}");
    }
}
