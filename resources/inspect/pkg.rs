//! Inspection of packages.

use super::{Field, Inspected, Inspector, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Value;
use crate::host::Host;
use crate::host::packages::State;

pub(super) const INSPECTOR: Inspector = Inspector { kind: "pkg", one, all: Some(all) };

fn one<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let packages = host.packages().await?;
        let Some(package) = packages.get(name) else { return Ok(None) };
        if package.state != State::Installed {
            return Ok(None);
        }
        let mut fields = vec![text("state", "installed")];
        if package.held {
            fields.push(("hold", Field::Shown(Value::Bool(true))));
        }
        Ok(Some(Inspected::new(name.to_owned(), fields)))
    })
}

fn all(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let never = tokio_util::sync::CancellationToken::new();
        // The packages that were not installed as dependencies.
        let marked = crate::parts::commands::query_text(host, &never, &["apt-mark", "showmanual"]);
        Ok(marked.await?.lines().map(ToOwned::to_owned).collect())
    })
}
