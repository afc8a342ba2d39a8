//! The JSON values of keys. Each has a `schema`; a value of a newer schema or of another form is skipped, never
//! trusted.

use super::Entry;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of all records.
pub const SCHEMA: u32 = 1;

/// The description of a host (`hosts/HOST/meta`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostMeta {
    /// The version of this record.
    pub schema: u32,
    /// The version of the program.
    pub version: String,
    /// A hash of the machine id: two hosts with one name show.
    pub machine: String,
    /// The id of the boot.
    pub boot: String,
    /// Facts that others may see.
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
}

/// The record of a host that has been part of the cluster (`hosts/HOST/known`), until it is forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownHost {
    /// The version of this record.
    pub schema: u32,
    /// The time of its first start, in seconds since 1970.
    pub since: u64,
}

/// The status of a host (`hosts/HOST/status`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetHostStatus {
    /// The version of this record.
    pub schema: u32,
    /// The generation that runs, as the hash of its graph.
    pub generation: String,
    /// The sequence of the bundle that runs; 0 without bundles.
    #[serde(default)]
    pub sequence: u64,
    /// The number of resources by state.
    pub counts: BTreeMap<String, u64>,
    /// The worst resources with their messages, at most 20.
    #[serde(default)]
    pub worst: Vec<(String, String)>,
    /// True if the host is paused.
    #[serde(default)]
    pub paused: bool,
    /// True if all resources are converged.
    pub converged: bool,
    /// The reason for which the requested generation was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
    /// The manifest that was rejected; empty if a file of the host was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rejected_manifest: String,
    /// The token of the request that was rejected; none in the record of an older program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_token: Option<u64>,
    /// True if the host does not try the rejected request again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_rejection_final: bool,
    /// The time of this record, in seconds since 1970.
    pub since: u64,
}

/// The generation that a host should run (`want/HOST`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// The version of this record.
    pub schema: u32,
    /// The SHA-256 of the manifest, in hexadecimal digits.
    pub manifest: String,
    /// The sequence of the bundle.
    pub sequence: u64,
    /// The name of the bundle's file, below the folder or address in the settings of the host.
    pub file: String,
    /// The time by which the host delays the start, in seconds.
    #[serde(default)]
    pub splay: u64,
    /// The deployer.
    pub by: String,
    /// The token of the lease of deploys.
    #[serde(default)]
    pub token: u64,
}

/// The identity of a request: another deploy of the same bundle is another request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId {
    /// The SHA-256 of the manifest, in hexadecimal digits.
    pub manifest: String,
    /// The token of the lease of deploys.
    pub token: u64,
}

impl Want {
    /// Returns the identity of the request.
    #[must_use]
    pub fn id(&self) -> RequestId {
        RequestId { manifest: self.manifest.clone(), token: self.token }
    }
}

/// The holder of the lease of deploys (`deploy/lease`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeployLease {
    /// The version of this record.
    pub schema: u32,
    /// The deployer.
    pub by: String,
    /// The beginning, in seconds since 1970.
    pub since: u64,
}

/// A field of an exported resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ExportedField {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// A map of texts.
    TextMap(BTreeMap<String, String>),
}

/// A resource that a host offers to others (`exports/HOST/ID`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportRecord {
    /// The version of this record.
    pub schema: u32,
    /// The kind.
    pub kind: String,
    /// The instance of the module that declares the resource; empty outside of modules.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// The name.
    pub name: String,
    /// The fields as written.
    pub fields: BTreeMap<String, ExportedField>,
}

/// A value of a `kv` resource (`strings/KEY`, `values/HOST/KEY`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvRecord {
    /// The version of this record.
    pub schema: u32,
    /// The value.
    pub value: String,
}

/// A tombstone of a host that an operator has forgotten (`gone/HOST`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// The version of this record.
    pub schema: u32,
    /// The operator.
    pub by: String,
    /// The time, in seconds since 1970.
    pub since: u64,
}

/// A record with a version.
pub trait Versioned {
    /// Returns the version of the record.
    fn schema(&self) -> u32;
}

macro_rules! versioned {
    ($($record:ty),*) => { $(impl Versioned for $record {
        fn schema(&self) -> u32 {
            self.schema
        }
    })* };
}
versioned!(
    HostMeta,
    KnownHost,
    FleetHostStatus,
    Want,
    DeployLease,
    ExportRecord,
    KvRecord,
    Tombstone
);

/// Reads the record of an entry; none if the value is no such record of this version.
#[must_use]
pub fn read_record<T: DeserializeOwned + Versioned>(entry: &Entry) -> Option<T> {
    let record: T = serde_json::from_slice(&entry.value).ok()?;
    (record.schema() == SCHEMA).then_some(record)
}

/// Returns the bytes of a record.
#[must_use]
pub fn write_record(record: &impl Serialize) -> Vec<u8> {
    // Records have texts as keys and no floats but finite ones, so that JSON can hold them.
    serde_json::to_vec(record).unwrap_or_default()
}

/// Returns the seconds since 1970.
#[must_use]
pub fn unix_seconds() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |time| time.as_secs())
}
