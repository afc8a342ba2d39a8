//! Input and output of a child that must outlive us: files without a name in memory, never pipes.
//!
//! Who prints into a pipe that nobody reads any more is killed by it; and who is fed by somebody who dies reads half of it.

use crate::host::Captured;
use crate::secret::Secret;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::process::{Command as Process, Stdio};

/// What one child reads and prints.
#[derive(Debug)]
pub(in crate::host) struct DetachedStdio {
    stdin: Option<File>,
    stdout: File,
    stderr: File,
}

impl DetachedStdio {
    /// For a child that reads this; nothing where none is given.
    pub(in crate::host) fn new(stdin: Option<&Secret>) -> io::Result<Self> {
        let stdin = stdin.map(|text| {
            let mut file = unnamed("input")?;
            file.write_all(text.reveal().as_bytes())?;
            file.seek(SeekFrom::Start(0)).map(|_| file)
        });
        Ok(Self {
            stdin: stdin.transpose()?,
            stdout: unnamed("output")?,
            stderr: unnamed("complaints")?,
        })
    }

    /// Gives them to a child that is not started yet.
    pub(in crate::host) fn attach(&self, process: &mut Process) -> io::Result<()> {
        if let Some(stdin) = &self.stdin {
            process.stdin(Stdio::from(stdin.try_clone()?));
        }
        process.stdout(Stdio::from(self.stdout.try_clone()?));
        process.stderr(Stdio::from(self.stderr.try_clone()?));
        Ok(())
    }

    /// What was printed so far: output and complaints.
    pub(in crate::host) fn read(&self) -> io::Result<(Captured, Captured)> {
        Ok((captured(&self.stdout)?, captured(&self.stderr)?))
    }
}

fn unnamed(name: &str) -> io::Result<File> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

/// Reads without moving the place at which the child, or what it left behind, writes.
fn captured(file: &File) -> io::Result<Captured> {
    let (mut captured, mut buffer) = (Captured::default(), [0; 16 * 1024]);
    loop {
        match file.read_at(&mut buffer, captured.total())? {
            0 => return Ok(captured),
            count => captured.push(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DetachedStdio;
    use crate::secret::Secret;
    use std::process::Command;

    #[test]
    fn a_child_reads_and_prints_without_pipes() {
        let kept = DetachedStdio::new(Some(&Secret::from("first\nsecond\n".to_owned()))).unwrap();
        let script = "cat; echo third; echo wrong >&2; for each in 0 1 2; do readlink /proc/$$/fd/$each; done >&2";
        let mut process = Command::new("sh");
        process.args(["-c", script]);
        kept.attach(&mut process).unwrap();
        assert!(process.status().unwrap().success());
        let (stdout, stderr) = kept.read().unwrap();
        assert_eq!(stdout.text(), "first\nsecond\nthird\n");
        assert!(stderr.text().starts_with("wrong\n") && !stderr.text().contains("pipe"));
        // Read without moving anything: the same again.
        assert_eq!(kept.read().unwrap(), (stdout, stderr));
    }
}
