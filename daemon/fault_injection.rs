//! Fault injection into threads on request (F-19); it exists only in programs built with the feature
//! `fault-injection`.
//!
//! The tests use it to check that the end of a thread or a hang is noticed.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};

/// A fault that a test can inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Panic,
    Error,
    /// The thread stops working and ignores requests to end.
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

/// The injected faults that have not taken effect yet, by place.
static WAITING: Mutex<Option<HashMap<String, Fault>>> = Mutex::new(None);

/// Injects a fault at the place that calls [`suffer`] with this name.
pub(crate) fn put(place: &str, fault: Fault) {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.get_or_insert_default().insert(place.to_owned(), fault);
}

/// Removes and returns the fault injected at a place, if there is one.
pub(crate) fn take(place: &str) -> Option<Fault> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner).as_mut()?.remove(place)
}

/// Carries out the fault injected at a place, once; does nothing if there is none.
pub(crate) fn inject_fault(place: &str) -> io::Result<()> {
    match take(place) {
        None => Ok(()),
        Some(Fault::Panic) => std::panic::panic_any("a fault was put into it"),
        Some(Fault::Error) => Err(io::Error::other("a fault was put into it")),
        Some(Fault::Hang) => loop {
            std::thread::park();
        },
    }
}

/// Never returns if a fault is injected at this place.
pub(crate) async fn stall(place: &str) {
    if take(place).is_some() {
        std::future::pending::<()>().await;
    }
}
