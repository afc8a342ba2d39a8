//! Signed bundles: a graph folder as one file that a host runs only if a trusted key signed it for this cluster and
//! host.
//!
//! A bundle is a tar archive. Its first member is `manifest.json`, its second `manifest.sig` (ed25519), then follow the
//! files, as the manifest lists them. Nothing is written before the whole bundle is verified.
//!
//! Reading order: this file (manifest, signing, verification), `archive` (the strict tar format), `pem` (keys),
//! `source` (the place of the bundles).

mod archive;
mod pem;
mod source;

pub use source::BundleSource;

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The largest accepted bundle.
pub const MAX_BUNDLE_BYTES: u64 = 64 << 20;

/// The name of the first member.
const MANIFEST: &str = "manifest.json";
/// The name of the second member.
const SIGNATURE: &str = "manifest.sig";

/// The manifest of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the format: 1.
    pub schema: u32,
    /// The cluster.
    pub cluster: String,
    /// The patterns of the hosts that may run the bundle, such as `web*`.
    pub hosts: Vec<String>,
    /// The number of the generation; a host only runs a higher one than before.
    pub sequence: u64,
    /// The time of the creation, in seconds since 1970.
    pub created: u64,
    /// The time after which no host starts to run the bundle, in seconds since 1970.
    pub valid_until: u64,
    /// The SHA-256 of each file, in hexadecimal digits.
    pub files: BTreeMap<String, String>,
}

/// A verified bundle.
#[derive(Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The manifest.
    pub manifest: Manifest,
    /// The SHA-256 of the manifest, in hexadecimal digits.
    pub digest: String,
    /// The files by their relative names.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Omits the contents, which may hold secrets.
impl std::fmt::Debug for Bundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bundle").field("digest", &self.digest).finish_non_exhaustive()
    }
}

/// The expectations of a host.
#[derive(Clone, Debug)]
pub struct Expected<'a> {
    /// The cluster of the host.
    pub cluster: &'a str,
    /// The name of the host.
    pub host: &'a str,
    /// The present time, in seconds since 1970.
    pub now: u64,
    /// The sequence that the host ran last.
    pub last_sequence: u64,
    /// The digest of the manifest that was requested; none accepts any.
    pub digest: Option<&'a str>,
}

/// The reason for which a bundle is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// The file is no bundle, or it is damaged.
    #[error("expected a bundle, found {0}")]
    Malformed(String),
    /// No trusted key signed the manifest.
    #[error("no key in the folder of trusted keys signed the bundle")]
    Untrusted,
    /// The bundle belongs to another cluster.
    #[error("expected a bundle of the cluster `{0}`, found one of `{1}`")]
    OtherCluster(String, String),
    /// The bundle is not for this host.
    #[error("the bundle is not for the host `{0}`")]
    OtherHost(String),
    /// The time of the bundle is over.
    #[error("the bundle was valid until {0} (seconds since 1970)")]
    Expired(u64),
    /// The sequence is not higher than that of the last run bundle.
    #[error("expected a sequence above {0}, found {1}: to roll back, sign the old content again")]
    Replayed(u64, u64),
    /// The manifest is another one than the requested one.
    #[error("expected the manifest {0}, found {1}")]
    OtherManifest(String, String),
}

fn malformed(what: impl Into<String>) -> BundleError {
    BundleError::Malformed(what.into())
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().fold(String::new(), |mut text, byte| {
        text.push_str(&format!("{byte:02x}"));
        text
    })
}

/// Returns true if a name matches a pattern with `*` for any characters.
#[must_use]
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(head) else { return false };
    if !tail.contains('*') {
        return rest.ends_with(tail);
    }
    let starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    starts.filter_map(|at| rest.get(at..)).any(|rest| matches_pattern(tail, rest))
}

/// Returns true if a name is a plain relative path: no empty part, no `.` or `..`, no control character.
fn is_plain_path(name: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    name.len() < 256 && name.split('/').all(is_plain) && !name.chars().any(char::is_control)
}

/// Makes a bundle of files, signed by a private key (PEM, PKCS#8, ed25519).
///
/// # Errors
/// A key that cannot be used, or a file name that a bundle cannot hold.
pub fn make_bundle(
    mut manifest: Manifest,
    files: &BTreeMap<String, Vec<u8>>,
    private_key: &str,
) -> Result<Vec<u8>, BundleError> {
    for name in files.keys() {
        if !is_plain_path(name) || [MANIFEST, SIGNATURE].contains(&name.as_str()) {
            return Err(malformed(format!("a file with the name `{name}`, which is not allowed")));
        }
    }
    manifest.files =
        files.iter().map(|(name, content)| (name.clone(), sha256_hex(content))).collect();
    let der = pem::decode_pem(private_key, "PRIVATE KEY").ok_or_else(|| {
        malformed("a key that is no PEM: make one with `openssl genpkey -algorithm ed25519`")
    })?;
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
        .map_err(|error| malformed(format!("a key that is no ed25519 key: {error}")))?;
    let text =
        serde_json::to_vec_pretty(&manifest).map_err(|error| malformed(error.to_string()))?;
    let signature = pair.sign(&text);
    let mut members = vec![(MANIFEST, text.as_slice()), (SIGNATURE, signature.as_ref())];
    members.extend(files.iter().map(|(name, content)| (name.as_str(), content.as_slice())));
    archive::write_archive(&members).map_err(malformed)
}

/// Returns the public key of a private key, as PEM.
///
/// # Errors
/// A key that cannot be used.
pub fn public_key_of(private_key: &str) -> Result<String, BundleError> {
    let der = pem::decode_pem(private_key, "PRIVATE KEY").ok_or_else(|| malformed("no key"))?;
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
        .map_err(|error| malformed(format!("a key that is no ed25519 key: {error}")))?;
    Ok(pem::encode_public_key(pair.public_key().as_ref()))
}

/// Returns the raw ed25519 keys of PEM texts; texts without such a key are left out.
#[must_use]
pub fn read_public_keys<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<[u8; 32]> {
    texts.into_iter().filter_map(pem::decode_public_key).collect()
}

/// Verifies a bundle: signature, then cluster, host, time, sequence, then each file.
///
/// # Errors
/// The first reason for which the bundle is rejected.
pub fn verify_bundle(
    bytes: &[u8],
    trusted: &[[u8; 32]],
    expected: &Expected<'_>,
) -> Result<Bundle, BundleError> {
    if bytes.len() as u64 > MAX_BUNDLE_BYTES {
        return Err(malformed(format!("more than {} MiB", MAX_BUNDLE_BYTES >> 20)));
    }
    let mut members = archive::read_archive(bytes).map_err(malformed)?.into_iter();
    let mut next = |name: &str| match members.next() {
        Some((found, content)) if found == name => Ok(content),
        _ => Err(malformed(format!("no `{name}` at its place"))),
    };
    let (text, signature) = (next(MANIFEST)?, next(SIGNATURE)?);
    let is_signed =
        |key: &[u8; 32]| UnparsedPublicKey::new(&ED25519, key).verify(text, signature).is_ok();
    if !trusted.iter().any(is_signed) {
        return Err(BundleError::Untrusted);
    }
    let manifest: Manifest = serde_json::from_slice(text)
        .map_err(|error| malformed(format!("an unknown manifest: {error}")))?;
    if manifest.schema != 1 {
        return Err(malformed(format!("a manifest of schema {}", manifest.schema)));
    }
    let digest = sha256_hex(text);
    check_expected(&manifest, &digest, expected)?;
    let mut files = BTreeMap::new();
    for (name, content) in members {
        let wanted = manifest.files.get(&name);
        if !is_plain_path(&name) || wanted.is_none_or(|sum| *sum != sha256_hex(content)) {
            return Err(malformed(format!("a file `{name}` that the manifest does not list so")));
        }
        if files.insert(name.clone(), content.to_vec()).is_some() {
            return Err(malformed(format!("two files `{name}`")));
        }
    }
    if let Some(lacking) = manifest.files.keys().find(|name| !files.contains_key(*name)) {
        return Err(malformed(format!("no file `{lacking}`")));
    }
    Ok(Bundle { manifest, digest, files })
}

fn check_expected(
    manifest: &Manifest,
    digest: &str,
    expected: &Expected<'_>,
) -> Result<(), BundleError> {
    if let Some(wanted) = expected.digest.filter(|wanted| *wanted != digest) {
        return Err(BundleError::OtherManifest(wanted.to_owned(), digest.to_owned()));
    }
    if manifest.cluster != expected.cluster {
        let (wanted, found) = (expected.cluster.to_owned(), manifest.cluster.clone());
        return Err(BundleError::OtherCluster(wanted, found));
    }
    if !manifest.hosts.iter().any(|pattern| matches_pattern(pattern, expected.host)) {
        return Err(BundleError::OtherHost(expected.host.to_owned()));
    }
    if manifest.valid_until < expected.now {
        return Err(BundleError::Expired(manifest.valid_until));
    }
    if manifest.sequence <= expected.last_sequence {
        return Err(BundleError::Replayed(expected.last_sequence, manifest.sequence));
    }
    Ok(())
}

/// Reads the manifest of a bundle without any check, for the deployer that made the bundle.
///
/// # Errors
/// A file that is no bundle.
pub fn peek_manifest(bytes: &[u8]) -> Result<(Manifest, String), BundleError> {
    let members = archive::read_archive(bytes).map_err(malformed)?;
    let first = members.first().filter(|(name, _)| name == MANIFEST);
    let (_, text) = first.ok_or_else(|| malformed("no manifest"))?;
    let manifest = serde_json::from_slice(text)
        .map_err(|error| malformed(format!("an unknown manifest: {error}")))?;
    Ok((manifest, sha256_hex(text)))
}

/// Writes the files of a verified bundle into a new directory.
///
/// # Errors
/// The failure of the file system.
pub fn unpack_bundle(bundle: &Bundle, directory: &Path) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    let mut folders = std::fs::DirBuilder::new();
    folders.recursive(true).mode(0o700).create(directory)?;
    for (name, content) in &bundle.files {
        let path = directory.join(name);
        if let Some(parent) = path.parent() {
            folders.create(parent)?;
        }
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(content)?;
        file.sync_all()?;
    }
    std::fs::File::open(directory)?.sync_all()
}
