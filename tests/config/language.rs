//! The graph language: variables, expressions, conditions, loops, includes and modules.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use steadfast::config::{self, LoadedGraph, Options, Rejected};
use steadfast::expressions::Value;

/// Files of a graph in a temporary folder.
pub(crate) struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn load(&self, options: &Options) -> Result<LoadedGraph, Rejected> {
        config::load(&[self.path("web.yaml")], options)
    }

    /// Returns the problems without the name of the folder.
    #[track_caller]
    pub(crate) fn problems(&self, options: &Options) -> String {
        let rejected = match self.load(options) {
            Ok(loaded) => panic!("accepted: {}", names(&loaded).join(" ")),
            Err(rejected) => rejected.with_source(),
        };
        rejected.replace(&format!("{}/", self.folder.path().display()), "")
    }
}

/// Returns the facts of a test host.
pub(crate) fn facts() -> Arc<Value> {
    let facts = serde_json::json!({
        "hostname": "h1",
        "virtualisation": "kvm",
        "container": false,
        "cpu": {"count": 4},
        "memory": {"total_mb": 7984},
        "os": {"id": "debian", "codename": "trixie", "version": "13"},
    });
    Arc::new(Value::from_json(facts).unwrap())
}

pub(crate) fn with_facts() -> Options {
    Options { facts: Some(facts()), ..crate::options() }
}

/// Loads a graph of one file that must be accepted.
#[track_caller]
fn good(text: &str) -> LoadedGraph {
    accepted(&[("web.yaml", text)])
}

#[track_caller]
pub(crate) fn accepted(files: &[(&str, &str)]) -> LoadedGraph {
    Tree::new(files)
        .load(&with_facts())
        .unwrap_or_else(|rejected| panic!("{}", rejected.with_source()))
}

/// Returns the identities of the active resources, in the order written.
fn names(loaded: &LoadedGraph) -> Vec<&str> {
    loaded.vertices.iter().map(|vertex| vertex.identity.as_ref()).collect()
}

/// Returns the expanded graph as a YAML value.
#[track_caller]
fn expanded(files: &[(&str, &str)]) -> String {
    let tree = Tree::new(files);
    let text = config::expanded_text(&[tree.path("web.yaml")], &with_facts());
    text.unwrap_or_else(|rejected| panic!("{}", rejected.with_source()))
}

/// Returns the edges by identity.
pub(crate) fn edges(loaded: &LoadedGraph) -> Vec<(String, String, bool)> {
    let name = |vertex: usize| loaded.vertices[vertex].identity.to_string();
    loaded.edges.iter().map(|edge| (name(edge.from), name(edge.to), edge.notify)).collect()
}

/// Rule 1: a scalar that is one expression keeps its type; mixed with text the result is a string.
#[test]
fn values_keep_their_types() {
    let text = expanded(&[(
        "web.yaml",
        "graph: g\nvars: {n: 4, on: true, names: [a, b], word: x}\nresources:\n  test:\n  - name: t\n    int: ${vars.n * 2}\n    bool: ${vars.on}\n    texts: ${vars.names}\n    text: port ${vars.n} of $${x} ${vars.word}\n    float: ${vars.n}\n",
    )]);
    for line in ["int: 8", "bool: true", "text: \"port 4 of ${x} x\"", "float: 4"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let loaded = good(
        "graph: g\nvars: {n: 4, names: [a, b]}\nresources:\n  test:\n  - name: t\n    int: ${vars.n}\n    texts: ${vars.names}\n    text: ${vars.n}\n",
    );
    assert_eq!(names(&loaded), ["test[t]"]);
}

/// Rule 2: a condition is an expression, a list of expressions, or a truth value; rule 12: a false one is inactive.
#[test]
fn conditions_make_resources_inactive() {
    let loaded = good(
        "graph: g\nvars: {tls: false}\nresources:\n  noop:\n  - {name: a, when: 'facts.virtualisation == \"kvm\"'}\n  - {name: b, when: facts.memory.total_mb < 4096}\n  - {name: c, when: [true, not vars.tls]}\n  - {name: d, when: [facts.cpu.count > 1, vars.tls]}\n  - {name: e, when: false}\n",
    );
    assert_eq!(names(&loaded), ["noop[a]", "noop[c]"]);
    let inactive: Vec<String> =
        loaded.inactive.iter().map(|it| format!("{}: {it}", it.identity)).collect();
    assert_eq!(
        inactive,
        [
            "noop[b]: inactive: facts.memory.total_mb (7984) < 4096",
            "noop[d]: inactive: vars.tls (false)",
            "noop[e]: inactive: false",
        ]
    );
}

/// Rule 12: the order holds through inactive resources; a notification ends there.
#[test]
fn the_order_leads_through_inactive_resources() {
    let loaded = good(
        "graph: g\nresources:\n  noop:\n  - {name: a, notify: [\"noop[b]\"]}\n  - {name: b, when: false, before: [\"noop[x]\"]}\n  - {name: x, when: false}\n  - {name: c, after: [\"noop[x]\"]}\n",
    );
    assert_eq!(edges(&loaded), [("noop[a]".to_owned(), "noop[c]".to_owned(), false)]);
}

/// Rule 12: of several declarations of one resource, one may be active.
#[test]
fn one_of_two_declarations_may_be_active() {
    let text = |first: &str, second: &str| {
        format!(
            "graph: g\nresources:\n  noop:\n  - {{name: a, when: {first}}}\n  - {{name: a, when: {second}}}\n"
        )
    };
    let loaded = good(&text("facts.cpu.count > 1", "facts.cpu.count < 2"));
    assert_eq!((names(&loaded), loaded.inactive.len()), (vec!["noop[a]"], 0));
    let loaded = good(&text("false", "false"));
    assert_eq!((loaded.vertices.len(), loaded.inactive.len()), (0, 1));
    let both = text("facts.cpu.count > 1", "facts.cpu.count > 2");
    let problems = Tree::new(&[("web.yaml", &both)]).problems(&with_facts());
    assert!(problems.contains("two declarations of `noop[a]` are active"), "{problems}");
    assert!(problems.contains("facts.cpu.count > 1") && problems.contains("facts.cpu.count > 2"));
}

/// Rule 12: a receiver of a value of an inactive resource waits for it.
#[test]
fn receivers_of_inactive_resources_wait() {
    let loaded = good(
        "graph: g\nresources:\n  value:\n  - {name: v, text: x, when: false}\n  file:\n  - {name: /tmp/a, recv: {content: \"value[v].text\"}}\n",
    );
    assert!(loaded.vertices.is_empty());
    let shown: Vec<String> = loaded.inactive.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["unknown until value[v] is active", "inactive: false"]);
}

/// Rule 6: loops over lists, maps, and lists of maps; instances are known by key.
#[test]
fn loops_make_one_resource_for_each_item() {
    let loaded = good(
        "graph: g\nvars:\n  admins: [ada, grace]\n  sites: {shop: {port: 1}, blog: {port: 2}}\n  disks: [{id: sda, size: 1}, {id: sdb, size: 2}]\nresources:\n  noop:\n  - {for_each: vars.admins, name: \"user-${item}\"}\n  - {for_each: vars.admins}\n  - {for_each: vars.sites, name: \"${item.key}-${item.value.port}\"}\n  - {for_each: {in: vars.disks, key: id}, name: \"${item.id}:${item.size}\"}\n  - {for_each: [x, y], when: item != \"x\"}\n",
    );
    assert_eq!(
        names(&loaded),
        [
            "noop[user-ada]",
            "noop[user-grace]",
            "noop[ada]",
            "noop[grace]",
            "noop[blog-2]",
            "noop[shop-1]",
            "noop[sda:1]",
            "noop[sdb:2]",
            "noop[y]",
        ]
    );
    assert_eq!(loaded.inactive[0].identity.as_ref(), "noop[x]");
}

/// Rule 6: declared items get defaults.
#[test]
fn declared_items_have_defaults() {
    let loaded = good(
        "graph: g\nvars: {sites: {shop: {port: 1, tls: true}, blog: {port: 2}}}\nresources:\n  noop:\n  - for_each: {in: vars.sites, item: {port: {type: int}, tls: {type: bool, default: false}}}\n    when: item.value.tls\n",
    );
    assert_eq!(names(&loaded), ["noop[shop]"]);
    assert_eq!(loaded.inactive[0].identity.as_ref(), "noop[blog]");
}

/// Rule 8: layers of variables, per-host files, and the values of the command line.
#[test]
fn variables_have_layers() {
    let tree = Tree::new(&[
        (
            "web.yaml",
            "graph: g\nvars: {a: 1, b: 1, c: 1, d: 1, e: \"${vars.a + 10}\", names: [x]}\nvars_files: [all.yaml, \"os/${facts.os.codename}.yaml\", {file: \"host/${facts.hostname}.yaml\", optional: true}]\nresources:\n  noop:\n  - name: ${vars.a}-${vars.b}-${vars.c}-${vars.d}-${vars.e}-${vars.names | join(\",\")}\n",
        ),
        ("all.yaml", "b: 2\nc: 2\nd: 2\n"),
        ("os/trixie.yaml", "{\"c\": 3, \"d\": 3}"),
        ("more.yaml", "d: 4\n"),
    ]);
    let options = Options {
        vars: vec![("a".to_owned(), "5".to_owned()), ("names".to_owned(), "[p, q]".to_owned())],
        vars_files: vec![tree.path("more.yaml")],
        ..with_facts()
    };
    let loaded = tree.load(&options).unwrap();
    assert_eq!(names(&loaded), ["noop[5-2-3-4-15-p,q]"]);
    // The texts alone load the same graph again, without files, facts and variables.
    drop(tree);
    let again = config::load_texts(loaded.texts.clone(), &crate::options()).unwrap();
    assert_eq!(names(&again), names(&loaded));
    assert_eq!(again.hash, loaded.hash);
}

/// Rule 7: files of the same graph, by path and by pattern, with conditions.
#[test]
fn files_include_each_other() {
    let loaded = accepted(&[
        (
            "web.yaml",
            "graph: g\nvars: {a: 1}\ninclude: [apps/*.yaml, {file: more.yaml, when: facts.container}]\nresources:\n  noop: [{name: top, after: [\"noop[two]\"]}]\n",
        ),
        ("apps/one.yaml", "vars: {b: 2}\nresources: {noop: [{name: \"one-${vars.a}\"}]}\n"),
        ("apps/two.yaml", "include: deep/three.yaml\nresources: {noop: [two]}\n"),
        ("apps/deep/three.yaml", "resources: {noop: [{name: \"three-${vars.b}\"}]}\n"),
        ("more.yaml", "resources: {noop: [{name: more}]}\n"),
    ]);
    assert_eq!(names(&loaded), ["noop[top]", "noop[one-1]", "noop[two]", "noop[three-2]"]);
    assert_eq!(loaded.inactive[0].identity.as_ref(), "noop[more]");
}

const SITE: &str = "module: site
params:
  domain: { type: string, pattern: '^[a-z0-9.-]+$' }
  port:   { type: int, min: 1, max: 65535 }
  tls:    { type: bool, default: false }
  key:    { type: secret, required: false }
resources:
  file:
    - { name: vhost, path: \"/etc/nginx/sites-enabled/${params.domain}.conf\", template: vhost.conf.j2, validate: [nginx, -t, -c, \"%s\"] }
    - { name: key, when: params.tls, path: \"/etc/ssl/private/${params.domain}.pem\", content: { from: params.key }, before: [\"file[vhost]\"] }
exports: { conf: \"file[vhost]\" }
";

const WEB: &str = "graph: web
vars:
  domain: example.org
  workers: ${facts.cpu.count * 2}            # stays an integer
  admins: [ada, grace]
  sites:
    shop: { port: 8081, tls: true }
    blog: { port: 8082 }
secrets:
  tls: { file: /etc/steadfast/tls.pem }
resources:
  pkg:
    - name: nginx
    - { name: qemu-guest-agent, when: 'facts.virtualisation == \"kvm\"' }
  user:
    - { for_each: vars.admins, name: \"${item}\", shell: /bin/bash, groups: [sudo] }
  file:
    - name: /etc/nginx/nginx.conf
      template: templates/nginx.conf.j2
      with: { workers: \"${vars.workers}\" }
      mode: 0644
      notify: [\"svc[nginx]\"]
  svc:
    - name: nginx
      state: running
      startup: ${\"disabled\" if facts.container else \"enabled\"}
      after: [\"user[*]\", \"shop/file[vhost]\"]
modules:
  - use: modules/site
    for_each: { in: vars.sites, item: { port: { type: int }, tls: { type: bool, default: false } } }
    as: ${item.key}                          # identities: shop/file[vhost], blog/file[vhost]
    with: { domain: \"${item.key}.${vars.domain}\", port: \"${item.value.port}\", tls: \"${item.value.tls}\", key: { secret: \"tls\" } }
    notify: [\"svc[nginx]\"]
    meta: { retry: 3 }
";

pub(crate) fn example() -> [(&'static str, &'static str); 4] {
    [
        ("web.yaml", WEB),
        ("templates/nginx.conf.j2", "worker_processes {{ workers }};\n"),
        ("modules/site/site.yaml", SITE),
        (
            "modules/site/vhost.conf.j2",
            "server { listen {{ params.port }}; server_name {{ params.domain }}; }\n",
        ),
    ]
}

/// Part 5: the example loads; rule 7: instances, exports, edges and metaparameters of a use.
#[test]
fn the_example_of_the_language_loads() {
    let loaded = accepted(&example());
    assert_eq!(
        names(&loaded),
        [
            "pkg[nginx]",
            "pkg[qemu-guest-agent]",
            "user[ada]",
            "user[grace]",
            "file[/etc/nginx/nginx.conf]",
            "svc[nginx]",
            "blog/file[vhost]",
            "shop/file[vhost]",
            "shop/file[key]",
        ]
    );
    assert_eq!(loaded.inactive.len(), 1);
    assert_eq!(loaded.inactive[0].identity.as_ref(), "blog/file[key]");
    let edges = edges(&loaded);
    for (from, to, notify) in [
        ("user[ada]", "svc[nginx]", false),
        ("shop/file[vhost]", "svc[nginx]", true),
        ("shop/file[key]", "svc[nginx]", true),
        ("blog/file[vhost]", "svc[nginx]", true),
        ("shop/file[key]", "shop/file[vhost]", false),
    ] {
        let edge = (from.to_owned(), to.to_owned(), notify);
        assert!(edges.contains(&edge), "{edge:?}: {edges:?}");
    }
    let vhost = loaded.vertices.iter().find(|it| it.identity.as_ref() == "shop/file[vhost]");
    let other = loaded.vertices.iter().find(|it| it.identity.as_ref() == "pkg[nginx]");
    assert_ne!(vhost.unwrap().meta.retry, other.unwrap().meta.retry);
    let text = expanded(&example());
    assert!(text.contains("listen 8081"), "{text}");
    assert!(text.contains(", in module site (shop), used at"), "{text}");
}

/// Rule 7: modules within modules; the prefix is left out inside.
#[test]
fn modules_use_modules() {
    let loaded = accepted(&[
        (
            "web.yaml",
            "graph: g\nmodules: [{use: outer, as: shop}]\nresources:\n  noop: [{name: top, after: [\"shop/noop[a]\", \"shop/*\"]}]\n",
        ),
        (
            "outer/m.yaml",
            "module: outer\nresources:\n  noop: [{name: a, after: [\"tls/noop[key]\"]}]\nmodules: [{use: ../inner, as: tls, with: {n: 2}}]\nexports: [\"noop[a]\"]\n",
        ),
        (
            "inner/m.yaml",
            "module: inner\nparams: {n: {type: int}}\nresources:\n  noop: [{name: key}, {name: \"n${params.n}\"}]\nexports: [\"noop[key]\"]\n",
        ),
    ]);
    assert_eq!(
        names(&loaded),
        ["noop[top]", "shop/noop[a]", "shop/tls/noop[key]", "shop/tls/noop[n2]"]
    );
    let edges = edges(&loaded);
    assert_eq!(edges.len(), 4, "{edges:?}");
}

/// Rule 7: the resources of a module that is not used under a condition are inactive.
#[test]
fn a_false_condition_deactivates_a_module() {
    let loaded = accepted(&[
        (
            "web.yaml",
            "graph: g\nmodules: [{use: m, as: x, when: facts.container}]\nresources: {noop: [a]}\n",
        ),
        ("m/m.yaml", "module: m\nresources: {noop: [b, {name: c}]}\n"),
    ]);
    let inactive: Vec<&str> = loaded.inactive.iter().map(|it| it.identity.as_ref()).collect();
    assert_eq!(inactive, ["x/noop[b]", "x/noop[c]"]);
}

/// Rule 9: sets of resources; a whole name wins; two large sets are ordered through one vertex.
#[test]
fn edges_name_sets() {
    let loaded = good(
        "graph: g\nresources:\n  noop:\n  - {name: web-1}\n  - {name: web-2}\n  - {name: db}\n  - {name: \"x*\", before: [\"noop[db]\"]}\n  - {name: xy}\n  - {name: last, after: [\"noop[web-*]\", \"noop[x*]\"]}\n",
    );
    let to_last: Vec<String> = edges(&loaded)
        .into_iter()
        .filter(|(_, to, _)| to == "noop[last]")
        .map(|(from, ..)| from)
        .collect();
    assert_eq!(to_last, ["noop[web-1]", "noop[web-2]", "noop[x*]"]);
    let many: Vec<String> = (0..200).map(|number| format!("\"{number}\"")).collect();
    let many = many.join(", ");
    let loaded = good(&format!(
        "graph: g\nvars: {{n: [{many}]}}\nresources:\n  noop:\n  - {{for_each: vars.n, name: \"a-${{item}}\"}}\n  - {{for_each: vars.n, name: \"b-${{item}}\"}}\nedges:\n- {{from: \"noop[a-*]\", to: \"noop[b-*]\"}}\n"
    ));
    assert_eq!((loaded.vertices.len(), loaded.edges.len()), (401, 400));
}

/// Rule 9: an empty set is a warning.
#[test]
fn an_empty_set_is_a_warning() {
    let loaded = good("graph: g\nresources:\n  noop:\n  - {name: a, after: [\"user[*]\"]}\n");
    assert!(loaded.warnings[0].what.contains("`user[*]` names no resource"));
}

/// Rule 3: a command without a shell is split before its expressions are evaluated.
#[test]
fn an_expression_stays_within_one_argument() {
    let text = expanded(&[(
        "web.yaml",
        "graph: g\nvars: {text: \"a b\"}\nresources:\n  exec:\n  - {name: e, cmd: \"/bin/echo ${vars.text} end\"}\n  - {name: f, shell: /bin/sh, cmd: 'echo ${HOME}', env: {T: \"${vars.text}\"}}\n",
    )]);
    assert!(text.contains("cmd: \"/bin/echo\""), "{text}");
    assert!(text.contains("- \"a b\""), "{text}");
    assert!(text.contains("echo ${HOME}"), "{text}");
}

/// Rule 3: a command in a field of words stays a list; one expression may give the whole list.
#[test]
fn a_validation_is_an_argument_vector() {
    let text = expanded(&[(
        "web.yaml",
        "graph: g\nvars: {text: \"a b\", words: [sshd, -t, -f, \"%s\"]}\nresources:\n  file:\n  - {name: /a, content: a, validate: \"judge ${vars.text} %s\"}\n  - {name: /b, content: b, validate: \"${vars.words}\"}\n",
    )]);
    for words in ["- \"judge\"\n", "- \"a b\"\n", "- \"sshd\"\n"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// Rule 4 and 5: a template with a secret becomes a received value; the secret is no part of the expansion.
#[test]
fn templates_take_secrets_by_name() {
    let text = expanded(&[(
        "web.yaml",
        "graph: g\nsecrets: {db: {file: /etc/db}}\nvars: {user: ada}\nresources:\n  file:\n  - name: /etc/app.conf\n    template: {text: \"u=${x} {{ vars.user }} p={{ pw }}\\n\"}\n    values: {pw: {secret: db}}\n",
    )]);
    assert!(text.contains("u=$${x} ada p=${pw}"), "{text}");
    assert!(text.contains("secret: db"), "{text}");
}

/// Rule 11: a value of a probe that has not answered makes its user wait.
#[test]
fn users_of_a_probe_wait_for_its_value() {
    let files = [(
        "web.yaml",
        "graph: g\nvars: {old: \"${probe.old}\"}\nresources:\n  noop:\n  - {name: a, when: probe.old}\n  - {name: b, when: vars.old}\n  test:\n  - {name: c, bool: \"${probe.old}\"}\n  probe:\n  - {name: old, cmd: [/bin/true], type: bool}\n",
    )];
    let loaded = accepted(&files);
    let shown: Vec<String> = loaded.inactive.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["unknown until probe[old]"; 3]);
    let probes = BTreeMap::from([("old".to_owned(), Value::Bool(true))]);
    let options = Options { probes: Some(Arc::new(probes)), ..with_facts() };
    let loaded = Tree::new(&files).load(&options).unwrap();
    assert_eq!(names(&loaded), ["noop[a]", "noop[b]", "test[c]", "probe[old]"]);
}

/// Rule 13: an expansion has a limit, and the message names the loop.
#[test]
fn an_expansion_has_a_limit() {
    let many: Vec<String> = (0..400).map(|number| number.to_string()).collect();
    let text = format!(
        "graph: g\nvars: {{n: [{}]}}\nmodules: [{{use: m, for_each: vars.n}}]\n",
        many.join(", ")
    );
    let module = format!(
        "module: m\nresources:\n  noop:\n  - {{for_each: [{}], name: \"a${{item}}\"}}\n",
        many.join(", ")
    );
    let problems = Tree::new(&[("web.yaml", &text), ("m/m.yaml", &module)]).problems(&with_facts());
    assert!(problems.contains("grows above 100000 resources"), "{problems}");
}

/// Rule 15: assertions and labels.
#[test]
fn assertions_and_labels_are_read() {
    let loaded = good(
        "graph: g\nassert: [{that: facts.cpu.count > 1, message: too small}]\nresources:\n  noop:\n  - {name: a, labels: {tier: web}}\n",
    );
    assert_eq!(&*loaded.vertices[0].labels, [("tier".to_owned(), "web".to_owned())]);
}

/// Issue 17, point 1: anchors, merge keys, entries that are only names; rule 14: JSON.
#[test]
fn short_forms_are_accepted() {
    let loaded = good(
        "graph: g\nresources:\n  noop:\n  - one\n  - &base {name: two, meta: {retry: 2}}\n  - {<<: *base, name: three}\n",
    );
    assert_eq!(names(&loaded), ["noop[one]", "noop[two]", "noop[three]"]);
    assert_eq!(loaded.vertices[1].meta, loaded.vertices[2].meta);
    let loaded = good(
        "{\"graph\":\"g\",\"vars\":{\"n\":2},\"resources\":{\"noop\":[\"a\",{\"name\":\"n${vars.n}\",\"when\":\"vars.n > 1\"}]}}",
    );
    assert_eq!(names(&loaded), ["noop[a]", "noop[n2]"]);
}
