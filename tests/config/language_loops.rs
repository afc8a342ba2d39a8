//! Loops: names of secrets and of senders that contain the item.

use crate::language::{Tree, accepted, edges, with_facts};

/// Rule 5: the names of secrets are static: variables, params, the item and facts.
#[test]
fn names_of_secrets_take_expressions() {
    let secrets = "secrets: {tls-shop: {file: /etc/a}, tls-blog: {file: /etc/b}}";
    let web = |key: &str| {
        format!(
            "graph: g\nvars: {{sites: [shop, blog], k: shop}}\n{secrets}\nresources:\n  file:\n  - {{for_each: vars.sites, name: \"/etc/x/${{item}}\", content: {{secret: \"{key}\"}}}}\n  - {{name: /etc/y, template: {{text: \"{{{{ p }}}}\"}}, values: {{p: {{secret: \"tls-${{vars.k}}\"}}}}}}\n  probe: [{{name: p, cmd: [/bin/true]}}]\nmodules:\n- {{use: m, for_each: vars.sites, with: {{key: {{secret: \"{key}\"}}}}}}\n"
        )
    };
    let module = "module: m\nparams: {key: {type: secret}}\nresources:\n  file: [{name: key, path: \"/etc/k/${params.name}\", content: {from: params.key}}]\n";
    let module = module.replace(
        "{key: {type: secret}}",
        "{key: {type: secret}, name: {type: string, default: n}}",
    );
    let module = module.replace("${params.name}", "x");
    let load = |key: &str| Tree::new(&[("web.yaml", &web(key)), ("m/m.yaml", &module)]);
    let problems = load("tls-${item}").problems(&with_facts());
    // The instances write one file: the secrets themselves are found.
    assert!(problems.contains("claimed twice") && !problems.contains("not declared"), "{problems}");
    let problems = load("tls-${probe.p}").problems(&with_facts());
    assert!(problems.contains("`secret` must be known at load; a probe is not"), "{problems}");
    assert!(problems.contains("a secret must be known at load; a probe is not"), "{problems}");
}

/// The names of senders take expressions too: a receiver in a loop sees its item.
#[test]
fn a_receiver_in_a_loop_names_the_sender_of_its_item() {
    let loaded = accepted(&[(
        "web.yaml",
        "graph: g\nvars: {all: [a, b]}\nresources:\n  value:\n  - {for_each: vars.all, name: \"v ${item}\", text: x}\n  test:\n  - {for_each: vars.all, name: \"t-${item}\", recv: {text: \"value[v ${item}].text\"}}\n  - {for_each: vars.all, name: \"u-${item}\", recv: {text: {template: \"x ${p}\", values: {p: {from: \"value[v ${item}]\", key: text}}}}}\n  file:\n  - {for_each: vars.all, name: \"/etc/${item}\", template: {text: \"{{ p }}\"}, values: {p: \"value[v ${item}].text\"}}\n",
    )]);
    let edges = edges(&loaded);
    for item in ["a", "b"] {
        for to in
            [format!("test[t-{item}]"), format!("test[u-{item}]"), format!("file[/etc/{item}]")]
        {
            assert!(
                edges.contains(&(format!("value[v {item}]"), to.clone(), false)),
                "{to}: {edges:?}"
            );
        }
    }
}

/// Rule 5: a module sees no secrets of the graph, also not by `recv`.
#[test]
fn a_module_receives_secrets_only_by_params() {
    let files = [
        ("web.yaml", "graph: g\nsecrets: {s: {file: /etc/s}}\nmodules: [{use: m, as: x}]\n"),
        (
            "m/m.yaml",
            "module: m\nresources:\n  file:\n  - {name: /etc/a, recv: {content: {secret: s}}}\n  - {name: /etc/b, template: {text: \"{{ p }}\"}, values: {p: {secret: s}}}\n",
        ),
    ];
    let problems = Tree::new(&files).problems(&with_facts());
    assert_eq!(problems.matches("a module gets a secret as a parameter").count(), 2, "{problems}");
}
