//! The socket by which a running daemon is asked and told.
//!
//! One request for each connection: a line of JSON; then the answer, a line or a stream of lines. It knows neither engine nor
//! driver: what is asked goes to a [`RequestHandler`]. In reading order: `protocol` (the words), `line` (how they travel), `address` (where),
//! `rights` (who may), `server`, `client`.

mod address;
mod client;
mod framing;
mod peer;
mod protocol;
mod server;

pub use address::{Address, BindError};
pub use client::{Client, Unanswered};
pub use peer::Peer;
pub use protocol::{PROTOCOL, Reply, Request};
pub use server::{Deaf, Limits, Replies, RequestHandler, Server};
