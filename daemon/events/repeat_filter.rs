//! What happens again and again is recorded ten times, and then counted (C-21). Pure: the time is an argument.

use super::event::{Level, NewEvent, what};
use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash as _, Hasher as _};

/// So many alike are recorded one by one.
const EACH: u64 = 10;

/// Within this time, in milliseconds.
const WINDOW: u64 = 10 * 60 * 1000;

/// So many things that happen are watched for being alike; what else happens meanwhile is recorded each time.
const MOST: usize = 65_536;

/// What happened lately, and how often.
#[derive(Debug, Default)]
pub(super) struct RepeatFilter {
    seen: HashMap<u64, Seen>,
    /// When they are forgotten, oldest first: all are remembered for the same time.
    until: VecDeque<(u64, u64)>,
}

#[derive(Debug)]
struct Seen {
    what: &'static str,
    resource: Option<String>,
    level: Level,
    count: u64,
}

impl RepeatFilter {
    /// Whether this one is recorded by itself; if not, it was counted.
    pub(super) fn is_recorded(&mut self, now: u64, happening: &NewEvent) -> bool {
        let mut key = DefaultHasher::new();
        happening.what.hash(&mut key);
        match &happening.resource {
            Some(resource) => resource.hash(&mut key),
            // Of the whole: what is said, so that two workers that end are not alike.
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
                let (what, level) = (happening.what, happening.level);
                free.insert(Seen { what, resource: happening.resource.clone(), level, count: 1 });
                self.until.push_back((now.saturating_add(WINDOW), key));
                true
            }
        }
    }

    /// When the next ones are to be counted in one.
    pub(super) fn next(&self) -> Option<u64> {
        self.until.front().map(|(until, _)| *until)
    }

    /// Those whose time is over, each counted in one; all of them at the end.
    pub(super) fn counted(&mut self, now: u64, is_end: bool) -> Vec<NewEvent> {
        let mut counted = Vec::new();
        while let Some((until, key)) = self.until.pop_front() {
            // A clock that was put back must not keep them for ever.
            let is_over = until <= now || until > now.saturating_add(WINDOW);
            if !is_over && !is_end {
                self.until.push_front((until, key));
                break;
            }
            let Some(seen) = self.seen.remove(&key).filter(|seen| seen.count > EACH) else {
                continue;
            };
            let more = seen.count - EACH;
            let says = format!("{more} more `{}` events within ten minutes", seen.what);
            let told = NewEvent::new(what::REPEATED, says, seen.level);
            let (resource, class) = (seen.resource, Some(seen.what));
            counted.push(NewEvent { resource, class, count: Some(more), ..told });
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(resource: &str) -> NewEvent {
        let resource = Some(resource.to_owned());
        NewEvent { resource, ..NewEvent::new("changed", "content (3 ms)", Level::Info) }
    }

    /// C-21: of a thousand alike ten are recorded, and the others counted in one when ten minutes are over.
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
        assert_eq!((one.count, one.class), (Some(990), Some("changed")));
        assert_eq!(one.resource.as_deref(), Some("file[a]"));
        assert!(alike.is_recorded(1001 + WINDOW, &changed("file[a]")), "a new ten minutes");
        assert_eq!(alike.counted(u64::MAX - WINDOW, false), [], "one by itself is not counted");
    }

    /// C-21: ten are each recorded and nothing is counted; the eleventh is; of the whole what is said tells them apart; an end waits for
    /// nothing, and neither does a clock that goes back.
    #[test]
    fn ten_are_not_counted_and_the_eleventh_is() {
        let mut alike = RepeatFilter::default();
        let started = |who: &str| NewEvent::new("worker_started", who, Level::Info);
        for who in 0..20 {
            assert!(alike.is_recorded(5, &started(&who.to_string())));
        }
        for _ in 1..10 {
            assert!(alike.is_recorded(6, &started("0")));
        }
        assert!(!alike.is_recorded(7, &started("0")));
        let counted = alike.counted(8, true);
        assert_eq!(counted.iter().map(|one| one.count).collect::<Vec<_>>(), [Some(1)]);
        assert_eq!(alike.next(), None);

        let late = 3 * WINDOW;
        assert!((0..12).filter(|_| alike.is_recorded(late, &started("1"))).count() == 10);
        assert_eq!(alike.counted(10, false).len(), 1, "the clock was put back");
    }

    /// C-16: what is remembered is bounded; whatever more there is, is recorded.
    #[test]
    fn memory_is_bounded() {
        let mut alike = RepeatFilter::default();
        for n in 0..MOST + 100 {
            assert!(alike.is_recorded(1, &changed(&n.to_string())));
        }
        assert_eq!((alike.seen.len(), alike.until.len()), (MOST, MOST));
    }
}
