//! Integrity rules of the stored state beyond the checksums of rows (B-19), and the repair of violations (B-21).
//!
//! One function judges a record: at every load, after every write of a record, and for the operator. Two conditions of
//! B-19 are not violations here: an object that `after` names may be gone, and the orders of several graphs may
//! contradict each other. Both are resolved by the code that uses the order.

use super::replay::{InFlight, Record, Records, settle};
use super::{OpaqueText, Ownership, StoredState};
use std::fmt;
use std::sync::Arc;

/// The event of a record that was repaired at a load.
pub const REPAIRED: &str = "state_repaired";

/// The event of a written record that violates a rule.
pub const UNSOUND: &str = "state_unsound";

/// The event of stored records of an unknown kind, which are left alone.
pub const LEFT_ALONE: &str = "state_left_alone";

/// Returns the problem of a name, if there is one.
type Judge = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Reports an event name with a line of text.
type Tell = Arc<dyn Fn(&'static str, &str) + Send + Sync>;

/// Returns the problem of sent and received values, if there is one.
type JudgeValues = Arc<dyn Fn(Option<&OpaqueText>, Option<&str>) -> Option<String> + Send + Sync>;

/// Merges sent values with the stored secrets of earlier ones that have the same hashes.
type Join = Arc<dyn Fn(&OpaqueText, &OpaqueText) -> Option<OpaqueText> + Send + Sync>;

/// Functions that validate the stored texts, and report violations.
#[derive(Clone)]
pub struct RecordReaders {
    /// Returns the problem of an identity.
    pub identity: Judge,
    /// Returns the reason for which the kind of an identity is unknown. Records of such an identity stay, and are not
    /// loaded.
    pub kind: Judge,
    /// Adds the stored secrets to sent values that were exported without them.
    pub secrets: Join,
    /// Returns the problem of sent and received values.
    pub values: JudgeValues,
    /// Reports repairs at a load ([`REPAIRED`]) and violations after a write ([`UNSOUND`]).
    pub report: Tell,
}

impl fmt::Debug for RecordReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").finish_non_exhaustive()
    }
}

/// Accepts every text and reports nothing.
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
    /// Returns the loaded state without records of unknown kinds: nobody can act on these, and they must not be lost.
    #[must_use]
    pub fn only_known(&self, mut recalled: StoredState) -> StoredState {
        recalled.resources.retain(|identity, _| (self.kind)(identity).is_none());
        recalled
    }
}

/// A rule that a record can violate, with the data for its repair.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// The identity is valid.
    Identity,
    /// The sent values can be read.
    Sent,
    /// The received values can be read.
    Received,
    /// The cause of an owed refresh is a valid identity.
    OwedBy,
    /// No stamp is later than the newest stamp; the value is the violating stamp.
    Late(u64),
    /// Each resource owed a refresh by a run in flight is a valid identity.
    Owes(String),
    /// Each entry of `after` is a valid identity, and another one.
    After(String),
    /// The entries of `after` are sorted, each once.
    Sorted,
    /// Removal data is stored only for resources that are to be deleted.
    Removal,
    /// An ownership record is not empty.
    Silent,
}

/// One violation of an integrity rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    identity: String,
    what: String,
    rule: Rule,
}

impl Violation {
    /// Returns true if only an operator may repair the violation: the repair may lose a secret that is stored nowhere
    /// else.
    pub(super) fn is_damage(&self) -> bool {
        self.rule == Rule::Sent
    }
}

/// The text begins with the identity.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.identity, self.what)
    }
}

/// Returns all violations in a loaded state, or in one to be imported.
#[must_use]
pub fn violations(recalled: &StoredState, readers: &RecordReaders) -> Vec<Violation> {
    of_kept(&Records::from(recalled.clone()), readers)
}

/// Returns all violations in the stored records.
pub(super) fn of_kept(kept: &Records, readers: &RecordReaders) -> Vec<Violation> {
    let each = kept.records.iter();
    each.flat_map(|(identity, record)| judge(identity, record, kept.whole.stamp, readers)).collect()
}

/// Returns the violations of one record. This function contains all rules.
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
    // Values of an unknown kind were written by a newer program and are not judged.
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
    if !owned.is_recorded() {
        add(Rule::Silent, "the ownership record is empty".to_owned());
    }
}

/// Repairs violations and returns a line for each. Owed refreshes and protections are never lost, except those of an
/// invalid identity.
pub(super) fn repair(kept: &mut Records, found: &[Violation]) -> Vec<String> {
    found.iter().map(|one| format!("{one}; {}", put_right(kept, one))).collect()
}

fn put_right(kept: &mut Records, Violation { identity, rule, .. }: &Violation) -> &'static str {
    if let Rule::Late(stamp) = rule {
        kept.whole.stamp = kept.whole.stamp.max(*stamp);
        return "the newest stamp was raised";
    }
    if *rule == Rule::Identity {
        // Refreshes that its run would owe to others are owed.
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
        if !owned.is_recorded() {
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

    /// B-19, B-21: an empty ownership record, which no entry produces, is found by the judge at a load and after a
    /// write. It is removed, with the whole record if that is empty, too.
    #[test]
    fn empty_ownership_records_are_left_out() {
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
