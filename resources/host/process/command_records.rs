//! Records of running commands, by which a later process can end the commands of a killed daemon.
//!
//! A record is a file in the state directory. Its name is the number of the process group; its content is the
//! boot and the start time of the leader, so that a reused number is never signalled. Records are not synced:
//! they must outlive a killed process, not a crashed machine.

use super::process_group::is_alive;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The folder of the records in a state directory.
const FOLDER: &str = "commands";
/// The time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// The time limit for the disappearance of a killed group.
const LIMIT: Duration = Duration::from_secs(10);
/// The interval between checks of the group.
const LOOK: Duration = Duration::from_millis(20);

/// The command records of this process.
#[derive(Debug)]
pub(in crate::host) struct CommandRecords {
    folder: PathBuf,
}

impl CommandRecords {
    pub(in crate::host) fn new(state_directory: &Path) -> Self {
        Self { folder: state_directory.join(FOLDER) }
    }

    /// Records a started command. A command whose record cannot be written (on a full disk, for example)
    /// continues.
    pub(in crate::host) fn add(&self, leader: Pid) {
        if self.write(leader).is_err() {}
    }

    /// Removes the record of a command that has ended. A remaining record names no living process.
    pub(in crate::host) fn remove(&self, leader: Pid) {
        if std::fs::remove_file(self.path(leader)).is_err() {}
    }

    fn path(&self, leader: Pid) -> PathBuf {
        self.folder.join(leader.as_raw_nonzero().to_string())
    }

    fn write(&self, leader: Pid) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let path = self.path(leader);
        let mut file = match options.open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                DirBuilder::new().mode(0o700).create(&self.folder)?;
                options.open(&path)?
            }
            opened => opened?,
        };
        let identity = identity_of(leader).unwrap_or_default();
        file.write_all(identity.as_bytes())
    }
}

/// Ends the commands that an earlier process has recorded in this state directory and left running: TERM,
/// then KILL after two seconds. The caller must hold the lock of the state directory. The function blocks
/// until the groups are gone, and returns the numbers of the ended groups.
pub fn end_orphaned_commands(state_directory: &Path) -> Vec<i32> {
    let folder = state_directory.join(FOLDER);
    let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
    let (mut orphans, mut records) = (Vec::new(), Vec::new());
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let leader = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let record = std::fs::read_to_string(entry.path()).unwrap_or_default();
        orphans.extend(leader.filter(|leader| is_same(*leader, &record) && is_alive(*leader)));
        records.push(entry.path());
    }
    end(&orphans);
    for record in records {
        // The next start examines a remaining record again.
        if std::fs::remove_file(record).is_err() {}
    }
    orphans.iter().map(|leader| leader.as_raw_nonzero().get()).collect()
}

/// Returns true if the group of this number is still the recorded one. A number is not reused while a process
/// of its group lives, so a group without a leader is the recorded one unless the machine was booted since.
fn is_same(leader: Pid, record: &str) -> bool {
    match identity_of(leader) {
        Some(now) => now == record,
        None => record.split_once(' ').is_some_and(|(boot, _)| Some(boot) == boot_id().as_deref()),
    }
}

/// Returns the boot and the start time of a process; none if the process does not exist.
fn identity_of(process: Pid) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The program's name, in parentheses, may contain anything.
    let started = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?;
    Some(format!("{} {started}", boot_id()?))
}

fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

fn end(leaders: &[Pid]) {
    for (signal, limit) in [(Signal::TERM, GRACE), (Signal::KILL, LIMIT)] {
        for leader in leaders.iter().filter(|leader| is_alive(**leader)) {
            // Signalling a group that has just ended fails.
            if kill_process_group(*leader, signal).is_err() {}
        }
        let began = Instant::now();
        while leaders.iter().any(|leader| is_alive(*leader)) && began.elapsed() < limit {
            std::thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CommandRecords, end_orphaned_commands};
    use rustix::process::Pid;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command};

    fn start() -> (Child, Pid) {
        let child = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let leader = Pid::from_child(&child);
        (child, leader)
    }

    #[test]
    fn a_recorded_command_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (mut child, leader) = start();
        CommandRecords::new(folder.path()).add(leader);
        // A process must reap the orphan, as init does.
        let reaper = std::thread::spawn(move || child.wait().unwrap());
        let ended = end_orphaned_commands(folder.path());
        assert_eq!(ended, [leader.as_raw_nonzero().get()]);
        assert!(!reaper.join().unwrap().success());
        assert!(end_orphaned_commands(folder.path()).is_empty());
    }

    #[test]
    fn a_process_that_only_has_the_number_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (mut child, leader) = start();
        let records = CommandRecords::new(folder.path());
        records.add(leader);
        std::fs::write(records.path(leader), "another-boot 1").unwrap();
        assert!(end_orphaned_commands(folder.path()).is_empty());
        assert!(child.try_wait().unwrap().is_none(), "it still runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_command_that_ended_has_no_record() {
        let folder = tempfile::tempdir().unwrap();
        let (mut child, leader) = start();
        let records = CommandRecords::new(folder.path());
        records.add(leader);
        records.remove(leader);
        assert!(!records.path(leader).exists());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
