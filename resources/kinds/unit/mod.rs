//! `unit`: a systemd unit file or drop-in in /etc/systemd/system, verified before it is written.
//!
//! systemd reads its files again after each change. With `enabled` and `running`, the resource also manages the unit
//! as `svc` does; a resource `svc` for the same unit is then rejected. The resource then comes after all drop-ins of
//! the unit: a drop-in can be there before the file that it extends, and is then verified with that file.
//!
//! Reading order: this file, `needs.rs` (the objects that the content names), `reload.rs`.

mod needs;
mod reload;

use crate::dependency::{HostObject, Need};
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldRole, FieldSpec, FieldType, Interpreter};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::kind::KindSpec;
use crate::parts::file_values::HASH;
use crate::parts::whole_file::{Shape, managed_file};
use crate::parts::{Declaration, FieldReader, ParentDirectory, Sequence};
use crate::removal::Removal;
use crate::resource::Resource;
use crate::secrets::escape::short;
use crate::values::sent_values::SendSpec;
use reload::Reload;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "unit",
    collectible: false,
    doc: "Manages a unit file or a drop-in of systemd in /etc/systemd/system; systemd then reads its files again. A refresh reads the files again.",
    fields: &[
        FieldSpec::new("content", FieldType::Text, "Complete content of the file; required unless absent.").role(FieldRole::Template).mode(FieldMode::Literal(Interpreter::Systemd))
            .example("[Service]\nExecStart=/bin/true\n")
            .receives(Receives::Shown),
        FieldSpec::new(
            "unit",
            FieldType::Text,
            "Full name of the unit. Several drop-ins of one unit are resources with different names and the same `unit`. Default: the name.",
        ).mode(FieldMode::Static)
        .example("nginx.service"),
        FieldSpec::new(
            "drop_in",
            FieldType::Text,
            "Name of a drop-in, without .conf: the file is NAME.d/DROP_IN.conf and extends the unit. Default: the unit file itself.",
        ).mode(FieldMode::Static)
        .example("limits"),
        FieldSpec::new("state", FieldType::Choice(&["exists", "absent"]), "Presence of the file.").known_at_load()
            .default("exists"),
        FieldSpec::new(
            "enabled",
            FieldType::Bool,
            "Start of the unit at boot; false disables it. Default: not managed.",
        )
        .receives(Receives::Shown),
        FieldSpec::new(
            "running",
            FieldType::Bool,
            "true starts the unit, false stops it; a change of the content alone restarts nothing. Default: not managed.",
        )
        .receives(Receives::Shown),
        FieldSpec::new(
            "verify",
            FieldType::Bool,
            "Verification by `systemd-analyze verify` before the file is written, where that program is installed.",
        )
        .default("true").receives(Receives::Shown),
    ],
    sends: SENDS,
    example: "unit:\n  - name: hello.service\n    content: |\n      [Service]\n      ExecStart=/bin/sleep infinity\n      [Install]\n      WantedBy=multi-user.target\n    enabled: true\n    running: true\n",
    restore: Some(crate::kinds::svc::restore_unit),
    build,
};

/// The values of the file.
const OF_FILE: &[SendSpec] = &[HASH];

/// The values of the unit itself, which are sent with `enabled` or `running`.
const OF_SERVICE: &[SendSpec] = crate::kinds::svc::SENDS;

const SENDS: &[SendSpec] = &[
    SendSpec::new("path", FieldType::Text, "The path of the file."),
    HASH,
    SendSpec::new(
        "state",
        FieldType::Text,
        "With `enabled` or `running`: the activity in the words of systemd.",
    ),
    SendSpec::new(
        "startup",
        FieldType::Text,
        "With `enabled` or `running`: the state of the unit file in the words of systemd.",
    ),
    SendSpec::new(
        "pid",
        FieldType::Int,
        "With `enabled` or `running`: the main process of a running service.",
    ),
    SendSpec::new(
        "restarts",
        FieldType::Int,
        "With `enabled` or `running`: the automatic restarts of a service since its last manual start.",
    ),
    SendSpec::new(
        "next",
        FieldType::Int,
        "With `enabled` or `running`: the next start by a timer, in seconds since 1970.",
    ),
    SendSpec::new(
        "listening",
        FieldType::Texts,
        "With `enabled` or `running`: the addresses of a socket, each with its type.",
    ),
];

/// The folder of the administrator's units.
const FOLDER: &str = "/etc/systemd/system";

/// The unit types that have files.
pub(crate) const TYPES: [&str; 9] =
    ["service", "socket", "timer", "target", "path", "mount", "automount", "swap", "slice"];

/// The longest name that systemd accepts, in bytes.
const LONGEST: usize = 255;

/// Longer than systemd's own start timeout (90 s by default), so that systemd reports the reason first.
const PATIENCE: Duration = Duration::from_mins(3);

/// The arguments are the staged file, the unit, the drop-in, and a text that is empty unless another resource writes
/// the file of the unit: a drop-in before that file is judged with the file. The staged file is judged under its own
/// name, in a private folder that stands before the others.
const VERIFY: &str = r#"
command -v systemd-analyze >/dev/null || exit 0
dir=$(mktemp -d /run/steadfast-verify.XXXXXX 2>/dev/null || mktemp -d) || exit 1
trap 'rm -rf -- "$dir"' EXIT
if [ -n "$3" ]; then
  main=$(systemctl show -P FragmentPath -- "$2" 2>/dev/null)
  # Without a running systemd, the first file of that name counts.
  for folder in etc run usr/local/lib usr/lib lib; do
    [ -n "$main" ] || ! [ -f "/$folder/systemd/system/$2" ] || main=/$folder/systemd/system/$2
  done
  [ -n "$main" ] || [ -z "$4" ] || exit 0
  [ -n "$main" ] || { echo "expected the unit $2, found none" >&2; exit 1; }
  cp -L -- "$main" "$dir/$2" && mkdir "$dir/$2.d" && cp -- "$1" "$dir/$2.d/$3.conf" || exit 1
else
  cp -- "$1" "$dir/$2" || exit 1
fi
strict=
systemd-analyze --help | grep -q recursive-errors && strict=--recursive-errors=no
found=$(systemd-analyze verify --man=no $strict "$dir/$2" 2>&1) && exit 0
printf '%b\n' "$found" | sed "s|$dir/||g" >&2
[ -z "$3" ] || echo "the unit $2 is verified with the drop-in; verify: false writes it all the same" >&2
exit 1
"#;

/// The declaration of one file.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the fields of a declaration")]
struct Declared {
    unit: String,
    /// The name of the resource is not the name of the unit.
    has_other_name: bool,
    drop_in: Option<String>,
    path: PathBuf,
    present: bool,
    content: String,
    enabled: Option<bool>,
    running: Option<bool>,
    verify: bool,
    /// Another resource writes the file of the unit.
    is_defined: bool,
}

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let given = reader.text("unit");
    let unit = given.as_deref().unwrap_or(name);
    check_unit(unit, given.is_some(), &mut reader);
    let declared = read_fields(unit, &mut reader);
    let declared = Declared { has_other_name: unit != name, ..declared };
    let declared = reader.finish(declared)?;
    Ok(Arc::new(declared.sequence()?))
}

fn check_unit(name: &str, is_field: bool, reader: &mut FieldReader) {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    let (stem, suffix) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_unit = TYPES.contains(&suffix)
        && !stem.is_empty()
        && !stem.starts_with(['@', '.'])
        && stem.bytes().all(allowed)
        && name.len() <= LONGEST;
    if !is_unit {
        let what = format!("expected the full name of a unit, found `{}`", short(name, 40));
        let problem = if is_field { Invalid::field("unit", what) } else { Invalid::whole(what) };
        let hint = if is_field {
            "for example unit: backup.service"
        } else {
            "name: backup.service; or with another name, unit: backup.service"
        };
        reader.reject(problem.hint(hint));
    }
}

fn read_fields(name: &str, reader: &mut FieldReader) -> Declared {
    let drop_in = reader.text("drop_in").map(|text| match text.strip_suffix(".conf") {
        Some(stem) => stem.to_owned(),
        None => text,
    });
    if let Some(stem) = &drop_in {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
        let is_plain = !stem.is_empty() && !stem.starts_with('.') && stem.bytes().all(allowed);
        let problem = ("expected the name of a drop-in", "use letters, digits and -_.@");
        reader.require(is_plain, "drop_in", problem);
    }
    let path = match &drop_in {
        Some(stem) => Path::new(FOLDER).join(format!("{name}.d")).join(format!("{stem}.conf")),
        None => Path::new(FOLDER).join(name),
    };
    let advice = reader.fields.shown_text("state").and_then(state_advice);
    let present = match advice {
        Some((found, hint)) => {
            let what = format!("expected exists or absent, found {found}");
            reader.reject(Invalid::field("state", what).hint(hint));
            drop(reader.fields.text("state"));
            true
        }
        None => reader.is_present(),
    };
    let content = reader.lines("content");
    if present {
        let problem = ("expected `content`, found none", "write the lines of the unit file");
        reader.require(content.is_some(), "content", problem);
        let empty = content.as_ref().is_some_and(|text| text.trim().is_empty());
        let problem = ("an empty unit file masks the unit", "use `svc` with `startup: masked`");
        reader.require(!empty, "content", problem);
    }
    let (enabled, running) = (reader.fields.bool("enabled"), reader.fields.bool("running"));
    let is_template = name.contains("@.");
    let problem = ("a template cannot run", "set `running` on an instance with `svc`");
    reader.require(!(is_template && running.is_some()), "running", problem);
    let problem = ("an absent unit cannot run", "omit `running`, or set it to false");
    reader.require(present || running != Some(true), "running", problem);
    let problem = ("an absent unit cannot start at boot", "omit `enabled`, or set it to false");
    reader.require(present || enabled != Some(true), "enabled", problem);
    let verify = reader.fields.bool("verify").unwrap_or(true);
    let (unit, content) = (name.to_owned(), content.unwrap_or_default());
    Declared {
        unit,
        has_other_name: false,
        drop_in,
        path,
        present,
        content,
        enabled,
        running,
        verify,
        is_defined: false,
    }
}

/// Returns a state that belongs to another field, with the line to write.
fn state_advice(text: &str) -> Option<(&'static str, &'static str)> {
    [
        ("running", "write: running: true"),
        ("started", "write: running: true"),
        ("stopped", "write: running: false"),
        ("enabled", "write: enabled: true"),
        ("disabled", "write: enabled: false"),
        ("masked", "use `svc` with `startup: masked`"),
        ("present", "write: state: exists"),
    ]
    .into_iter()
    .find(|(word, _)| *word == text)
}

impl Declaration for Declared {
    fn with_claims(&self, claimed: &[PathBuf]) -> Option<Sequence> {
        let file = Path::new(FOLDER).join(&self.unit);
        let is_defined = claimed.contains(&file);
        is_defined.then(|| Self { is_defined, ..self.clone() }.sequence().ok()).flatten()
    }
}

impl Declared {
    fn sequence(&self) -> Result<Sequence, Vec<Invalid>> {
        let mut elements: Vec<Arc<dyn Resource>> = Vec::new();
        let service = self.service()?;
        let file = self.file()?;
        let reload: Arc<dyn Resource> = Arc::new(Reload {
            unit: self.unit.clone(),
            defines: self.present && self.drop_in.is_none(),
            template: self.unit.contains("@.").then(|| Arc::clone(&file)),
            pending: false.into(),
        });
        if self.present {
            if self.drop_in.is_some() {
                let folder = self.path.parent().unwrap_or_else(|| Path::new(FOLDER)).to_owned();
                elements.push(Arc::new(ParentDirectory(folder)));
            }
            elements.extend([Arc::clone(&file), reload]);
            elements.extend(service.clone());
        } else {
            elements.extend(service.clone());
            elements.extend([Arc::clone(&file), reload]);
        }
        let (mut provides, mut requires) = (Vec::new(), Vec::new());
        if self.present {
            requires.extend(needs::needed(&self.unit, &self.content));
            provides.push(self.object());
            let own_file = HostObject::Other("unit file", self.unit.clone());
            match &self.drop_in {
                Some(_) => requires.push(Need::exact(own_file, "is extended by the drop-in")),
                // The service needs all drop-ins (as `svc` does), so they come before this resource.
                None if service.is_some() => {}
                None => provides.push(own_file),
            }
        }
        let is_verified_drop_in = self.present && self.verify && self.drop_in.is_some();
        let spares_below = is_verified_drop_in.then(|| PathBuf::from(FOLDER));
        let extra = Footprint { provides, requires, spares_below, ..Footprint::default() };
        let last = elements.len().saturating_sub(1);
        let declaration =
            is_verified_drop_in.then(|| Arc::new(self.clone()) as Arc<dyn Declaration>);
        let mut sequence = Sequence::new(elements).removed_by(self.removal()).with_extra(extra);
        if self.present && self.drop_in.is_some() {
            sequence = sequence.expecting_file(1, &self.content);
        }
        sequence = sequence.declared_by(declaration);
        // systemd does not know the unit before its file is written.
        if self.enabled == Some(true) {
            sequence = sequence.expecting(last, "startup", "enabled");
        }
        if self.running == Some(true) {
            sequence = sequence.expecting(last, "state", "running");
        }
        let sequence = sequence.sending("path", self.path.display().to_string());
        let sequence = sequence.reading(OF_FILE, &file);
        Ok(match &service {
            Some(service) => sequence.reading(OF_SERVICE, service),
            None => sequence,
        })
    }

    fn object(&self) -> HostObject {
        HostObject::Unit { session: false, name: self.unit.clone() }
    }

    fn file(&self) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
        if !self.present {
            return managed_file(&self.path, Shape::Absent, &[]);
        }
        let drop_in = self.drop_in.as_deref().unwrap_or_default();
        let is_defined = if self.is_defined { "defined" } else { "" };
        let validate = ["/bin/sh", "-c", VERIFY, "sh", "%s", &self.unit, drop_in, is_defined];
        let validate = validate.map(ToOwned::to_owned);
        let validate = if self.verify { validate.as_slice() } else { &[] };
        managed_file(&self.path, Shape::Content(&self.content, "0644"), validate)
    }

    /// Returns the resource that starts, stops, enables and disables the unit. A notification reaches only the files.
    fn service(&self) -> Result<Option<Arc<dyn Resource>>, Vec<Invalid>> {
        if self.enabled.is_none() && self.running.is_none() {
            return Ok(None);
        }
        let mut fields = Fields::default();
        let mut word = |field, is, (yes, no): (&str, &str)| {
            if let Some(is) = is {
                let word: &str = if is { yes } else { no };
                fields.insert(field, Value::Text(word.to_owned()));
            }
        };
        word("startup", self.enabled, ("enabled", "disabled"));
        word("state", self.running, ("running", "stopped"));
        if self.running != Some(false) {
            word("refresh", Some(true), ("none", "none"));
        }
        if self.has_other_name {
            return crate::kinds::svc::build_of_unit(&self.unit, fields).map(Some);
        }
        let place = Place { base: PathBuf::from("/") };
        crate::kinds::svc::SPEC.build_resource(&self.unit, fields, &place).map(Some)
    }

    /// Reverts the effects: the unit is stopped and disabled if the resource has started and enabled it, and the file
    /// is removed.
    fn removal(&self) -> Option<Removal> {
        if !self.present {
            return None;
        }
        // Stored removals have the order of the kind's fields.
        let mut removal = Removal::new();
        if self.has_other_name {
            removal = removal.with("unit", Value::Text(self.unit.clone()));
        }
        if let Some(stem) = &self.drop_in {
            removal = removal.with("drop_in", Value::Text(stem.clone()));
        }
        removal = removal.with("state", Value::Text("absent".to_owned()));
        if self.enabled == Some(true) {
            removal = removal.with_data("enabled", Value::Bool(false));
        }
        if self.running == Some(true) {
            removal = removal.with_data("running", Value::Bool(false));
        }
        Some(removal)
    }
}
