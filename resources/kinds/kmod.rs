//! `kmod`: a module of the kernel, loaded or not, now and after the next boot.
//!
//! modprobe(8) loads and unloads; /proc/modules is compared. Options take effect at the next load, because a loaded
//! module is not unloaded for them. A refresh has no meaning. A removal unloads the module and removes both files.

use crate::check_request::Answer;
use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType, Interpreter};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::Files;
use crate::kind::{KindSpec, Restoring};
use crate::parts::commands::{command, read_on_thread, run_change};
use crate::parts::field_reader::bounded;
use crate::parts::whole_file::{Shape, managed_file};
use crate::parts::{FieldReader, Managed, Sequence, ValueSet, WriteFailure};
use crate::permit::Permit;
use crate::prior_state::{FieldValues, FormerValue};
use crate::removal::Removal;
use crate::resource::{Resource, Traits};
use crate::values::sent_values::SendSpec;
use crate::watch_source::WatchSource;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "kmod",
    collectible: false,
    doc: "Loads or unloads a module of the kernel, now and at each boot. The name is the module.",
    fields: &[
        FieldSpec::new(
            "state",
            FieldType::Choice(&["loaded", "absent"]),
            "loaded, or absent: not loaded, without files of steadfast. Default: loaded, and absent with `blacklist`.",
        ).known_at_load(),
        FieldSpec::new(
            "blacklist",
            FieldType::Bool,
            "Prevent the automatic load by hardware aliases (/etc/modprobe.d).",
        )
        .default("false")
        .receives(Receives::Shown),
        FieldSpec::new(
            "options",
            FieldType::Texts,
            "Parameters NAME=VALUE of the module, from its next load on.",
        )
        .mode(FieldMode::Literal(Interpreter::None))
        .example("[nested=1]")
        .receives(Receives::Shown),
        FieldSpec::new(
            "persist",
            FieldType::Bool,
            "Load the module at each boot (/etc/modules-load.d).",
        )
        .default("true")
        .receives(Receives::Shown),
    ],
    sends: &[SendSpec::new("module", FieldType::Text, "The name of the module as the kernel prints it.")],
    example: "kmod:\n  - name: br_netfilter\n",
    restore: Some(restore),
    build,
};

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    if !is_module(name) {
        let what = "expected the name of a module: letters, digits, - and _";
        reader.reject(Invalid::whole(what).hint("for example br_netfilter"));
    }
    let blacklist = reader.fields.bool("blacklist").unwrap_or(false);
    let state = reader.choice("state", &[("loaded", true), ("absent", false)]);
    let is_loaded = state.unwrap_or(!blacklist);
    if blacklist && is_loaded {
        let what = "`blacklist` contradicts `state: loaded`";
        reader.reject(Invalid::field("blacklist", what).hint("omit one of them"));
    }
    if !is_loaded {
        reader.exclude(&["options", "persist"], "has no meaning for a module that is not loaded");
    }
    let options = reader.fields.texts("options").unwrap_or_default();
    for option in &options {
        let is_name = |name: &str| !name.is_empty() && is_module(name);
        let named = option.split_once('=').map_or(option.as_str(), |(name, _)| name);
        if !is_name(named) || option.chars().any(|it| it.is_control() || it == '#' || it == '\\') {
            let what = bounded(format!("expected NAME=VALUE in one line, found `{option}`"));
            reader.reject(Invalid::field("options", what).hint("for example nested=1"));
        }
    }
    let persist = reader.fields.bool("persist").unwrap_or(true) && is_loaded;
    reader.finish(())?;
    resource(Declared { name: name.replace('-', "_"), is_loaded, blacklist, persist, options })
}

fn is_module(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    !name.is_empty() && name.len() <= 64 && name.bytes().all(is_letter) && !name.starts_with('-')
}

struct Declared {
    name: String,
    is_loaded: bool,
    blacklist: bool,
    persist: bool,
    options: Vec<String>,
}

fn resource(declared: Declared) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let Declared { name, is_loaded, blacklist, persist, options } = declared;
    let mut settings = String::new();
    if blacklist {
        settings.push_str(&format!("blacklist {name}\n"));
    }
    if !options.is_empty() {
        settings.push_str(&format!("options {name} {}\n", options.join(" ")));
    }
    let file = |folder: &str, content: Option<String>| {
        let path = Path::new(folder).join(format!("steadfast-{name}.conf"));
        let content =
            content.map(|content| format!("# Managed by steadfast: kmod[{name}]\n{content}"));
        let shape = content.as_deref().map_or(Shape::Absent, |text| Shape::Content(text, "0644"));
        managed_file(&path, shape, &[])
    };
    let has_settings = !settings.is_empty();
    let settings = file("/etc/modprobe.d", has_settings.then_some(settings))?;
    let boot = file("/etc/modules-load.d", persist.then(|| format!("{name}\n")))?;
    let live: Arc<dyn Resource> = Arc::new(Managed::new(Live { name: name.clone(), is_loaded }));
    // The options must be there before the module is loaded, and a module that cannot be loaded is not loaded at each
    // boot. A module that was loaded before, and a file of another origin, do not go with the resource.
    let (elements, mains) = match (is_loaded, persist) {
        (true, true) => (vec![settings, live, boot], vec![1, 2]),
        (true, false) => (vec![settings, live, boot], vec![1]),
        (false, _) => (vec![settings, boot, live], vec![0]),
    };
    let object = HostObject::KernelModule(name.clone());
    let extra = Footprint {
        claims: vec![Claim::exclusive(object.clone()).creating(is_loaded || blacklist)],
        provides: is_loaded.then_some(object).into_iter().collect(),
        requires: vec![Need::exact(HostObject::Package("kmod".to_owned()), "has modprobe")],
        ..Footprint::default()
    };
    let removal = || Removal::new().with("state", Value::Text("absent".to_owned()));
    let sequence = Sequence::new(elements).created_by(mains).with_extra(extra);
    let sequence = sequence.sending("module", name);
    Ok(Arc::new(sequence.removed_by((is_loaded || blacklist).then(removal))))
}

/// The module in the running kernel.
#[derive(Clone, Debug)]
struct Live {
    name: String,
    is_loaded: bool,
}

/// The aspect of a module.
const MODULE: &str = "module";
const LOADED: &str = "loaded";
const BUILT_IN: &str = "built into the kernel";

impl Live {
    fn read_state(&self, files: &Files) -> Result<Option<String>, Failure> {
        let text = |path: &Path| match files.kernel_file(path) {
            Ok(bytes) => Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())),
            Err(fault) => Err(files.failure(fault, path)),
        };
        // A kernel without loadable modules has no such table.
        let table = text(Path::new("/proc/modules"))?.unwrap_or_default();
        if table.lines().any(|line| line.split(' ').next() == Some(&self.name)) {
            return Ok(Some(LOADED.to_owned()));
        }
        let release = text(Path::new("/proc/sys/kernel/osrelease"))?.unwrap_or_default();
        let list = PathBuf::from("/lib/modules").join(release.trim()).join("modules.builtin");
        let built_in = text(&list)?.unwrap_or_default();
        let is_own = |line: &str| {
            let file = line.rsplit('/').next().unwrap_or_default();
            let module = file.split('.').next().unwrap_or_default();
            module.replace('-', "_") == self.name
        };
        Ok(built_in.lines().any(is_own).then(|| BUILT_IN.to_owned()))
    }
}

impl ValueSet for Live {
    fn wanted(&self) -> FieldValues {
        vec![(MODULE, self.is_loaded.then(|| LOADED.to_owned()))]
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        _cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        let own = self.clone();
        Box::pin(read_on_thread(host, move |host| {
            Ok(vec![(MODULE, own.read_state(host.files())?)])
        }))
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(async move {
            let own = self.clone();
            let state = read_on_thread(host, move |host| own.read_state(host.files()));
            let state = state.await.map_err(WriteFailure::untouched)?;
            if state.as_deref() == Some(BUILT_IN) {
                let what = bounded(format!("{} is built into the kernel", self.name));
                let failure = Failure::new(what).hint("it cannot be unloaded: remove the resource");
                return Err(WriteFailure::untouched(failure));
            }
            let argv: &[&str] = if self.is_loaded {
                &["modprobe", &self.name]
            } else {
                &["modprobe", "-r", &self.name]
            };
            run_change(host, permit, &command(argv)).await.map(drop)
        })
    }

    fn footprint(&self) -> Footprint {
        let path = PathBuf::from("/etc/modprobe.d");
        let watch = vec![
            WatchSource::Polled("/proc/modules".into()),
            WatchSource::Path { path, below: false },
        ];
        Footprint { watch, ..Footprint::default() }
    }

    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn is_same(&self, _aspect: &str, found: &str, wanted: &str) -> bool {
        found == wanted || found == BUILT_IN
    }

    fn existence(&self) -> Option<&'static str> {
        Some(MODULE)
    }
}

/// Builds the module that restores its state from before a change.
fn restore(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    if !is_module(name) {
        return Err(Failure::new(bounded(format!("{name} is no name of a module"))));
    }
    let is_loaded = values.iter().any(|value| value.field == MODULE && value.before.is_some());
    let by_hand =
        if is_loaded { format!("modprobe {name}") } else { format!("modprobe -r {name}") };
    let live = Live { name: name.replace('-', "_"), is_loaded };
    Ok(Restoring { resource: Arc::new(Managed::new(live)), by_hand })
}
