//! Access lists: the text form (`user:www-data:r-x`) and the form of the kernel.

use crate::failure::Failure;
use crate::host::files::{AccountKind, Accounts, account_name};

/// The attribute with the access list.
pub(super) const ACCESS: &str = "system.posix_acl_access";
/// The attribute with the default list of a directory.
pub(super) const DEFAULT: &str = "system.posix_acl_default";

/// The version of the form of the kernel.
const VERSION: u32 = 2;
/// The number of an entry without an account.
const NOBODY: u32 = u32::MAX;

/// The subject of an entry, in the order and with the numbers of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Tag {
    Owner = 0x01,
    User = 0x02,
    OwningGroup = 0x04,
    Group = 0x08,
    Mask = 0x10,
    Other = 0x20,
}

/// A declared entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Entry {
    /// The entry belongs to the default list of a directory.
    pub(super) is_default: bool,
    pub(super) tag: Tag,
    /// The account, by name or number; empty for an entry without one.
    pub(super) name: String,
    pub(super) rights: u8,
}

/// An entry in the form of the kernel: the tag, the number of the account, the rights.
pub(super) type Raw = (Tag, u32, u8);

impl Entry {
    /// Reads an entry as setfacl(1) writes it.
    ///
    /// # Errors
    ///
    /// Returns the expectation that the text does not meet.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let entry = Self::parse_recorded(text)?;
        if !entry.is_default && matches!(entry.tag, Tag::Owner | Tag::OwningGroup | Tag::Other) {
            return Err("the rights of owner, group and others are those of `mode`".to_owned());
        }
        Ok(entry)
    }

    /// Reads an entry of a recorded list, which also has the rights of the owning group.
    ///
    /// # Errors
    ///
    /// Returns the expectation that the text does not meet.
    pub(super) fn parse_recorded(text: &str) -> Result<Self, String> {
        let expected = || "expected an entry like user:www-data:r-x".to_owned();
        let rest = text.strip_prefix("default:").or_else(|| text.strip_prefix("d:"));
        let (is_default, rest) = (rest.is_some(), rest.unwrap_or(text));
        let parts: Vec<&str> = rest.split(':').collect();
        let (word, name, rights) = match parts.as_slice() {
            [word, name, rights] => (*word, *name, *rights),
            _ => return Err(expected()),
        };
        let tag = match (word, name.is_empty()) {
            ("user" | "u", true) => Tag::Owner,
            ("user" | "u", false) => Tag::User,
            ("group" | "g", true) => Tag::OwningGroup,
            ("group" | "g", false) => Tag::Group,
            ("mask" | "m", true) => Tag::Mask,
            ("other" | "o", true) => Tag::Other,
            _ => return Err(expected()),
        };
        let mut bits = 0;
        for letter in rights.chars() {
            bits |= match letter {
                'r' => 4,
                'w' => 2,
                'x' => 1,
                '-' => 0,
                _ => return Err(expected()),
            };
        }
        Ok(Self { is_default, tag, name: name.to_owned(), rights: bits })
    }

    /// Returns the entry as text.
    pub(super) fn text(&self) -> String {
        let word = match self.tag {
            Tag::Owner | Tag::User => "user",
            Tag::OwningGroup | Tag::Group => "group",
            Tag::Mask => "mask",
            Tag::Other => "other",
        };
        let bit = |bit: u8, letter: char| if self.rights & bit == 0 { '-' } else { letter };
        let start = if self.is_default { "default:" } else { "" };
        format!("{start}{word}:{}:{}{}{}", self.name, bit(4, 'r'), bit(2, 'w'), bit(1, 'x'))
    }

    /// Returns the number of the account.
    pub(super) fn number(&self, accounts: &Accounts) -> Result<u32, Failure> {
        match self.tag {
            Tag::User => accounts.number(AccountKind::User, &self.name),
            Tag::Group => accounts.number(AccountKind::Group, &self.name),
            _ => Ok(NOBODY),
        }
    }
}

/// Returns entries as one text, sorted.
pub(super) fn text_of(mut entries: Vec<Entry>) -> String {
    entries.sort();
    entries.iter().map(Entry::text).collect::<Vec<_>>().join(",")
}

/// Reads a list in the form of the kernel; none if the bytes are no list.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<Raw>> {
    let (version, rest) = bytes.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*version) != VERSION || rest.len() % 8 != 0 {
        return None;
    }
    let entry = |bytes: &[u8]| {
        let (tag, rest) = bytes.split_first_chunk::<2>()?;
        let (rights, rest) = rest.split_first_chunk::<2>()?;
        let (number, _) = rest.split_first_chunk::<4>()?;
        let tag = match u16::from_le_bytes(*tag) {
            0x01 => Tag::Owner,
            0x02 => Tag::User,
            0x04 => Tag::OwningGroup,
            0x08 => Tag::Group,
            0x10 => Tag::Mask,
            0x20 => Tag::Other,
            _ => return None,
        };
        let rights = u8::try_from(u16::from_le_bytes(*rights) & 7).ok()?;
        Some((tag, u32::from_le_bytes(*number), rights))
    };
    rest.chunks_exact(8).map(entry).collect()
}

/// Writes a list in the form of the kernel.
pub(super) fn encode(mut entries: Vec<Raw>) -> Vec<u8> {
    entries.sort_unstable();
    let mut bytes = VERSION.to_le_bytes().to_vec();
    for (tag, number, rights) in entries {
        bytes.extend((tag as u16).to_le_bytes());
        bytes.extend(u16::from(rights).to_le_bytes());
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

/// Returns the found entries that a declaration speaks about: each entry with an account, and the others only if they
/// are declared. An account that is declared by name keeps this name.
pub(super) fn shown(found: &[Raw], declared: &[(Entry, u32)], is_default: bool) -> Vec<Entry> {
    let own = || declared.iter().filter(|(entry, _)| entry.is_default == is_default);
    let mut all = Vec::new();
    for (tag, number, rights) in found {
        let same = own().find(|(entry, own)| entry.tag == *tag && own == number);
        let name = match (same, tag) {
            (Some((entry, _)), _) => entry.name.clone(),
            (None, Tag::User) => account_name(AccountKind::User, *number),
            (None, Tag::Group) => account_name(AccountKind::Group, *number),
            (None, _) => continue,
        };
        all.push(Entry { is_default, tag: *tag, name, rights: *rights });
    }
    all
}

/// Returns the entries of a list for a record: the mask and the owning group decide what the other entries allow. A
/// list without accounts and mask says what the mode says, and is left out.
pub(super) fn recorded(found: &[Raw], is_default: bool) -> Vec<Entry> {
    let is_list = |tag: Tag| matches!(tag, Tag::User | Tag::Group | Tag::Mask);
    if !found.iter().any(|(tag, ..)| is_list(*tag)) {
        return Vec::new();
    }
    let is_of_mode = |tag: Tag| !is_default && matches!(tag, Tag::Owner | Tag::Other);
    let entries = found.iter().filter(|(tag, ..)| !is_of_mode(*tag));
    let entry = |(tag, number, rights): &Raw| {
        let name = match tag {
            Tag::User => account_name(AccountKind::User, *number),
            Tag::Group => account_name(AccountKind::Group, *number),
            _ => String::new(),
        };
        Entry { is_default, tag: *tag, name, rights: *rights }
    };
    entries.map(entry).collect()
}

/// Returns a list in which no account has a right beyond the declared ones. An entry without rights stays: without it,
/// the account would have the rights of the group or of all others.
pub(super) fn narrowed(present: &[Raw], declared: &[(Entry, u32)]) -> Vec<Raw> {
    let of_account = |tag: Tag, number: u32| {
        let is_same =
            |(entry, own): &&(Entry, u32)| !entry.is_default && entry.tag == tag && *own == number;
        declared.iter().find(is_same).map_or(0, |(entry, _)| entry.rights)
    };
    let narrow = |(tag, number, rights): &Raw| match tag {
        Tag::User | Tag::Group => (*tag, *number, rights & of_account(*tag, *number)),
        _ => (*tag, *number, *rights),
    };
    present.iter().map(narrow).collect()
}

/// Builds a whole list from the declared entries. The owner, the group and the others get the rights of the mode or of
/// the present list. Without a declared mask, the mask stays as the mode says (`keeps_mode`), or is the union of all
/// rights that it bounds.
pub(super) fn build(
    declared: &[(Entry, u32)],
    present: &[Raw],
    (mode, keeps_mode): (u32, bool),
) -> Vec<Raw> {
    let bits = |shift: u32| u8::try_from(mode >> shift & 7).unwrap_or_default();
    let mut all: Vec<Raw> =
        declared.iter().map(|(entry, number)| (entry.tag, *number, entry.rights)).collect();
    let has = |all: &[Raw], tag| all.iter().any(|(own, ..)| *own == tag);
    for (tag, rights) in [(Tag::Owner, bits(6)), (Tag::OwningGroup, bits(3)), (Tag::Other, bits(0))]
    {
        if !has(&all, tag) {
            let kept = present.iter().find(|(own, ..)| *own == tag && tag == Tag::OwningGroup);
            let kept = kept.map_or(rights, |(_, _, rights)| *rights);
            // Without a declared mode, the mask of the removed list goes on bounding the group.
            let is_bound = tag == Tag::OwningGroup && !keeps_mode;
            all.push((tag, NOBODY, if is_bound { kept & mask_of(present) } else { kept }));
        }
    }
    let is_bound = |tag: Tag| matches!(tag, Tag::User | Tag::Group | Tag::OwningGroup);
    let needs_mask = all.iter().any(|(tag, ..)| matches!(tag, Tag::User | Tag::Group));
    if needs_mask && !has(&all, Tag::Mask) {
        let union = all.iter().filter(|(tag, ..)| is_bound(*tag)).fold(0, |all, it| all | it.2);
        all.push((Tag::Mask, NOBODY, if keeps_mode { bits(3) } else { union }));
    }
    all
}

/// Returns the rights that the mask of a list leaves; all of them without a mask.
fn mask_of(list: &[Raw]) -> u8 {
    list.iter().find(|(tag, ..)| *tag == Tag::Mask).map_or(7, |(_, _, rights)| *rights)
}

#[cfg(test)]
mod tests {
    use super::{Entry, Tag, build, decode, encode, text_of};

    #[test]
    fn entries_are_read_and_written() {
        for (text, again) in [
            ("u:eve:rx", "user:eve:r-x"),
            ("group:adm:r--", "group:adm:r--"),
            ("d:u:eve:rwx", "default:user:eve:rwx"),
            ("m::rx", "mask::r-x"),
            ("default:other::", "default:other::---"),
        ] {
            assert_eq!(Entry::parse(text).unwrap().text(), again);
        }
        for wrong in ["", "eve:rx", "user::rwx", "u:eve:q", "x:eve:r", "mask:eve:r", "u:a:b:c"] {
            assert!(Entry::parse(wrong).is_err(), "{wrong}");
        }
        let all = ["g:adm:r", "u:eve:x"].map(|text| Entry::parse(text).unwrap());
        assert_eq!(text_of(all.into()), "user:eve:--x,group:adm:r--");
    }

    #[test]
    fn a_list_has_all_entries_that_the_kernel_wants() {
        let eve = (Entry::parse("u:eve:rwx").unwrap(), 1000);
        let list = build(std::slice::from_ref(&eve), &[], (0o640, false));
        let mask =
            |list: &[(Tag, u32, u8)]| list.iter().find(|it| it.0 == Tag::Mask).map(|it| it.2);
        assert_eq!(mask(&list), Some(7));
        assert_eq!(mask(&build(&[eve], &[], (0o640, true))), Some(4));
        assert_eq!(mask(&build(&[], &[], (0o640, true))), None, "no list is needed");
        assert_eq!(decode(&encode(list.clone())).map(|it| it.len()), Some(list.len()));
        assert!(decode(&[1, 0, 0, 0]).is_none() && decode(&[]).is_none());
    }

    #[test]
    fn the_mask_of_a_removed_list_bounds_the_group() {
        let closed =
            [(Tag::OwningGroup, u32::MAX, 4), (Tag::User, 1000, 4), (Tag::Mask, u32::MAX, 0)];
        let group = |list: Vec<(Tag, u32, u8)>| {
            list.iter().find(|it| it.0 == Tag::OwningGroup).map(|it| it.2)
        };
        assert_eq!(group(build(&[], &closed, (0o600, false))), Some(0));
        assert_eq!(group(build(&[], &closed, (0o600, true))), Some(4), "the mode says so");
        let open =
            [(Tag::OwningGroup, u32::MAX, 4), (Tag::User, 1000, 6), (Tag::Mask, u32::MAX, 6)];
        assert_eq!(group(build(&[], &open, (0o660, false))), Some(4));
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        #[test]
        fn any_bytes_can_be_decoded(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            if let Some(list) = decode(&bytes) {
                proptest::prop_assert_eq!(decode(&encode(list.clone())).map(|it| it.len()), Some(list.len()));
            }
        }
    }
}
