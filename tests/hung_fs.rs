//! A file system that does not answer, shared by several test targets. Needs root and /dev/fuse.

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// A FUSE file system whose server reads no request.
pub(crate) struct Hung {
    server: Option<File>,
    path: PathBuf,
}

impl Hung {
    /// Mounts a hung file system on this directory.
    pub(crate) fn over(path: &Path) -> Self {
        let server = File::options().read(true).write(true).open("/dev/fuse");
        let server = server.expect("this test needs root and /dev/fuse");
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", server.as_raw_fd());
        let kind = Some("fuse");
        mount(Some("hung"), path, kind, MsFlags::empty(), Some(&*options)).expect("mounted");
        Self { server: Some(server), path: path.to_owned() }
    }

    /// Ends the file system: all waiting system calls return an error.
    pub(crate) fn end(&mut self) {
        if self.server.take().is_some() {
            umount2(&self.path, MntFlags::MNT_DETACH).expect("unmounted");
        }
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        self.end();
    }
}
