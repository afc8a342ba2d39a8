//! The mounted file system, read from the kernel's table and changed by mount(8) and umount(8).

use super::options::Options;
use super::table::{Mounted, TABLE, Table};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Value;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::{Files, said};
use crate::host::systemd::Bus;
use crate::kind::Restoring;
use crate::parts::commands::{command, read_on_thread, run_change};
use crate::parts::field_reader::{bounded, normal_path};
use crate::parts::fstab::{device_path, refuse_links};
use crate::parts::shell_words::shell_word;
use crate::parts::staging::guard_way;
use crate::parts::{Managed, Precondition, ValueSet, WriteFailure};
use crate::permit::Permit;
use crate::prior_state::{FieldValues, FormerValue};
use crate::resource::Traits;
use crate::values::sent_values::{Sent, SentValue};
use crate::watch_source::WatchSource;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The number of mounts at one path that one apply unmounts.
const MOST_UNMOUNTS: usize = 16;

/// The aspects: the mount itself, its device, type and options.
const STATE: &str = "state";
const DEVICE: &str = "device";
const TYPE: &str = "type";
const OPTIONS: &str = "options";

/// A mount as declared.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) point: PathBuf,
    /// The declared file system; none if nothing shall be mounted.
    pub(super) wanted: Option<Wanted>,
}

/// A file system to mount; an absent value is not compared.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) device: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) options: Options,
}

impl Wanted {
    /// Returns true if the mount is of the declared device.
    fn is_device(&self, files: &Files, table: &Table, mount: &Mounted) -> bool {
        let Some(device) = &self.device else { return true };
        if self.options.is_bind() {
            return table.is_bound_to(mount, Path::new(device));
        }
        if *device == mount.source || mount.source == "/dev/root" {
            return true;
        }
        let is_tag = !device.starts_with('/') && device.contains('=');
        if device.contains(':') || device.starts_with("//") {
            let plain = |text: &str| text.trim_end_matches('/').replace('\\', "/");
            return plain(device) == plain(&mount.source);
        }
        // A loop device stands for a file; the device of a tmpfs and the like is a mere label.
        if !is_tag && !device.starts_with("/dev/") {
            return true;
        }
        match (device_path(files, device), device_path(files, &mount.source)) {
            (Some(own), Some(found)) => own == found,
            // A tag that udev does not know (yet) cannot be compared.
            (None, _) => is_tag,
            (Some(_), None) => false,
        }
    }

    fn is_kind(&self, mount: &Mounted) -> bool {
        let Some(kind) = self.kind.as_deref() else { return true };
        let found = mount.kind.as_str();
        let is_part = |whole: &str, part: &str| {
            whole.strip_prefix(part).is_some_and(|rest| rest.starts_with('.'))
        };
        self.options.is_bind()
            || matches!(kind, "auto" | "none")
            || kind == found
            || (kind == "nfs" && found == "nfs4")
            || found == "fuseblk"
            || is_part(found, kind)
            || is_part(kind, found)
    }
}

impl Live {
    fn point_text(&self) -> &str {
        self.point.to_str().unwrap_or_default()
    }

    fn read_values(&self, host: &Host) -> Result<FieldValues, Failure> {
        let files = host.files();
        let table = read_table(files)?;
        let Some((mount, _)) = table.at(&self.point) else {
            refuse_links(files, &self.point)?;
            if let Some(device) = self.wanted.as_ref().and_then(|wanted| wanted.device.as_deref()) {
                guard_device(device)?;
            }
            return Ok(vec![(STATE, None), (DEVICE, None), (TYPE, None), (OPTIONS, None)]);
        };
        // An automount stands for the file system, which is mounted at the first access.
        if let Some(wanted) = self.wanted.as_ref().filter(|it| it.options.is_automount())
            && mount.kind == "autofs"
        {
            return Ok(vec![
                (STATE, Some("mounted".to_owned())),
                (DEVICE, wanted.device.clone()),
                (TYPE, wanted.kind.clone()),
                (OPTIONS, Some(wanted.options.text())),
            ]);
        }
        let bound = table.bound_directory(mount);
        let mut options = mount.flags.clone();
        let device = match &bound {
            Some(directory) => {
                options.push_str(",bind");
                directory.to_string_lossy().into_owned()
            }
            None => mount.source.clone(),
        };
        let mut values = vec![
            (STATE, Some("mounted".to_owned())),
            (DEVICE, Some(device)),
            (TYPE, Some(mount.kind.clone())),
            (OPTIONS, Some(options)),
        ];
        // A value that satisfies the declaration reads as declared.
        if let Some(wanted) = &self.wanted {
            let same = [
                (DEVICE, wanted.device.clone(), wanted.is_device(files, &table, mount)),
                (TYPE, wanted.kind.clone(), wanted.is_kind(mount)),
                (OPTIONS, Some(wanted.options.text()), wanted.options.are_of(mount)),
            ];
            for (aspect, declared, is_same) in same {
                let slot = values.iter_mut().find(|(name, _)| *name == aspect && is_same);
                if let (Some((_, slot)), Some(declared)) = (slot, declared) {
                    *slot = Some(declared);
                }
            }
        }
        Ok(values)
    }

    /// Unmounts everything at the path.
    async fn unmount(&self, host: &Host, permit: &Permit) -> Result<bool, WriteFailure> {
        let own = self.clone();
        let count = read_on_thread(host, move |host| {
            Ok(read_table(host.files())?.at(&own.point).map_or(0, |(_, count)| count))
        });
        let count = count.await.map_err(WriteFailure::untouched)?;
        if count > 0 && super::is_needed(&self.point) {
            let refused = Failure::new(super::needed(&self.point));
            let hint = "change the row of fstab, and start the host again";
            return Err(WriteFailure::untouched(refused.hint(hint)));
        }
        if count > 0 {
            self.guard_point(host, "unmount").await.map_err(WriteFailure::untouched)?;
        }
        for done in 0..count.min(MOST_UNMOUNTS) {
            let umount = command(&["umount", self.point_text()]);
            run_change(host, permit, &umount).await.map_err(|it| it.after(done > 0))?;
        }
        Ok(count > 0)
    }

    async fn mount(
        &self,
        host: &Host,
        permit: &Permit,
        wanted: &Wanted,
    ) -> Result<(), WriteFailure> {
        let options = wanted.options.text();
        let Some(device) = wanted.device.as_deref() else {
            let failure = said("remount", &self.point, "nothing is mounted there");
            return Err(WriteFailure::untouched(failure));
        };
        let mut argv = vec!["mount"];
        match wanted.kind.as_deref() {
            Some(kind) if !wanted.options.is_bind() => argv.extend(["-t", kind]),
            _ => {}
        }
        argv.extend(["-o", &options, device, self.point_text()]);
        self.require_directory(host).await.map_err(WriteFailure::untouched)?;
        self.guard_point(host, "mount").await.map_err(WriteFailure::untouched)?;
        guard_device(device).map_err(WriteFailure::untouched)?;
        run_change(host, permit, &command(&argv)).await.map(drop)
    }

    async fn remount(
        &self,
        host: &Host,
        permit: &Permit,
        wanted: &Wanted,
    ) -> Result<(), WriteFailure> {
        let options = wanted.options.remount_text();
        self.guard_point(host, "remount").await.map_err(WriteFailure::untouched)?;
        let argv = ["mount", "-o", &options, self.point_text()];
        run_change(host, permit, &command(&argv)).await.map(drop)
    }

    /// Fails if another user could exchange the mount point or a directory on the way to it: mount(8) and umount(8)
    /// would then work at another place.
    async fn guard_point(&self, host: &Host, doing: &'static str) -> Result<(), Failure> {
        let point = self.point.clone();
        read_on_thread(host, move |_| guard_way(doing, &point)).await
    }

    /// Fails if the mount point does not exist; mount(8) says so in many ways.
    async fn require_directory(&self, host: &Host) -> Result<(), Failure> {
        let point = self.point.clone();
        read_on_thread(host, move |host| {
            let files = host.files();
            refuse_links(files, &point)?;
            let look = || files.open_entry(&point)?.map_or(Ok(None), |spot| spot.look());
            match look().map_err(|fault| files.failure(fault, &point))? {
                Some(_) => Ok(()),
                None => Err(said("mount", &point, "the mount point does not exist")
                    .hint("declare the directory as a file: its path ends with a slash")),
            }
        })
        .await
    }
}

/// The path of a mount point, and of the source of a bind mount, that a row of fstab names.
#[derive(Debug)]
pub(super) struct MountPath {
    pub(super) point: PathBuf,
    pub(super) device: String,
}

impl Precondition for MountPath {
    /// Fails if the way leads through a link, or if another user could change it: the next boot would mount at another
    /// place.
    fn require<'a>(&'a self, host: &'a Host) -> Answer<'a, Result<(), Failure>> {
        let (point, device) = (self.point.clone(), self.device.clone());
        Box::pin(read_on_thread(host, move |host| {
            refuse_links(host.files(), &point)?;
            guard_way("mount", &point)?;
            guard_device(&device)
        }))
    }
}

/// Fails if another user could exchange the directory of a bind mount or the file of a loop device, or a directory or
/// link on the way to it: mount(8) follows links.
fn guard_device(device: &str) -> Result<(), Failure> {
    let is_path =
        device.starts_with('/') && !device.starts_with("//") && !device.starts_with("/dev/");
    if is_path { guard_way("mount", Path::new(device)) } else { Ok(()) }
}

fn read_table(files: &Files) -> Result<Table, Failure> {
    let path = Path::new(TABLE);
    match files.kernel_file(path) {
        Ok(Some(bytes)) => Ok(Table::parse(&String::from_utf8_lossy(&bytes))),
        Ok(None) => Err(said("read", path, "the file does not exist").hint("mount /proc")),
        Err(fault) => Err(files.failure(fault, path)),
    }
}

impl ValueSet for Live {
    fn wanted(&self) -> FieldValues {
        let Some(wanted) = &self.wanted else {
            return vec![(STATE, None), (DEVICE, None), (TYPE, None), (OPTIONS, None)];
        };
        let mut values = vec![(STATE, Some("mounted".to_owned()))];
        values.extend(wanted.device.clone().map(|device| (DEVICE, Some(device))));
        values.extend(wanted.kind.clone().map(|kind| (TYPE, Some(kind))));
        values.push((OPTIONS, Some(wanted.options.text())));
        values
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        _cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        let own = self.clone();
        Box::pin(read_on_thread(host, move |host| own.read_values(host)))
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(async move {
            match &self.wanted {
                None => self.unmount(host, permit).await.map(drop),
                Some(wanted) if differing == [OPTIONS] => self.remount(host, permit, wanted).await,
                Some(wanted) => {
                    let touched = if differing.contains(&STATE) {
                        false
                    } else {
                        self.unmount(host, permit).await?
                    };
                    self.mount(host, permit, wanted).await.map_err(|it| it.after(touched))
                }
            }
        })
    }

    fn footprint(&self) -> Footprint {
        let unit = mount_unit(&self.point);
        let watch = vec![
            WatchSource::Unit { bus: Bus::System, unit: unit.into() },
            // The table of mounts reports a remount as a change of the mount point.
            WatchSource::Path { path: self.point.clone(), below: false },
            WatchSource::Polled(TABLE.into()),
        ];
        Footprint { watch, ..Footprint::default() }
    }

    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn existence(&self) -> Option<&'static str> {
        Some(STATE)
    }

    fn sent(&self, found: &FieldValues) -> Sent {
        let value = |(name, value): &(&'static str, Option<String>)| {
            let value = value.clone()?;
            (*name != STATE).then_some((*name, SentValue::Shown(Value::Text(value))))
        };
        found.iter().filter_map(value).collect()
    }

    fn refresh<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
    ) -> Option<Answer<'a, Result<String, WriteFailure>>> {
        let wanted = self.wanted.as_ref()?;
        Some(Box::pin(async move {
            self.remount(host, permit, wanted).await?;
            Ok("remounted".to_owned())
        }))
    }

    fn reacts_to_refresh(&self) -> bool {
        self.wanted.is_some()
    }
}

/// Returns systemd's name of the unit of a mount point, as `systemd-escape --path --suffix=mount` prints it.
pub(super) fn mount_unit(point: &Path) -> String {
    let path = point.to_string_lossy();
    let path = path.trim_matches('/');
    if path.is_empty() {
        return "-.mount".to_owned();
    }
    let mut name = String::new();
    for (at, byte) in path.bytes().enumerate() {
        match byte {
            b'/' => name.push('-'),
            b'.' if at == 0 => name.push_str("\\x2e"),
            b':' | b'_' | b'.' => name.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            _ => name.push_str(&format!("\\x{byte:02x}")),
        }
    }
    name + ".mount"
}

/// Builds the mount that restores the values from before a change.
pub(super) fn restore(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    let point = normal_path(name)
        .ok_or_else(|| Failure::new(bounded(format!("{name} is no path of a mount point"))))?;
    let of = |field: &str| values.iter().find(|value| value.field == field);
    let before = |field| of(field).and_then(|value| value.before.clone());
    let was_changed = of(STATE).is_some();
    if was_changed && before(STATE).is_none() {
        let live = Live { point, wanted: None };
        let resource = Arc::new(Managed::new(live));
        return Ok(Restoring { resource, by_hand: format!("umount {}", shell_word(name)) });
    }
    let options = Options::parse(&before(OPTIONS).into_iter().collect::<Vec<_>>());
    let wanted = Wanted { device: before(DEVICE), kind: before(TYPE), options };
    if wanted.device.is_none() && (was_changed || wanted.kind.is_some()) {
        let what = bounded(format!("the former device of {name} is not recorded"));
        return Err(Failure::new(what));
    }
    let by_hand = if let Some(device) = &wanted.device {
        let options = shell_word(&wanted.options.text());
        format!("mount -o {options} {} {}", shell_word(device), shell_word(name))
    } else {
        let options = shell_word(&wanted.options.remount_text());
        format!("mount -o {options} {}", shell_word(name))
    };
    let resource = Arc::new(Managed::new(Live { point, wanted: Some(wanted) }));
    Ok(Restoring { resource, by_hand })
}

#[cfg(test)]
mod tests {
    use super::{mount_unit, restore};
    use crate::prior_state::{After, FormerValue};
    use std::path::Path;

    #[test]
    fn units_are_named_as_systemd_names_them() {
        for (path, unit) in [
            ("/", "-.mount"),
            ("/srv/data", "srv-data.mount"),
            ("/srv/a-b c", "srv-a\\x2db\\x20c.mount"),
            ("/.x/y.z", "\\x2ex-y.z.mount"),
            ("/ü", "\\xc3\\xbc.mount"),
        ] {
            assert_eq!(mount_unit(Path::new(path)), unit);
        }
    }

    #[test]
    fn former_mounts_are_restored_as_far_as_they_are_known() {
        let value = |field: &str, before: Option<&str>| FormerValue {
            field: field.to_owned(),
            before: before.map(ToOwned::to_owned),
            after: After::Unknown,
        };
        let by_hand = |values: &[FormerValue]| restore("/srv", values).map(|it| it.by_hand);
        assert_eq!(by_hand(&[value("state", None)]).unwrap(), "umount /srv");
        let spaced = restore("/srv/a b", &[value("state", None)]).unwrap().by_hand;
        assert_eq!(spaced, "umount '/srv/a b'");
        let whole = [
            value("state", Some("mounted")),
            value("device", Some("/dev/sdb1")),
            value("type", Some("ext4")),
            value("options", Some("rw,noatime")),
        ];
        assert_eq!(by_hand(&whole).unwrap(), "mount -o rw,noatime /dev/sdb1 /srv");
        let options = [value("options", Some("ro"))];
        assert_eq!(by_hand(&options).unwrap(), "mount -o remount,rw,suid,dev,exec,ro /srv");
        assert!(by_hand(&[value("type", Some("ext4"))]).is_err());
        assert!(restore("srv", &options).is_err());
    }
}
