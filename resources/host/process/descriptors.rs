//! Closes inherited descriptors, which no child may see.

use crate::failure::Failure;
use std::fs;

const CLOSE_ON_EXEC: u32 = 0o2_000_000;

/// Closes every inherited descriptor except standard input, output and error (S-9). Later descriptors are
/// close-on-exec.
///
/// `main` must call this first, before any thread starts. Descriptors that were passed on purpose (socket
/// activation) must be marked close-on-exec before.
pub fn close_inherited() -> Result<(), Failure> {
    let entries = fs::read_dir("/proc/self/fd")
        .map_err(|why| Failure::new(format!("/proc/self/fd cannot be read: {why}")))?;
    let numbers: Vec<i32> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers.into_iter().filter(|number| *number > 2 && is_inheritable(*number)) {
        nix::unistd::close(number)
            .map_err(|why| Failure::new(format!("descriptor {number} cannot be closed: {why}")))?;
    }
    Ok(())
}

fn is_inheritable(number: i32) -> bool {
    let Ok(information) = fs::read_to_string(format!("/proc/self/fdinfo/{number}")) else {
        return false;
    };
    let flags = information.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & CLOSE_ON_EXEC == 0)
}
