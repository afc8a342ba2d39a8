//! `noop`: a resource that is always converged, for attaching edges.

use crate::change::CheckResult;
use crate::check_request::{Answer, CheckRequest};
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::host::Host;
use crate::kind::KindSpec;
use crate::resource::{Resource, Traits};
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "noop",
    collectible: true,
    doc: "Does nothing and is always converged; serves as an anchor for edges.",
    fields: &[],
    sends: &[],
    example: "noop:\n  - name: base\n",
    restore: None,
    build,
};

#[derive(Debug)]
struct Noop;

#[expect(clippy::unnecessary_wraps, reason = "the signature of every kind")]
fn build(_name: &str, _fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    Ok(Arc::new(Noop))
}

impl Resource for Noop {
    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn check<'a>(&'a self, _host: &'a Host, _ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async { CheckResult::Same })
    }
}
