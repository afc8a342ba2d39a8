//! Inspection of jobs of cron that steadfast wrote: a file of their own, or a marked line in a file with other jobs.

use super::contained::{file_names, is_converged};
use super::{ContainerInspector, Field, Inspected, text};
use crate::failure::Failure;
use crate::host::Host;
use crate::kind::Value;
use crate::parts::text_edit::text_of;
use crate::resource::Answer;
use std::path::Path;

pub(super) const INSPECTOR: ContainerInspector =
    ContainerInspector { kind: "cron", container: "file", read: jobs, all: Some(all_files) };

const FOLDER: &str = "/etc/cron.d";
const HEADER: &str = "# Managed by steadfast: cron[";
const MARKER: &str = "# steadfast: ";

fn jobs<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Vec<Inspected>>, Failure>> {
    Box::pin(async move {
        let path = Path::new(FOLDER).join(name);
        let Some(file) = text_of(host.files(), &path)? else { return Ok(None) };
        let mut proven = Vec::new();
        for object in own_file(name, &file).into_iter().chain(marked(name, &file)) {
            if is_converged(host, "cron", &object).await {
                proven.push(object);
            }
        }
        if proven.is_empty() && !file.trim().is_empty() {
            let what = format!("{} contains no job of steadfast", path.display());
            return Err(Failure::new(what).hint("`steadfast inspect file` prints the whole file"));
        }
        Ok(Some(proven))
    })
}

fn all_files(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let mut own = Vec::new();
        for name in file_names(host, FOLDER, "").await? {
            let file = text_of(host.files(), &Path::new(FOLDER).join(&name))?.unwrap_or_default();
            if file.lines().any(|line| line.starts_with(HEADER) || line.starts_with(MARKER)) {
                own.push(name);
            }
        }
        Ok(own)
    })
}

/// Reads a file of one job.
fn own_file(name: &str, file: &str) -> Option<Inspected> {
    let mut lines: Vec<&str> = file.lines().collect();
    let header = format!("{HEADER}{name}]");
    let job = lines.pop()?;
    let (first, variables) = lines.split_first()?;
    if *first != header {
        return None;
    }
    let mut fields = job_fields(job)?;
    let variable = |line: &&str| {
        let (name, value) = line.split_once('=')?;
        Some((name.to_owned(), unquoted(value).to_owned()))
    };
    let variables = variables.iter().map(variable).collect::<Option<Vec<_>>>()?;
    if !variables.is_empty() {
        fields.push(("env", Field::Shown(Value::TextMap(variables))));
    }
    Some(Inspected { name: name.to_owned(), fields })
}

/// Reads the marked jobs of a file.
fn marked(file_name: &str, file: &str) -> Vec<Inspected> {
    let lines: Vec<&str> = file.lines().collect();
    let job = |pair: &[&str]| {
        let (marker, job) = (pair.first()?, pair.get(1)?);
        let mut fields = job_fields(job)?;
        fields.push(text("file", file_name));
        Some(Inspected { name: marker.trim_end().strip_prefix(MARKER)?.to_owned(), fields })
    };
    lines.windows(2).filter_map(job).collect()
}

/// Returns the fields of the line of a job; the stars of a schedule are the default.
fn job_fields(line: &str) -> Option<Vec<(&'static str, Field)>> {
    let mut rest = line;
    let mut word = || {
        let (first, others) = rest.split_once(' ')?;
        rest = others;
        Some(first)
    };
    let mut fields = Vec::new();
    if line.starts_with('@') {
        fields.push(text("special", word()?));
    } else {
        for field in ["minute", "hour", "day", "month", "weekday"] {
            let value = word()?;
            if value != "*" {
                fields.push(text(field, value));
            }
        }
    }
    let user = word()?;
    if user != "root" {
        fields.push(text("user", user));
    }
    fields.push(text("job", rest));
    Some(fields)
}

/// Removes the quotes that cron removes.
fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}
