//! Commands as the host runs them: argument vectors, surroundings, ends. Run as root; what must hold without root runs again
//! as nobody.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ends;
mod lines;
mod other_user;
mod output;
mod speed;
mod support;
mod surroundings;
