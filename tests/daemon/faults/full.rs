//! A full file system and a read-only one. Root only.

use crate::host::Host;
use std::io::Write as _;
use std::process::Command;

/// A mounted tmpfs; dropping it unmounts.
pub(crate) struct Mount(String);

impl Mount {
    pub(crate) fn new(host: &Host, name: &str, options: &str) -> Self {
        host.make_directory(name);
        let at = host.path(name).display().to_string();
        mount(&["-t", "tmpfs", "-o", options, "tmpfs", &at]);
        Self(at)
    }

    pub(crate) fn remount(&self, options: &str) {
        mount(&["-o", &format!("remount,{options}"), &self.0]);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(Command::new("umount").args(["-l", &self.0]).status());
    }
}

fn mount(arguments: &[&str]) {
    let status = Command::new("mount").args(arguments).status().expect("runs");
    assert!(status.success(), "this test needs root: {arguments:?}");
}

/// F-3: on a full file system the resource is failed with its old content whole, others go on, and free space heals
/// it.
#[test]
fn a_full_file_system() {
    let large = "0123456789abcdef".repeat(1 << 17);
    let host = Host::with(&format!(
        "graph: full\nresources:\n  file:\n  - {{name: large, path: $DIR/small/large, content: \"{large}\"}}\n  \
         - {{name: after, path: $DIR/after, after: \"file[large]\"}}\n  - {{name: little, path: $DIR/small/little, \
         content: x}}\n"
    ));
    let small = Mount::new(&host, "small", "size=1m");
    host.write("small/large", "old");
    let daemon = host.run(&["--sweep", "1"]);
    let line = daemon.wait_for_of("failed", "file[large]");
    assert!(line.message.contains("no space left"), "{line:?}");
    host.wait_until("the little one is done", || host.exists("small/little"));
    assert_eq!(host.read("small/large"), "old");
    assert_eq!(std::fs::read_dir(host.path("small")).expect("listed").count(), 2);
    small.remount("size=8m");
    daemon.wait_for("converged");
    assert!(host.read("small/large") == large && host.exists("after"));
}

/// F-3: on a read-only file system the resource is failed with its old content whole, others go on, and a writable
/// mount heals it.
#[test]
fn a_read_only_file_system() {
    let host = Host::with(
        "graph: ro\nresources:\n  file:\n  - {name: in, path: $DIR/small/in, content: new}\n  - {name: gone, path: \
         $DIR/small/gone, state: absent}\n  - {name: out, path: $DIR/out}\n",
    );
    let small = Mount::new(&host, "small", "size=1m");
    host.write("small/in", "old").write("small/gone", "x");
    small.remount("ro");
    let daemon = host.run(&["--sweep", "1"]);
    for _ in ["file[in]", "file[gone]"] {
        let line = daemon.wait_for("failed");
        assert!(line.message.contains("read-only file system (hint:"), "{line:?}");
    }
    host.wait_until("the other is done", || host.exists("out"));
    assert_eq!(host.read("small/in"), "old");
    small.remount("rw");
    daemon.wait_for("converged");
    assert!(host.read("small/in") == "new" && !host.exists("small/gone"));
}

/// Fills the file system with one file; returns it.
pub(crate) fn fill(host: &Host, name: &str) -> std::path::PathBuf {
    let path = host.path(name);
    let mut filler = std::fs::File::create(&path).expect("created");
    while filler.write_all(&[0; 4096]).is_ok() {}
    path
}

/// M6 of a fault run: a pause that cannot be stored is in effect, and the command says that it can be lost. The pause
/// is stored when there is room again, and outlives a kill then.
#[test]
fn a_pause_on_a_full_state_is_doubtful() {
    let host =
        Host::with("graph: paused\nresources:\n  file:\n  - {name: a, path: $DIR/a, content: x}\n");
    let _state = Mount::new(&host, "state", "size=4m,mode=0700");
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    let filler = fill(&host, "state/filler");
    // The log of the database has some room left.
    let mut said = String::new();
    for _ in 0..500 {
        said = host.ask_daemon(&["pause", "--for", "1h"]).exits(0).stderr.clone();
        if !said.is_empty() {
            break;
        }
        host.ask_daemon(&["resume"]);
    }
    assert!(said.contains("warning: the pause cannot be stored now, and is lost if"), "{said}");
    host.ask_daemon(&["status"]).prints("paused");
    std::fs::remove_file(filler).expect("removed");
    host.wait_until("the pause is stored", || {
        host.ask_daemon(&["pause", "--for", "1h"]).exits(0).stderr.is_empty()
    });
    daemon.signal(nix::sys::signal::Signal::SIGKILL);
    daemon.ends();
    let daemon = host.run(&[]);
    daemon.wait_for("paused");
}
