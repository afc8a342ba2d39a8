//! A strict subset of the tar format (ustar): regular files with short names, in a fixed form.
//!
//! Any `tar` reads these archives. The reader accepts nothing else: no link, no directory, no device, no extension.

/// The size of a block.
const BLOCK: usize = 512;
/// The length of the field for names.
const NAME: usize = 100;
/// The length of the field for the beginning of long names.
const PREFIX: usize = 155;

/// The members of an archive: names and contents.
pub(super) type Members<'a> = Vec<(String, &'a [u8])>;

/// Writes an archive of members in their order.
pub(super) fn write_archive(members: &[(&str, &[u8])]) -> Result<Vec<u8>, String> {
    let mut archive = Vec::new();
    for (name, content) in members {
        let header = header_of(name, content.len())
            .ok_or_else(|| format!("a file whose name is too long for a bundle: `{name}`"))?;
        archive.extend_from_slice(&header);
        archive.extend_from_slice(content);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    Ok(archive)
}

/// Splits a name into prefix and rest.
fn split_name(name: &str) -> Option<(&str, &str)> {
    if name.len() <= NAME {
        return Some(("", name));
    }
    let cuts = name.match_indices('/').map(|(at, _)| at);
    let mut parts = cuts.filter_map(|at| Some((name.get(..at)?, name.get(at + 1..)?)));
    parts.find(|(prefix, rest)| prefix.len() <= PREFIX && rest.len() <= NAME && !rest.is_empty())
}

fn header_of(name: &str, size: usize) -> Option<[u8; BLOCK]> {
    let (prefix, rest) = split_name(name)?;
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| {
        header.get_mut(at..at + bytes.len()).map(|part| part.copy_from_slice(bytes))
    };
    put(0, rest.as_bytes())?;
    put(100, b"0000600\0")?;
    put(108, b"0000000\0")?;
    put(116, b"0000000\0")?;
    put(124, format!("{size:011o}\0").as_bytes())?;
    put(136, b"00000000000\0")?;
    put(148, b"        ")?;
    put(156, b"0")?;
    put(257, b"ustar\x0000")?;
    put(345, prefix.as_bytes())?;
    let sum = checksum_of(&header);
    header.get_mut(148..156)?.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(header)
}

/// Returns the sum of the bytes of a header, whose own field counts as spaces.
fn checksum_of(header: &[u8]) -> u32 {
    let byte =
        |(at, byte): (usize, &u8)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) };
    header.iter().enumerate().map(byte).sum()
}

/// Reads all members. The result depends on every byte of the archive except the padding.
pub(super) fn read_archive(archive: &[u8]) -> Result<Members<'_>, String> {
    let mut members = Vec::new();
    let mut rest = archive;
    loop {
        let (header, after) = rest.split_at_checked(BLOCK).ok_or("a truncated archive")?;
        if header.iter().all(|byte| *byte == 0) {
            if after.iter().any(|byte| *byte != 0) || after.len() < BLOCK {
                return Err("bytes after the end of the archive, or no end".to_owned());
            }
            return Ok(members);
        }
        let (name, size) = read_header(header)?;
        let (content, after) = after.split_at_checked(size).ok_or("a truncated archive")?;
        let padding = size.next_multiple_of(BLOCK) - size;
        let (zeros, after) = after.split_at_checked(padding).ok_or("a truncated archive")?;
        if zeros.iter().any(|byte| *byte != 0) {
            return Err("an archive with hidden bytes".to_owned());
        }
        if members.len() >= 100_000 {
            return Err("an archive with too many files".to_owned());
        }
        members.push((name, content));
        rest = after;
    }
}

fn read_header(header: &[u8]) -> Result<(String, usize), String> {
    let field = |at: usize, length: usize| header.get(at..at + length).unwrap_or_default();
    let text = |at, length| {
        let field = field(at, length);
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        std::str::from_utf8(field.get(..end).unwrap_or_default())
            .map_err(|error| format!("a name that is no text: {error}"))
    };
    let octal = |at, length| {
        let digits = text(at, length)?.trim();
        usize::from_str_radix(digits, 8)
            .map_err(|error| format!("a header with a wrong number: {error}"))
    };
    if field(156, 1) != b"0" || field(257, 8) != b"ustar\x0000" {
        return Err("a member that is no regular file".to_owned());
    }
    if octal(148, 8)? != checksum_of(header) as usize {
        return Err("a header with a wrong checksum".to_owned());
    }
    let (prefix, rest) = (text(345, PREFIX)?, text(0, NAME)?);
    let name = if prefix.is_empty() { rest.to_owned() } else { format!("{prefix}/{rest}") };
    let size = octal(124, 12)?;
    // Only the form that the writer makes is accepted, so that no byte of a header is free.
    let same = header_of(&name, size).is_some_and(|written| written == header);
    if same { Ok((name, size)) } else { Err("a header in another form".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_read_as_written_and_changed_ones_are_refused() {
        let long = format!("{}/{}", "d".repeat(120), "f".repeat(90));
        let members = [("a", b"x".as_slice()), (long.as_str(), &[7; 1000]), ("empty", b"")];
        let archive = write_archive(&members).unwrap();
        let read = read_archive(&archive).unwrap();
        let read: Vec<_> = read.iter().map(|(name, content)| (name.as_str(), *content)).collect();
        assert_eq!(read, members);
        for cut in 0..archive.len() {
            assert!(read_archive(&archive[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..archive.len() {
            let mut changed = archive.clone();
            changed[at] ^= 1;
            let other = read_archive(&changed);
            let is_same = other.is_ok_and(|other| {
                other.iter().map(|(name, content)| (name.as_str(), *content)).eq(members)
            });
            assert!(!is_same, "a changed byte at {at} goes unnoticed");
        }
    }
}
