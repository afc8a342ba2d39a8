//! `swap`: swap space on a device or in a file, in /etc/fstab and now.
//!
//! The row of fstab is edited and every other line stays; swapon(8) and swapoff(8) change what is in use, and
//! /proc/swaps is compared. With `size`, a missing swap file is made under another name, initialised and renamed; a
//! file that is there is never touched. A refresh has no meaning. A removal turns the swap space off, removes the row,
//! and removes the file if `size` was declared.
//!
//! Reading order: `live.rs` (reading and changing what is in use).

mod live;

use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::kind::KindSpec;
use crate::parts::field_reader::{bounded, normal_path};
use crate::parts::fstab::{FSTAB, Key, Row, RowEditor};
use crate::parts::whole_file::{Shape, managed_file};
use crate::parts::{FieldReader, Managed, Sequence, TextEdit};
use crate::removal::Removal;
use crate::resource::Resource;
use crate::values::sent_values::SendSpec;
use live::Live;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "swap",
    collectible: false,
    doc: "Turns swap space on or off, now and at each boot (/etc/fstab). The name is the path of the device or file, UUID=… or LABEL=….",
    fields: &[
        FieldSpec::new(
            "state",
            FieldType::Choice(&["on", "off", "absent"]),
            "on: in fstab and in use; off: neither; absent: neither, and the swap file is removed.",
        )
        .known_at_load()
        .default("on"),
        FieldSpec::new(
            "priority",
            FieldType::Int,
            "The priority, 0 to 32767; default: the kernel's choice.",
        )
        .range(0, 32767)
        .example("10")
        .receives(Receives::Shown),
        FieldSpec::new("options", FieldType::Texts, "Further options, such as discard and nofail.")
            .mode(FieldMode::Value)
            .example("[discard]")
            .receives(Receives::Shown),
        FieldSpec::new(
            "size",
            FieldType::Text,
            "The size of a swap file, which is made if it is absent: bytes, or with K, M, G.",
        )
        .mode(FieldMode::Value)
        .example("2G")
        .receives(Receives::Shown),
        FieldSpec::new("persist", FieldType::Bool, "Write the row of /etc/fstab.")
            .default("true")
            .receives(Receives::Shown),
    ],
    sends: &[
        SendSpec::new("priority", FieldType::Int, "The priority of the swap space in use."),
        SendSpec::new("size", FieldType::Int, "The size in bytes of a swap file with `size`."),
    ],
    example: "swap:\n  - name: /swapfile\n    size: 2G\n",
    restore: Some(live::restore),
    build,
};

/// A swap file to make.
#[derive(Clone, Debug)]
struct SwapFile {
    path: PathBuf,
    bytes: u64,
}

/// The smallest swap file: one page of the largest size is the header.
const LEAST: u64 = 1 << 20;

/// The declared state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    On,
    Off,
    Absent,
}

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let states = [("on", State::On), ("off", State::Off), ("absent", State::Absent)];
    let state = reader.choice("state", &states).unwrap_or(State::On);
    let device = device_name(name, &mut reader);
    let persist = reader.fields.bool("persist").unwrap_or(true);
    let is_file = device.starts_with('/') && !device.starts_with("/dev/");
    if state != State::On {
        reader.exclude(&["priority", "options", "size"], "needs `state: on`");
    }
    let for_files = ("only a file has a size and can be removed, not a device", "omit the field");
    reader.require(is_file || state != State::Absent, "state", for_files);
    reader.require(is_file || !reader.fields.has("size"), "size", for_files);
    let priority = reader.fields.int("priority");
    let options = read_options(&mut reader);
    let file = reader.text("size").map(|text| {
        let bytes = parse_size(&text).filter(|bytes| (LEAST..=1 << 50).contains(bytes));
        if bytes.is_none() {
            let what = bounded(format!("expected a size of at least 1M, found {text}"));
            reader.reject(Invalid::field("size", what).hint("for example 2G"));
        }
        SwapFile { path: PathBuf::from(&device), bytes: bytes.unwrap_or(LEAST) }
    });
    reader.finish(())?;
    let declared = Live {
        device,
        is_on: state == State::On,
        priority,
        options,
        file,
        removes_file: is_file && state == State::Absent,
    };
    resource(state, persist, declared)
}

fn device_name(name: &str, reader: &mut FieldReader) -> String {
    let is_tag = ["UUID=", "LABEL=", "PARTUUID=", "PARTLABEL="]
        .iter()
        .any(|tag| name.strip_prefix(tag).is_some_and(|value| !value.is_empty()));
    let path = normal_path(name).filter(|path| path.file_name().is_some());
    let is_line = !name.chars().any(char::is_control);
    match path {
        Some(path) if is_line => path.to_string_lossy().into_owned(),
        _ if is_tag && is_line => name.to_owned(),
        _ => {
            let what = bounded(format!("expected an absolute path, UUID= or LABEL=, found {name}"));
            reader.reject(Invalid::whole(what).hint("for example /swapfile"));
            "/swapfile".to_owned()
        }
    }
}

fn read_options(reader: &mut FieldReader) -> Vec<String> {
    let texts = reader.fields.texts("options").unwrap_or_default();
    let split = texts.iter().flat_map(|text| text.split(',')).map(str::trim);
    let options: Vec<String> = split.filter(|it| !it.is_empty()).map(ToOwned::to_owned).collect();
    let is_plain = |option: &String| {
        option.bytes().all(|it| it.is_ascii_alphanumeric() || b"-=_.".contains(&it))
            && !option.starts_with('-')
    };
    let expected = ("expected options such as discard", "see swapon(8)");
    reader.require(options.iter().all(is_plain), "options", expected);
    let has_priority = options.iter().any(|option| option.starts_with("pri="));
    reader.require(
        !has_priority,
        "options",
        ("the priority is a field of its own", "use `priority`"),
    );
    options
}

/// Returns a number of bytes; K, M, G and T count in 1024.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let at = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let shift = match unit.trim().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KIB" => 10,
        "M" | "MIB" => 20,
        "G" | "GIB" => 30,
        "T" | "TIB" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn resource(
    state: State,
    persist: bool,
    declared: Live,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let is_on = declared.is_on;
    let device = declared.device.clone();
    let mut elements: Vec<Arc<dyn Resource>> = Vec::new();
    if persist {
        let editor =
            RowEditor { key: Key::Swap(device.clone()), row: is_on.then(|| row(&declared)) };
        let edit = TextEdit::new(FSTAB.into(), format!("the row of {device}"), Arc::new(editor));
        elements.push(Arc::new(TextEdit { create: Some(0o644), ..edit }));
    }
    let state_of_removal = if declared.file.is_some() { "absent" } else { "off" };
    let path = Path::new(&device).is_absolute().then(|| PathBuf::from(&device));
    let is_file = path.as_ref().filter(|path| !path.starts_with("/dev"));
    let mut claims = vec![Claim::exclusive(HostObject::Other("swap", device)).creating(is_on)];
    let mut requires = Vec::new();
    if let Some(path) = is_file {
        if declared.file.is_some() {
            claims.push(Claim::path(path.clone()));
            claims.push(Claim::exclusive(HostObject::Content(path.clone())));
            requires
                .extend(path.parent().map(|parent| Need::path(parent, "contains the swap file")));
        } else if is_on {
            requires.push(Need::path(path.clone(), "is the swap file"));
        }
    }
    // The row of swap space that cannot be used would delay each boot.
    let live = Arc::new(Managed::new(declared));
    // Swap space or a row that existed before does not go with the resource.
    let mains = if is_on && persist { vec![0, 1] } else { vec![0] };
    if is_on {
        elements.insert(0, live);
    } else {
        elements.push(live);
    }
    if let Some(path) = is_file.filter(|_| state == State::Absent) {
        elements.push(managed_file(path, Shape::Absent, &[])?);
    }
    let removal = || {
        let removal = Removal::new().with("state", Value::Text(state_of_removal.to_owned()));
        if persist { removal } else { removal.with("persist", Value::Bool(false)) }
    };
    let extra = Footprint { claims, requires, ..Footprint::default() };
    let sequence = Sequence::new(elements).created_by(mains).with_extra(extra);
    Ok(Arc::new(sequence.removed_by(is_on.then(removal))))
}

fn row(declared: &Live) -> Row {
    let mut options = declared.options.clone();
    options.extend(declared.priority.map(|number| format!("pri={number}")));
    let options = if options.is_empty() { "sw".to_owned() } else { options.join(",") };
    Row {
        device: declared.device.clone(),
        point: "none".to_owned(),
        kind: "swap".to_owned(),
        options,
        freq: 0,
        passno: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("2G", Some(2 << 30)),
            ("512 MiB", Some(512 << 20)),
            ("1048576", Some(1 << 20)),
            ("1.5G", None),
            ("G", None),
            ("", None),
            ("99999999999T", None),
        ] {
            assert_eq!(parse_size(text), bytes, "{text}");
        }
    }
}
