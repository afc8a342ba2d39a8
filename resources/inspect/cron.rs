//! Inspection of jobs of cron: a file of one job, or the lines of a file with several.

use super::contained::{file_names, nearest, public_text};
use super::{ContainerInspector, Field, Inspected, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Value;
use crate::host::Host;
use crate::parts::field_reader::bounded;
use crate::parts::text_edit::text_of;
use std::path::Path;

pub(super) const INSPECTOR: ContainerInspector =
    ContainerInspector { kind: "cron", container: "file", read: jobs, all: Some(all_files) };

const FOLDER: &str = "/etc/cron.d";
const MARKER: &str = "# steadfast: ";

fn jobs<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Vec<Inspected>>, Failure>> {
    Box::pin(async move {
        let path = Path::new(FOLDER).join(name);
        let Some(file) = public_text(host, &path)? else { return Ok(None) };
        let all = if let Some(own) = own_file(name, &file) {
            vec![own]
        } else {
            refuse_variables(&path, &file)?;
            marked(name, &file)
        };
        if all.is_empty() {
            let what = bounded(format!("{} contains no job", path.display()));
            return Err(Failure::new(what).hint("`steadfast inspect file` prints the whole file"));
        }
        nearest(host, ("cron", &path), all).await.map(Some)
    })
}

/// Lists the files with jobs. cron ignores files whose names have other characters.
fn all_files(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let mut found = Vec::new();
        for name in file_names(host, FOLDER, "").await? {
            let file = text_of(host.files(), &Path::new(FOLDER).join(&name))?.unwrap_or_default();
            if name.bytes().all(is_plain) && file.lines().any(|line| job_fields(line).is_some()) {
                found.push(name);
            }
        }
        Ok(found)
    })
}

/// Fails for a file of several jobs with variables: a job in a shared file has no field for them.
fn refuse_variables(path: &Path, file: &str) -> Result<(), Failure> {
    let is_comment = |line: &str| line.trim_start().starts_with('#');
    let lines = file.lines().filter(|line| !is_comment(line) && job_fields(line).is_none());
    let names: Vec<String> = lines.filter_map(variable).map(|(name, _)| name).collect();
    if names.is_empty() {
        return Ok(());
    }
    let path = path.display();
    let what = format!("a job in `file` has no variables, and {path} sets {}", names.join(", "));
    let hint = format!("`steadfast inspect file {path}` prints the whole file");
    Err(Failure::new(bounded(what)).hint(hint))
}

/// Returns the name and the value of a line that sets a variable.
fn variable(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let name = unquoted(name.trim());
    let is_word = !name.is_empty() && !name.contains(char::is_whitespace);
    is_word.then(|| (name.to_owned(), unquoted(value.trim()).to_owned()))
}

/// Reads a file of one job without a marker: variables, and the job at the end.
fn own_file(name: &str, file: &str) -> Option<Inspected> {
    let is_plain = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut lines: Vec<&str> = file.lines().filter(is_plain).collect();
    let mut fields = job_fields(lines.pop()?)?;
    let variables = lines.iter().map(|line| variable(line)).collect::<Option<Vec<_>>>()?;
    if file.lines().any(|line| line.starts_with(MARKER)) {
        return None;
    }
    if !variables.is_empty() {
        fields.push(("env", Field::Shown(Value::TextMap(variables))));
    }
    Some(Inspected::new(name, fields))
}

/// Reads the jobs of a file with several. The marker before a job contains its name; the others are numbered.
fn marked(file_name: &str, file: &str) -> Vec<Inspected> {
    let (mut jobs, mut marker, mut count) = (Vec::new(), None, 0);
    for line in file.lines() {
        let before = marker.take();
        if let Some(name) = line.trim_end().strip_prefix(MARKER) {
            marker = Some(name.to_owned());
        } else if let Some(mut fields) = job_fields(line) {
            fields.push(text("file", file_name));
            let name = before.unwrap_or_else(|| {
                count += 1;
                format!("{file_name} {count}")
            });
            jobs.push(Inspected::new(name, fields));
        }
    }
    jobs
}

/// Returns the fields of the line of a job; the stars of a schedule are the default.
fn job_fields(line: &str) -> Option<Vec<(&'static str, Field)>> {
    let line = line.trim();
    let mut rest = line;
    let mut word = || {
        let (first, others) = rest.split_once(char::is_whitespace)?;
        rest = others.trim_start();
        Some(first)
    };
    let is_time = |first: char| first.is_ascii_digit() || matches!(first, '*' | '@' | '-');
    if !line.starts_with(is_time) {
        return None;
    }
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
    (!rest.is_empty()).then_some(fields)
}

/// Removes the quotes that cron removes.
fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::{Inspected, marked, own_file};

    fn named(jobs: &[Inspected]) -> Vec<&str> {
        jobs.iter().map(|job| job.name.as_str()).collect()
    }

    #[test]
    fn foreign_jobs_are_read() {
        let one = "# why\nPATH = /bin\n\n30  3 * * 0\troot test -e /run || true  x\n";
        let job = own_file("one", one).unwrap();
        let fields: Vec<&str> = job.fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(fields, ["minute", "hour", "weekday", "job", "env"]);
        assert!(format!("{job:?}").contains("test -e /run || true  x"), "{job:?}");
        let several =
            "A=1\n* * * * * root a\n# steadfast: b\n@daily eve b\n# c\n1 * * * * root d\n";
        assert!(own_file("x", several).is_none());
        assert_eq!(named(&marked("x", several)), ["x 1", "b", "x 2"]);
        assert_eq!(named(&marked("x", "A=* b\n#* * * * * root a\n* * *\n")), [""; 0]);
    }
}
