//! What an operator has had done, as events: the same whether a daemon does it or a command alone.

use super::event::{Happening, Level};
use crate::store::{Deed, Mend};

/// What was done to one resource, or to what is kept of it.
#[must_use]
pub fn done(deed: &Deed) -> Happening {
    let resource = Some(deed.resource.to_string());
    Happening { resource, ..Happening::new(deed.what, deed.says.clone(), Level::Info) }
}

/// What was done to the state as a whole; nothing where nothing was to be done.
#[must_use]
pub fn mended(what: Mend, lines: &[String]) -> Option<Happening> {
    let what = match what {
        Mend::Import => "imported",
        Mend::Repair => "repaired",
    };
    (!lines.is_empty()).then(|| Happening::new(what, lines.join("; "), Level::Info))
}
