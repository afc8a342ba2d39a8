//! The words of other tools: each gets a hint with the line as this language writes it.

use steadfast_resources::kinds::cron::cron_fields;
use steadfast_resources::{FieldMode, FieldRole, FieldSpec, FieldType, Interpreter, KindSpec};

/// The maximum length of a value that a hint repeats.
const LONGEST_VALUE: usize = 60;

/// The maximum length of the fields of a repository.
const LONGEST_REPOSITORY: usize = 240;

/// A key of another tool, the key here that must exist for the hint to fit, and the line as it is written here.
type Word = (&'static str, &'static str, &'static str);

/// The hint for the times of a timer in a unit.
const ON_CALENDAR: &str = "use `content` with a line OnCalendar=: `steadfast explain unit`";

/// The keys of other tools. The first row whose second word is a key of the kind gives the hint; an empty second word
/// fits each kind.
const KEYS: &[Word] = &[
    ("source", "drop_in", "template: FILE"),
    ("src", "drop_in", "template: FILE"),
    ("on_calendar", "drop_in", ON_CALENDAR),
    ("OnCalendar", "drop_in", ON_CALENDAR),
    ("src", "source", "source: FILE"),
    ("src", "device", "device: /dev/NAME"),
    ("dest", "path", "path: /absolute/path"),
    ("destination", "path", "path: /absolute/path"),
    ("target", "symlink", "symlink: /absolute/path"),
    ("link", "symlink", "symlink: /absolute/path"),
    ("ensure", "startup", "state: running"),
    ("ensure", "drop_in", "running: true"),
    ("ensure", "state", "state: exists"),
    ("present", "state", "state: exists"),
    ("absent", "state", "state: absent"),
    ("enable", "startup", "startup: enabled"),
    ("enabled", "startup", "startup: enabled"),
    ("startup", "drop_in", "enabled: true"),
    ("enable", "drop_in", "enabled: true"),
    ("started", "drop_in", "running: true"),
    (
        "restart",
        "startup",
        "refresh: restart, and notify: [\"svc[NAME]\"] in the resource that changes",
    ),
    (
        "restarted",
        "startup",
        "refresh: restart, and notify: [\"svc[NAME]\"] in the resource that changes",
    ),
    (
        "reload",
        "startup",
        "refresh: reload, and notify: [\"svc[NAME]\"] in the resource that changes",
    ),
    ("running", "startup", "state: running"),
    ("started", "startup", "state: running"),
    ("command", "cmd", "cmd: /path/to/program ARGUMENT"),
    ("run", "cmd", "cmd: /path/to/program ARGUMENT"),
    ("script", "cmd", "shell: /bin/sh and cmd: TEXT"),
    ("unless", "nifcmd", "nifcmd: COMMAND"),
    ("not_if", "nifcmd", "nifcmd: COMMAND"),
    ("onlyif", "ifcmd", "ifcmd: COMMAND"),
    ("only_if", "ifcmd", "ifcmd: COMMAND"),
    ("chdir", "cwd", "cwd: /absolute/path"),
    ("become", "user", "user: root"),
    ("become", "", "remove the line: the daemon runs as root"),
    ("become_user", "user", "user: NAME"),
    ("sudo", "user", "user: root"),
    ("version", "state", "state: VERSION"),
    ("source", "version", "repo: ADDRESS"),
    ("owner", "repo", "user: NAME"),
    ("ref", "repo", "version: NAME"),
    ("executable", "cmd", "shell: /bin/sh"),
    ("removes", "ifcmd", "ifcmd: test -e /path"),
    ("tries", "", "meta: {retry: 3}"),
    ("try_sleep", "", "meta: {retry: 3, delay: 5s}"),
    ("block", "marker", "content: TEXT"),
    ("masked", "startup", "startup: masked"),
    ("user", "owner", "owner: NAME"),
    ("permissions", "mode", "mode: \"0644\""),
    ("primary_group", "manage_home", "group: NAME"),
    ("full_name", "comment", "comment: TEXT"),
    ("cron_file", "job", "file: NAME"),
    ("dump", "freq", "freq: 0"),
    ("atboot", "freq", "remove the line: a row of fstab is mounted at each start"),
    ("key", "value", "name: NAME"),
    (
        "sudo",
        "manage_home",
        "use a `file` in /etc/sudoers.d/ with `validate: [visudo, -cf, \"%s\"]`",
    ),
    ("depends_on", "", "after: [\"kind[name]\"]"),
    ("depends", "", "after: [\"kind[name]\"]"),
    ("require", "", "after: [\"kind[name]\"]"),
    ("requires", "", "after: [\"kind[name]\"]"),
    ("requisite", "", "after: [\"kind[name]\"]"),
    ("watch", "watchfiles", "watchfiles: [/absolute/path]"),
    ("watch", "", "subscribe: [\"kind[name]\"]"),
    ("onchanges", "", "subscribe: [\"kind[name]\"]"),
    ("notifies", "", "notify: [\"kind[name]\"]"),
    ("handlers", "", "notify: [\"kind[name]\"]"),
    ("triggers", "", "notify: [\"kind[name]\"]"),
    ("handler", "", "notify: [\"kind[name]\"]"),
    ("with_items", "", "for_each: vars.LIST"),
    ("with_dict", "", "for_each: vars.MAP"),
    ("loop", "", "for_each: vars.LIST"),
    ("foreach", "", "for_each: vars.LIST"),
    ("count", "", "for_each: vars.LIST"),
    ("if", "ifcmd", "use `ifcmd: COMMAND`, or `when: EXPRESSION`"),
    ("if", "", "when: EXPRESSION"),
    ("condition", "", "when: EXPRESSION"),
    ("tags", "", "labels: {NAME: VALUE}"),
    ("register", "", "recv: {FIELD: \"exec[NAME].stdout\"}"),
    ("regexp", "match", "match: EXPRESSION"),
    ("regex", "match", "match: EXPRESSION"),
    ("insertafter", "insert_after", "insert_after: TEXT"),
    ("insertbefore", "insert_before", "insert_before: TEXT"),
    ("gecos", "comment", "comment: TEXT"),
    ("create_home", "manage_home", "manage_home: true"),
    ("createhome", "manage_home", "manage_home: true"),
    ("managehome", "manage_home", "manage_home: true"),
    ("schedule", "minute", "minute: 0, hour: 3; or special: \"@daily\""),
    ("cron", "minute", "minute: 0, hour: 3; or special: \"@daily\""),
    ("command", "job", "job: COMMAND"),
    ("repo", "uris", "uris: [ADDRESS], suites: [NAME], components: [NAME]"),
    ("url", "uris", "uris: [ADDRESS]"),
    ("text", "content", "content: TEXT"),
    ("body", "content", "content: TEXT"),
    ("rules", "whole", "content: TEXT"),
    ("port", "whole", "use `content` with the rules of nftables: `steadfast explain firewall`"),
    ("action", "whole", "use `content` with the rules of nftables: `steadfast explain firewall`"),
    ("value", "convert", "int: NUMBER, text: TEXT, bool: true, float: NUMBER or texts: [TEXT]"),
    ("OnCalendar", "interval", "use `interval: 1h`, or a `unit` NAME.timer with OnCalendar"),
    ("calendar", "interval", "use `interval: 1h`, or a `unit` NAME.timer with OnCalendar"),
    ("vars", "source", "use `vars` at the top of the graph file: a template sees them"),
    ("ssh_key", "manage_home", "use the kind `ssh:authorized_key`: {user: NAME, key: TEXT}"),
    ("ssh_keys", "manage_home", "use the kind `ssh:authorized_key`: {user: NAME, key: TEXT}"),
    ("update_cache", "cache_age", "use `cache_age: 1h`: older package lists are read again"),
    ("unless", "", "use `when: not (EXPRESSION)`"),
    ("onlyif", "", "use `when: EXPRESSION`"),
    ("url", "version", "repo: ADDRESS"),
    ("branch", "repo", "version: NAME"),
    ("tag", "repo", "version: NAME"),
    ("revision", "repo", "version: NAME"),
    ("option", "section", "key: NAME"),
    ("address", "ip", "ip: ADDRESS"),
    ("no_log", "sensitive", "sensitive: true"),
    ("no_log", "", "remove the line: declared secrets are hidden everywhere"),
    ("ignore_errors", "", "remove the line: a failure stops only what depends on it"),
    ("retries", "", "meta: {retry: 3}"),
    ("until", "", "meta: {retry: 3}"),
];

/// The states of other tools that are written in another way here: the kind, the state, and the line.
const STATES: &[(&str, &str, &str)] = &[
    ("pkg", "latest", "state: newest"),
    ("pkg", "newest", "state: newest"),
    ("pkg", "purged", "state: absent"),
    ("file", "directory", "path: /absolute/path/"),
    ("file", "link", "symlink: /absolute/path"),
    ("file", "hard", "hardlink: /absolute/path"),
    ("file", "touch", "state: exists"),
];

/// The kinds of other tools, with the kind here.
const KINDS: &[(&str, &str)] = &[
    ("package", "pkg"),
    ("packages", "pkg"),
    ("apt", "pkg"),
    ("yum", "pkg"),
    ("dnf", "pkg"),
    ("service", "svc"),
    ("services", "svc"),
    ("systemd", "svc"),
    ("systemd_service", "svc"),
    ("zypper", "pkg"),
    ("pacman", "pkg"),
    ("apk", "pkg"),
    ("deb", "pkg"),
    ("systemd_unit", "unit"),
    ("script", "exec"),
    ("concat", "file"),
    ("file_line", "line"),
    ("ini_file", "ini"),
    ("ini_setting", "ini"),
    ("vcsrepo", "git"),
    ("stat", "probe"),
    ("download", "fetch"),
    ("kernel_module", "kmod"),
    ("swapfile", "swap"),
    ("locale_gen", "locale"),
    ("iptables", "firewall"),
    ("nftables", "firewall"),
    ("ufw", "firewall"),
    ("firewalld", "firewall"),
    ("debug", "print"),
    ("yum_repository", "repo"),
    ("ssh_authorized_key", "ssh:authorized_key"),
    ("command", "exec"),
    ("shell", "exec"),
    ("cmd", "exec"),
    ("copy", "file"),
    ("template", "file"),
    ("directory", "file"),
    ("link", "file"),
    ("symlink", "file"),
    ("lineinfile", "line"),
    ("blockinfile", "block"),
    ("dpkg_divert", "divert"),
    ("users", "user"),
    ("groups", "group"),
    ("cronjob", "cron"),
    ("get_url", "fetch"),
    ("remote_file", "fetch"),
    ("unarchive", "archive"),
    ("modprobe", "kmod"),
    ("apt_repository", "repo"),
    ("yumrepo", "repo"),
    ("authorized_key", "ssh:authorized_key"),
];

/// Returns the lines that explain a word of another tool: the kind, or the lines to write in its place.
#[must_use]
pub fn lines_for_word(word: &str) -> Vec<String> {
    let kind = kind_for(word);
    let kind = kind.map(|kind| format!("{word} of other tools: the kind `{kind}` here"));
    let mut lines: Vec<String> = kind.into_iter().collect();
    for (_, field, line) in KEYS.iter().filter(|(key, _, _)| *key == word) {
        let wants =
            if line.starts_with("remove") || line.starts_with("use ") { "" } else { "write " };
        let of = match *field {
            "" => String::new(),
            field => format!(" (of a kind with `{field}`)"),
        };
        lines.push(format!("{word} of other tools{of}: {wants}{line}"));
    }
    lines
}

/// Returns a hint for a key of another tool: the line as it is written here, with the value of the user if the value
/// has the same meaning.
pub(in crate::config) fn hint_for(
    key: &str,
    spec: &KindSpec,
    value: Option<&str>,
) -> Option<String> {
    let has = |field: &str| field.is_empty() || spec.fields.iter().any(|f| f.name == field);
    let of_kind = KEYS.iter().find(|(word, field, _)| *word == key && has(field));
    let (_, _, line) = of_kind?;
    if line.starts_with("remove") || line.starts_with("use ") {
        return Some((*line).to_owned());
    }
    let own = value.and_then(|value| own_line(line, (key, value), spec));
    Some(format!("write: {}", own.unwrap_or_else(|| (*line).to_owned())))
}

/// Returns the line with the value of the user; none for a value without a counterpart here.
fn own_line(line: &str, (key, value): (&str, &str), spec: &KindSpec) -> Option<String> {
    let value = value.trim();
    if line.starts_with("refresh: ") {
        return None;
    }
    if key == "repo" {
        return repository(value).filter(|line| line.chars().count() <= LONGEST_REPOSITORY);
    }
    if value.is_empty() || value.chars().count() > LONGEST_VALUE || value.contains(['\n', '\r']) {
        return None;
    }
    let (field, example) = line.split_once(": ")?;
    let off = ["false", "no", "off", "absent", "stopped", "disabled", "uninstalled", "removed"];
    let is_on = !off.contains(&value);
    let is_on = is_on != (key == "absent");
    match (field, key) {
        ("state", "version") => {}
        ("state", _) if spec.kind == "pkg" && value.starts_with(|c: char| c.is_ascii_digit()) => {
            return Some(format!("state: {}", quote(value)));
        }
        ("state", _) => {
            let is_same =
                |(kind, state, _): &&(&str, &str, &str)| (*kind, *state) == (spec.kind, value);
            if let Some((_, _, line)) = STATES.iter().find(is_same) {
                return Some((*line).to_owned());
            }
            return Some(format!("state: {}", state_word(spec, value, is_on)?));
        }
        ("startup", "ensure" | "enable" | "enabled") if key != "ensure" => {
            return Some(format!("startup: {}", if is_on { "enabled" } else { "disabled" }));
        }
        ("enabled", _) if value == "masked" => {
            return Some("svc: [{name: NAME, startup: masked}]".to_owned());
        }
        ("running", _) if value == "present" || value == "absent" => {
            return Some(format!("state: {}", if is_on { "exists" } else { "absent" }));
        }
        ("enabled" | "running", _) => return Some(format!("{field}: {is_on}")),
        ("manage_home" | "sensitive", _) => return Some(format!("{field}: {is_on}")),
        ("minute", _) => return cron_fields(value),
        ("user", "become" | "sudo") => return is_on.then(|| line.to_owned()),
        ("after" | "subscribe" | "notify", _) => {
            return targets(value).map(|it| format!("{field}: {it}"));
        }
        ("for_each", "count") | ("labels" | "recv" | "meta", _) => return None,
        ("for_each", _) if value.starts_with('{') && !value.starts_with("{{") => {
            return Some(format!("for_each: {{in: {value}}}"));
        }
        ("shell", "script") => {
            return Some(format!("shell: /bin/sh and cmd: {}", quote(value)));
        }
        ("ifcmd", "removes") => return Some(format!("ifcmd: test -e {}", quote(value))),
        ("startup", "masked") => return is_on.then(|| line.to_owned()),
        _ => {}
    }
    let is_template = [".j2", ".jinja", ".jinja2", ".erb", ".epp", ".tmpl", ".tpl"];
    if field == "source" && key == "src" && is_template.iter().any(|end| value.ends_with(end)) {
        return Some(format!("template: {}", quote(value)));
    }
    let is_relative = !value.starts_with('/') && !value.starts_with("{{");
    if field == "path" && is_relative {
        return Some(format!("path: {}", quote(&format!("{example}/{value}"))));
    }
    if example.starts_with("/absolute") && is_relative && field != "symlink" {
        return None;
    }
    // `{{ users }}` of other tools is a variable.
    let name = value.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).map(str::trim);
    let value = match (name, example) {
        (Some(name), _) if field == "for_each" || field == "when" => format!("vars.{name}"),
        (Some(name), _) => quote(&format!("${{vars.{name}}}")),
        (None, _)
            if field == "for_each" && value.chars().all(|c| c.is_alphanumeric() || c == '_') =>
        {
            format!("vars.{value}")
        }
        (None, _) if field == "when" || field == "for_each" => value.to_owned(),
        (None, _) => quote(value),
    };
    Some(format!("{field}: {value}"))
}

/// Returns the fields of a line of sources.list: `deb [arch=amd64] http://a b main`.
fn repository(value: &str) -> Option<String> {
    let (kind, rest) = value.split_once(' ')?;
    let (options, rest) = match rest.trim_start().strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    let components: Vec<&str> = words.collect();
    let mut line = format!("uris: [{uri}], suites: [{suite}]");
    if !components.is_empty() {
        line.push_str(&format!(", components: [{}]", components.join(", ")));
    }
    match kind {
        "deb" => {}
        "deb-src" => line.push_str(", types: [deb-src]"),
        _ => return None,
    }
    for option in options.split_whitespace() {
        match option.split_once('=')? {
            ("arch", names) => line.push_str(&format!(", architectures: [{names}]")),
            ("signed-by", path) => line.push_str(&format!(", signed_by: {path}")),
            ("trusted", "yes") => line.push_str(", trusted: true"),
            _ => {}
        }
    }
    Some(line)
}

/// Returns the targets of an edge: `Package[nginx]` of other tools is `pkg[nginx]`.
fn targets(value: &str) -> Option<String> {
    let inner = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(value);
    let target = |text: &str| {
        let text = text.trim().trim_matches(['"', '\'']);
        let (kind, name) = text.strip_suffix(']')?.split_once('[')?;
        let lower = kind.to_lowercase();
        let kind = kind_for(&lower).unwrap_or(&lower);
        Some(format!("\"{kind}[{}]\"", name.trim_matches(['"', '\''])))
    };
    let all: Option<Vec<String>> = inner.split(',').map(target).collect();
    all.map(|all| format!("[{}]", all.join(", ")))
}

/// Returns the word for a state of this kind.
fn state_word(spec: &KindSpec, value: &str, is_on: bool) -> Option<&'static str> {
    let field = spec.fields.iter().find(|field| field.name == "state")?;
    let words = match field.takes {
        FieldType::Choice(words) => words,
        _ => &["installed", "absent"],
    };
    let same = words.iter().copied().find(|word| *word == value);
    let off = ["absent", "stopped"];
    let first = words.iter().copied().find(|word| off.contains(word) != is_on);
    same.or(first)
}

/// Quotes a value that YAML would read as something else.
fn quote(value: &str) -> String {
    let is_plain = value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '.')
        && !value.contains([':', '#', '"', '\'', '{', '}', '[', ']', ',']);
    if is_plain { value.to_owned() } else { format!("'{}'", value.replace('\'', "''")) }
}

/// Returns the hint for `{from: …}` in a field: a value of the graph, or of a resource, as the field takes it.
/// `written` is the text behind `from`.
pub(super) fn hint_for_source(spec: &FieldSpec, written: &str) -> String {
    let field = spec.name;
    if written.contains('[') {
        return format!("write `recv: {{{field}: \"{written}\"}}`");
    }
    let is_name = ["vars.", "params.", "facts.", "probe.", "item."];
    let name =
        if is_name.iter().any(|root| written.starts_with(root)) { written } else { "vars.NAME" };
    let of_resource = format!("of a resource: `recv: {{{field}: \"KIND[NAME].VALUE\"}}`");
    match spec.mode {
        Some(FieldMode::Literal(_)) if spec.role == Some(FieldRole::Template) => format!(
            "write `template: {{text: \"{{{{ value }}}}\"}}, with: {{value: \"${{{name}}}\"}}`; {of_resource}"
        ),
        Some(FieldMode::Literal(Interpreter::Shell | Interpreter::Cron)) => {
            format!("write `env: {{VALUE: \"${{{name}}}\"}}`, and \"$VALUE\" in the text")
        }
        Some(FieldMode::Literal(_)) => {
            format!("`{field}` is copied as it is; {of_resource}")
        }
        _ => format!("write `{field}: \"${{{name}}}\"`; {of_resource}"),
    }
}

/// The kinds of other tools without a counterpart here, with the way to do their work.
const WITHOUT_KIND: &[(&str, &str)] = &[
    ("acl", "use the field `acl` of `file`"),
    ("alternatives", "write: file: [{name: /etc/alternatives/NAME, symlink: /target}]"),
    ("apt_key", "use a `fetch` of the key, and `signed_by` in the `repo`"),
    ("assert", "write `assert` at the top of the graph file"),
    ("docker_container", "use a `unit` whose service runs the container"),
    ("gem", "use `exec` with `creates`"),
    ("include", "write `include: [FILE]` at the top of the graph file"),
    ("import_tasks", "write `include: [FILE]` at the top of the graph file"),
    ("include_tasks", "write `include: [FILE]` at the top of the graph file"),
    ("npm", "use `exec` with `creates`"),
    ("pip", "use `exec` with `creates`"),
    ("podman_container", "use a `unit` whose service runs the container"),
    ("reboot", "no resource reboots the host; `steadfast status` tells that a reboot is needed"),
    ("role", "write `modules: [{use: FOLDER, as: NAME}]` at the top of the graph file"),
    ("roles", "write `modules: [{use: FOLDER, as: NAME}]` at the top of the graph file"),
    ("selinux", "use `exec` with guards, and a `file` for /etc/selinux/config"),
    ("set_fact", "write `vars: {NAME: VALUE}` at the top of the graph file"),
    ("tidy", "write `purge: true` at a directory of `file`"),
    ("wait_for", "use a `probe` with `poll`, or `meta: {retry: 3}`"),
];

/// Returns the advice for a kind of another tool without a counterpart here.
pub(super) fn advice_without_kind(kind: &str) -> Option<&'static str> {
    let kind = last_part(kind);
    WITHOUT_KIND.iter().find(|(word, _)| *word == kind).map(|(_, advice)| *advice)
}

/// Returns the last part of a qualified name of Ansible: `copy` of `ansible.builtin.copy`.
fn last_part(kind: &str) -> &str {
    kind.rsplit('.').next().unwrap_or(kind)
}

/// Returns the kind here that does the work of a kind of another tool.
#[must_use]
pub fn kind_for(kind: &str) -> Option<&'static str> {
    let kind = last_part(kind);
    KINDS.iter().find(|(word, _)| *word == kind).map(|(_, here)| *here)
}
