//! Semaphores: ids with one count each.

use crate::config::problem::code::Code;
use crate::config::problem::location::Location;
use crate::config::problem::{Problem, quoted};
use std::collections::{HashMap, HashSet};
use steadfast_engine::SemaphoreId;

/// The id of the semaphore that `--sema` puts around every vertex.
pub const RESERVED: &str = "--sema";

/// All semaphores, numbered in the order of their first use.
#[derive(Debug, Default)]
pub(in crate::config) struct Semaphores {
    numbers: HashMap<String, SemaphoreId>,
    list: Vec<(String, u32, Option<Location>)>,
}

/// The reason why a semaphore is rejected.
pub(in crate::config) enum Refused {
    /// The text is invalid.
    Wrong(Problem),
    /// Another place gives the semaphore another count.
    Conflict(Problem, Option<Location>),
}

impl Semaphores {
    /// Adds the semaphore around every vertex.
    pub(in crate::config) fn reserve(&mut self, count: u32) -> SemaphoreId {
        self.add(RESERVED.to_owned(), count, None)
    }

    fn add(&mut self, id: String, count: u32, at: Option<Location>) -> SemaphoreId {
        let number = SemaphoreId(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
        self.numbers.insert(id.clone(), number);
        self.list.push((id, count, at));
        number
    }

    /// Returns the number of a semaphore written as `id:count`, `id` or `:count`. `own` are the semaphores that the
    /// resource has already, to which the number is added: W-11 rejects an id that appears twice.
    pub(in crate::config) fn take(
        &mut self,
        text: &str,
        at: Location,
        own: &mut HashSet<SemaphoreId>,
    ) -> Result<SemaphoreId, Refused> {
        let (id, count) = parse(text).map_err(Refused::Wrong)?;
        let Some(number) = self.numbers.get(id).copied() else {
            let number = self.add(id.to_owned(), count, Some(at));
            own.insert(number);
            return Ok(number);
        };
        match self.list.get(number.0 as usize) {
            Some((_, before, first)) if *before != count => {
                let id = quoted(id);
                let what =
                    format!("semaphore `{id}` has the count {count} here and {before} elsewhere");
                let problem = Problem::new(Code::Semaphore, what);
                let hint = "use one count, or two different ids";
                Err(Refused::Conflict(problem.hint(hint), *first))
            }
            _ if !own.insert(number) => {
                let what = format!("semaphore `{}` is listed twice on one resource", quoted(id));
                let problem = Problem::new(Code::Semaphore, what);
                Err(Refused::Wrong(
                    problem.hint("the resource would wait for itself; list the semaphore once"),
                ))
            }
            _ => Ok(number),
        }
    }

    /// Returns the ids and their counts, by number.
    pub(in crate::config) fn finish(self) -> Vec<(String, u32)> {
        self.list.into_iter().map(|(id, count, _)| (id, count)).collect()
    }
}

fn parse(text: &str) -> Result<(&str, u32), Problem> {
    let refuse = |what: String, hint: String| Err(Problem::new(Code::Semaphore, what).hint(hint));
    let shown = quoted(text);
    if text.is_empty() || text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        let what = format!("expected a semaphore as id:count, found `{shown}`");
        return refuse(what, format!("a semaphore needs an id: \"NAME:{shown}\""));
    }
    let (id, count) = match text.rsplit_once(':') {
        None => (text, Some(1)),
        Some((id, count)) => {
            let digits = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
            (id, if digits { count.parse::<u32>().ok().filter(|count| *count > 0) } else { None })
        }
    };
    if id == RESERVED {
        return refuse(format!("`{RESERVED}` is reserved"), "use another id".to_owned());
    }
    match count {
        Some(count) => Ok((id, count)),
        None => refuse(
            format!("semaphore `{shown}` should have a count from 1 to {}", u32::MAX),
            format!("write \"{}:1\"", quoted(id)),
        ),
    }
}
