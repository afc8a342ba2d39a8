//! Access lists, the security context and other extended attributes go along when a file is written anew.

use super::fault::Fault;
use crate::host::kernel::{fsetxattr, getxattr, listxattr};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::OwnedFd;

/// The most that the kernel gives, of a list or of a value.
const LARGEST: usize = 64 * 1024;

/// Rights and signatures of the old content, which the new one must earn for itself.
const OF_THE_CONTENT: [&[u8]; 3] = [b"security.capability", b"security.ima", b"security.evm"];

/// Copies them from the old file (by the path of its handle) to the new one.
pub(super) fn copy(old: &str, new: &OwnedFd) -> Result<(), Fault> {
    let fault = || Fault::os("keep the extended attributes of");
    let mut names = [0_u8; 1024];
    let mut many = Vec::new();
    let names = match listxattr(old, &mut names) {
        Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
        Ok(length) => &names[..length],
        Err(Errno::RANGE) => {
            many.resize(LARGEST, 0);
            let length = listxattr(old, &mut many).map_err(fault())?;
            &many[..length]
        }
        Err(errno) => return Err(fault()(errno)),
    };
    for name in names.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        if goes_along(name.to_bytes()) {
            copy_one(old, new, name).map_err(fault())?;
        }
    }
    Ok(())
}

fn copy_one(old: &str, new: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    let mut value = vec![0_u8; 256];
    let length = match getxattr(old, name, &mut value) {
        Err(Errno::RANGE) => {
            value.resize(LARGEST, 0);
            getxattr(old, name, &mut value)
        }
        other => other,
    };
    let length = match length {
        Ok(length) => length,
        Err(Errno::NODATA) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    match fsetxattr(new, name, &value[..length], XattrFlags::empty()) {
        // What only the kernel's security module may set, it sets.
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::INVAL)
            if !name.to_bytes().starts_with(b"user.")
                && !name.to_bytes().starts_with(b"system.posix_acl") =>
        {
            Ok(())
        }
        other => other,
    }
}

fn goes_along(name: &[u8]) -> bool {
    !OF_THE_CONTENT.contains(&name) && !name.starts_with(b"trusted.overlay.")
}
