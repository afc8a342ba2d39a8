//! The filter of repeated events: ten are recorded one by one, the rest are counted (C-21). Pure: the time is an
//! argument.

use super::event::NewEvent;
use crate::api::EventKind;
use crate::api::Level;
use crate::api::event_data::Repeated;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash as _, Hasher as _};

/// The number of equal events that are recorded one by one.
const EACH: u64 = 10;

/// The time in which equal events are counted, in milliseconds.
const WINDOW: u64 = 10 * 60 * 1000;

/// The maximum number of different events in the filter; further ones are recorded each time.
const MOST: usize = 65_536;

/// The recent events and their counts.
#[derive(Debug, Default)]
pub(super) struct RepeatFilter {
    seen: HashMap<u64, Seen>,
    /// The times at which entries expire, with their keys, oldest first; each entry lasts equally long.
    until: VecDeque<(u64, u64)>,
}

#[derive(Debug)]
struct Seen {
    name: String,
    resource: Option<String>,
    level: Level,
    count: u64,
}

impl RepeatFilter {
    /// Returns true if the event is recorded by itself; otherwise the event was counted.
    pub(super) fn is_recorded(&mut self, now: u64, happening: &NewEvent) -> bool {
        let mut key = DefaultHasher::new();
        happening.kind.name().hash(&mut key);
        match &happening.resource {
            Some(resource) => resource.hash(&mut key),
            // For the whole host the text is compared too, so that the ends of two workers are different events.
            None => happening.message.hash(&mut key),
        }
        let (key, many) = (key.finish(), self.seen.len() >= MOST);
        match self.seen.entry(key) {
            Entry::Occupied(mut seen) => {
                let seen = seen.get_mut();
                seen.count += 1;
                seen.level = seen.level.max(happening.level);
                seen.count <= EACH
            }
            Entry::Vacant(_) if many => true,
            Entry::Vacant(free) => {
                let (name, level) = (happening.kind.name().to_owned(), happening.level);
                free.insert(Seen { name, resource: happening.resource.clone(), level, count: 1 });
                self.until.push_back((now.saturating_add(WINDOW), key));
                true
            }
        }
    }

    /// Returns the time at which the next entry expires.
    pub(super) fn next(&self) -> Option<u64> {
        self.until.front().map(|(until, _)| *until)
    }

    /// Returns one event for each expired entry with counted events; at the end, for every entry.
    pub(super) fn counted(&mut self, now: u64, is_end: bool) -> Vec<NewEvent> {
        let mut counted = Vec::new();
        while let Some((until, key)) = self.until.pop_front() {
            // The second condition ends entries after the clock was set back.
            let is_over = until <= now || until > now.saturating_add(WINDOW);
            if !is_over && !is_end {
                self.until.push_front((until, key));
                break;
            }
            let Some(seen) = self.seen.remove(&key).filter(|seen| seen.count > EACH) else {
                continue;
            };
            let repeated = Repeated { of: seen.name, count: seen.count - EACH };
            let resource = seen.resource;
            let told = NewEvent::new(EventKind::Repeated(repeated), seen.level);
            counted.push(NewEvent { resource, ..told });
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::event_data::Worker;

    fn changed(resource: &str) -> NewEvent {
        NewEvent::of(resource, EventKind::Recovered, Level::Info)
    }

    fn counts(counted: &[NewEvent]) -> Vec<u64> {
        let count = |one: &NewEvent| match &one.kind {
            EventKind::Repeated(repeated) => repeated.count,
            other => panic!("{other:?}"),
        };
        counted.iter().map(count).collect()
    }

    /// C-21: of a thousand equal events ten are recorded, and one event counts the rest when ten minutes are over.
    #[test]
    fn a_thousand_alike_are_ten_and_one() {
        let mut alike = RepeatFilter::default();
        let recorded = (0..1000).filter(|n| alike.is_recorded(1000 + n, &changed("file[a]")));
        assert_eq!(recorded.count(), 10);
        assert!(alike.is_recorded(1500, &changed("file[b]")), "another resource");
        assert_eq!(alike.counted(1000 + WINDOW - 1, false), []);
        assert_eq!(alike.next(), Some(1000 + WINDOW));
        let counted = alike.counted(1000 + WINDOW, false);
        let [one] = &counted[..] else { panic!("{counted:?}") };
        assert_eq!(one.message, "990 more `recovered` events within ten minutes");
        assert_eq!(one.resource.as_deref(), Some("file[a]"));
        assert!(alike.is_recorded(1001 + WINDOW, &changed("file[a]")), "a new ten minutes");
        assert_eq!(alike.counted(u64::MAX - WINDOW, false), [], "one by itself is not counted");
    }

    /// C-21: ten events are recorded one by one, and the eleventh is counted. Events about the whole host are compared
    /// by their text. The end, and a clock that goes back, expire entries at once.
    #[test]
    fn ten_are_not_counted_and_the_eleventh_is() {
        let mut alike = RepeatFilter::default();
        let started = |who: &str| {
            let worker = Worker { worker: who.to_owned(), reason: None };
            NewEvent::new(EventKind::WorkerStarted(worker), Level::Info)
        };
        for who in 0..20 {
            assert!(alike.is_recorded(5, &started(&who.to_string())));
        }
        for _ in 1..10 {
            assert!(alike.is_recorded(6, &started("0")));
        }
        assert!(!alike.is_recorded(7, &started("0")));
        let counted = alike.counted(8, true);
        assert_eq!(counts(&counted), [1]);
        assert_eq!(alike.next(), None);

        let late = 3 * WINDOW;
        assert!((0..12).filter(|_| alike.is_recorded(late, &started("1"))).count() == 10);
        assert_eq!(alike.counted(10, false).len(), 1, "the clock was put back");
    }

    /// C-16: the memory of the filter is limited; further events are recorded.
    #[test]
    fn memory_is_bounded() {
        let mut alike = RepeatFilter::default();
        for n in 0..MOST + 100 {
            assert!(alike.is_recorded(1, &changed(&n.to_string())));
        }
        assert_eq!((alike.seen.len(), alike.until.len()), (MOST, MOST));
    }
}
