//! `svc` and the door to systemd, over a systemd that only this process knows: what it is asked, and what becomes of that.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ends;
mod fake;
mod fields;
mod plans;
mod reach;
