//! The locale as the C library has it, made by locale-gen and deleted by localedef.

use super::normal;
use crate::check_request::Answer;
use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::parts::commands::{command, query_text, read_on_thread, run_change};
use crate::parts::field_reader::bounded;
use crate::parts::text_edit::text_of;
use crate::parts::{Precondition, ValueSet, WriteFailure};
use crate::permit::Permit;
use crate::prior_state::FieldValues;
use crate::resource::Traits;
use crate::secrets::escape::short;
use crate::watch_source::WatchSource;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The deadline of locale-gen, which takes some seconds for each locale.
const GENERATION: Duration = Duration::from_mins(10);

/// The command that deletes locales, before their names.
const DELETE: [&str; 2] = ["localedef", "--delete-from-archive"];

/// The advice for a missing program.
const INSTALL: &str = "install the package locales (on Debian), or declare it as a `pkg`";

/// The file of the names in words, such as `french`.
const ALIASES: &str = "/usr/share/locale/locale.alias";

/// The locale as the C library has it.
#[derive(Clone, Debug)]
pub(super) struct Generated {
    pub(super) name: String,
    pub(super) charset: String,
    pub(super) is_present: bool,
}

impl Generated {
    /// Returns the names of the locale that this host has, as `locale -a` writes them: its own name, the name with the
    /// character set, and the names in words.
    async fn found_names(
        &self,
        host: &Host,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, Failure> {
        let all = query_text(host, cancel, &["locale", "-a"]).await?;
        let aliases = if self.is_present {
            None
        } else {
            read_on_thread(host, |host| text_of(host.files(), Path::new(ALIASES))).await?
        };
        Ok(own_names((&self.name, &self.charset), &all, &aliases.unwrap_or_default()))
    }
}

/// Returns the lines of `all` that name a locale with its character set.
fn own_names((name, charset): (&str, &str), all: &str, aliases: &str) -> Vec<String> {
    let own = normal(name);
    let (language, modifier) = match name.split_once('@') {
        Some((language, modifier)) => (language, format!("@{modifier}")),
        None => (name, String::new()),
    };
    let long = if language.contains('.') {
        own.clone()
    } else {
        normal(&format!("{language}.{charset}{modifier}"))
    };
    let is_target = |target: &str| {
        let target = normal(target);
        target == own || target == long
    };
    let is_alias = |line: &str| {
        aliases.lines().filter(|row| !row.starts_with('#')).any(|row| {
            let mut words = row.split_whitespace();
            words.next() == Some(line) && words.next().is_some_and(is_target)
        })
    };
    let lines = all.lines().map(str::trim).filter(|line| is_target(line) || is_alias(line));
    lines.map(|line| if is_target(line) { normal(line) } else { line.to_owned() }).collect()
}

/// The program that makes or deletes the locale is there, if something is to be made or deleted.
impl Precondition for Generated {
    fn require<'a>(&'a self, host: &'a Host) -> Answer<'a, Result<(), Failure>> {
        Box::pin(async move {
            let never = CancellationToken::new();
            let found = self.found_names(host, &never).await?;
            let is_made = found.contains(&normal(&self.name));
            if (self.is_present && is_made) || (!self.is_present && found.is_empty()) {
                return Ok(());
            }
            let program = if self.is_present { "locale-gen" } else { DELETE[0] };
            let find = ["sh", "-c", "command -v \"$1\"", "sh", program];
            let is_there = query_text(host, &never, &find).await;
            is_there.map(drop).map_err(|_missing| {
                Failure::new(format!("{program} is not installed")).hint(INSTALL).passing()
            })
        })
    }
}

impl ValueSet for Generated {
    fn wanted(&self) -> FieldValues {
        vec![("generated", self.is_present.then(|| normal(&self.name)))]
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        Box::pin(async move {
            let found = self.found_names(host, cancel).await?;
            let own = normal(&self.name);
            // A name that needs the locale belongs to it: nothing is left of an absent locale.
            let is_there = if self.is_present { found.contains(&own) } else { !found.is_empty() };
            Ok(vec![("generated", is_there.then_some(own))])
        })
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(async move {
            let never = CancellationToken::new();
            let mut call = if self.is_present {
                command(&["locale-gen", "--keep-existing"])
            } else {
                let found =
                    self.found_names(host, &never).await.map_err(WriteFailure::untouched)?;
                let names = found.iter().map(String::as_str);
                let words: Vec<&str> = DELETE.into_iter().chain(names).collect();
                command(&words)
            };
            call.timeout = Some(GENERATION);
            let done = run_change(host, permit, &call).await.map(drop);
            if self.is_present && done.is_ok() {
                let found = self.found_names(host, &never).await.map_err(WriteFailure::touched)?;
                if !found.contains(&normal(&self.name)) {
                    let what = format!("locale-gen did not make {}", short(&self.name, 40));
                    let hint =
                        "/usr/share/i18n/SUPPORTED lists the names with their character sets";
                    return Err(WriteFailure::touched(Failure::new(bounded(what)).hint(hint)));
                }
            }
            let hint = if self.is_present {
                "install the package locales, and check the line in /etc/locale.gen"
            } else {
                "a locale outside the archive is a directory below /usr/lib/locale"
            };
            done.map_err(|failure| WriteFailure { failure: failure.failure.hint(hint), ..failure })
        })
    }

    fn footprint(&self) -> Footprint {
        let own = HostObject::Other("locale", format!("the locale {}", normal(&self.name)));
        let package = HostObject::Package("locales".to_owned());
        let archive = PathBuf::from("/usr/lib/locale");
        Footprint {
            claims: vec![Claim::exclusive(own).creating(self.is_present)],
            requires: vec![Need::exact(package, "brings locale-gen")],
            watch: vec![WatchSource::Path { path: archive, below: true }],
            ..Footprint::default()
        }
    }

    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn existence(&self) -> Option<&'static str> {
        Some("generated")
    }
}

#[cfg(test)]
mod tests {
    use super::own_names;

    #[test]
    fn all_names_of_a_locale_are_found() {
        let all = "C\nfr_FR\nfr_FR.iso88591\nfr_FR.utf8\nfr_FR@euro\nfrench\ngerman\nfr_FR.iso885915@euro\n";
        let aliases = "# names\nfrench  fr_FR.ISO-8859-1\ngerman de_DE.ISO-8859-1\n";
        let names = |name, charset| own_names((name, charset), all, aliases);
        assert_eq!(names("fr_FR", "ISO-8859-1"), ["fr_FR", "fr_FR.iso88591", "french"]);
        assert_eq!(names("fr_FR.UTF-8", "UTF-8"), ["fr_FR.utf8"]);
        assert_eq!(names("fr_FR@euro", "ISO-8859-15"), ["fr_FR@euro", "fr_FR.iso885915@euro"]);
        assert_eq!(names("es_ES", "ISO-8859-1"), [""; 0]);
    }
}
