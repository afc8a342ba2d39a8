//! What the store is told of the texts that it keeps: which kinds there are, and what a driver can read.

use crate::config::{Kinds, parts};
use crate::driver::kept::unreadable;
use crate::store::Readers;
use std::sync::Arc;

/// What the store must know to judge what it keeps. Who is told hears an event in a word, and a line.
pub fn readers(told: impl Fn(&'static str, &str) + Send + Sync + 'static) -> Readers {
    let kinds = Kinds::of_this_build();
    Readers {
        identity: Arc::new(move |name| match parts(name) {
            None => Some("it is no identity: expected kind[name]".to_owned()),
            Some((kind, _)) if kinds.is_known(kind) => None,
            Some((kind, _)) => Some(format!("this steadfast knows no kind `{kind}`")),
        }),
        values: Arc::new(|sent, taken| unreadable(sent, taken).map(str::to_owned)),
        told: Arc::new(told),
    }
}
