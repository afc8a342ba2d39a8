//! steadfast: holds a Linux host to a YAML graph of resources.

pub mod driver;
pub mod signals;
pub mod store;
