//! The check of the own user, and of the owners and modes of the state directory, the socket and the graph.

use super::Finding;
use crate::config::is_graph;
use rustix::process::geteuid;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::{fs, io};
use steadfast_resources::host::input_trust;

/// Checks all permissions, those of the settings included: a user who can write them can name another graph.
pub(super) fn look(
    state: &Path,
    socket: &Path,
    (settings, graphs): (&Path, &[PathBuf]),
) -> Vec<Finding> {
    let mut findings = vec![user(), state_directory(state), control_socket(socket)];
    if settings.exists() {
        let clear = super::super::settings::clear_headers(settings);
        let warning = |says| {
            Finding::warning(
                "recorder",
                says,
                "use https:// in its `url`: `steadfast explain settings`",
            )
        };
        findings.extend(clear.into_iter().map(warning));
    }
    findings.extend(graphs.iter().map(|path| graph(path)));
    findings.extend(settings.exists().then(|| graph(settings)));
    findings
}

fn user() -> Finding {
    let own = geteuid();
    if own.is_root() {
        return Finding::ok("user", "root");
    }
    let found =
        format!("uid {}: only objects that this user may change can be managed", own.as_raw());
    Finding::warning(
        "user",
        found,
        "run steadfast as root to manage the whole host: `sudo steadfast doctor`",
    )
}

fn state_directory(path: &Path) -> Finding {
    const NAME: &str = "state directory";
    let shown = path.display();
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return missing(path),
        Err(error) => {
            let advice =
                "run this command as the daemon's user, or select another directory: --state-dir";
            return Finding::problem(NAME, format!("{shown}: {error}"), advice);
        }
    };
    let (own, mode) = (geteuid().as_raw(), found.mode() & 0o7777);
    if !found.is_dir() {
        return Finding::problem(
            NAME,
            format!("{shown} is not a directory"),
            "select another directory: `steadfast doctor --state-dir DIR`",
        );
    }
    if found.uid() != own {
        let says = format!("{shown} belongs to uid {}, not to uid {own}", found.uid());
        return Finding::problem(
            NAME,
            says,
            format!("run it as the owner, or change the owner: `chown -R root: {shown}`"),
        );
    }
    if mode & 0o077 != 0 {
        let says = format!("{shown} is accessible to others (mode {mode:04o})");
        return Finding::problem(NAME, says, format!("`chmod 700 {shown}`"));
    }
    Finding::ok(NAME, format!("{shown}, mode {mode:04o}"))
}

/// Returns the finding for a missing state directory, which the first start creates if possible.
fn missing(path: &Path) -> Finding {
    const NAME: &str = "state directory";
    let shown = path.display();
    let nearest = path.ancestors().skip(1).find(|folder| folder.exists());
    let nearest = nearest.unwrap_or_else(|| Path::new("/"));
    match rustix::fs::access(nearest, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Finding::ok(NAME, format!("{shown} is created at the first start")),
        Err(_) => Finding::problem(
            NAME,
            format!("{shown} does not exist, and {} is not writable", nearest.display()),
            format!("create it as root for the user of the daemon: `install -d -m 0700 {shown}`"),
        ),
    }
}

fn control_socket(path: &Path) -> Finding {
    const NAME: &str = "socket";
    let shown = path.display();
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Finding::ok(NAME, format!("{shown} does not exist: no daemon listens"));
        }
        Err(error) => {
            let advice = "run it as root: `sudo steadfast doctor`";
            return Finding::warning(NAME, format!("{shown}: {error}"), advice);
        }
    };
    let mode = found.mode() & 0o7777;
    if !found.file_type().is_socket() {
        let advice = "move the file away, and restart: `systemctl restart steadfast`";
        return Finding::problem(NAME, format!("{shown} is not a socket"), advice);
    }
    if mode & 0o007 != 0 {
        let advice = "restart the daemon, which sets the mode: `systemctl restart steadfast`";
        return Finding::problem(
            NAME,
            format!("{shown} is accessible to everyone (mode {mode:04o})"),
            advice,
        );
    }
    Finding::ok(NAME, format!("{shown}, mode {mode:04o}, of uid {}", found.uid()))
}

/// S-11: checks that no other user can write the graph or a directory above it.
fn graph(path: &Path) -> Finding {
    const NAME: &str = "graph";
    let shown = path.display();
    let below = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = std::iter::once(path.to_owned()).chain(below.filter(|path| is_graph(path)));
    let judged = all.map(|path| input_trust::untrusted_writer(&path));
    match judged.reduce(worse).unwrap_or(Ok(None)) {
        Ok(None) => Finding::ok(NAME, format!("{shown} is writable by nobody else")),
        Ok(Some(why)) => Finding::problem(
            NAME,
            format!("{shown}: {why}"),
            format!("make root the owner: `chown -R root: {shown} && chmod -R go-w {shown}`"),
        ),
        Err(error) => {
            let advice = "give the path of a readable graph: `steadfast check GRAPH`";
            Finding::problem(NAME, format!("{shown}: {error}"), advice)
        }
    }
}

fn worse(
    one: io::Result<Option<String>>,
    other: io::Result<Option<String>>,
) -> io::Result<Option<String>> {
    if matches!(one, Ok(None)) { other } else { one }
}
