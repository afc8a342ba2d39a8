//! `divert`: a diversion of dpkg: packages install a file under another name, and its own name is free.
//!
//! dpkg-divert(1) changes the table; /var/lib/dpkg/diversions is read and watched. A refresh has no meaning. A removal
//! ends the diversion and gives the file of the package its name back.
//!
//! Reading order: this file, `table.rs` (the list of diversions).

mod table;

pub(crate) use table::{diverted_files, find_diversion};

use crate::check_request::Answer;
use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::kind::{KindSpec, Restoring};
use crate::kinds::noop;
use crate::parts::alternative::Alternative;
use crate::parts::commands::{command, read_on_thread, run_change};
use crate::parts::field_reader::bounded;
use crate::parts::shell_words::shell_word;
use crate::parts::staging::guard_way;
use crate::parts::whole_file::{Shape, managed_file};
use crate::parts::{FieldReader, Managed, Sequence, ValueSet, WriteFailure};
use crate::permit::Permit;
use crate::prior_state::{FieldValues, FormerValue};
use crate::removal::Removal;
use crate::resource::{Resource, Traits};
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use crate::watch_source::WatchSource;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use table::{Diversion, TABLE};
use tokio_util::sync::CancellationToken;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "divert",
    collectible: false,
    doc: "Lets packages install a file under another name (dpkg-divert), so that no upgrade overwrites the file at its own name.",
    fields: &[
        FieldSpec::new("path", FieldType::Text, "Absolute path of the diverted file. Default: the name.")
            .mode(FieldMode::Static)
            .example("/etc/screenrc"),
        FieldSpec::new(
            "to",
            FieldType::Text,
            "Absolute path at which packages install the file instead. Default: the path with .distrib.",
        ).mode(FieldMode::Static)
        .example("/etc/screenrc.dpkg-divert"),
        FieldSpec::new(
            "package",
            FieldType::Text,
            "The package whose own file keeps its name. Default: none, so that the files of all packages are diverted.",
        ).known_at_load()
        .example("our-branding"),
        FieldSpec::new(
            "rename",
            FieldType::Bool,
            "Moves an existing file to the other name, and back at the removal. Needs directories that no other user can change.",
        ).receives(Receives::Shown)
        .default("true"),
        FieldSpec::new(
            "discard",
            FieldType::Bool,
            "With state absent: removes the file at its own name first, which otherwise is in the way of the file of the package. Without effect while the diversion exists.",
        ).known_at_load()
        .default("false"),
        FieldSpec::new("state", FieldType::Choice(&["exists", "absent"]), "Presence of the diversion.")
            .known_at_load()
            .default("exists"),
    ],
    sends: &[SendSpec::new("to", FieldType::Text, "The path at which packages install the file.")],
    example: "divert:\n  - name: /etc/screenrc\n",
    restore: Some(restore),
    build,
};

/// The aspect of the other name; it stands for the existence of the diversion.
const TO: &str = "to";

/// The aspect of the package whose own file keeps its name.
const PACKAGE: &str = "package";

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let path = file_path(&mut reader, "path", name);
    let default = format!("{}.distrib", path.display());
    let to = file_path(&mut reader, "to", &default);
    let is_other = path != to;
    let problem = ("expected another path than that of the file", "omit `to` for PATH.distrib");
    reader.require(is_other, "to", problem);
    let package = reader.text("package");
    let is_name = package.as_deref().is_none_or(table::is_package);
    let problem =
        ("expected the name of a package", "omit the field for the files of all packages");
    reader.require(is_name, "package", problem);
    let is_present = reader.is_present();
    let rename = reader.fields.bool("rename").unwrap_or(true);
    let discard = reader.fields.bool("discard").unwrap_or(false);
    reader.finish(())?;
    let wanted = is_present.then_some(Diversion { to, package });
    let live = Arc::new(Managed::new(Live { path: path.clone(), wanted, rename }));
    if !discard || is_present {
        return Ok(live);
    }
    // The file goes only while the diversion exists: afterwards its name belongs to the package.
    let forms = vec![
        noop::SPEC.build_resource(name, Fields::default(), &Place { base: PathBuf::from("/") })?,
        managed_file(&path, Shape::Absent, &[])?,
    ];
    let choose = move |host: &Host| Ok(usize::from(find_diversion(host, &path)?.is_some()));
    let discarded = Arc::new(Alternative::new(forms, Box::new(choose)));
    Ok(Arc::new(Sequence::new(vec![discarded, live])))
}

/// Takes the path of a file in one line.
fn file_path(reader: &mut FieldReader, field: &'static str, default: &str) -> PathBuf {
    let path = reader.path(field, default);
    let text = path.to_string_lossy();
    let is_file = path.file_name().is_some() && !text.chars().any(char::is_control);
    let problem = ("expected the absolute path of a file", "for example /etc/screenrc");
    reader.require(is_file, field, problem);
    path
}

/// A diversion as declared.
#[derive(Clone, Debug)]
struct Live {
    path: PathBuf,
    /// None: the file is not diverted.
    wanted: Option<Diversion>,
    rename: bool,
}

impl Live {
    /// Makes the call of dpkg-divert that adds or removes a diversion.
    fn call(&self, diversion: &Diversion, action: &str) -> Vec<String> {
        let rename = if self.rename { "--rename" } else { "--no-rename" };
        let mut argv: Vec<String> =
            ["dpkg-divert", "--quiet", rename, "--divert"].map(ToOwned::to_owned).to_vec();
        argv.push(diversion.to.display().to_string());
        match &diversion.package {
            Some(package) => argv.extend(["--package".to_owned(), package.clone()]),
            None => argv.push("--local".to_owned()),
        }
        argv.extend([action.to_owned(), self.path.display().to_string()]);
        argv
    }

    /// Fails if another user could move the renamed files.
    fn guard(&self, found: Option<&Diversion>) -> Result<(), WriteFailure> {
        if !self.rename {
            return Ok(());
        }
        let others = [found, self.wanted.as_ref()].into_iter().flatten();
        let paths = others.map(|diversion| &diversion.to).chain([&self.path]);
        for path in paths {
            guard_way("divert", path).map_err(WriteFailure::untouched)?;
        }
        Ok(())
    }
}

impl ValueSet for Live {
    fn wanted(&self) -> FieldValues {
        match &self.wanted {
            Some(diversion) => diversion.values(),
            None => vec![(TO, None)],
        }
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        _cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        let path = self.path.clone();
        Box::pin(read_on_thread(host, move |host| {
            let found = find_diversion(host, &path)?;
            Ok(found.map_or_else(|| vec![(TO, None), (PACKAGE, None)], |it| it.values()))
        }))
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(async move {
            let path = self.path.clone();
            let found = read_on_thread(host, move |host| find_diversion(host, &path));
            let found = found.await.map_err(WriteFailure::untouched)?;
            self.guard(found.as_ref())?;
            let mut touched = false;
            if let Some(found) = &found {
                if let Some(wanted) = self.wanted.as_ref().filter(|it| it.package != found.package)
                {
                    return Err(WriteFailure::untouched(self.held_by_another(found, wanted)));
                }
                let argv = self.call(found, "--remove");
                run_change(host, permit, &command(&words(&argv))).await?;
                touched = true;
            }
            if let Some(wanted) = &self.wanted {
                let argv = self.call(wanted, "--add");
                let added = run_change(host, permit, &command(&words(&argv))).await;
                added.map_err(|failed| failed.after(touched))?;
            }
            Ok(())
        })
    }

    fn footprint(&self) -> Footprint {
        let (path, is_present) = (self.path.clone(), self.wanted.is_some());
        let object = HostObject::Other("diversion", path.display().to_string());
        let packaged = is_present.then(|| HostObject::Brought(path.clone()));
        let parent = path.parent().map(|parent| Need::path(parent, "contains the file"));
        let text = |path: &Path| Value::Text(path.display().to_string());
        let removal = self.wanted.as_ref().map(|diversion| {
            let removal =
                Removal::new().with("path", text(&path)).with_data("to", text(&diversion.to));
            let removal = removal.with_data("rename", Value::Bool(self.rename));
            removal.with("state", Value::Text("absent".to_owned()))
        });
        Footprint {
            claims: vec![Claim::exclusive(object).creating(is_present)],
            provides: packaged.into_iter().collect(),
            requires: parent.filter(|_| is_present).into_iter().collect(),
            watch: vec![WatchSource::Path { path: PathBuf::from(TABLE), below: false }],
            removal,
            ..Footprint::default()
        }
    }

    fn sent(&self, found: &FieldValues) -> Sent {
        let to = found.iter().find(|(name, _)| *name == TO).and_then(|(_, to)| to.clone());
        to.map(|to| (TO, SentValue::Shown(Value::Text(to)))).into_iter().collect()
    }

    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn existence(&self) -> Option<&'static str> {
        Some(TO)
    }
}

impl Live {
    fn held_by_another(&self, found: &Diversion, wanted: &Diversion) -> Failure {
        let owner = |diversion: &Diversion| match &diversion.package {
            Some(package) => format!("the package {package}"),
            None => "the administrator".to_owned(),
        };
        let what = format!("{} is diverted already by {}", self.path.display(), owner(found));
        let hint = format!(
            "declare its `package`, or end it: dpkg-divert --remove; found {}, declared {}",
            owner(found),
            owner(wanted)
        );
        Failure::new(bounded(what)).hint(hint)
    }
}

fn words(argv: &[String]) -> Vec<&str> {
    argv.iter().map(String::as_str).collect()
}

/// Builds the diversion that was there before a change.
fn restore(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    let former = |field| {
        values.iter().find(|value| value.field == field).and_then(|value| value.before.clone())
    };
    let path = PathBuf::from(name);
    if !path.is_absolute() {
        let failure = Failure::new("an undo needs a diversion whose name is its path");
        return Err(failure.hint("`steadfast history` shows the values: set them by hand"));
    }
    let package = former(PACKAGE).filter(|package| package != table::LOCAL);
    let wanted = former(TO).map(|to| Diversion { to: PathBuf::from(to), package });
    let live = Live { path, wanted, rename: true };
    let by_hand = match &live.wanted {
        Some(diversion) => live.call(diversion, "--add"),
        None => ["dpkg-divert", "--rename", "--remove", name].map(ToOwned::to_owned).to_vec(),
    };
    let by_hand: Vec<String> = by_hand.iter().map(|word| shell_word(word)).collect();
    Ok(Restoring { resource: Arc::new(Managed::new(live)), by_hand: by_hand.join(" ") })
}

#[cfg(test)]
mod tests;
