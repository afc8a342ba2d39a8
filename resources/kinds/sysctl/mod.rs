//! `sysctl`: a parameter of the kernel, now and after the next boot.
//!
//! The value in /proc/sys is written in place with one write and verified afterwards; the line in /etc/sysctl.d is
//! edited and every other line stays. A refresh has no meaning. A removal removes the line and leaves the present
//! value, because nobody knows the value that the kernel would have without the line.
//!
//! Reading order: `key.rs` (names and lines).

mod key;

use crate::check_request::Answer;
use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldRole, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::said;
use crate::kind::{KindSpec, Restoring};
use crate::parts::field_reader::bounded;
use crate::parts::shell_words::{shell_word, single_quoted};
use crate::parts::{FieldReader, Managed, Sequence, TextEdit, ValueSet, WriteFailure};
use crate::permit::Permit;
use crate::prior_state::{FieldValues, FormerValue};
use crate::removal::Removal;
use crate::resource::Resource;
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use crate::watch_source::WatchSource;
use key::{Key, LineEditor, is_same_value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The file of parameters without a `path`.
const FILE: &str = "/etc/sysctl.d/60-steadfast.conf";

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "sysctl",
    collectible: false,
    doc: "Sets a parameter of the kernel, now (/proc/sys) and at each boot (/etc/sysctl.d). The name is the parameter, with dots or slashes.",
    fields: &[
        FieldSpec::new("value", FieldType::Text, "The value; several words are compared word by word.").mode(FieldMode::Value)
            .example("1")
            .receives(Receives::Shown),
        FieldSpec::new(
            "state",
            FieldType::Choice(&["exists", "absent"]),
            "absent removes the line from the file and leaves the present value.",
        ).known_at_load()
        .default("exists"),
        FieldSpec::new("runtime", FieldType::Bool, "Set the present value in /proc/sys.").receives(Receives::Shown).default("true"),
        FieldSpec::new("persist", FieldType::Bool, "Write the line that sets the value at each boot.").known_at_load()
            .default("true"),
        FieldSpec::new(
            "path",
            FieldType::Text,
            "The file of the line. A file that sorts later in /etc/sysctl.d, or /etc/sysctl.conf, wins at boot.",
        ).role(FieldRole::Path).mode(FieldMode::Static)
        .default(FILE)
        .example("/etc/sysctl.d/60-router.conf"),
        FieldSpec::new(
            "module",
            FieldType::Text,
            "The kernel module that has the parameter: its `kmod` comes first. Default: the known module of the parameter, such as br_netfilter for net.bridge.*.",
        ).mode(FieldMode::Value)
        .example("br_netfilter"),
    ],
    sends: &[SendSpec::new("value", FieldType::Text, "The value in the kernel, words separated by blanks.")],
    example: "sysctl:\n  - name: net.ipv4.ip_forward\n    value: 1\n",
    restore: Some(restore),
    build,
};

/// Returns the file and the plain name of a kernel parameter.
///
/// # Errors
///
/// Fails if the text is no name of a parameter.
pub(crate) fn parameter(name: &str) -> Result<(PathBuf, String), Failure> {
    let key = Key::parse(name)
        .ok_or_else(|| Failure::new(bounded(format!("{name} is no name of a kernel parameter"))))?;
    Ok((key.path(), key.text()))
}

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let key = Key::parse(name);
    if key.is_none() {
        let what = "the name must be a parameter below /proc/sys, without `*`";
        reader.reject(Invalid::whole(what).hint("for example net.ipv4.ip_forward"));
    }
    let is_present = reader.is_present();
    if !is_present {
        reader.exclude(&["value", "module"], "has no meaning with `state: absent`");
    }
    let runtime = reader.fields.bool("runtime").unwrap_or(true) && is_present;
    let persist = reader.fields.bool("persist").unwrap_or(true) || !is_present;
    let path = reader.path("path", FILE);
    let value = if is_present { reader.required_text("value") } else { String::new() };
    let is_word = ["true", "false", "yes", "no", "on", "off"].contains(&value.trim());
    let problem = ("the kernel's switches are numbers", "write 1 or 0");
    reader.require(!is_word, "value", problem);
    let module = reader.text("module").map(|module| module.replace('-', "_"));
    let usual = key.as_ref().filter(|_| is_present).and_then(Key::usual_module);
    let module = module.or_else(|| usual.map(str::to_owned));
    let nothing = ("`runtime` and `persist` are both false: nothing is left to do", "omit one");
    reader.require(runtime || persist, "persist", nothing);
    reader.require(value.len() < 4096, "value", ("the value exceeds 4095 bytes", "shorten it"));
    let key = key.unwrap_or_else(placeholder);
    let value = value.trim().to_owned();
    let declared = Declared { key, value, module, path, runtime, persist };
    reader.finish(()).map(|()| declared.resource(is_present))
}

/// Returns a key for the checks of the other fields after a wrong name.
fn placeholder() -> Key {
    Key::parse("kernel.none").unwrap_or_else(placeholder)
}

struct Declared {
    key: Key,
    value: String,
    module: Option<String>,
    path: PathBuf,
    runtime: bool,
    persist: bool,
}

impl Declared {
    fn resource(self, is_present: bool) -> Arc<dyn Resource> {
        let Self { key, value, module, path, runtime, persist } = self;
        let mut elements: Vec<Arc<dyn Resource>> = Vec::new();
        if runtime {
            let (key, value) = (key.clone(), value.clone());
            elements.push(Arc::new(Managed::new(Runtime { key, value })));
        }
        let mut removal = None;
        if persist {
            let value = is_present.then_some(value);
            let editor = Arc::new(LineEditor { key: key.clone(), value });
            let edit = TextEdit::new(path.clone(), key.text(), editor);
            elements.push(Arc::new(TextEdit { create: Some(0o644), ..edit }));
            removal = is_present.then(|| removal_of(&path));
        }
        let object = HostObject::Sysctl(key.text());
        let need = |module| Need::exact(HostObject::KernelModule(module), "has the parameter");
        let extra = Footprint {
            claims: vec![Claim::exclusive(object.clone()).creating(is_present)],
            provides: is_present.then_some(object).into_iter().collect(),
            requires: module.map(need).into_iter().collect(),
            ..Footprint::default()
        };
        let line = elements.len().saturating_sub(1);
        Arc::new(
            Sequence::new(elements).created_by(vec![line]).removed_by(removal).with_extra(extra),
        )
    }
}

fn removal_of(path: &Path) -> Removal {
    let removal = Removal::new().with("state", Value::Text("absent".to_owned()));
    match path.to_str() {
        Some(path) if path != FILE => removal.with("path", Value::Text(path.to_owned())),
        _ => removal,
    }
}

/// The present value of a parameter.
#[derive(Debug)]
struct Runtime {
    key: Key,
    value: String,
}

impl Runtime {
    fn read_value(&self, host: &Host) -> Result<String, Failure> {
        let path = self.key.path();
        match host.files().kernel_file(&path) {
            Ok(Some(bytes)) => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
            Ok(None) => Err(said("read", &path, "the kernel has no such parameter").hint(
                "check the name; for a parameter of a kernel module, declare the `kmod` and set `module`",
            )),
            Err(fault) => Err(host.files().failure(fault, &path)),
        }
    }

    fn write_value(&self, host: &Host, permit: &Permit) -> Result<(), WriteFailure> {
        let path = self.key.path();
        let bytes = format!("{}\n", self.value);
        let Err(fault) = host.files().write_tunable(permit, &path, bytes.as_bytes()) else {
            return Ok(());
        };
        let touched = fault.touched;
        let failure = host.files().failure(fault, &path);
        Err(WriteFailure { failure, touched })
    }
}

impl ValueSet for Runtime {
    fn wanted(&self) -> FieldValues {
        vec![("runtime", Some(self.value.clone()))]
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        _cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        Box::pin(async move { Ok(vec![("runtime", Some(self.read_value(host)?))]) })
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(async move { self.write_value(host, permit) })
    }

    fn footprint(&self) -> Footprint {
        // The kernel reports writes of programs, and none of its own changes.
        let path = self.key.path();
        let watch =
            vec![WatchSource::Path { path: path.clone(), below: false }, WatchSource::Polled(path)];
        Footprint { watch, ..Footprint::default() }
    }

    fn is_same(&self, _aspect: &str, found: &str, wanted: &str) -> bool {
        is_same_value(found, wanted)
    }

    fn sent(&self, found: &FieldValues) -> Sent {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let value = found.iter().find_map(|(_, value)| value.as_deref()).map(words);
        value.map(|value| ("value", SentValue::Shown(Value::Text(value)))).into_iter().collect()
    }
}

/// Builds the parameter that restores its value from before a change.
fn restore(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    let key = Key::parse(name)
        .ok_or_else(|| Failure::new(bounded(format!("{name} is no name of a kernel parameter"))))?;
    let before = values.iter().find(|value| value.field == "runtime");
    let Some(value) = before.and_then(|value| value.before.clone()) else {
        let what = bounded(format!("the former value of {name} is not recorded"));
        return Err(Failure::new(what));
    };
    let by_hand = format!("sysctl -w {}={}", shell_word(&key.text()), single_quoted(&value));
    Ok(Restoring { resource: Arc::new(Managed::new(Runtime { key, value })), by_hand })
}
