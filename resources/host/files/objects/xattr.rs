//! Extended attributes: access lists, the security context and others are carried over to a rewritten file.

use crate::host::files::fault::Fault;
use crate::host::files::takeover::marks::TAKEN_OVER;
use crate::host::kernel::{fsetxattr, getxattr, listxattr, removexattr, setxattr_of};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

/// The kernel's limit in bytes, for a list of names and for a value.
const LARGEST: usize = 64 * 1024;

/// Attributes that depend on the content (rights and signatures) and are not carried over to a new content.
const OF_THE_CONTENT: [&[u8]; 3] = [b"security.capability", b"security.ima", b"security.evm"];

/// The access list of an object, and the default list that a directory passes on to new entries.
const LISTS: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];

/// Removes the access lists of a file (by the path of its handle).
pub(in crate::host::files) fn remove_lists(file: &str) -> Result<(), Fault> {
    for name in LISTS {
        // Only the existence of the value matters.
        let found = getxattr(file, name, &mut [0_u8; 4]);
        if matches!(found, Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS)) {
            continue;
        }
        match removexattr(file, name) {
            Ok(()) | Err(Errno::NODATA) => {}
            Err(errno) => return Err(Fault::os("take the access list off")(errno)),
        }
    }
    Ok(())
}

/// Returns the access list among recorded attributes.
pub(in crate::host::files) fn recorded_list(recorded: &[(Vec<u8>, Vec<u8>)]) -> Option<&[u8]> {
    let found = recorded.iter().find(|(name, _)| name == LISTS[0].as_bytes());
    found.map(|(_, list)| list.as_slice())
}

/// Sets the access list of an object, which also sets the rights in its mode.
pub(in crate::host::files) fn set_list(handle: &OwnedFd, list: &[u8]) -> Result<(), Fault> {
    setxattr_of(handle, LISTS[0], list, XattrFlags::empty())
        .map_err(Fault::os("put back the access list of"))
}

/// Returns the access list of a file, given by the path of its handle; none without a list.
pub(in crate::host::files) fn access_list(file: &str) -> Option<Vec<u8>> {
    let mut list = vec![0; LARGEST];
    let length = getxattr(file, LISTS[0], &mut list).ok()?;
    list.truncate(length);
    Some(list)
}

/// Returns the rights of the file's group in its access list as three bits; none without a list. The file is
/// given by the path of its handle.
pub(in crate::host::files) fn group_of_list(file: &str) -> Option<u32> {
    const HEADER: usize = 4;
    const ENTRY: usize = 8;
    const OWNING_GROUP: u16 = 0x04;
    let list = access_list(file)?;
    let entries = list.get(HEADER..)?.chunks_exact(ENTRY);
    let found = entries.map(|entry| match entry {
        [tag, more, bits, _, ..] => (u16::from_le_bytes([*tag, *more]), u32::from(*bits)),
        _ => (0, 0),
    });
    found.into_iter().find(|(tag, _)| *tag == OWNING_GROUP).map(|(_, bits)| bits & 0o7)
}

/// Copies the attributes from the old file (by the path of its handle) to the new one.
pub(in crate::host::files) fn copy(old: &str, new: &OwnedFd) -> Result<(), Fault> {
    let fault = || Fault::os("keep the extended attributes of");
    for name in names(old).map_err(fault())? {
        if goes_along(name.to_bytes())
            && let Some(value) = value(old, &name).map_err(fault())?
        {
            set(new, &name, &value).map_err(fault())?;
        }
    }
    Ok(())
}

/// Returns all readable attributes, name and value; for a sensitive file only the access lists and the
/// security context.
pub(in crate::host::files) fn read(file: &str, secret: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let of_access =
        |name: &[u8]| name.starts_with(b"system.posix_acl") || name == b"security.selinux";
    let names = names(file).unwrap_or_default().into_iter();
    let names = names.filter(|name| {
        let is_mark = name.to_bytes().starts_with(b"trusted.steadfast.");
        // The mark of a file goes with its content: a restored content is one that others may have chosen.
        let is_of_file = || {
            name.to_bytes() == TAKEN_OVER.as_bytes()
                && getxattr(file, TAKEN_OVER, &mut [0; 1]) == Ok(0)
        };
        (!is_mark || is_of_file()) && (!secret || of_access(name.to_bytes()))
    });
    let pair = |name: CString| Some((name.to_bytes().to_vec(), value(file, &name).ok()??));
    names.filter_map(pair).collect()
}

/// Sets these attributes on a file.
pub(in crate::host::files) fn write(
    file: &OwnedFd,
    all: &[(Vec<u8>, Vec<u8>)],
) -> Result<(), Fault> {
    for (name, value) in all {
        let Ok(name) = CString::new(name.as_slice()) else { continue };
        set(file, &name, value).map_err(Fault::os("put back the extended attributes of"))?;
    }
    Ok(())
}

fn names(file: &str) -> Result<Vec<CString>, Errno> {
    let mut few = [0_u8; 1024];
    let mut many = Vec::new();
    let names = match listxattr(file, &mut few) {
        Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
        Ok(length) => &few[..length],
        Err(Errno::RANGE) => {
            many.resize(LARGEST, 0);
            let length = listxattr(file, &mut many)?;
            &many[..length]
        }
        Err(errno) => return Err(errno),
    };
    let names = names.split_inclusive(|byte| *byte == 0);
    Ok(names.filter_map(|name| Some(CStr::from_bytes_with_nul(name).ok()?.to_owned())).collect())
}

/// Returns the value of an attribute; none if the attribute has gone meanwhile.
fn value(file: &str, name: &CStr) -> Result<Option<Vec<u8>>, Errno> {
    let mut value = vec![0_u8; 256];
    let length = match getxattr(file, name, &mut value) {
        Err(Errno::RANGE) => {
            value.resize(LARGEST, 0);
            getxattr(file, name, &mut value)
        }
        other => other,
    };
    match length {
        Ok(length) => {
            value.truncate(length);
            Ok(Some(value))
        }
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn set(file: &OwnedFd, name: &CStr, value: &[u8]) -> Result<(), Errno> {
    match fsetxattr(file, name, value, XattrFlags::empty()) {
        // Some attributes can only be set by the kernel's security module, which does so itself.
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
    let is_of_inode =
        name.starts_with(b"trusted.overlay.") || name.starts_with(b"trusted.steadfast.");
    !OF_THE_CONTENT.contains(&name) && !is_of_inode
}
