//! What an operator has had done, as events: the same whether a daemon does it or a command alone.

use super::event::{Happening, Level};
use crate::store::{Mend, Order};

/// What was put back.
#[must_use]
pub fn undone(resource: &str, lines: &[String]) -> Happening {
    of(resource, "undone", lines.join("; "))
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

/// What was done to what is kept of these, by the lines that answer it.
#[must_use]
pub fn ordered(order: Order, resources: &[String], lines: &[String]) -> Vec<Happening> {
    let done = lines.iter().filter_map(|line| {
        let named = resources.iter().filter_map(|name| {
            line.strip_prefix(name.as_str())?.strip_prefix(' ').map(|says| (name, says))
        });
        // One name may begin as another does.
        let (name, says) = named.max_by_key(|(name, _)| name.len())?;
        (!Order::NOTHING_DONE.contains(&says)).then(|| of(name, event(order), says.to_owned()))
    });
    done.collect()
}

const fn event(order: Order) -> &'static str {
    match order {
        Order::Protect => "protected",
        Order::Unprotect => "unprotected",
        Order::Forget => "forgotten",
        Order::Redo => "redo",
    }
}

fn of(resource: &str, what: &'static str, says: String) -> Happening {
    Happening { resource: Some(resource.to_owned()), ..Happening::new(what, says, Level::Info) }
}

#[cfg(test)]
mod tests {
    use super::ordered;
    use crate::store::Order;

    #[test]
    fn only_what_was_done_is_told() {
        let names = ["file[a]", "file[a] b]", "file[c]"].map(str::to_owned);
        let lines =
            ["file[a] b] is forgotten", "file[a] is forgotten", "file[c] was not protected"];
        let told = ordered(Order::Forget, &names, &lines.map(str::to_owned));
        let told: Vec<_> = told.iter().map(|one| (one.what, one.resource.as_deref())).collect();
        assert_eq!(told, [("forgotten", Some("file[a] b]")), ("forgotten", Some("file[a]"))]);
    }
}
