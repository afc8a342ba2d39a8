//! Inspection of the unit files and drop-ins that the administrator of the host wrote.

use super::contained::is_converged;
use super::{ContainerInspector, Field, Inspected, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Value;
use crate::host::Host;
use crate::host::files::denies_others;
use crate::host::systemd::{Activity, Bus};
use crate::parts::field_reader::bounded;
use crate::parts::text_edit::text_of;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

pub(super) const INSPECTOR: ContainerInspector =
    ContainerInspector { kind: "unit", container: "unit", read: files, all: Some(all) };

/// The folder of the kind `unit`.
const FOLDER: &str = "/etc/systemd/system";

/// Returns the text of a unit file; none without a regular file: a link belongs to `svc`, or to another unit.
///
/// # Errors
///
/// Fails for a file that others cannot read: the kind writes files for all, and the text may be a secret.
fn unit_text(host: &Host, path: &Path) -> Result<Option<String>, Failure> {
    let look = || host.files().open_entry(path)?.map(|spot| spot.look()).transpose();
    let seen = look().map_err(|fault| host.files().failure(fault, path))?;
    let Some(seen) = seen.flatten().filter(|seen| seen.kind == FileType::RegularFile) else {
        return Ok(None);
    };
    if denies_others(seen.mode) {
        let what = format!("{} is private, and `unit` writes files with mode 0644", path.display());
        return Err(Failure::new(what).hint("`steadfast inspect file` prints it with its mode"));
    }
    Ok(Some(text_of(host.files(), path)?.unwrap_or_default()))
}

/// Reads the files of one unit: its own file, and its drop-ins under names of their own.
fn files<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Vec<Inspected>>, Failure>> {
    Box::pin(async move {
        let unit = crate::kinds::svc::unit_name(name)?;
        let mut objects = Vec::new();
        if let Some(content) = unit_text(host, &Path::new(FOLDER).join(&unit))? {
            let mut fields = vec![text("content", content)];
            fields.extend(activity(host, &unit).await?);
            objects.push(Inspected::new(&*unit, fields));
        }
        for path in drop_ins_of(host, &unit).await? {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let Some(content) = unit_text(host, &path)? else { continue };
            let name = format!("{unit} {stem}");
            let fields =
                vec![text("content", content), text("unit", &*unit), text("drop_in", stem)];
            objects.push(Inspected::new(name, fields));
        }
        for object in &objects {
            if !is_converged(host, "unit", object).await {
                let what = format!("unit[{}] differs from its declaration", object.name);
                return Err(Failure::new(bounded(what)).hint(
                    "`systemctl daemon-reload` reads changed files; `steadfast inspect file` prints one",
                ));
            }
        }
        Ok((!objects.is_empty()).then_some(objects))
    })
}

/// Returns `enabled` and `running` as systemd reports them. Units that cannot be enabled have no `enabled`.
async fn activity(host: &Host, unit: &str) -> Result<Vec<(&'static str, Field)>, Failure> {
    let state = host.systemd().file_state(Bus::System, unit).await?;
    let loaded = host.systemd().unit(Bus::System, unit).await?;
    let truth = |name, truth| (name, Field::Shown(Value::Bool(truth)));
    let enabled = match state.as_deref() {
        Some("enabled") => Some(truth("enabled", true)),
        Some("disabled") => Some(truth("enabled", false)),
        _ => None,
    };
    let is_active = |activity| matches!(activity, Activity::Active | Activity::Reloading);
    let running = loaded.filter(|unit| is_active(unit.activity)).map(|_| truth("running", true));
    Ok(enabled.into_iter().chain(running).collect())
}

/// Returns the paths of the drop-ins of a unit, sorted.
async fn drop_ins_of(host: &Host, unit: &str) -> Result<Vec<PathBuf>, Failure> {
    let folder = Path::new(FOLDER).join(format!("{unit}.d"));
    let names = super::contained::file_names(host, &folder.display().to_string(), ".conf").await?;
    Ok(names.iter().map(|name| folder.join(format!("{name}.conf"))).collect())
}

/// Returns the units with a file or a drop-in.
fn all(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let never = tokio_util::sync::CancellationToken::new();
        let words = ["find", FOLDER, "-mindepth", "1", "-maxdepth", "2", "-type", "f"];
        let found = crate::parts::commands::query_text(host, &never, &words).await?;
        let (mut files, mut drop_ins) = (Vec::new(), Vec::new());
        for path in found.lines().filter_map(|path| path.strip_prefix(FOLDER)?.strip_prefix('/')) {
            match path.split_once('/') {
                None if path.contains('.') && !path.starts_with('.') => files.push(path.to_owned()),
                Some((folder, file))
                    if file.strip_suffix(".conf").is_some() && !file.starts_with('.') =>
                {
                    drop_ins.extend(folder.strip_suffix(".d").map(ToOwned::to_owned));
                }
                _ => {}
            }
        }
        files.extend(drop_ins);
        let is_unit = |name: &String| {
            let end = name.rsplit_once('.').map(|(_, end)| end);
            end.is_some_and(|end| crate::kinds::unit::TYPES.contains(&end))
        };
        files.retain(is_unit);
        files.sort();
        files.dedup();
        Ok(files)
    })
}
