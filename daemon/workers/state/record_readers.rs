//! The record readers: functions by which the store checks the texts of its records.

use crate::config::KindSet;
use crate::driver::values::codec::{unreadable, with_secrets};
use crate::store::RecordReaders;
use std::sync::Arc;
use steadfast_resources::ResourceId;

/// Returns the functions that check records. `told` receives an event type and a line for each repaired record.
pub fn readers(
    kinds: KindSet,
    told: impl Fn(&'static str, &str) + Send + Sync + 'static,
) -> RecordReaders {
    RecordReaders {
        identity: Arc::new(|name| {
            ResourceId::parse(name)
                .is_none()
                .then(|| "the name is not an identity: expected kind[name]".to_owned())
        }),
        kind: Arc::new(move |name| {
            let id = ResourceId::parse(name).filter(|id| !kinds.is_known(id.kind))?;
            Some(format!("unknown kind `{}`", id.kind))
        }),
        secrets: Arc::new(with_secrets),
        values: Arc::new(|sent, taken| unreadable(sent, taken).map(str::to_owned)),
        report: Arc::new(told),
    }
}
