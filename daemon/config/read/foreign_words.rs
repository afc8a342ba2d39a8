//! The words of other tools: each gets a hint with the line as this language writes it.

use steadfast_resources::KindSpec;

/// A key of another tool, the key here that must exist for the hint to fit, and the line as it is written here.
type Word = (&'static str, &'static str, &'static str);

/// The keys of other tools. The first row whose second word is a key of the kind gives the hint; an empty second word
/// fits each kind.
const KEYS: &[Word] = &[
    ("src", "source", "source: FILE"),
    ("src", "device", "device: /dev/NAME"),
    ("dest", "path", "path: /absolute/path"),
    ("destination", "path", "path: /absolute/path"),
    ("target", "symlink", "symlink: /absolute/path"),
    ("link", "symlink", "symlink: /absolute/path"),
    ("ensure", "startup", "state: running"),
    ("ensure", "state", "state: exists"),
    ("present", "state", "state: exists"),
    ("absent", "state", "state: absent"),
    ("enable", "startup", "startup: enabled"),
    ("enabled", "startup", "startup: enabled"),
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
    ("depends_on", "", "after: [\"kind[name]\"]"),
    ("require", "", "after: [\"kind[name]\"]"),
    ("requires", "", "after: [\"kind[name]\"]"),
    ("requisite", "", "after: [\"kind[name]\"]"),
    ("watch", "", "subscribe: [\"kind[name]\"]"),
    ("onchanges", "", "subscribe: [\"kind[name]\"]"),
    ("notifies", "", "notify: [\"kind[name]\"]"),
    ("triggers", "", "notify: [\"kind[name]\"]"),
    ("with_items", "", "for_each: vars.LIST"),
    ("with_dict", "", "for_each: vars.MAP"),
    ("loop", "", "for_each: vars.LIST"),
    ("foreach", "", "for_each: vars.LIST"),
    ("count", "", "for_each: vars.LIST"),
    ("if", "", "when: EXPRESSION"),
    ("condition", "", "when: EXPRESSION"),
    ("tags", "", "labels: {NAME: VALUE}"),
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
    ("command", "exec"),
    ("shell", "exec"),
    ("cmd", "exec"),
    ("copy", "file"),
    ("template", "file"),
    ("directory", "file"),
    ("lineinfile", "line"),
    ("blockinfile", "block"),
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

/// Returns a hint for a key of another tool.
pub(in crate::config) fn hint_for(key: &str, spec: &KindSpec) -> Option<String> {
    let has = |field: &str| field.is_empty() || spec.fields.iter().any(|f| f.name == field);
    let of_kind = KEYS.iter().find(|(word, field, _)| *word == key && has(field));
    let (_, _, line) = of_kind?;
    Some(if line.starts_with("remove") { (*line).to_owned() } else { format!("write: {line}") })
}

/// Returns the kind here that does the work of a kind of another tool.
pub(in crate::config) fn kind_for(kind: &str) -> Option<&'static str> {
    KINDS.iter().find(|(word, _)| *word == kind).map(|(_, here)| *here)
}
