//! The control socket: queries and commands for a running daemon.
//!
//! Each connection carries one request, a line of JSON; the reply is one line or a stream of lines. This folder must
//! not know the engine or the driver: a [`RequestHandler`] answers the requests. `api` defines requests and replies.
//! Reading order: `requests` (permissions, and the command of a request), `framing` (lines), `address` (the path),
//! `server`, `side_socket`, `client`.

mod address;
mod client;
mod framing;
mod requests;
mod server;
mod side_socket;

pub use address::{Address, BindError};
pub use client::{Client, Unanswered};
pub use server::{AcceptFailing, Limits, RequestHandler, Server};
pub use side_socket::SideSocket;
