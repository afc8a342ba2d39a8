//! The control socket: queries and commands for a running daemon.
//!
//! Each connection carries one request, a line of JSON; the reply is one line or a stream of lines. This folder must
//! not know the engine or the driver: a [`RequestHandler`] answers the requests. Reading order: `protocol` (requests
//! and replies), `framing` (lines), `address` (the path), `peer` (permissions), `server`, `client`.

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
