//! The rule of permits: the tickets with the lowest create revisions hold a semaphore or a roll.
//!
//! Nobody rewrites the ticket of another host, so that all hosts reach the same result from the same range.

use super::Entry;
use serde::{Deserialize, Serialize};

/// The value of a ticket: the limit that its host declares, and the time of its creation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The version of this record.
    pub schema: u32,
    /// The number of holders that the host of the ticket allows.
    pub size: u32,
    /// The creation, in seconds since 1970.
    pub since: u64,
}

/// The holders and the waiters of one semaphore or roll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// The keys of the tickets that hold, each with its token, in the order of their tokens.
    pub holding: Vec<(String, u64)>,
    /// The keys of the tickets that wait, in their order.
    pub waiting: Vec<String>,
    /// The smallest size among all tickets: the limit of further grants.
    pub size: u32,
}

/// Returns the holders and the waiters of a range of tickets. A ticket holds if fewer tickets came before it than it
/// and each of these allows. A ticket that cannot be read counts as one of size 1: it may belong to a newer version.
#[must_use]
pub fn judge_tickets<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Holders {
    let mut tickets: Vec<(u64, &str, u32)> = entries
        .into_iter()
        .map(|entry| {
            let size =
                serde_json::from_slice::<Ticket>(&entry.value).map_or(1, |ticket| ticket.size);
            (entry.create_revision, entry.key.as_str(), size.max(1))
        })
        .collect();
    tickets.sort_unstable();
    let size = tickets.iter().map(|(_, _, size)| *size).min().unwrap_or(1);
    let mut holders = Holders { size, ..Holders::default() };
    let mut limit = u32::MAX;
    for (at, (token, key, own)) in tickets.into_iter().enumerate() {
        // A ticket obeys its own size and those before it: a smaller size that comes later ends no run.
        limit = limit.min(own);
        if at < limit as usize {
            holders.holding.push((key.to_owned(), token));
        } else {
            holders.waiting.push(key.to_owned());
        }
    }
    holders
}

impl Holders {
    /// Returns the token of a holding ticket: its create revision.
    #[must_use]
    pub fn token_of(&self, key: &str) -> Option<u64> {
        self.holding.iter().find(|(holder, _)| holder == key).map(|(_, token)| *token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(key: &str, created: u64, size: u32) -> Entry {
        let value = serde_json::to_vec(&Ticket { schema: 1, size, since: 0 }).unwrap_or_default();
        Entry { key: key.to_owned(), value, create_revision: created, mod_revision: 9, lease: None }
    }

    #[test]
    fn the_oldest_tickets_hold_and_the_smallest_size_counts() {
        let all = [ticket("c", 7, 2), ticket("a", 9, 2), ticket("b", 3, 2)];
        let holders = judge_tickets(&all);
        assert_eq!(holders.holding, [("b".to_owned(), 3), ("c".to_owned(), 7)]);
        assert_eq!(holders.waiting, ["a"]);
        assert_eq!((holders.token_of("c"), holders.token_of("a")), (Some(7), None));
        let all = [ticket("c", 7, 2), ticket("a", 9, 1), ticket("b", 3, 2)];
        let holders = judge_tickets(&all);
        assert_eq!((holders.waiting.as_slice(), holders.size), (["a".to_owned()].as_slice(), 1));
        let all = [ticket("c", 7, 1), ticket("a", 9, 2), ticket("b", 3, 2)];
        assert_eq!(
            judge_tickets(&all).holding,
            [("b".to_owned(), 3)],
            "a smaller size comes first"
        );
    }
}
