//! What must hold of all that is kept, beyond what each row's checksum says (B-19).
//!
//! Two things that B-19 names are no damage here: what a thing came after may be gone, and the orders of several graphs may contradict
//! each other; both are sorted out where they are used.

use super::{Owned, Recalled, Remembered};

/// What others know of the texts that are kept.
pub struct Readers<'a> {
    /// What is wrong with an identity.
    pub identity: &'a dyn Fn(&str) -> Option<String>,
    /// What is wrong with what was sent and received.
    pub values: &'a dyn Fn(&Remembered) -> Option<String>,
}

impl std::fmt::Debug for Readers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers").finish_non_exhaustive()
    }
}

/// All that is not as it must be, each in words that begin with the identity.
#[must_use]
pub fn violations(recalled: &Recalled, readers: &Readers<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (identity, kept) in &recalled.resources {
        let own = (readers.identity)(identity).into_iter().chain((readers.values)(kept));
        let named = kept.owed.iter().map(|(_, cause)| ("owed by", cause.as_str()));
        let after = kept.owned.iter().flat_map(|owned| &owned.after);
        let named = named.chain(after.map(|name| ("comes after", name.as_ref())));
        let named = named.filter_map(|(what, name)| {
            Some(format!("{what} {name}: {}", (readers.identity)(name)?))
        });
        let stamp = kept.owed.as_ref().map(|(stamp, _)| *stamp);
        let late = stamp
            .filter(|stamp| *stamp > recalled.stamp)
            .map(|stamp| format!("owed at {stamp}, and the newest stamp is {}", recalled.stamp));
        let owned = kept.owned.as_deref().into_iter().flat_map(of_owned);
        let all = own.chain(named).chain(late).chain(owned);
        found.extend(all.map(|what| format!("{identity}: {what}")));
    }
    found
}

fn of_owned(owned: &Owned) -> Vec<String> {
    let mut found = Vec::new();
    if owned.removal.is_some() && !owned.delete {
        found.push("how it is removed is kept, and it is not to be removed".to_owned());
    }
    if !owned.says_something() {
        found.push("whose it is says nothing".to_owned());
    }
    found
}
