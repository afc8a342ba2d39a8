//! Processes with the folder of a test in their arguments, from `/proc`.

use crate::host::mentions;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;

/// Returns number and arguments of every live process with this folder in its arguments, apart from the program
/// itself.
pub(crate) fn with(folder: &Path) -> Vec<(i32, String)> {
    all(folder).into_iter().filter(|(_, arguments)| !is_ours(arguments)).collect()
}

/// Kills every process with this folder in its arguments, the program first.
pub(crate) fn kill_with(folder: &Path) {
    let mut found = all(folder);
    found.sort_by_key(|(_, arguments)| !is_ours(arguments));
    for (pid, _) in found {
        // The process may have ended meanwhile.
        if kill(Pid::from_raw(pid), Signal::SIGKILL).is_err() {}
    }
}

/// Returns the signals that a process catches, as a mask.
pub(crate) fn caught(pid: u32) -> u64 {
    mask(pid, "SigCgt:")
}

/// Returns the pending signals of a process, as a mask.
pub(crate) fn pending(pid: u32) -> u64 {
    mask(pid, "ShdPnd:")
}

fn mask(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix(name));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

fn is_ours(arguments: &str) -> bool {
    let program = arguments.split(' ').next().unwrap_or_default();
    program.ends_with("/steadfast") || program.ends_with("setpriv")
}

fn all(folder: &Path) -> Vec<(i32, String)> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| {
        // A zombie has no arguments.
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words = String::from_utf8_lossy(&arguments).trim_end_matches('\0').replace('\0', " ");
        mentions(&arguments, folder).then_some((pid, words))
    })
    .collect()
}
