//! What must hold of all that is kept, beyond what each row's checksum says (B-19), and how what does not hold is put right (B-21).
//!
//! One function judges a record: at every load, after every write of those that were touched, and for the operator. Two things that
//! B-19 names are no damage here: what a thing came after may be gone, and the orders of several graphs may contradict each other;
//! both are sorted out where they are used.

use super::replay::{InFlight, Record, Records, settle};
use super::{OpaqueText, Ownership, StoredState};
use std::fmt;
use std::sync::Arc;

/// A record was put right when it was loaded.
pub const REPAIRED: &str = "state_repaired";

/// A record that was written is not as it must be.
pub const UNSOUND: &str = "state_unsound";

/// What is kept of a kind that this program does not know is left alone.
pub const LEFT_ALONE: &str = "state_left_alone";

/// What is wrong with a name, if anything.
type Judge = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Hears an event in a word, and a line.
type Tell = Arc<dyn Fn(&'static str, &str) + Send + Sync>;

/// What is wrong with what was sent and received, if anything.
type JudgeValues = Arc<dyn Fn(Option<&OpaqueText>, Option<&str>) -> Option<String> + Send + Sync>;

/// What was sent, with what of a secret is known of what was sent before, where the hashes are the same.
type Join = Arc<dyn Fn(&OpaqueText, &OpaqueText) -> Option<OpaqueText> + Send + Sync>;

/// What others know of the texts that are kept, and who is told what a write has broken.
#[derive(Clone)]
pub struct RecordReaders {
    /// What is wrong with an identity.
    pub identity: Judge,
    /// Of an identity, where its kind is not known here, just that: what is kept of it stays, and a start is not told of it.
    pub kind: Judge,
    /// Gives what was sent, as it was exported, the secrets that are kept.
    pub secrets: Join,
    /// What is wrong with what was sent and received.
    pub values: JudgeValues,
    /// Is told what was put right at a load ([`REPAIRED`]), and what is not as it must be after a write ([`UNSOUND`]).
    pub report: Tell,
}

impl fmt::Debug for RecordReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").finish_non_exhaustive()
    }
}

/// Knows nothing of texts, and tells nobody.
impl Default for RecordReaders {
    fn default() -> Self {
        Self {
            identity: Arc::new(|_| None),
            kind: Arc::new(|_| None),
            secrets: Arc::new(|_, _| None),
            values: Arc::new(|_, _| None),
            report: Arc::new(|_, _| {}),
        }
    }
}

impl RecordReaders {
    /// What was told back without what is kept of kinds that are not known here: nobody can act on it, and it must not be lost.
    #[must_use]
    pub fn only_known(&self, mut recalled: StoredState) -> StoredState {
        recalled.resources.retain(|identity, _| (self.kind)(identity).is_none());
        recalled
    }
}

/// A rule that can be broken, with what puts it right.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// It is an identity.
    Identity,
    /// What was sent can be read.
    Sent,
    /// What was received can be read.
    Received,
    /// Who owes is an identity.
    OwedBy,
    /// Nothing is owed, and nothing was begun, later than the newest stamp.
    Late(u64),
    /// Who is owed a refresh by a run in flight is an identity.
    Owes(String),
    /// What it comes after is an identity, and another one.
    After(String),
    /// What it comes after is sorted, each once.
    Sorted,
    /// Only of what is to be removed it is kept how.
    Removal,
    /// What is kept of whose a thing is says something.
    Silent,
}

/// One thing that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    identity: String,
    what: String,
    rule: Rule,
}

impl Violation {
    /// Whether only an operator may have it put right: a secret that nobody else has may be lost by it.
    pub(super) fn is_damage(&self) -> bool {
        self.rule == Rule::Sent
    }
}

/// In words that begin with the identity.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.identity, self.what)
    }
}

/// All that is not as it must be in what was told back, or shall be taken in.
#[must_use]
pub fn violations(recalled: &StoredState, readers: &RecordReaders) -> Vec<Violation> {
    of_kept(&Records::from(recalled.clone()), readers)
}

/// The same of all that is kept.
pub(super) fn of_kept(kept: &Records, readers: &RecordReaders) -> Vec<Violation> {
    let each = kept.records.iter();
    each.flat_map(|(identity, record)| judge(identity, record, kept.whole.stamp, readers)).collect()
}

/// What is wrong with one record: the one function that knows the rules.
pub(super) fn judge(
    identity: &str,
    record: &Record,
    newest: u64,
    readers: &RecordReaders,
) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut add = |rule: Rule, what: String| {
        found.push(Violation { identity: identity.to_owned(), what, rule });
    };
    if let Some(what) = (readers.identity)(identity) {
        add(Rule::Identity, what);
    }
    // What a newer program wrote of a kind of its own is its own affair.
    let known = (readers.kind)(identity).is_none();
    if known && let Some(what) = (readers.values)(record.sent.as_ref(), None) {
        add(Rule::Sent, what);
    }
    if known && let Some(what) = (readers.values)(None, record.taken.as_deref()) {
        add(Rule::Received, what);
    }
    if let Some((stamp, cause)) = &record.owed {
        if let Some(what) = (readers.identity)(cause) {
            add(Rule::OwedBy, format!("owed by {cause}: {what}"));
        }
        if *stamp > newest {
            let what = format!("owed at {stamp}, and the newest stamp is {newest}");
            add(Rule::Late(*stamp), what);
        }
    }
    if let Some(InFlight { stamp, owes, .. }) = record.flight.as_deref() {
        if *stamp > newest {
            let what = format!("begun at {stamp}, and the newest stamp is {newest}");
            add(Rule::Late(*stamp), what);
        }
        for name in owes {
            if let Some(what) = (readers.identity)(name) {
                add(Rule::Owes(name.clone()), format!("the run owes {name} a refresh: {what}"));
            }
        }
    }
    if let Some(owned) = record.owned.as_deref().filter(|_| known) {
        of_owned(identity, owned, &readers.identity, &mut add);
    }
    found
}

fn of_owned(identity: &str, owned: &Ownership, judge: &Judge, add: &mut impl FnMut(Rule, String)) {
    for name in &owned.after {
        if **name == *identity {
            add(Rule::After(name.to_string()), "ordered after itself".to_owned());
        } else if let Some(what) = judge(name) {
            add(Rule::After(name.to_string()), format!("ordered after {name}: {what}"));
        }
    }
    if !owned.after.is_sorted_by(|a, b| a < b) {
        add(Rule::Sorted, "the list of predecessors is not sorted".to_owned());
    }
    if owned.removal.is_some() && !owned.delete {
        let what = "removal data is stored, but the object is not to be removed";
        add(Rule::Removal, what.to_owned());
    }
    if !owned.says_something() {
        add(Rule::Silent, "the ownership record is empty".to_owned());
    }
}

/// Puts right what was found, and says of each what was done. Nothing that is owed, and nothing that protects, is lost by it, but with
/// what is no identity.
pub(super) fn repair(kept: &mut Records, found: &[Violation]) -> Vec<String> {
    found.iter().map(|one| format!("{one}; {}", put_right(kept, one))).collect()
}

fn put_right(kept: &mut Records, Violation { identity, rule, .. }: &Violation) -> &'static str {
    if let Rule::Late(stamp) = rule {
        kept.whole.stamp = kept.whole.stamp.max(*stamp);
        return "the newest stamp was raised";
    }
    if *rule == Rule::Identity {
        // What its run would owe to others is owed.
        if let Err(error) = settle(identity, kept) {
            tracing::debug!(%error, "in memory nothing is refused");
        }
        kept.records.remove(identity);
        return "left out";
    }
    let Some(record) = kept.records.get_mut(identity) else { return "already omitted" };
    let says = match rule {
        Rule::Identity | Rule::Late(_) => "",
        Rule::Sent => {
            record.sent = None;
            "forgotten: sent values are created again, including saved passwords"
        }
        Rule::Received => {
            record.taken = None;
            "forgotten: the value is received again"
        }
        Rule::OwedBy => {
            record.owed = record.owed.take().map(|(stamp, _)| (stamp, identity.clone()));
            "the refresh stays owed"
        }
        Rule::Owes(name) => {
            if let Some(flight) = &mut record.flight {
                flight.owes.retain(|owes| owes != name);
            }
            "omitted"
        }
        Rule::After(name) => {
            change(record, |owned| owned.after.retain(|after| **after != **name));
            "omitted"
        }
        Rule::Sorted => {
            change(record, |owned| {
                owned.after.sort_unstable();
                owned.after.dedup();
            });
            "sorted"
        }
        Rule::Removal => {
            change(record, |owned| owned.removal = None);
            "omitted"
        }
        Rule::Silent => {
            record.owned = None;
            "omitted"
        }
    };
    if *record == Record::default() {
        kept.records.remove(identity);
    }
    says
}

fn change(record: &mut Record, how: impl FnOnce(&mut Ownership)) {
    if let Some(owned) = &mut record.owned {
        how(Arc::make_mut(owned));
        if !owned.says_something() {
            record.owned = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RecordReaders, judge, repair};
    use crate::store::Ownership;
    use crate::store::replay::{Record, Records};
    use std::sync::Arc;

    /// B-19, B-21: what says nothing of whose a thing is, which no entry leaves behind, is found by the one function that judges at a load and
    /// after a write, and left out, with its record where nothing else stands in it.
    #[test]
    fn what_says_nothing_is_left_out() {
        let owned = Some(Arc::new(Ownership { graph: "g".into(), ..Ownership::default() }));
        for done in [None, Some(1)] {
            let record = Record { owned: owned.clone(), done, ..Record::default() };
            let found = judge("file[a]", &record, 0, &RecordReaders::default());
            let mut kept = Records::default();
            kept.records.insert("file[a]".to_owned(), record);
            let says = repair(&mut kept, &found);
            assert_eq!(says, ["file[a]: the ownership record is empty; omitted"]);
            let left =
                kept.records.get("file[a]").map(|record| (record.done, record.owned.is_none()));
            assert_eq!(left, done.map(|done| (Some(done), true)));
        }
    }
}
