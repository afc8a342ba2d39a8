//! Input and output of a child that must outlive this process: unnamed files in memory instead of pipes.
//!
//! A pipe would kill the child on the first write after the end of this process, and would cut off an input
//! that is still being written.

use crate::host::Captured;
use crate::secrets::secret_text::Secret;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::process::{Command as Process, Stdio};

/// The input and output files of one child.
#[derive(Debug)]
pub(in crate::host) struct DetachedStdio {
    stdin: Option<File>,
    stdout: File,
    stderr: File,
}

impl DetachedStdio {
    /// Makes the files for a child with this input, or with none.
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

    /// Attaches the files to a child before its start.
    pub(in crate::host) fn attach(&self, process: &mut Process) -> io::Result<()> {
        if let Some(stdin) = &self.stdin {
            process.stdin(Stdio::from(stdin.try_clone()?));
        }
        process.stdout(Stdio::from(self.stdout.try_clone()?));
        process.stderr(Stdio::from(self.stderr.try_clone()?));
        Ok(())
    }

    /// Returns the present content of standard output and standard error.
    pub(in crate::host) fn read(&self) -> io::Result<(Captured, Captured)> {
        Ok((captured(&self.stdout)?, captured(&self.stderr)?))
    }
}

fn unnamed(name: &str) -> io::Result<File> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

/// Reads a file without moving the position at which the child or its descendants write.
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
    use crate::secrets::secret_text::Secret;
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
        // Reading moves no position, so the result is the same again.
        assert_eq!(kept.read().unwrap(), (stdout, stderr));
    }
}
