//! Faults put into threads on request, to see that their end is noticed (F-19): only in a program that was built with debug assertions.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Panic,
    Error,
    /// It does nothing any more, and does not end when it is asked to.
    Hang,
}

impl Fault {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "panic" => Some(Self::Panic),
            "error" => Some(Self::Error),
            "hang" => Some(Self::Hang),
            _ => None,
        }
    }
}

/// Those that have not come to pass.
static WAITING: Mutex<Option<HashMap<String, Fault>>> = Mutex::new(None);

/// Puts a fault where [`suffer`] is called with this name.
pub(crate) fn put(place: &str, fault: Fault) {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.get_or_insert_default().insert(place.to_owned(), fault);
}

/// The fault that was put here, if any: once.
pub(crate) fn take(place: &str) -> Option<Fault> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner).as_mut()?.remove(place)
}

/// Suffers the fault that was put here, if any: once.
pub(crate) fn suffer(place: &str) -> io::Result<()> {
    match take(place) {
        None => Ok(()),
        Some(Fault::Panic) => std::panic::panic_any("a fault was put into it"),
        Some(Fault::Error) => Err(io::Error::other("a fault was put into it")),
        Some(Fault::Hang) => loop {
            std::thread::park();
        },
    }
}

/// Never ends where a fault was put here.
pub(crate) async fn stall(place: &str) {
    if take(place).is_some() {
        std::future::pending::<()>().await;
    }
}
