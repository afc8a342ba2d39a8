//! The setting `world`: the store that this host shares with others, and the source of signed bundles.

use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::config::read::{Entry, Reader};
use crate::world::bundle::BundleSource;
use crate::world::keys::is_host_name;
use std::path::PathBuf;
use steadfast_resources::{FieldSpec, FieldType, Value};

/// The back end of the world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WorldBackend {
    /// A database in the state directory.
    #[default]
    Embedded,
    /// A database at a path, which several daemons on one machine may share.
    File(PathBuf),
    /// A read-only directory.
    Folder(PathBuf),
    /// A cluster of etcd.
    Etcd {
        /// The addresses of the members.
        endpoints: Vec<String>,
        /// The certificate of the authority.
        ca: Option<PathBuf>,
        /// The certificate of this host.
        cert: Option<PathBuf>,
        /// The private key of this host.
        key: Option<PathBuf>,
        /// The name of the cluster.
        cluster: String,
    },
}

/// The setting `world`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorldSettings {
    /// The back end.
    pub backend: WorldBackend,
    /// The name of this host; none means the host name of the machine.
    pub host: Option<String>,
    /// The place of signed bundles.
    pub bundles: Option<BundleSource>,
    /// The folder of trusted public keys.
    pub trusted: Option<PathBuf>,
    /// The time after which exports of a lost host vanish, in seconds.
    pub gone_after: Option<u64>,
}

impl WorldSettings {
    /// Returns the name of the cluster; `local` for back ends of one machine.
    #[must_use]
    pub fn cluster(&self) -> &str {
        match &self.backend {
            WorldBackend::Etcd { cluster, .. } => cluster,
            _ => "local",
        }
    }
}

static FIELDS: &[FieldSpec] = &[
    FieldSpec::new(
        "etcd",
        FieldType::Anything,
        "cluster of etcd: {endpoints, ca, cert, key, cluster}",
    ),
    FieldSpec::new("folder", FieldType::Text, "read-only directory with one file for each key"),
    FieldSpec::new("file", FieldType::Text, "database that several daemons on this machine share"),
    FieldSpec::new(
        "host",
        FieldType::Text,
        "name of this host in the world; default: the host name",
    ),
    FieldSpec::new(
        "bundles",
        FieldType::Text,
        "place of signed bundles: folder, https:// address, or git+https://REPOSITORY#BRANCH",
    ),
    FieldSpec::new(
        "trusted",
        FieldType::Text,
        "folder of public keys that may sign bundles; default /etc/steadfast/trusted",
    ),
    FieldSpec::new(
        "gone_after",
        FieldType::Seconds,
        "time after which collected exports of a lost host vanish; default 7d",
    ),
];

static ETCD: &[FieldSpec] = &[
    FieldSpec::new(
        "endpoints",
        FieldType::Texts,
        "addresses of the members, such as https://etcd1:2379",
    ),
    FieldSpec::new("ca", FieldType::Text, "certificate of the authority (PEM)"),
    FieldSpec::new(
        "cert",
        FieldType::Text,
        "certificate of this host (PEM); its common name is the etcd user",
    ),
    FieldSpec::new("key", FieldType::Text, "private key of this host (PEM)"),
    FieldSpec::new(
        "cluster",
        FieldType::Text,
        "name of the cluster, a part of each key; default main",
    ),
];

/// Returns the fields of the setting `world`, for `explain`.
#[must_use]
pub fn world_settings() -> &'static [FieldSpec] {
    FIELDS
}

impl<'t> Reader<'t, '_> {
    /// Reads the setting `world`.
    pub(in crate::config) fn world_settings(&mut self, entry: Entry<'t>) -> Option<WorldSettings> {
        if self.is_null(entry.value) {
            return None;
        }
        let base = self.source.base.clone();
        let known: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
        let mut world = WorldSettings::default();
        let mut backends = 0;
        for inner in self.map(entry.value, "`world`", "a map of settings")? {
            let Some(field) = FIELDS.iter().find(|field| field.name == inner.key) else {
                self.unknown(inner.key, inner.key_span, "`world`", &known);
                continue;
            };
            if inner.key == "etcd" {
                backends += 1;
                world.backend = self.etcd_settings(inner)?;
                continue;
            }
            let Some(value) = self.value(field, inner, "`world`") else { continue };
            match (inner.key, value) {
                ("folder", Value::Text(text)) => {
                    backends += 1;
                    world.backend = WorldBackend::Folder(base.join(text));
                }
                ("file", Value::Text(text)) => {
                    backends += 1;
                    world.backend = WorldBackend::File(base.join(text));
                }
                ("host", Value::Text(text)) => {
                    if !is_host_name(&text) {
                        let what =
                            format!("`host` should be a host name, found `{}`", quoted(&text));
                        self.refuse_world(inner, &what, "letters a-z, digits, dots and dashes");
                    }
                    world.host = Some(text);
                }
                ("bundles", Value::Text(text)) => match BundleSource::parse(&text, &base) {
                    Ok(source) => world.bundles = Some(source),
                    Err((what, hint)) => self.refuse_world(inner, what, hint),
                },
                ("trusted", Value::Text(text)) => world.trusted = Some(base.join(text)),
                ("gone_after", Value::Int(seconds)) => {
                    world.gone_after = Some(seconds.max(1).unsigned_abs());
                }
                _ => {}
            }
        }
        if backends > 1 {
            let what = "`world` should have one of etcd, folder and file";
            self.refuse_world(entry, what, "keep one of them; without any, the world is embedded");
        }
        Some(world)
    }

    fn refuse_world(&mut self, entry: Entry<'t>, what: &str, hint: &str) {
        let place = self.source.place(self.value_span(entry));
        self.say(Problem::new(Code::Setting, what).hint(hint).at(Some(place)));
    }

    fn etcd_settings(&mut self, entry: Entry<'t>) -> Option<WorldBackend> {
        let known: Vec<&str> = ETCD.iter().map(|field| field.name).collect();
        let base = self.source.base.clone();
        let (mut endpoints, mut cluster) = (Vec::new(), "main".to_owned());
        let (mut ca, mut cert, mut key) = (None, None, None);
        for inner in self.map(entry.value, "`etcd`", "a map of settings")? {
            let Some(field) = ETCD.iter().find(|field| field.name == inner.key) else {
                self.unknown(inner.key, inner.key_span, "`etcd`", &known);
                continue;
            };
            match (inner.key, self.value(field, inner, "`etcd`")) {
                ("endpoints", Some(Value::Texts(texts))) => endpoints = texts,
                ("cluster", Some(Value::Text(text))) if !text.is_empty() => cluster = text,
                ("ca", Some(Value::Text(text))) => ca = Some(base.join(text)),
                ("cert", Some(Value::Text(text))) => cert = Some(base.join(text)),
                ("key", Some(Value::Text(text))) => key = Some(base.join(text)),
                _ => {}
            }
        }
        let is_address =
            |text: &String| text.starts_with("https://") || text.starts_with("http://");
        if endpoints.is_empty() || !endpoints.iter().all(is_address) {
            let what = "`endpoints` of etcd should be addresses such as https://etcd1:2379";
            self.refuse_world(entry, what, "list the members of the cluster");
        } else if ca.is_none() && endpoints.iter().any(|text| text.starts_with("https://")) {
            self.refuse_world(
                entry,
                "`etcd` with https:// needs `ca`",
                "ca: /etc/steadfast/etcd/ca.pem",
            );
        }
        if cert.is_some() != key.is_some() {
            self.refuse_world(entry, "`cert` and `key` of etcd belong together", "give both");
        }
        if !cfg!(feature = "etcd") {
            let what = "this build has no etcd: expected a build with the feature `etcd`";
            self.refuse_world(entry, what, "use the package, or build with --features etcd");
        }
        Some(WorldBackend::Etcd { endpoints, ca, cert, key, cluster })
    }
}
