//! Inspection of kernel modules, kernel parameters, swap space and mounts.

use super::contained::{file_names, is_converged};
use super::{Field, Inspected, Inspector, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Value;
use crate::host::Host;
use crate::host::files::{EntryStat, Files};
use crate::parts::field_reader::bounded;
use crate::parts::fstab::{FSTAB, Row, decode, device_path};
use crate::parts::text_edit::text_of;
use rustix::fs::FileType;
use std::path::Path;

pub(super) const MODULES: Inspector =
    Inspector { kind: "kmod", one: one_module, all: Some(all_modules) };

pub(super) const PARAMETERS: Inspector =
    Inspector { kind: "sysctl", one: one_parameter, all: Some(all_parameters) };

pub(super) const SWAP: Inspector = Inspector { kind: "swap", one: one_swap, all: Some(all_swaps) };

pub(super) const MOUNTS: Inspector =
    Inspector { kind: "mount", one: one_mount, all: Some(all_mounts) };

/// The file of the lines that the kind `sysctl` writes.
const PARAMETER_FILE: &str = "/etc/sysctl.d/60-steadfast.conf";

/// Returns the text of a file of the kernel; empty without the file.
fn kernel_text(files: &Files, path: &str) -> Result<String, Failure> {
    let path = Path::new(path);
    let bytes = files.kernel_file(path).map_err(|fault| files.failure(fault, path))?;
    Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
}

fn bool(name: &'static str, truth: bool) -> (&'static str, Field) {
    (name, Field::Shown(Value::Bool(truth)))
}

fn one_module<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let files = host.files();
        let own = name.replace('-', "_");
        let table = kernel_text(files, "/proc/modules")?;
        let is_loaded = table.lines().any(|line| line.split(' ').next() == Some(&own));
        let of = |folder: &str| format!("{folder}/steadfast-{own}.conf");
        let settings = text_of(files, Path::new(&of("/etc/modprobe.d")))?.unwrap_or_default();
        if !is_loaded {
            let is_blacklisted = settings.lines().any(|line| line == format!("blacklist {own}"));
            let fields = vec![bool("blacklist", true)];
            return Ok(is_blacklisted.then(|| Inspected::new(name.to_owned(), fields)));
        }
        let mut fields = Vec::new();
        let options = settings.lines().find_map(|line| {
            line.strip_prefix("options ")?.strip_prefix(own.as_str())?.strip_prefix(' ')
        });
        if let Some(options) = options {
            let options = options.split(' ').map(ToOwned::to_owned).collect();
            fields.push(("options", Field::Shown(Value::Texts(options))));
        }
        if text_of(files, Path::new(&of("/etc/modules-load.d")))?.is_none() {
            fields.push(bool("persist", false));
        }
        Ok(Some(Inspected::new(name.to_owned(), fields)))
    })
}

fn all_modules(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let table = kernel_text(host.files(), "/proc/modules")?;
        let names = table.lines().filter_map(|line| line.split(' ').next());
        let mut names: Vec<String> = names.map(ToOwned::to_owned).collect();
        let own = file_names(host, "/etc/modprobe.d", ".conf").await?;
        let own = own.iter().filter_map(|name| name.strip_prefix("steadfast-"));
        for name in own.map(ToOwned::to_owned).collect::<Vec<_>>() {
            if !names.contains(&name) && one_module(host, &name).await?.is_some() {
                names.push(name);
            }
        }
        Ok(names)
    })
}

fn one_parameter<'a>(
    host: &'a Host,
    name: &'a str,
) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let (path, own) = crate::kinds::sysctl::parameter(name)?;
        let files = host.files();
        let value = files.kernel_file(&path).map_err(|fault| files.failure(fault, &path))?;
        let Some(value) = value else { return Ok(None) };
        let value = String::from_utf8_lossy(&value);
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        if own.ends_with(".stable_secret") {
            let what = format!("{own} is a secret of the kernel, which the kind shows");
            return Err(Failure::new(bounded(what)).hint("declare it by hand"));
        }
        let mut fields = vec![text("value", value)];
        let all = parameter_files(host).await?;
        let has_own = |(_, keys): &&(String, Vec<String>)| keys.contains(&own);
        // The last file wins at boot.
        match all.iter().rev().find(has_own) {
            None => fields.push(bool("persist", false)),
            Some((path, _)) if path == PARAMETER_FILE => {}
            Some((path, _)) => fields.push(text("path", path.as_str())),
        }
        let object = Inspected::new(name.to_owned(), fields);
        if is_converged(host, "sysctl", &object).await {
            return Ok(Some(object));
        }
        Ok(Some(object.noting(
            "the kernel has another value than the line of the file; a plan changes the line",
        )))
    })
}

/// Returns the files with kernel parameters in the order in which they are read at boot, with the plain names of their
/// parameters.
async fn parameter_files(host: &Host) -> Result<Vec<(String, Vec<String>)>, Failure> {
    let names = file_names(host, "/etc/sysctl.d", ".conf").await?;
    let paths = names.iter().map(|name| format!("/etc/sysctl.d/{name}.conf"));
    let mut all = Vec::new();
    for path in paths.chain(["/etc/sysctl.conf".to_owned()]) {
        let content = text_of(host.files(), Path::new(&path))?.unwrap_or_default();
        let key = |line: &str| {
            let line = line.trim().trim_start_matches('-');
            let is_comment = line.is_empty() || line.starts_with(['#', ';']) || line.contains('*');
            let key = line.split_once('=').filter(|_| !is_comment)?.0.trim();
            crate::kinds::sysctl::parameter(key).ok().map(|(_, plain)| plain)
        };
        let keys = content.lines().filter_map(key).collect();
        all.push((path, keys));
    }
    Ok(all)
}

/// Lists the parameters of the files that are read at boot.
fn all_parameters(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let files = parameter_files(host).await?;
        let mut names: Vec<String> = files.into_iter().flat_map(|(_, keys)| keys).collect();
        names.sort();
        names.dedup();
        Ok(names)
    })
}

/// Returns the rows of /etc/fstab.
fn rows(files: &Files) -> Result<Vec<Row>, Failure> {
    let text = text_of(files, Path::new(FSTAB))?.unwrap_or_default();
    Ok(text.lines().filter_map(Row::parse).collect())
}

/// Returns the swap spaces in use, with their priorities.
fn swaps(files: &Files) -> Result<Vec<(String, i64)>, Failure> {
    let table = kernel_text(files, "/proc/swaps")?;
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        Some((decode(words.next()?), words.nth(3)?.parse().ok()?))
    };
    Ok(table.lines().skip(1).filter_map(row).collect())
}

fn one_swap<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let files = host.files();
        let own = device_path(files, name);
        let is_own =
            |device: &str| device == name || (own.is_some() && device_path(files, device) == own);
        let used = swaps(files)?.into_iter().find(|(device, _)| is_own(device));
        let Some((_, priority)) = used else { return Ok(None) };
        let row = rows(files)?.into_iter().find(|row| row.kind == "swap" && row.device == name);
        let mut fields = Vec::new();
        let path = Path::new(name);
        let look = || files.open_entry(path)?.map(|spot| spot.look()).transpose();
        let seen = look().map_err(|fault| files.failure(fault, path))?.flatten();
        // A device has no size of its own, and the kind declares none below 1M.
        let is_file = |seen: &EntryStat| seen.kind == FileType::RegularFile && seen.size >= 1 << 20;
        if let Some(seen) = seen.filter(is_file) {
            fields.push(text("size", seen.size.to_string()));
        }
        let Some(row) = row else {
            if priority >= 0 {
                fields.push(("priority", Field::Shown(Value::Int(priority))));
            }
            fields.push(bool("persist", false));
            return Ok(Some(Inspected::new(name.to_owned(), fields)));
        };
        let declared = row.options.split(',').find_map(|option| option.strip_prefix("pri="));
        if let Some(priority) = declared.and_then(|text| text.parse().ok()) {
            fields.push(("priority", Field::Shown(Value::Int(priority))));
        }
        let is_plain = |option: &&str| !option.starts_with("pri=") && *option != "sw";
        let options: Vec<String> =
            row.options.split(',').filter(is_plain).map(ToOwned::to_owned).collect();
        if !options.is_empty() {
            fields.push(("options", Field::Shown(Value::Texts(options))));
        }
        Ok(Some(Inspected::new(name.to_owned(), fields)))
    })
}

fn all_swaps(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let files = host.files();
        let rows = rows(files)?;
        let name = |(device, _): (String, i64)| {
            let own = device_path(files, &device);
            let is_own = |row: &&Row| row.kind == "swap" && device_path(files, &row.device) == own;
            rows.iter().find(is_own).map_or(device, |row| row.device.clone())
        };
        Ok(swaps(files)?.into_iter().map(name).collect())
    })
}

/// Only mounts with a row of fstab are declarations: every other one belongs to a program or to a unit.
fn one_mount<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let files = host.files();
        let row = rows(files)?.into_iter().find(|row| row.kind != "swap" && row.point == name);
        let table = kernel_text(files, "/proc/self/mountinfo")?;
        let point = |line: &str| line.split(' ').nth(4).map(decode);
        let is_mounted = table.lines().any(|line| point(line).as_deref() == Some(name));
        let Some(row) = row else {
            if !is_mounted {
                return Ok(None);
            }
            let what = format!("{name} is mounted without a row of {FSTAB}");
            let hint = "a declaration adds the row: a program, a unit or a command mounted it";
            return Err(Failure::new(what).hint(hint));
        };
        if row.options.split(',').any(holds_password) {
            let what = bounded(format!("the row of {name} in {FSTAB} contains a password"));
            let hint = "the kind shows `options`: write `credentials=` with a file of root instead";
            return Err(Failure::new(what).hint(hint));
        }
        let mut fields = Vec::new();
        if !is_mounted {
            fields.push(text("state", "present"));
        }
        fields.extend([text("device", row.device), text("type", row.kind)]);
        if row.options != "defaults" {
            let options = row.options.split(',').map(ToOwned::to_owned).collect();
            fields.push(("options", Field::Shown(Value::Texts(options))));
        }
        for (field, number) in [("freq", row.freq), ("passno", row.passno)] {
            if number != 0 {
                fields.push((field, Field::Shown(Value::Int(number))));
            }
        }
        Ok(Some(Inspected::new(name.to_owned(), fields)))
    })
}

/// Returns true for the option of a password, also behind the name of a user (`username=eve%word`).
fn holds_password(option: &str) -> bool {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    match name.trim() {
        "password" | "password2" | "pass" => true,
        "username" | "user" => value.contains('%'),
        _ => false,
    }
}

fn all_mounts(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let rows = rows(host.files())?.into_iter();
        Ok(rows
            .filter(|row| row.kind != "swap" && row.point.starts_with('/'))
            .map(|it| it.point)
            .collect())
    })
}
