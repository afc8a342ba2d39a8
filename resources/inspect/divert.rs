//! Inspection of diversions of dpkg.

use super::{Inspected, Inspector, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::host::Host;
use crate::kinds::divert::{diverted_files, find_diversion};
use std::path::Path;

pub(super) const INSPECTOR: Inspector =
    Inspector { kind: "divert", one: one_diversion, all: Some(all_diversions) };

fn all_diversions(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move { diverted_files(host) })
}

fn one_diversion<'a>(
    host: &'a Host,
    name: &'a str,
) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let Some(found) = find_diversion(host, Path::new(name))? else { return Ok(None) };
        let mut fields = Vec::new();
        let to = found.to.display().to_string();
        if to != format!("{name}.distrib") {
            fields.push(text("to", to));
        }
        fields.extend(found.package.map(|package| text("package", package)));
        Ok(Some(Inspected::new(name.to_owned(), fields)))
    })
}
