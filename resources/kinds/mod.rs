//! One file for each kind.

pub mod exec;
pub mod file;
pub mod msg;
pub mod noop;
pub mod password;
pub mod pkg;
pub mod print;
pub mod svc;
pub mod test;
pub mod timer;
pub mod value;
