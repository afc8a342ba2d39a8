//! Reads the fields of a repository and writes them in apt's deb822 format.

use super::key_file::KeyFile;
use super::lists::ListNames;
use super::{Declaration, IsUnread, Lists};
use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::parts::field_reader::normal_path;
use crate::parts::file_values::HASH;
use crate::parts::whole_file::{Shape, managed_file};
use crate::parts::{FieldReader, Precondition, Sequence};
use crate::removal::Removal;
use crate::resource::Resource;
use crate::secrets::escape::short;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The folder of the repositories.
const FOLDER: &str = "/etc/apt/sources.list.d";

const KEY_BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const KEY_END: &str = "-----END PGP PUBLIC KEY BLOCK-----";

/// The key of a repository.
#[derive(Debug)]
enum Key {
    Text(String),
    File(PathBuf),
}

pub(super) fn build(
    name: &str,
    fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.starts_with('.') || !name.bytes().all(allowed) {
        let what = format!("expected the name of a list of apt, found `{}`", short(name, 40));
        reader.reject(
            Invalid::whole(what).hint("apt reads files named with letters, digits and -_."),
        );
    }
    let path = Path::new(FOLDER).join(format!("{name}.sources"));
    if !reader.is_present() {
        reader.finish(())?;
        let file = managed_file(&path, Shape::Absent, &[])?;
        let extra = Footprint { claims: vec![claim(name).creating(false)], ..Footprint::default() };
        return Ok(Arc::new(Sequence::new(vec![file]).with_extra(extra)));
    }
    let source = Source::read(&mut reader);
    let source = reader.finish(source)?;
    let shown = path.display().to_string();
    let file = managed_file(&path, Shape::Content(&source.text(name), "0644"), &[])?;
    let names = ListNames::new(&source.uris, &source.suites);
    let lists = names.clone();
    let is_unread = IsUnread::default();
    let mut elements: Vec<Arc<dyn Resource>> = vec![Arc::new(Declaration {
        file: Arc::clone(&file),
        lists,
        is_unread: Arc::clone(&is_unread),
    })];
    let mut precondition: Option<Arc<dyn Precondition>> = None;
    if source.enabled {
        precondition = source
            .key_path()
            .map(|path| Arc::new(KeyFile { name: name.to_owned(), path }) as Arc<dyn Precondition>);
        elements.push(Arc::new(Lists {
            name: name.to_owned(),
            path,
            names,
            key: source.key_path(),
            is_unread,
            last_failure: Mutex::default(),
        }));
    }
    let extra = Footprint {
        claims: vec![claim(name)],
        provides: vec![HostObject::Repository(name.to_owned())],
        requires: source.key_need().into_iter().collect(),
        trusts: source.key_path().into_iter().collect(),
        ..Footprint::default()
    };
    let removal = Removal::new().with("state", Value::Text("absent".to_owned()));
    let sequence = Sequence::new(elements).removed_by(Some(removal)).sending("path", shown);
    let sequence = sequence.reading(&[HASH], &file).requiring(precondition);
    Ok(Arc::new(sequence.with_extra(extra)))
}

fn claim(name: &str) -> Claim {
    Claim::exclusive(HostObject::Repository(name.to_owned()))
}

/// A repository as declared.
#[derive(Debug)]
struct Source {
    types: Vec<String>,
    uris: Vec<String>,
    suites: Vec<String>,
    components: Vec<String>,
    architectures: Vec<String>,
    key: Option<Key>,
    trusted: bool,
    enabled: bool,
}

impl Source {
    fn read(reader: &mut FieldReader) -> Self {
        let source = Self {
            types: words("types", reader).unwrap_or_else(|| vec!["deb".to_owned()]),
            uris: required("uris", "[https://deb.example.org/debian]", reader),
            suites: required("suites", "[bookworm]", reader),
            components: words("components", reader).unwrap_or_default(),
            architectures: words("architectures", reader).unwrap_or_default(),
            key: read_key(reader),
            trusted: reader.fields.bool("trusted").unwrap_or_default(),
            enabled: reader.fields.bool("enabled").unwrap_or(true),
        };
        for word in source.types.iter().filter(|word| !["deb", "deb-src"].contains(&word.as_str()))
        {
            let what = format!("expected deb or deb-src, found `{}`", short(word, 30));
            reader.reject(Invalid::field("types", what));
        }
        for uri in source.uris.iter().filter(|uri| !uri.contains(":/")) {
            let what = format!("expected an address with a scheme, found `{}`", short(uri, 40));
            reader.reject(
                Invalid::field("uris", what).hint("for example https://deb.debian.org/debian"),
            );
        }
        // The file is readable by everybody.
        for uri in source.uris.iter().filter(|uri| has_password(uri)) {
            let shown = uri.rsplit_once('@').map_or("", |(_, rest)| rest);
            let what = format!("the address of `{}` contains a password", short(shown, 40));
            let hint = "put it into /etc/apt/auth.conf.d with a sensitive file";
            reader.reject(Invalid::field("uris", what).hint(hint));
        }
        let has_whole = source.suites.iter().any(|suite| suite.ends_with('/'));
        let has_named = source.suites.iter().any(|suite| !suite.ends_with('/'));
        let problem = ("expected components of the suites, found none", "for example [main]");
        reader.require(!has_named || !source.components.is_empty(), "components", problem);
        let problem = ("a suite that ends in / has no components", "omit `components`");
        reader.require(!has_whole || source.components.is_empty(), "components", problem);
        source
    }

    fn key_need(&self) -> Option<Need> {
        self.key_path().map(|path| Need::path(path, "contains the key"))
    }

    /// Returns the file of the key. A user who can change the file can sign packages.
    fn key_path(&self) -> Option<PathBuf> {
        match &self.key {
            Some(Key::File(path)) => Some(path.into()),
            _ => None,
        }
    }

    /// Returns the content of the file.
    fn text(&self, name: &str) -> String {
        let mut text = format!("# Managed by steadfast: repo[{name}]\n");
        if !self.enabled {
            text.push_str("Enabled: no\n");
        }
        let mut line = |key: &str, values: &[String]| {
            if !values.is_empty() {
                text.push_str(&format!("{key}: {}\n", values.join(" ")));
            }
        };
        line("Types", &self.types);
        line("URIs", &self.uris);
        line("Suites", &self.suites);
        line("Components", &self.components);
        line("Architectures", &self.architectures);
        if self.trusted {
            text.push_str("Trusted: yes\n");
        }
        match &self.key {
            Some(Key::File(path)) => text.push_str(&format!("Signed-By: {}\n", path.display())),
            Some(Key::Text(key)) => {
                text.push_str("Signed-By:\n");
                for line in key.trim().lines().map(str::trim_end) {
                    text.push_str(&format!(" {}\n", if line.is_empty() { "." } else { line }));
                }
            }
            None => {}
        }
        text
    }
}

/// Returns true if the address contains an account with a password.
fn has_password(uri: &str) -> bool {
    let host =
        uri.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    host.rsplit_once('@').is_some_and(|(account, _)| account.contains(':'))
}

fn words(field: &'static str, reader: &mut FieldReader) -> Option<Vec<String>> {
    let words = reader.fields.texts(field)?;
    let is_word = |word: &String| {
        !word.is_empty() && !word.chars().any(|it| it.is_whitespace() || it.is_control())
    };
    for word in words.iter().filter(|word| !is_word(word)) {
        let what = format!("expected single words, found `{}`", short(word, 40));
        reader
            .reject(Invalid::field(field, what).hint("write each value as an element of the list"));
    }
    Some(words)
}

fn required(field: &'static str, example: &str, reader: &mut FieldReader) -> Vec<String> {
    let words = words(field, reader).unwrap_or_default();
    if words.is_empty() {
        let what = format!("expected `{field}`, found none");
        reader.reject(Invalid::field(field, what).hint(format!("{field}: {example}")));
    }
    words
}

fn read_key(reader: &mut FieldReader) -> Option<Key> {
    let text = reader.lines("signed_by")?;
    let trimmed = text.trim();
    if trimmed.starts_with(KEY_BEGIN) && trimmed.ends_with(KEY_END) {
        return Some(Key::Text(trimmed.to_owned()));
    }
    let path = normal_path(trimmed).filter(|_| !trimmed.contains(char::is_whitespace));
    if path.is_none() {
        let what = "expected a public key or the absolute path of one";
        let hint = format!("a key begins with {KEY_BEGIN} and ends with {KEY_END}");
        reader.reject(Invalid::field("signed_by", what).hint(hint));
    }
    path.map(Key::File)
}

#[cfg(test)]
mod tests {
    use super::{Key, Source, has_password};

    #[test]
    fn an_inline_key_becomes_continuation_lines() {
        let word = |word: &str| vec![word.to_owned()];
        let key =
            "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc=\n-----END PGP PUBLIC KEY BLOCK-----";
        let source = Source {
            types: word("deb"),
            uris: word("https://a/b"),
            suites: word("s"),
            components: word("main"),
            architectures: Vec::new(),
            key: Some(Key::Text(key.to_owned())),
            trusted: false,
            enabled: false,
        };
        assert_eq!(
            source.text("x"),
            "# Managed by steadfast: repo[x]\nEnabled: no\nTypes: deb\nURIs: https://a/b\nSuites: s\n\
             Components: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc=\n \
             -----END PGP PUBLIC KEY BLOCK-----\n"
        );
    }

    #[test]
    fn passwords_in_addresses_are_found() {
        assert!(has_password("https://me:secret@host/x"));
        assert!(!has_password("https://me@host/x") && !has_password("https://host:80/a@b:c"));
    }
}
