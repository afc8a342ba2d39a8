//! What the store is told of the texts that it keeps: which kinds there are, and what a driver can read.

use crate::config::{KindSet, parts};
use crate::driver::values::codec::{unreadable, with_secrets};
use crate::store::RecordReaders;
use std::sync::Arc;

/// What the store must know to judge what it keeps. Who is told hears an event in a word, and a line.
pub fn readers(told: impl Fn(&'static str, &str) + Send + Sync + 'static) -> RecordReaders {
    let kinds = KindSet::of_this_build();
    RecordReaders {
        identity: Arc::new(|name| {
            parts(name)
                .is_none()
                .then(|| "the name is not an identity: expected kind[name]".to_owned())
        }),
        kind: Arc::new(move |name| {
            let (kind, _) = parts(name).filter(|(kind, _)| !kinds.is_known(kind))?;
            Some(format!("unknown kind `{kind}`"))
        }),
        secrets: Arc::new(with_secrets),
        values: Arc::new(|sent, taken| unreadable(sent, taken).map(str::to_owned)),
        report: Arc::new(told),
    }
}
