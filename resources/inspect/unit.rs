//! Inspection of the unit files that the administrator of the host wrote.

use super::{Inspected, Inspector, text};
use crate::failure::Failure;
use crate::host::Host;
use crate::parts::text_edit::text_of;
use crate::resource::Answer;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

pub(super) const INSPECTOR: Inspector = Inspector { kind: "unit", one, all: Some(all) };

/// The folder of the kind `unit`.
const FOLDER: &str = "/etc/systemd/system";

fn path_of(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Returns true if there is a regular file of that name: a link belongs to `svc`, or to another unit.
fn is_file(host: &Host, name: &str) -> Result<bool, Failure> {
    let path = path_of(name);
    let look = || host.files().open_entry(&path)?.map(|spot| spot.look()).transpose();
    let seen = look().map_err(|fault| host.files().trouble(fault, &path))?;
    Ok(seen.flatten().is_some_and(|seen| seen.kind == FileType::RegularFile))
}

fn one<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let unit = crate::kinds::svc::unit_name(name)?;
        if !is_file(host, &unit)? {
            return Ok(None);
        }
        let content = text_of(host.files(), &path_of(&unit))?.unwrap_or_default();
        Ok(Some(Inspected { name: unit, fields: vec![text("content", content)] }))
    })
}

fn all(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let never = tokio_util::sync::CancellationToken::new();
        let words = ["find", FOLDER, "-maxdepth", "1", "-type", "f", "-name", "*.*"];
        let found = crate::parts::commands::query_text(host, &never, &words).await?;
        let names = found.lines().filter_map(|path| path.rsplit('/').next());
        let mut names: Vec<String> =
            names.filter(|name| !name.starts_with('.')).map(ToOwned::to_owned).collect();
        names.sort();
        Ok(names)
    })
}
