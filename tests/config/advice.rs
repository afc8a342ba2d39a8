//! `check --lint`: each advice, and its silence with a reason.

use super::Files;
use steadfast::config::{LINTS, find_advice, load};

/// Returns the names of the advice about a valid graph, with their lines.
fn advice_about(files: &Files) -> Vec<(&'static str, u32)> {
    let paths = [files.path("graph.yaml")];
    let loaded = load(&paths, &crate::options());
    assert!(loaded.is_ok(), "{}", loaded.unwrap_err());
    let found = find_advice(&paths, &crate::options());
    found.into_iter().map(|finding| (finding.lint, finding.place.line)).collect()
}

#[test]
fn each_advice_is_given_at_its_line() {
    for (body, wanted) in [
        ("  exec:\n    - name: a\n      cmd: echo a\n", ("unguarded-exec", 4)),
        (
            "  exec:\n    - {name: a, cmd: echo a, creates: /a}\nvars: {x: 1}\n",
            ("unused-variable", 5),
        ),
        (
            "  exec:\n    - {name: a, cmd: echo a, creates: /a, env: {DB_PASSWORD: hunter22}}\n",
            ("clear-secret", 4),
        ),
        (
            "  file:\n    - {name: /tmp/a, content: x, notify: \"file[/tmp/b]\"}\n    - {name: /tmp/b, content: x}\n",
            ("useless-notify", 4),
        ),
        (
            "  file:\n    - {name: /etc/a.conf, content: x}\n  svc:\n    - {name: a, state: running, after: [\"file[/etc/a.conf]\"]}\n",
            ("after-without-notify", 6),
        ),
        ("  noop:\n    - {name: a, when: facts.os.codename == \"Trixie\"}\n", ("fact-case", 4)),
        ("  file:\n    - {name: /tmp/a, content: \"${HOME}\"}\n", ("literal-expression", 4)),
        (
            "  file:\n    - {name: /tmp/a, mode: \"0755\", template: {text: \"x {{ n }} {{ n | sh }}\"}, with: {n: \"1\"}}\n",
            ("template-without-sh", 4),
        ),
    ] {
        let graph = format!("graph: a\nresources:\n{body}");
        let files = Files::new().with("graph.yaml", &graph);
        assert_eq!(advice_about(&files), [wanted], "{graph}");
        assert!(LINTS.iter().any(|(name, _)| *name == wanted.0));
        // A comment above the line silences the advice; without a reason it is advice itself.
        let mut lines: Vec<String> = graph.lines().map(str::to_owned).collect();
        let at = wanted.1 as usize - 1;
        lines.insert(at, format!("    # lint: allow {}: a test", wanted.0));
        let files = Files::new().with("graph.yaml", lines.join("\n") + "\n");
        assert_eq!(advice_about(&files), [], "{}", lines.join("\n"));
        lines[at] = format!("    # lint: allow {}", wanted.0);
        let files = Files::new().with("graph.yaml", lines.join("\n") + "\n");
        assert_eq!(advice_about(&files), [("silence-without-reason", wanted.1 + 1)]);
    }
}

#[test]
fn a_module_without_a_use_of_a_parameter_gets_advice() {
    let module = "module: m\nparams:\n  used: {type: string}\n  idle: {type: int, default: 1}\nresources:\n  file:\n    - {name: a, path: \"/tmp/${params.used}\", content: x}\n";
    let graph = "graph: a\nmodules:\n  - {use: m, as: one, with: {used: b}}\n";
    let files = Files::new().with("graph.yaml", graph).with("m/module.yaml", module);
    assert_eq!(advice_about(&files), [("unused-param", 4)]);
}

/// A value within a script is code; a value in an argument or in the environment is not.
#[test]
fn an_expression_in_a_script_gets_advice() {
    let of = |fields: &str| {
        let graph = format!(
            "graph: a\nvars: {{x: ab}}\nresources:\n  exec:\n    - {{name: a, creates: /a, {fields}}}\n"
        );
        let files = Files::new().with("graph.yaml", &graph);
        let found = advice_about(&files).into_iter();
        found.map(|(name, _)| name).filter(|name| *name != "unused-variable").collect::<Vec<_>>()
    };
    for fields in [
        "args: [sh, -c, \"echo ${vars.x}\"]",
        "args: [/bin/bash, -euc, \"echo ${vars.x}\"]",
        "args: [env, A=b, timeout, 5, dash, -c, \"${vars.x}\"]",
        "args: [python3.11, -c, \"print('${vars.x}')\"]",
        "args: [perl, -ne, \"print '${vars.x}'\"]",
        "cmd: 'sh -c echo ${vars.x}'",
        "cmd: sh, args: [-c, \"echo ${vars.x}\"]",
        "args: [true], ifcmd: 'sh -c ${vars.x}'",
    ] {
        assert_eq!(of(fields), ["expression-in-script"], "{fields}");
    }
    for fields in [
        "args: [sh, -c, 'echo \"$1\"', _, \"${vars.x}\"]",
        "args: [sh, -c, 'echo \"$X\"'], env: {X: \"${vars.x}\"}",
        "args: [sh, -e, \"${vars.x}\"]",
        "args: [echo, -c, \"${vars.x}\"]",
        "args: [sh, -c, \"echo $${vars.x}\"]",
        "args: [python3, /script, -c, x]",
    ] {
        assert_eq!(of(fields), [""; 0], "{fields}");
    }
}

#[test]
fn a_good_graph_gets_no_advice() {
    let graph = "graph: a\nvars: {site: web}\nresources:\n  file:\n    - {name: \"/etc/${vars.site}.conf\", content: x, notify: \"svc[web]\"}\n    - {name: /etc/b.conf, content: x}\n  svc:\n    - {name: web, state: running, after: [\"file[/etc/web.conf]\"], subscribe: [\"file[/etc/b.conf]\"]}\n";
    let files = Files::new().with("graph.yaml", graph);
    assert_eq!(
        advice_about(&files)
            .into_iter()
            .filter(|(name, _)| *name != "after-without-notify")
            .collect::<Vec<_>>(),
        []
    );
}
