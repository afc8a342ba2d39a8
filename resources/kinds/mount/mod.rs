//! `mount`: a file system at a path, in /etc/fstab and now.
//!
//! The row of fstab is edited and every other line stays; mount(8) and umount(8) change what is mounted, and the
//! kernel's table is compared. A refresh remounts. A removal unmounts and removes the row, and leaves the directory.
//! Network file systems were tried only on the simulated host.
//!
//! Reading order: `options.rs`, `table.rs` (the kernel's table), `live.rs` (reading and changing what is mounted).

mod live;
mod options;
mod table;

use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::kind::KindSpec;
use crate::parts::field_reader::bounded;
use crate::parts::fstab::{FSTAB, Key, Row, RowEditor};
use crate::parts::{FieldReader, Managed, Precondition, Sequence, TextEdit};
use crate::removal::Removal;
use crate::resource::Resource;
use crate::values::sent_values::SendSpec;
use live::{Live, MountPath, Wanted};
use options::Options;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "mount",
    collectible: false,
    doc: "Mounts a file system, now and at each boot (/etc/fstab). The name is the mount point, whose directory must exist. A `file` that sets the mode of this directory comes before the mount, so it needs a second apply for the mounted file system. Network file systems were tried only on the simulated host.",
    fields: &[
        FieldSpec::new(
            "state",
            FieldType::Choice(&["mounted", "exists", "unmounted", "present", "absent"]),
            "mounted or exists: in fstab and mounted; unmounted: not mounted, with the row of fstab if `device` is given; present: in fstab only; absent: neither.",
        ).known_at_load()
        .default("mounted"),
        FieldSpec::new(
            "device",
            FieldType::Text,
            "The device, UUID=…, LABEL=…, HOST:/PATH, the directory of a bind mount, or a word such as tmpfs.",
        ).mode(FieldMode::Value)
        .example("UUID=0a3407de-014b-458b-b5c1-848e92a327a3")
        .receives(Receives::Shown),
        FieldSpec::new("type", FieldType::Text, "The type of the file system; default: auto, and none for a bind mount.").mode(FieldMode::Value)
            .example("ext4")
            .receives(Receives::Shown),
        FieldSpec::new("options", FieldType::Texts, "The options, as a list or with commas; default: defaults.").mode(FieldMode::Value)
            .example("[noatime, nosuid]")
            .receives(Receives::Shown),
        FieldSpec::new("freq", FieldType::Int, "The fifth word of the row, for dump(8).")
            .range(0, 9)
            .default("0")
            .receives(Receives::Shown),
        FieldSpec::new("passno", FieldType::Int, "The sixth word of the row, the order of fsck(8); 0: no check.")
            .range(0, 9)
            .default("0")
            .receives(Receives::Shown),
    ],
    sends: &[
        SendSpec::new("device", FieldType::Text, "The mounted device."),
        SendSpec::new("type", FieldType::Text, "The type of the mounted file system."),
        SendSpec::new("options", FieldType::Text, "The options of the mount."),
    ],
    example: "mount:\n  - name: /srv/data\n    device: /dev/vdb1\n    type: ext4\n    options: [noatime]\n    passno: 2\n",
    restore: Some(live::restore),
    build,
};

/// The declared state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Mounted,
    Unmounted,
    Present,
    Absent,
}

/// The mount points that a running system needs.
const NEEDED: [&str; 7] = ["/", "/dev", "/proc", "/run", "/sys", "/usr", "/etc"];

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let state = reader.choice(
        "state",
        &[
            ("mounted", State::Mounted),
            // The word of mgmt.
            ("exists", State::Mounted),
            ("unmounted", State::Unmounted),
            ("present", State::Present),
            ("absent", State::Absent),
        ],
    );
    let state = state.unwrap_or(State::Mounted);
    let point = mount_point(name, state, &mut reader);
    if state == State::Absent {
        reader.exclude(
            &["device", "type", "options", "freq", "passno"],
            "has no meaning with `state: absent`",
        );
    }
    let needs_device = matches!(state, State::Mounted | State::Present);
    let row = if needs_device || reader.fields.has("device") {
        Some(read_row(&point, &mut reader))
    } else {
        reader.exclude(&["type", "options", "freq", "passno"], "needs `device`");
        None
    };
    reader.finish(())?;
    Ok(resource(point, state, row))
}

fn mount_point(name: &str, state: State, reader: &mut FieldReader) -> PathBuf {
    let point = crate::parts::field_reader::normal_path(name);
    let is_line = !name.chars().any(char::is_control);
    let Some(point) = point.filter(|_| is_line) else {
        let what = bounded(format!("expected an absolute path without .., found {name}"));
        reader.reject(
            Invalid::whole(what).hint("the name is the mount point, for example /srv/data"),
        );
        return PathBuf::from("/mnt");
    };
    if is_needed(&point) && matches!(state, State::Unmounted | State::Absent) {
        let what = needed(&point);
        reader.reject(Invalid::field("state", what).hint("use mounted or present"));
    }
    point
}

/// Returns true for a mount point that is never unmounted.
fn is_needed(point: &Path) -> bool {
    NEEDED.iter().any(|needed| point == Path::new(needed))
}

fn needed(point: &Path) -> String {
    format!("the running system needs {}: it is never unmounted", point.display())
}

/// Returns the declared row with its options.
fn read_row(point: &Path, reader: &mut FieldReader) -> (Row, Options, Vec<Invalid>) {
    let device = reader.required_text("device");
    let texts = reader.fields.texts("options").unwrap_or_default();
    let options = Options::parse(&texts);
    let text = options.text();
    let is_plain = !text.chars().any(|letter| letter.is_control() || letter.is_whitespace());
    reader.require(is_plain, "options", ("expected options without blanks", "options: [noatime]"));
    let is_remount = options.has("remount");
    reader.require(!is_remount, "options", ("`remount` is no option of a row", "omit it"));
    let is_device = !device.starts_with(['-', '#']) && !device.trim().is_empty();
    reader.require(is_device, "device", ("expected a device", "for example /dev/vdb1"));
    let is_bind = options.is_bind();
    let is_path = !is_bind || crate::parts::field_reader::normal_path(&device).is_some();
    let expected =
        ("expected the directory of the bind mount, an absolute path", "for example /srv");
    reader.require(is_path, "device", expected);
    let kind = reader.text("type");
    let kind = kind.unwrap_or_else(|| if is_bind { "none" } else { "auto" }.to_owned());
    let is_word = kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-,".contains(&byte));
    let is_word = is_word && !kind.is_empty() && !kind.starts_with('-');
    reader.require(is_word, "type", ("expected the type of a file system", "for example ext4"));
    reader.require(kind != "swap", "type", ("swap space is no mount", "use the kind `swap`"));
    let freq = reader.fields.int("freq").unwrap_or_default();
    let passno = reader.fields.int("passno").unwrap_or_default();
    let mut warnings = Vec::new();
    if options.names().any(|name| matches!(name, "password" | "pass")) {
        let what = "every user can read the password in /etc/fstab and in the list of processes";
        warnings
            .push(Invalid::field("options", what).hint("use `credentials=` with a file of root"));
    }
    let point = point.to_string_lossy().into_owned();
    (Row { device, point, kind, options: text, freq, passno }, options, warnings)
}

fn resource(
    point: PathBuf,
    state: State,
    row: Option<(Row, Options, Vec<Invalid>)>,
) -> Arc<dyn Resource> {
    let mut elements: Vec<Arc<dyn Resource>> = Vec::new();
    let is_declared = matches!(state, State::Mounted | State::Present);
    let text = point.to_string_lossy().into_owned();
    let requires =
        row.as_ref().map_or_else(Vec::new, |(row, options, _)| needs(&point, row, options));
    let wanted = row.as_ref().map(|(row, options, _)| Wanted {
        device: Some(row.device.clone()),
        kind: Some(row.kind.clone()),
        options: options.clone(),
    });
    let precondition = wanted.as_ref().map(|wanted| {
        let device = wanted.device.clone().unwrap_or_default();
        Arc::new(MountPath { point: point.clone(), device }) as Arc<dyn Precondition>
    });
    let (row, warnings) =
        row.map_or((None, Vec::new()), |(row, _, warnings)| (Some(row), warnings));
    if row.is_some() || state == State::Absent {
        let editor = Arc::new(RowEditor { key: Key::Point(text.clone()), row });
        let edit = TextEdit::new(FSTAB.into(), format!("the row of {text}"), editor);
        elements.push(Arc::new(TextEdit { create: Some(0o644), ..edit }));
    }
    let row_at = usize::from(state == State::Mounted);
    if state != State::Present {
        let wanted = wanted.filter(|_| state == State::Mounted);
        let live = Arc::new(Managed::new(Live { point: point.clone(), wanted }));
        // The row of a file system that cannot be mounted would stop the next boot.
        if row_at == 1 { elements.insert(0, live) } else { elements.push(live) }
    }
    let is_removable = is_declared && !is_needed(&point);
    let removal = || Removal::new().with("state", Value::Text("absent".to_owned()));
    let ended = HostObject::ended_mount(&point);
    let object = HostObject::Mount(point);
    let provided = match state {
        State::Mounted => Some(object.clone()),
        State::Unmounted | State::Absent => Some(ended),
        State::Present => None,
    };
    let extra = Footprint {
        claims: vec![Claim::exclusive(object).creating(is_declared)],
        provides: provided.into_iter().collect(),
        requires,
        ..Footprint::default()
    };
    let sequence = Sequence::new(elements).created_by(vec![row_at]);
    let sequence = sequence.with_extra(extra).with_warnings(warnings).requiring(precondition);
    Arc::new(sequence.removed_by(is_removable.then(removal)))
}

/// Returns the needs of a mount: its directory, its source, and the package with its helper.
fn needs(point: &Path, row: &Row, options: &Options) -> Vec<Need> {
    let mut needs = vec![Need::path(point, "is the mount point")];
    let device = Path::new(&row.device);
    if device.is_absolute() && !device.starts_with("/dev") && !row.device.starts_with("//") {
        let because =
            if options.is_bind() { "is the source of the bind mount" } else { "is mounted" };
        needs.push(Need::path(device, because));
    }
    let package = match row.kind.as_str() {
        "nfs" | "nfs4" => Some("nfs-common"),
        "cifs" => Some("cifs-utils"),
        _ => None,
    };
    let package = package.map(|name| HostObject::Package(name.to_owned()));
    needs.extend(package.map(|package| Need::exact(package, "mounts this type")));
    needs
}
