//! Mounted file systems, and the types of file systems that the kernel knows.

use super::collect::FactTree;
use super::host_root::HostRoot;
use crate::expressions::Value;
use std::collections::BTreeMap;

/// Collects the mounts. Of several mounts at one point the last one counts, as for the kernel.
pub(super) fn collect_mounts(root: &HostRoot, facts: &mut FactTree) {
    let table = root.text("/proc/self/mountinfo").unwrap_or_default();
    let mounts = table.lines().filter_map(read_mount).collect();
    facts.put("mounts", Value::Map(mounts));
    let known = root.text("/proc/filesystems").unwrap_or_default();
    let mut types: Vec<&str> =
        known.lines().filter_map(|line| line.split('\t').next_back()).collect();
    types.sort_unstable();
    types.dedup();
    let types = types.into_iter().filter(|name| !name.is_empty());
    facts.put("filesystems", Value::List(types.map(|name| Value::Text(name.to_owned())).collect()));
}

/// Reads one line of mountinfo: number, parent, device number, root, mount point, options, optional fields, `-`, type,
/// device, options of the file system.
fn read_mount(line: &str) -> Option<(String, Value)> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(4);
    let (point, options) = (unescaped(mount.next()?), mount.next()?);
    let mut filesystem = filesystem.split(' ');
    let (kind, device) = (filesystem.next()?, unescaped(filesystem.next()?));
    let options = options.split(',').map(|option| Value::Text(option.to_owned())).collect();
    let entry = BTreeMap::from([
        ("device".to_owned(), Value::Text(device)),
        ("options".to_owned(), Value::List(options)),
        ("type".to_owned(), Value::Text(kind.to_owned())),
    ]);
    Some((point, Value::Map(entry.into())))
}

/// Replaces the escapes of the kernel, such as `\040` for a space.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let number =
            digits.filter(|_| *first == b'\\').and_then(|it| u8::from_str_radix(it, 8).ok());
        bytes.push(number.unwrap_or(*first));
        rest = if number.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_mount_points_are_replaced() {
        let line = "36 35 98:0 / /mnt/a\\040b rw,noatime master:1 - ext3 /dev/root rw";
        let (point, value) = read_mount(line).expect("a mount");
        assert_eq!(point, "/mnt/a b");
        assert_eq!(value.at_path("type"), Some(&Value::Text("ext3".to_owned())));
        assert_eq!(unescaped("a\\04"), "a\\04");
    }
}
