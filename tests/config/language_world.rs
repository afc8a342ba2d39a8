//! Exported and collected resources of modules, inactive exports, and vertices that no graph declares.

use super::language::{Tree, with_facts};
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast::config::{CollectedExport, KindSet, LoadedGraph, Options};
use steadfast::world::records::{ExportRecord, SCHEMA};
use steadfast_resources::host::world::WorldKey;
use steadfast_resources::{ForeignValue, WatchSource};

/// Returns the identities under which a graph offers resources.
fn offers(loaded: &LoadedGraph) -> Vec<String> {
    let offer = |source: WatchSource| match source {
        WatchSource::World(WorldKey::Export(identity)) => Some(identity),
        _ => None,
    };
    let all = loaded.vertices.iter().flat_map(|vertex| vertex.resource.footprint().watch);
    all.filter_map(offer).collect()
}

/// Two instances of a module export the same name under two keys, which other hosts see.
#[test]
fn instances_export_under_their_own_identities() {
    let tree = Tree::new(&[
        (
            "web.yaml",
            "graph: web\nresources:\n  noop: [{name: key, export: true}]\n\
             modules:\n- {use: ./site, as: shop}\n- {use: ./site, as: blog}\n",
        ),
        ("site/site.yaml", "module: site\nresources:\n  noop: [{name: key, export: true}]\n"),
    ]);
    let loaded = tree.load(&with_facts()).unwrap();
    let mut found = offers(&loaded);
    found.sort();
    assert_eq!(found, ["blog/noop[key]", "noop[key]", "shop/noop[key]"]);
}

fn export(host: &str, module: &str) -> CollectedExport {
    let record = ExportRecord {
        schema: SCHEMA,
        kind: "noop".to_owned(),
        module: module.to_owned(),
        name: "key".to_owned(),
        fields: BTreeMap::new(),
    };
    CollectedExport { host: host.to_owned(), record, has_vanished: false }
}

/// A collected resource of a module has the instance in its identity; a module that is no instance is left out.
#[test]
fn collected_identities_name_host_and_module() {
    let tree = Tree::new(&[(
        "web.yaml",
        "graph: web\ncollect:\n- {kind: noop}\nresources:\n  noop:\n  - {name: last, after: [\"@web1/shop/noop[key]\"]}\n",
    )]);
    let exports: Vec<_> = ["", "shop", "a/b", "x]", "a//b", "..", "@web2"]
        .map(|module| export("web1", module))
        .into();
    let options = Options { exports: Some(exports.into()), ..with_facts() };
    let loaded = tree.load(&options).unwrap();
    let mut names: Vec<_> = loaded.vertices.iter().map(|it| it.identity.to_string()).collect();
    names.sort();
    let expected = ["@web1/a/b/noop[key]", "@web1/noop[key]", "@web1/shop/noop[key]", "noop[last]"];
    assert_eq!(names, expected);
    assert_eq!(loaded.edges.len(), 1);
}

/// An export with a false condition is an inactive offer: the resource itself is not declared here at any time.
#[test]
fn an_inactive_export_stays_an_export() {
    let text = |when: &str| {
        format!(
            "graph: web\nresources:\n  noop:\n  - {{name: x}}\n  \
             - {{name: one, export: true, when: {when}}}\n  \
             - {{name: both, export: {{apply: true}}, when: {when}}}\n  \
             - {{name: \"@@two\", when: {when}}}\n"
        )
    };
    let of = |when: &str| {
        let loaded = Tree::new(&[("web.yaml", &text(when))]).load(&with_facts()).unwrap();
        let active: Vec<_> = loaded.vertices.iter().map(|it| it.identity.to_string()).collect();
        let inactive: Vec<_> = loaded.inactive.iter().map(|it| it.identity.to_string()).collect();
        (sorted(active), sorted(inactive))
    };
    let conditional =
        ["export[noop[both]]", "export[noop[one]]", "export[noop[two]]", "noop[both]"];
    let (active, inactive) = of("facts.cpu.count > 100");
    assert_eq!(active, ["noop[x]"]);
    assert_eq!(inactive, conditional);
    let (active, inactive) = of("facts.cpu.count < 100");
    assert_eq!(active, [&conditional[..], &["noop[x]"]].concat());
    assert!(inactive.is_empty());
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// A vertex between two sets takes no defaults of the settings, and no name that the graph has.
#[test]
fn a_barrier_takes_neither_defaults_nor_names() {
    let mut text = "graph: web\nresources:\n  noop:\n  - name: barrier 1\n".to_owned();
    for number in 0..40 {
        text += &format!("  - {{name: from {number}}}\n  - {{name: to {number}}}\n");
    }
    text += "edges:\n- {from: \"noop[from*]\", to: \"noop[to*]\"}\n";
    let settings = super::settings::read(
        "defaults: {poll: 60, limit: 0.1, burst: 1, when_allowed: Sat, sema: [\"world:x:1\"]}\n",
    );
    let options = Options { defaults: settings.unwrap().defaults, ..with_facts() };
    let loaded = Tree::new(&[("web.yaml", &text)]).load(&options).unwrap();
    assert_eq!((loaded.vertices.len(), loaded.edges.len()), (82, 80));
    let find = |name: &str| loaded.vertices.iter().find(|it| it.identity.as_ref() == name).unwrap();
    assert!(Arc::ptr_eq(&find("noop[barrier 2]").meta, &loaded.usual), "the barrier");
    for declared in ["noop[barrier 1]", "noop[from 0]"] {
        assert!(find(declared).meta.window.is_some(), "{declared}");
    }
}

/// Another host cannot stop this one: a collected resource that contradicts a declared one, or another collected one,
/// is left out with a warning.
#[test]
fn contradicting_exports_are_left_out() {
    use steadfast::world::records::ExportedField;
    let file = |host: &str, path: &str| {
        let field = |text: &str| ExportedField::Text(text.to_owned());
        let fields = [("path", path), ("content", "theirs")]
            .map(|(name, text)| (name.to_owned(), field(text)));
        let record = ExportRecord {
            schema: SCHEMA,
            kind: "file".to_owned(),
            module: String::new(),
            name: path.to_owned(),
            fields: BTreeMap::from(fields),
        };
        CollectedExport { host: host.to_owned(), record, has_vanished: false }
    };
    let tree = Tree::new(&[(
        "web.yaml",
        "graph: web\ncollect:\n- {kind: file, fields: [path, content], below: /srv/d}\nresources:\n  \
         file:\n  - {name: /srv/d/}\n  - {name: /srv/d/own, content: mine}\n  \
         - {name: /srv/d/deep/file, content: mine}\n  \
         line:\n  - {name: edited, path: /srv/d/edited, line: mine}\n",
    )]);
    let paths = ["/z/own", "/z/edited", "/z/deep", "/z/fine"];
    let mut exports: Vec<_> = paths.map(|path| file("web1", path)).into();
    exports.push(file("web2", "/y/fine"));
    let options = Options { exports: Some(exports.into()), ..with_facts() };
    let loaded = tree.load(&options).unwrap();
    let collected = |it: &&str| it.starts_with('@');
    let names: Vec<_> = loaded.vertices.iter().map(|it| it.identity.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).filter(collected).collect();
    assert_eq!(names, ["@web1/file[/z/fine]"]);
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    let left_out = warnings.iter().filter(|it| it.contains("is not collected")).count();
    assert_eq!(left_out, 4, "{warnings:?}");
}

/// The fields that may come from another host. A field that is made of claims, rights, paths or commands is none.
const LISTABLE: &[(&str, &[&str])] = &[
    ("block", &["content"]),
    ("file", &["content", "path"]),
    ("hosts", &["ip", "names"]),
    ("ini", &["value"]),
    ("json", &["value"]),
    ("kv", &["value"]),
    ("line", &["line"]),
    ("msg", &["body"]),
    ("print", &["msg"]),
    ("replace", &["replacement"]),
    ("ssh:authorized_key", &["comment", "key", "type"]),
    ("toml", &["value"]),
    ("user", &["comment"]),
    ("value", &["bool", "float", "int", "text", "texts"]),
    ("yaml", &["value"]),
];

#[test]
fn only_harmless_fields_come_from_other_hosts() {
    let kinds = KindSet::of_this_build();
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for spec in kinds.specs() {
        let is_listable =
            |field: &&steadfast_resources::FieldSpec| field.foreign != ForeignValue::Refused;
        let mut fields: Vec<&str> =
            spec.fields.iter().filter(is_listable).map(|field| field.name).collect();
        fields.sort_unstable();
        if !fields.is_empty() {
            found.push((spec.kind, fields));
        }
    }
    found.sort_unstable();
    let expected: Vec<_> = LISTABLE.iter().map(|(kind, all)| (*kind, all.to_vec())).collect();
    assert_eq!(found, expected);
}
