//! The events of one inotify read, without duplicates: a file that is rewritten continuously fills reads with them.

use super::{BackendEvent, DirectoryId};
use rustix::fs::inotify::ReadFlags;

const STRUCTURAL: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);

const GONE: ReadFlags =
    ReadFlags::DELETE_SELF.union(ReadFlags::MOVE_SELF).union(ReadFlags::IGNORED);

/// The number of recent events that are searched for a duplicate: a longer search would cost more than it saves.
const LOOKED_THROUGH: usize = 8;

/// One event as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) number: i32,
    flags: ReadFlags,
    name: Box<[u8]>,
}

/// The events of one read.
#[derive(Debug, Default)]
pub(super) struct Batch(pub(super) Vec<Read>);

impl Batch {
    /// Adds an event, unless a recent one of this read says the same about content or attributes of an entry. The
    /// kernel merges only adjacent duplicates, and each write followed by a close makes two events.
    ///
    /// Nothing is lost: all events of one read are reported together.
    pub(super) fn put(&mut self, number: i32, flags: ReadFlags, name: &[u8]) {
        let repeats = |read: &Read| read.number == number && read.is_plain() && *read.name == *name;
        let mut last = self.0.iter().rev().take(LOOKED_THROUGH);
        if is_plain(flags) && last.any(repeats) {
            return;
        }
        self.0.push(Read { number, flags, name: name.into() });
    }

    /// Returns true if events were lost.
    pub(super) fn overflowed(&self) -> bool {
        self.0.iter().any(|read| read.flags.contains(ReadFlags::QUEUE_OVERFLOW))
    }
}

impl Read {
    pub(super) fn happening(&self, directory: DirectoryId) -> BackendEvent<'_> {
        if self.flags.intersects(GONE) {
            return BackendEvent::Lost(directory);
        }
        let structural = self.flags.intersects(STRUCTURAL);
        BackendEvent::Entry { directory, name: &self.name, structural }
    }

    fn is_plain(&self) -> bool {
        is_plain(self.flags)
    }
}

/// Returns true if the event is a mere change of content or attributes.
fn is_plain(flags: ReadFlags) -> bool {
    !flags.intersects(STRUCTURAL.union(GONE).union(ReadFlags::QUEUE_OVERFLOW))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: ReadFlags = ReadFlags::MODIFY;
    const CLOSED: ReadFlags = ReadFlags::CLOSE_WRITE;

    fn batch(events: &[(i32, ReadFlags, &str)]) -> Batch {
        let mut batch = Batch::default();
        for (number, flags, name) in events {
            batch.put(*number, *flags, name.as_bytes());
        }
        batch
    }

    fn kept(events: &[(i32, ReadFlags, &str)]) -> Vec<(i32, String)> {
        let name = |read: &Read| String::from_utf8(read.name.to_vec()).expect("a name of the test");
        batch(events).0.iter().map(|read| (read.number, name(read))).collect()
    }

    #[test]
    fn repeated_writes_are_one_event() {
        let mut all = Vec::new();
        for _ in 0..1000 {
            all.extend([(1, WRITTEN, "a"), (1, CLOSED, "a"), (1, ReadFlags::ATTRIB, "a")]);
        }
        assert_eq!(kept(&all), [(1, "a".to_owned())]);
    }

    /// E-4, W-1: each changed entry is reported, also among many duplicates.
    #[test]
    fn nobody_else_is_hidden() {
        let mut all = vec![(1, WRITTEN, "a"); 500];
        all.extend([(2, WRITTEN, "a"), (1, WRITTEN, "b"), (1, WRITTEN, ""), (1, WRITTEN, "a")]);
        all.extend(vec![(1, CLOSED, "a"); 500]);
        let of = |number, name: &str| (number, name.to_owned());
        assert_eq!(kept(&all), [of(1, "a"), of(2, "a"), of(1, "b"), of(1, "")]);
    }

    #[test]
    fn creations_and_removals_are_each_reported() {
        for flags in [
            ReadFlags::CREATE,
            ReadFlags::DELETE,
            ReadFlags::MOVED_FROM,
            ReadFlags::MOVED_TO,
            ReadFlags::DELETE_SELF,
            ReadFlags::MOVE_SELF,
            ReadFlags::IGNORED,
            ReadFlags::QUEUE_OVERFLOW,
        ] {
            let all = [(1, WRITTEN, "a"), (1, flags, "a"), (1, flags, "a"), (1, WRITTEN, "a")];
            assert_eq!(kept(&all).len(), 3, "{flags:?}");
            // A structural event does not absorb a later write either.
            assert_eq!(kept(&[(1, flags, "a"), (1, WRITTEN, "a")]).len(), 2, "{flags:?}");
        }
        assert!(batch(&[(1, WRITTEN, "a"), (-1, ReadFlags::QUEUE_OVERFLOW, "")]).overflowed());
        assert!(!batch(&[(1, WRITTEN, "a")]).overflowed());
    }

    #[test]
    fn a_repeat_that_is_far_away_is_only_told_again() {
        let names: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        let round = || names.iter().map(|name| (1, WRITTEN, name.as_str()));
        assert_eq!(kept(&round().chain(round()).collect::<Vec<_>>()).len(), 40);
    }
}
