//! `hostname`: the name of the host: `/etc/hostname`, the name that the kernel knows now, and the pretty name.

use crate::check_request::Answer;
use crate::claim::Claim;
use crate::dependency::HostObject;
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::kind::{KindSpec, Restoring};
use crate::parts::FieldReader;
use crate::parts::Sequence;
use crate::parts::TextEdit;
use crate::parts::assignment::Assignment;
use crate::parts::commands::{command, run_change};
use crate::parts::field_reader::bounded;
use crate::parts::whole_file::{Shape, managed_file};
use crate::parts::{Managed, ValueSet, WriteFailure};
use crate::permit::Permit;
use crate::prior_state::{FieldValues, FormerValue};
use crate::resource::{Resource, Traits};
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use crate::watch_source::WatchSource;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The file of the kernel with the present name.
const KERNEL: &str = "/proc/sys/kernel/hostname";

/// The longest name that Linux accepts, in bytes.
const LONGEST: usize = 64;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "hostname",
    collectible: false,
    doc: "Manages the name of the host. The name of the resource is the name, unless `hostname` is given. The name stays when the resource leaves the graph.",
    fields: &[
        FieldSpec::new(
            "hostname",
            FieldType::Text,
            "Name for /etc/hostname and the kernel; default: the name of the resource.",
        )
        .mode(FieldMode::Value)
        .example("web1")
        .receives(Receives::Shown),
        FieldSpec::new(
            "static_hostname",
            FieldType::Text,
            "Name in /etc/hostname, used from the next boot on; default: `hostname`.",
        )
        .mode(FieldMode::Value)
        .example("web1")
        .receives(Receives::Shown),
        FieldSpec::new(
            "transient_hostname",
            FieldType::Text,
            "Present name of the kernel; default: `hostname`.",
        )
        .mode(FieldMode::Value)
        .example("web1")
        .receives(Receives::Shown),
        FieldSpec::new(
            "pretty_hostname",
            FieldType::Text,
            "Name for people, PRETTY_HOSTNAME in /etc/machine-info; default: not managed.",
        )
        .mode(FieldMode::Value)
        .example("First web server")
        .receives(Receives::Shown),
    ],
    sends: &[
        SendSpec::new("hostname", FieldType::Text, "The present name of the kernel."),
        SendSpec::new("static_hostname", FieldType::Text, "The declared name in /etc/hostname."),
        SendSpec::new("pretty_hostname", FieldType::Text, "The declared name for people."),
    ],
    example: "hostname:\n  - name: web1\n    pretty_hostname: First web server\n",
    restore: Some(restore),
    build,
};

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let mut host_name = |field: &'static str, default: &str| {
        let text = reader.text(field).unwrap_or_else(|| default.to_owned());
        if let Some(problem) = name_problem(&text) {
            reader.reject(
                Invalid::field(field, problem).hint("for example web1 or web1.example.org"),
            );
        }
        text
    };
    let both = host_name("hostname", name);
    let stored = host_name("static_hostname", &both);
    let present = host_name("transient_hostname", &both);
    let pretty = reader.text("pretty_hostname");
    let line = format!("{stored}\n");
    let file = managed_file(Path::new("/etc/hostname"), Shape::ContentAlone(&line), &[]);
    let file = match file {
        Ok(file) => Some(file),
        Err(problems) => {
            for problem in problems {
                reader.reject(problem);
            }
            None
        }
    };
    reader.finish(()).map(|()| {
        let mut elements: Vec<Arc<dyn Resource>> = file.into_iter().collect();
        elements.push(Arc::new(Managed::new(KernelName(present))));
        elements.extend(pretty.clone().map(pretty_name));
        let sequence = Sequence::new(elements).sending("static_hostname", stored);
        Arc::new(match pretty {
            Some(pretty) => sequence.sending("pretty_hostname", pretty),
            None => sequence,
        }) as Arc<dyn Resource>
    })
}

fn pretty_name(pretty: String) -> Arc<dyn Resource> {
    let value = (!pretty.is_empty()).then_some(pretty);
    let editor = Arc::new(Assignment { key: "PRETTY_HOSTNAME".to_owned(), value });
    let path = PathBuf::from("/etc/machine-info");
    let edit = TextEdit::new(path, "PRETTY_HOSTNAME".to_owned(), editor);
    Arc::new(TextEdit { create: Some(0o644), ..edit })
}

/// Returns the reason if the text is no host name (RFC 1123, at most 64 bytes).
fn name_problem(name: &str) -> Option<String> {
    if name.len() > LONGEST {
        return Some(bounded(format!("expected at most {LONGEST} bytes, found {}", name.len())));
    }
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_name = name.split('.').all(is_label);
    (!is_name)
        .then(|| "expected labels of letters, digits and hyphens, separated by dots".to_owned())
}

/// Builds the resource that gives the kernel its former name; the files have records of their own.
fn restore(_name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    let former = values.iter().find(|value| value.field == "hostname");
    match former.and_then(|value| value.before.clone()) {
        Some(name) if name_problem(&name).is_none() => {
            let by_hand = format!("hostname {name}");
            Ok(Restoring { resource: Arc::new(Managed::new(KernelName(name))), by_hand })
        }
        _ => Err(Failure::new("the host had no valid name before")),
    }
}

/// The present name of the host.
#[derive(Debug)]
struct KernelName(String);

impl ValueSet for KernelName {
    fn wanted(&self) -> FieldValues {
        vec![("hostname", Some(self.0.clone()))]
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        _cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        Box::pin(async move {
            let name = host.kernel_text(Path::new(KERNEL)).await?;
            Ok(vec![("hostname", Some(name.trim_end().to_owned()))])
        })
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(async move {
            run_change(host, permit, &command(&["hostname", &self.0])).await.map(drop)
        })
    }

    fn footprint(&self) -> Footprint {
        let own = HostObject::Other("hostname", "the name of the host".to_owned());
        Footprint {
            claims: vec![Claim::exclusive(own).creating(false)],
            watch: vec![
                WatchSource::Path { path: PathBuf::from(KERNEL), below: false },
                WatchSource::Polled(PathBuf::from(KERNEL)),
            ],
            ..Footprint::default()
        }
    }

    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn sent(&self, found: &FieldValues) -> Sent {
        let name = found.first().and_then(|(_, name)| name.clone()).map(Value::Text);
        name.map(|name| ("hostname", SentValue::Shown(name))).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::name_problem;

    #[test]
    fn only_names_of_the_internet_are_accepted() {
        for good in ["web1", "a", "web-1.example.org", "1st", &"x".repeat(64)] {
            assert_eq!(name_problem(good), None, "{good}");
        }
        for bad in ["", ".", "a..b", "-a", "a-", "a_b", "grün", "a b", "web.", &"x".repeat(65)] {
            assert!(name_problem(bad).is_some(), "{bad}");
        }
    }
}
