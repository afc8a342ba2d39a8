//! A crash of the daemon leaves no core file, which would contain all its secrets.

use crate::host::{Host, ends};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

const GRAPH: &str = r#"graph: cores
secrets: {s: {file: secret}}
resources:
  file: [{name: held, path: $DIR/held, content: {secret: s}}]
  exec:
  - name: limited
    # The limit comes back an instant after the program is loaded.
    args: [sh, -c, 'until [ "$(ulimit -c)" = unlimited ]; do sleep 0.01; done; ulimit -c > $DIR/limit']
"#;

/// Wraps a command to run in the test's folder without a limit for core files.
fn free(host: &Host, command: &Command) -> Command {
    let mut free = Command::new("sh");
    free.args(["-c", "ulimit -c unlimited; exec \"$@\"", "sh"]);
    free.arg(command.get_program()).args(command.get_args());
    free.current_dir(host.path("")).stderr(std::process::Stdio::null());
    free
}

fn abort(process: u32) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(process).expect("a number"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGABRT).expect("it lives");
}

fn holds(path: &Path, text: &str) -> bool {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// S-6: the daemon leaves no core file even if the host's limits allow one, and its commands still do. Needs root if
/// the limit is 0.
#[test]
fn a_crash_of_the_daemon_leaves_no_core() {
    let host = Host::with(GRAPH);
    let canary = "canary-5f1d9-core";
    host.write("secret", canary).chmod("secret", 0o600);
    let mut daemon = free(&host, &host.command(&["run"])).spawn().expect("started");
    host.wait_until("it holds its secret", || host.read("held") == canary);
    host.wait_until("its command has its limit back", || host.read("limit") == "unlimited\n");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.id())).expect("limits");
    let line = limits.lines().find(|line| line.starts_with("Max core file size"));
    assert_eq!(line.and_then(|line| line.split_whitespace().nth(4)), Some("1"), "{limits}");
    abort(daemon.id());
    let status = daemon.wait().expect("it ends");
    assert_eq!((status.signal(), status.core_dumped()), (Some(6), false), "{status}");
    for entry in std::fs::read_dir(host.path("")).expect("listed").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_meant = ["held", "secret"].contains(&name.as_str());
        assert!(is_meant || !holds(&entry.path(), canary), "{name} holds the secret");
    }

    // The counter-check: on this host another program leaves a core file.
    let mut other = free(&host, Command::new(host.path("sleep")).arg("60")).spawn().expect("runs");
    host.wait_until("it sleeps", || {
        let words = std::fs::read(format!("/proc/{}/cmdline", other.id())).unwrap_or_default();
        // The shell that sets the limit has become `sleep`.
        words.ends_with(b"sleep\x0060\0") && !words.starts_with(b"sh\0")
    });
    abort(other.id());
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let other = other.wait().expect("it ends");
    let to_a_file = !pattern.starts_with(['|', '@', '/']) && !pattern.trim().is_empty();
    assert!(other.core_dumped() || !to_a_file, "{other}");
}

/// Commands have the core limit of the process that started the daemon.
#[test]
fn a_command_has_the_limit_of_whoever_started_us() {
    let limit = "until [ \"$(ulimit -c)\" = 8 ]; do sleep 0.01; done; ulimit -c > $DIR/limit";
    let text = GRAPH.replace(
        "until [ \"$(ulimit -c)\" = unlimited ]; do sleep 0.01; done; ulimit -c > $DIR/limit",
        limit,
    );
    let host = Host::with(&text);
    host.write("secret", "x").chmod("secret", 0o600);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -c 8; exec \"$@\"", "sh"]);
    let apply = host.command(&["apply"]);
    command.arg(apply.get_program()).args(apply.get_args());
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("started");
    assert_eq!(ends(&mut child, crate::host::LIMIT), 0);
    assert_eq!(host.read("limit"), "8\n");
}
