//! Messages of the graph language: all problems in one run, no problems that follow from others, and hints.

use crate::language::{Tree, accepted, with_facts};
use steadfast::config;

#[track_caller]
fn problems(files: &[(&str, &str)]) -> String {
    Tree::new(files).problems(&with_facts())
}

/// Part 6: all problems of a resource and of a use are reported in one run.
#[test]
fn all_problems_are_reported_in_one_run() {
    let said = problems(&[
        (
            "web.yaml",
            "graph: g\nvars: {n: 1}\nresources:\n  test:\n  - {name: t, when: vars.n, int: \"${vars.x}\", bool: \"${vars.y}\", text: \"${vars.z}\"}\nmodules:\n- {use: m, as: a, with: {p: \"${vars.q}\", r: 1, s: x, k: 1}}\n- {use: m, as: b, with: {p: x, s: 5}}\n",
        ),
        (
            "m/m.yaml",
            "module: m\nparams: {p: {type: int}, s: {type: int, max: 3}, k: {type: secret}, t: {type: bool}}\nresources: {noop: [a]}\n",
        ),
    ]);
    for message in [
        "a condition must be bool, this is int",
        "no variable `x`",
        "no variable `y`",
        "no variable `z`",
        "no variable `q`",
        "the module has no param `r`",
        "a secret parameter wants {secret: NAME}",
        "`p` of module `m` (b) wants int, got a string",
        "`s` of module `m` (b) wants at most 3",
        "module `m` (b) lacks `k`",
        "module `m` (b) lacks `t`",
    ] {
        assert!(said.contains(message), "{message}: {said}");
    }
}

/// A variable with a problem gives no further problems at its users.
#[test]
fn users_of_a_wrong_variable_are_silent() {
    let said = problems(&[(
        "web.yaml",
        "graph: g\nvars: {a: \"${vars.b}\", b: \"${vars.a}\", c: \"${1 + 'x'}\", d: \"${vars.c}\"}\nresources:\n  noop:\n  - {name: one, when: vars.a}\n  - {name: \"x-${vars.c}\"}\n  - {for_each: vars.d}\n  test: [{name: t, int: \"${vars.d + 1}\"}]\n  file: [{name: /a, template: {text: \"{{ vars.c }}\"}}]\n",
    )]);
    assert!(said.contains("the graph was rejected: 2 problems"), "{said}");
    assert!(!said.contains("no variable"), "{said}");
}

/// A hint names a form that the field takes: a literal text has no expression.
#[test]
fn hints_for_a_source_fit_the_field() {
    for (resource, hint) in [
        (
            "file: [{name: /a, content: {from: vars.n}}]",
            "write `template: {text: \"{{ value }}\"}, with: {value: \"${vars.n}\"}`; of a resource",
        ),
        ("file: [{name: /a, mode: {from: vars.n}}]", "write `mode: \"${vars.n}\"`; of a resource"),
        (
            "file: [{name: /a, content: {from: \"exec[a].stdout\"}}]",
            "write `recv: {content: \"exec[a].stdout\"}`",
        ),
        ("link: [{name: /a}]", "write: file: [{name: /path, symlink: /target}]"),
        (
            "file: [{name: /a, template: {text: \"{{ w }}\"}}]",
            "give it a value: with: {w: …}; a variable is `vars.w`",
        ),
    ] {
        let graph = format!("graph: g\nvars: {{n: x}}\nresources:\n  {resource}\n");
        let kinds = config::KindSet::of_this_build();
        let options = config::Options { kinds, ..with_facts() };
        let said = Tree::new(&[("web.yaml", &graph)]).problems(&options);
        assert!(said.contains(hint), "{resource}: {said}");
    }
}

/// Issue 17, point 1: the hint for a word of another tool has the value of the user.
#[test]
fn hints_for_foreign_words_repeat_the_value() {
    for (kind, line, hint) in [
        ("pkg", "require: Package[nginx]", "write: after: [\"pkg[nginx]\"]"),
        ("pkg", "require: [\"repo[a]\", 'Service[b]']", "write: after: [\"repo[a]\", \"svc[b]\"]"),
        ("pkg", "with_items: [a, b]", "write: for_each: [a, b]"),
        ("pkg", "with_dict: {a: 1}", "write: for_each: {in: {a: 1}}"),
        ("pkg", "loop: \"{{ names }}\"", "write: for_each: vars.names"),
        ("exec", "unless: test -e /x", "write: nifcmd: test -e /x"),
        ("exec", "onlyif: 'a: b'", "write: ifcmd: 'a: b'"),
        ("exec", "if: test -e /x", "use `ifcmd: COMMAND`, or `when: EXPRESSION`"),
        ("user", "createhome: yes", "write: manage_home: true"),
        ("user", "create_home: no", "write: manage_home: false"),
        ("exec", "chdir: /srv", "write: cwd: /srv"),
        ("exec", "become: true", "write: user: root"),
        ("exec", "command: \"{{ cmd }}\"", "write: cmd: '${vars.cmd}'"),
        ("file", "src: files/a", "write: source: files/a"),
        ("file", "ensure: present", "write: state: exists"),
        ("file", "ensure: absent", "write: state: absent"),
        ("file", "ensure: directory", "write: path: /absolute/path/"),
        ("file", "ensure: link", "write: symlink: /absolute/path"),
        ("file", "dest: a", "write: path: /absolute/path/a"),
        ("file", "dest: /a", "write: path: /a"),
        ("file", "target: a", "write: symlink: a"),
        ("pkg", "ensure: latest", "write: state: newest"),
        ("pkg", "ensure: '1.2-3'", "write: state: 1.2-3"),
        ("svc", "ensure: stopped", "write: state: stopped"),
        ("svc", "enabled: false", "write: startup: disabled"),
        ("svc", "running: true", "write: state: running"),
        ("pkg", "ensure: absent", "write: state: absent"),
        ("pkg", "ensure: present", "write: state: installed"),
        ("pkg", "version: '1.2'", "write: state: 1.2"),
        ("pkg", "require: \"repo[a]\"", "write: after: [\"repo[a]\"]"),
        ("pkg", "with_items: \"{{ names }}\"", "write: for_each: vars.names"),
        ("pkg", "if: vars.on", "write: when: vars.on"),
        ("pkg", "require: [a, b]", "write: after: [\"kind[name]\"]"),
        ("file", "depends: \"pkg[a]\"", "write: after: [\"pkg[a]\"]"),
        ("cron", "schedule: \"0 7 * * *\"", "write: minute: 0, hour: 7"),
        ("cron", "schedule: \"*/5 * * * *\"", "write: minute: \"*/5\""),
        ("cron", "schedule: hourly", "write: special: \"@hourly\""),
        ("cron", "weekday: monday", "write: weekday: mon"),
        ("cron", "minute: \"0 7 * * *\"", "write: minute: 0, hour: 7"),
        (
            "repo",
            "repo: \"deb http://x y main\"",
            "write: uris: [http://x], suites: [y], components: [main]",
        ),
        (
            "repo",
            "repo: \"deb-src [arch=amd64 signed-by=/k] http://x y main b\"",
            "write: uris: [http://x], suites: [y], components: [main, b], types: [deb-src], architectures: [amd64], signed_by: /k",
        ),
        ("unit", "state: running", "write: running: true"),
        ("unit", "startup: enabled", "write: enabled: true"),
        ("unit", "startup: disabled", "write: enabled: false"),
        ("unit", "ensure: stopped", "write: running: false"),
        ("file", "text: x", "write: content: x"),
        ("file", "owner: \"www-data:www-data\"", "write: owner: www-data, group: www-data"),
        ("git", "url: \"https://x/y\"", "write: repo: ADDRESS"),
        ("git", "branch: main", "write: version: main"),
        ("ini", "option: x", "write: key: x"),
        ("hosts", "address: 10.0.0.1", "write: ip: 10.0.0.1"),
        ("firewall", "rules: table inet a", "write: content: table inet a"),
        (
            "svc",
            "restart: true",
            "write: refresh: restart, and notify: [\"svc[NAME]\"] in the resource that changes",
        ),
        ("svc", "state: \"on\"", "write: state: running"),
        ("exec", "cmd: [echo, foo]", "put the words into `args`: args: [echo, foo]"),
        ("file", "recv: \"exec[x].stdout\"", "write: recv: {content: \"exec[x].stdout\"}"),
        ("probe", "cmd: nginx -v", "write each word as a list item: `cmd: [nginx, -v]`"),
        ("fetch", "url: \"ftp://x/y\"", "curl in an `exec` with `creates` reads other addresses"),
    ] {
        let graph = format!("graph: g\nresources:\n  {kind}:\n  - name: /a\n    {line}\n");
        let said = problems(&[("web.yaml", &graph)]);
        assert!(said.contains(&format!("hint: {hint}\n")), "{line}: {said}");
    }
}

/// A kind of another tool gets the kind here, also with its qualified name of Ansible, or the way to do its work.
#[test]
fn hints_for_foreign_kinds_name_the_kind_here() {
    for (kind, hint) in [
        ("service", "write: svc:"),
        ("ansible.builtin.copy", "write: file:"),
        ("community.general.ini_file", "write: ini:"),
        ("systemd_unit", "write: unit:"),
        ("ufw", "write: firewall:"),
        ("set_fact", "write `vars: {NAME: VALUE}` at the top of the graph file"),
        ("include_tasks", "write `include: [FILE]` at the top of the graph file"),
        ("docker_container", "use a `unit` whose service runs the container"),
        ("ansible.builtin.reboot", "`steadfast status` tells that a reboot is needed"),
        ("tidy", "write `purge: true` at a directory of `file`"),
    ] {
        let graph = format!("graph: g\nresources:\n  {kind}:\n  - name: /a\n");
        let kinds = config::KindSet::of_this_build();
        let options = config::Options { kinds, ..with_facts() };
        let said = Tree::new(&[("web.yaml", &graph)]).problems(&options);
        assert!(said.contains(hint), "{kind}: {said}");
    }
}

/// A name that is a list, or has a version, is answered with the lines to write.
#[test]
fn names_of_packages_are_written_one_by_one() {
    for (item, hint) in [
        (
            "{name: [mc, vim]}",
            "write one item for each name: `- mc`, `- vim`; or for_each: [NAME] with name: \"${item}\"",
        ),
        ("vim-tiny=1.0", "write: name: vim-tiny, state: \"1.0\""),
    ] {
        let graph = format!("graph: g\nresources:\n  pkg:\n  - {item}\n");
        let said = problems(&[("web.yaml", &graph)]);
        assert!(said.contains(&format!("hint: {hint}\n")), "{item}: {said}");
    }
}

/// Cron gives the line of a job to a shell: an expression there is an error, and a variable of the shell is none.
#[test]
fn a_job_of_cron_is_read_by_a_shell() {
    let graph = |job: &str| {
        format!(
            "graph: g\nvars: {{port: 80}}\nresources:\n  cron:\n  - {{name: a, job: '{job}'}}\n"
        )
    };
    let said = problems(&[("web.yaml", &graph("/bin/a ${vars.port}"))]);
    assert!(said.contains("pass it as `env: {PORT: \"${vars.port}\"}`"), "{said}");
    let loaded = accepted(&[("web.yaml", &graph("/bin/a ${PORT}"))]);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

/// One field, one text and one expression report all of their problems in one run.
#[test]
fn one_field_reports_all_of_its_problems() {
    for (field, names) in [
        ("args: [\"${vars.a1}\", \"${vars.b1}\"]", 2),
        ("env: {A: \"${vars.a1}\", B: \"x ${vars.b1} ${vars.c1}\"}, args: [a]", 3),
        ("args: [a], timeout: \"${vars.a1 + vars.b1}\"", 2),
        ("args: [\"${vars.a1} ${vars.b1}\"], meta: {retry: \"${vars.c1}\"}", 3),
    ] {
        let graph =
            format!("graph: g\nvars: {{v: 1}}\nresources:\n  exec:\n  - {{name: e, {field}}}\n");
        let said = problems(&[("web.yaml", &graph)]);
        for name in ["a1", "b1", "c1"].iter().take(names) {
            assert!(said.contains(&format!("no variable `{name}`")), "{field}: {said}");
        }
    }
}

/// All values of `with` are judged in one run, and a list is named by its text.
#[test]
fn problems_of_with_and_of_lists_name_their_place() {
    let said = problems(&[(
        "web.yaml",
        "graph: g\nvars: {a: 1}\nresources:\n  file:\n  - {name: /a, template: {text: x}, with: {p: \"${vars.x}\", q: \"${vars.y}\"}}\n  noop:\n  - {for_each: [8081, 8081], name: \"n${item}\"}\n",
    )]);
    for message in ["no variable `x`", "no variable `y`", "items 1 and 2 of `[8081, 8081]`"] {
        assert!(said.contains(message), "{message}: {said}");
    }
}

/// `{{ name }}` of other tools gets a hint in each field that takes expressions, also in static ones.
#[test]
fn braces_of_other_tools_get_a_hint() {
    for field in [
        "path: \"/etc/{{name}}\"",
        "path: \"/etc/{{ name }}\"",
        "owner: \"{{name}}\"",
        "after: [\"noop[{{x}}]\"]",
    ] {
        let graph = format!(
            "graph: g\nvars: {{x: 1}}\nresources:\n  file:\n  - {{name: a, {field}}}\n  - {{name: b}}\n  noop: [\"{{{{x}}}}\"]\n"
        );
        let tree = Tree::new(&[("web.yaml", &graph)]);
        let said = match tree.load(&with_facts()) {
            Ok(loaded) => loaded.warnings.iter().map(config::Problem::with_source).collect(),
            Err(rejected) => rejected.with_source(),
        };
        let key = field.split(':').next().unwrap();
        assert!(said.contains(&format!("`{{{{ }}}}` in `{key}` is no expression")), "{said}");
    }
    // The templates of other programs are no names.
    let loaded = accepted(&[(
        "web.yaml",
        "graph: g\nvars: {x: 1}\nresources:\n  exec: [{name: a, args: [docker, inspect, -f, \"{{.State}}\"]}]\n",
    )]);
    assert!(loaded.warnings.iter().all(|it| !it.what.contains("no expression")));
}

/// Rule 4 and part 4: advice about values of `values`, and about literal commands.
#[test]
fn advice_knows_values_and_commands_of_a_shell() {
    let graph = "graph: g\nsecrets: {s: {file: /s}}\nvars: {x: 1}\nresources:\n  file:\n  - {name: /usr/local/bin/a, mode: 0755, template: {text: \"{{ pw }} {{ vars.x }}\"}, values: {pw: {secret: s}}}\n  exec:\n  - {name: a, creates: /a, shell: /bin/sh, cmd: 'echo ${HOME}'}\n  - {name: b, ifshell: /bin/sh, ifcmd: 'test ${HOME}', cmd: /bin/true}\n  - {name: c, creates: /a, cmd: '/bin/echo $${HOME}'}\n";
    let tree = Tree::new(&[("web.yaml", graph)]);
    let findings = config::find_advice(&[tree.path("web.yaml")], &with_facts());
    let shown: Vec<String> =
        findings.iter().map(|it| format!("{}: {}", it.lint, it.message)).collect();
    let of = |lint: &str| shown.iter().filter(|it| it.starts_with(lint)).count();
    assert_eq!(of("template-without-sh"), 1, "{shown:?}");
    assert_eq!(of("literal-expression"), 2, "{shown:?}");
}

/// A newcomer can correct each of these graphs from the message alone.
#[test]
fn messages_name_the_repair() {
    let head = "graph: g\nvars: {l: [a], ms: [{n: a}], workers: 4, on: true, sites: {shop: {port: 1}}}\nsecrets: {s: {file: /etc/s}}\n";
    for (field, message) in [
        ("when: facts.os.version >= \"9\"", "`>=` orders strings by letters: \"13\" < \"9\""),
        ("when: facts.os.version >= \"9\"", "hint: compare versions: `x | version_ge(\"9\")`"),
        ("when: facts.os.version >= 9", "hint: `| int` makes a number of a string"),
        ("when: vars.on == \"true\"", "hint: a bool needs no comparison: write `x` or `not x`"),
        (
            "when: facts.memory.available_mb > 1",
            "`facts.memory.available_mb` is display only: ask a probe that compares it with a threshold",
        ),
        ("when: hostname == \"a\"", "hint: write `facts.hostname`"),
        ("when: '{{ on }}'", "write `when: vars.on`"),
        ("when: '{{ vars.on }} == true'", "write `when: vars.on == true`"),
        ("when: {{ vars.on }}", "hint: write: when: vars.on"),
        ("when: 'facts.mounts[\"/\"].type == \"a\"'", "`facts.mounts[\"/\"]` may be absent"),
        (
            "when: 'facts.mounts[\"/\"].type == \"a\"'",
            "hint: write `facts.mounts[\"/\"].type | default(\"\")`",
        ),
        ("when: 'facts.mounts[\"/\"]'", "hint: write `\"/\" in facts.mounts`"),
        ("when: 'vars.l[\"a\"]'", "hint: a list is searched: `\"a\" in vars.l`"),
        (
            "when: 'vars.ms[\"a\"].n'",
            "hint: a list is searched: `vars.ms | select(\"n\", \"a\") | first`",
        ),
        ("when: vars.l.length > 0", "hint: write `vars.l | length`"),
        ("when: vars.x is defined", "only templates have `is defined`"),
        (
            "when: facts.os.id is defined",
            "hint: write `\"id\" in facts.os`, or `facts.os.id | default(VALUE)`",
        ),
        ("when: len(vars.l) > 0", "hint: write `vars.l | length`"),
        ("when: vars.l.contains(\"a\")", "hint: write `\"part\" in vars.l`"),
        ("when: vars.l | lenght > 0", "hint: nearest: `length`"),
        ("when: $workers > 3", "`$` is no part of an expression; a variable is `vars.NAME`"),
        ("text: ${item}", "hint: add `for_each` to the entry"),
        ("text: ${secrets.s}", "an expression cannot use a secret"),
        ("text: ${secrets.s}", "hint: a field takes a secret as {secret: NAME}"),
        ("text: \"{{ vars.workers }}\"\n    int: x", "hint: write ${vars.workers}\n"),
        ("texts: [${vars.workers}]", "hint: write: [\"${vars.x}\"]"),
        ("texts: {a: b, when: vars.x in [\"a\"]}", "quote expressions with `[ ]` inside `{ }`"),
        (
            "texts: {a: b, when: vars.x in [\"a\"] }",
            "hint: write: when: 'vars.x in [\"a\", \"b\"]'",
        ),
    ] {
        let text = format!("{head}resources:\n  test:\n  - name: t\n    {field}\n");
        let found = problems(&[("web.yaml", &text)]);
        assert!(found.contains(message), "{field}: expected {message}\nfound {found}");
    }
    let entry = |kind: &str, entry: &str| format!("{head}resources:\n  {kind}:\n  - {entry}\n");
    let of_map = entry("noop", "{for_each: vars.sites, name: \"${item}\"}");
    let found = problems(&[("web.yaml", &of_map)]);
    assert!(found.contains("hint: an item of a map has ${item.key} and ${item.value}"), "{found}");
    let literal = entry("file", "{name: /etc/a, content: \"${secrets.s}\", mode: x}");
    let found = problems(&[("web.yaml", &literal)]);
    assert!(found.contains("`${secrets.s}` in `content` is copied as it is"), "{found}");
    let negated = entry("noop", "{name: a, when: !vars.on}");
    let found = problems(&[("web.yaml", &negated)]);
    assert!(found.contains("`!` is a YAML tag; write `not vars.on"), "{found}");
    assert!(!found.contains("a condition should be an expression"), "{found}");
    let long = entry(
        "file",
        "{name: /etc/a, template: {text: \"{% for i in range(10000000) %}x{% endfor %}\"}}",
    );
    let found = problems(&[("web.yaml", &long)]);
    assert!(found.contains("out of fuel"), "{found}");
}

/// Words of other tools that have no counterpart of one line.
#[test]
fn hints_for_foreign_words_name_the_way_here() {
    for (kind, line, hint) in [
        ("file", "src: x.j2", "write: template: x.j2"),
        ("unit", "source: x.service", "write: template: x.service"),
        (
            "unit",
            "on_calendar: daily",
            "use `content` with a line OnCalendar=: `steadfast explain unit`",
        ),
        ("git", "source: /srv/git/x", "write: repo: /srv/git/x"),
        ("git", "owner: app", "write: user: app"),
        ("git", "ref: main", "write: version: main"),
        ("exec", "executable: /bin/bash", "write: shell: /bin/bash"),
        ("exec", "removes: /srv/x", "write: ifcmd: test -e /srv/x"),
        ("exec", "tries: 3", "write: meta: {retry: 3}"),
        ("exec", "try_sleep: 5", "write: meta: {retry: 3, delay: 5s}"),
        ("block", "block: a", "write: content: a"),
        ("svc", "masked: true", "write: startup: masked"),
        ("file", "user: app", "write: owner: app"),
        ("file", "permissions: '0644'", "write: mode: 0644"),
        ("user", "primary_group: app", "write: group: app"),
        ("user", "full_name: Ada", "write: comment: Ada"),
        ("cron", "cron_file: app", "write: file: app"),
        ("mount", "dump: 0", "write: freq: 0"),
        ("sysctl", "key: vm.swappiness", "write: name: vm.swappiness"),
        (
            "firewall",
            "port: 22",
            "use `content` with the rules of nftables: `steadfast explain firewall`",
        ),
        ("timer", "calendar: daily", "use `interval: 1h`, or a `unit` NAME.timer with OnCalendar"),
        ("file", "vars: {x: 1}", "use `vars` at the top of the graph file: a template sees them"),
        ("user", "ssh_key: x", "use the kind `ssh:authorized_key`: {user: NAME, key: TEXT}"),
        ("noop", "unless: vars.on", "use `when: not (EXPRESSION)`"),
        ("noop", "meta: {when: true}", "put `when` beside `meta`, not below it"),
    ] {
        let graph = format!("graph: g\nresources:\n  {kind}:\n  - name: /a\n    {line}\n");
        let said = problems(&[("web.yaml", &graph)]);
        assert!(said.contains(&format!("hint: {hint}\n")), "{line}: {said}");
    }
}

/// Slips of YAML and names of other resources.
#[test]
fn slips_of_yaml_name_the_repair() {
    let head = "graph: g\n";
    for (lines, message) in [
        (
            "when: exec[a].output",
            "hint: receive the value of a resource: recv: {FIELD: \"exec[NAME].VALUE\"}",
        ),
        (
            "text: |\n    hello world",
            "hint: indent each line of the text below `|` or `>` by two more spaces",
        ),
        ("text:a\n    int: 1", "hint: write a space behind the colon: `text: `"),
        ("text: a\n   \u{a0}int: 1", "hint: replace the character U+00A0 by a space"),
        ("after: [\"file[/srv/x]\"]", "hint: did you mean `file[conf]`?"),
        ("after: [\"svc[web.service]\"]", "hint: did you mean `svc[web]`?"),
    ] {
        let others = "  file: [{name: conf, path: /srv/x}]\n  svc: [{name: web}]\n";
        let text = format!("{head}resources:\n{others}  test:\n  - name: t\n    {lines}\n");
        let found = problems(&[("web.yaml", &text)]);
        assert!(found.contains(message), "{lines}: expected {message}\nfound {found}");
    }
    let found =
        problems(&[("web.yaml", "graph: g\nhandlers: []\nresources: {noop: [{name: a}]}\n")]);
    assert!(found.contains("hint: write in the resource that changes: notify:"), "{found}");
}

/// A definition of another type is shown as it is written, and a hint quotes it.
#[test]
fn a_number_over_a_string_is_shown_without_quotes() {
    let said = Tree::new(&[
        ("web.yaml", "graph: g\nvars: {domain: abc, n: 1}\nvars_files: [v.yaml]\nresources: {noop: [{name: \"${vars.domain}${vars.n}\"}]}\n"),
        ("v.yaml", "domain: 5\nn: abc\n"),
    ])
    .problems(&with_facts());
    assert!(said.contains("`domain` is a string (web.yaml:2), got 5"), "{said}");
    assert!(said.contains("write `domain: \"5\"`: the lowest definition"), "{said}");
    assert!(said.contains("`n` is an int (web.yaml:2), got \"abc\""), "{said}");
}

/// Two includes of one file: the hint names them, and not the resources of the file.
#[test]
fn a_file_that_is_included_twice_is_named() {
    let said = Tree::new(&[
        ("web.yaml", "graph: g\ninclude: [more.yaml, more.yaml]\n"),
        ("more.yaml", "resources: {noop: [{name: a}]}\n"),
    ])
    .problems(&with_facts());
    assert!(said.contains("`noop[a]` is declared twice"), "{said}");
    assert!(said.contains("the file is included twice: remove one of the two includes"), "{said}");
}

/// A key with brackets in a map in braces needs quotes.
#[test]
fn a_bare_name_of_a_resource_as_key_is_named() {
    let text = "graph: g\nvars: {expected: {file[vhost]: {content: x}}}\n";
    let said = Tree::new(&[("web.yaml", text)]).problems(&with_facts());
    assert!(said.contains("within { } the name of a resource needs quotes"), "{said}");
}
