//! An entry of the history as a row: the prior state of one change, with a seal that reveals damage before an undo.

use rusqlite::{Row, params};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use steadfast_resources::{
    After, Enclosure, FormerValue, KeyedHash, NotRecorded, PriorContent, PriorEntry, PriorShape,
    PriorState, StateKey,
};

/// The record of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) number: u64,
    pub(super) run: u64,
    pub(super) resource: String,
    pub(super) path: PathBuf,
    /// The time of the change, in milliseconds since 1970.
    pub(super) at: u64,
    pub(super) cause: String,
    pub(super) what: String,
    /// The prior state, always without the content of the file; see `content`.
    pub(super) former: PriorState,
    /// The values of a resource that has no path; its `path` is empty then, and `former` is nothing.
    pub(super) values: Vec<FormerValue>,
    /// The seal of the stored content.
    pub(super) content: Option<KeyedHash>,
    /// The seal of the new content, if the change has edited a part of the file.
    pub(super) edited: Option<KeyedHash>,
}

pub(super) const TABLES: &str = "
CREATE TABLE entry (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    resource TEXT NOT NULL,
    path BLOB NOT NULL,
    at INTEGER NOT NULL,
    cause TEXT NOT NULL,
    what TEXT NOT NULL,
    shape TEXT NOT NULL,
    mode INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    gid INTEGER NOT NULL,
    size INTEGER NOT NULL,
    target BLOB NOT NULL,
    extended BLOB NOT NULL,
    unkept TEXT,
    content TEXT,
    weight INTEGER NOT NULL,
    seal TEXT NOT NULL
) STRICT;
CREATE INDEX by_resource ON entry (resource, number, weight);
CREATE INDEX by_content ON entry (content) WHERE content IS NOT NULL;
CREATE INDEX by_age ON entry (at);
CREATE TABLE content (
    seal TEXT PRIMARY KEY NOT NULL,
    size INTEGER NOT NULL,
    stored INTEGER NOT NULL,
    packed BLOB NOT NULL
) STRICT;
CREATE TABLE secret (
    path BLOB PRIMARY KEY NOT NULL,
    number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE whole (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    next INTEGER NOT NULL
) STRICT;
INSERT INTO whole VALUES (1, 1);
";

/// The statements that add the tables of each later schema.
pub(super) const LATER: [&str; 4] = [
    "
CREATE TABLE name (
    old TEXT PRIMARY KEY NOT NULL,
    new TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
",
    "
CREATE TABLE undoing (
    resource TEXT PRIMARY KEY NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    partial INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
",
    "
ALTER TABLE entry ADD COLUMN fields BLOB NOT NULL DEFAULT x'';
",
    "
ALTER TABLE entry ADD COLUMN edited TEXT;
CREATE INDEX by_edited ON entry (edited) WHERE edited IS NOT NULL;
",
];

pub(super) const COLUMNS: &str = "number, run, resource, path, at, cause, what, shape, mode, uid, gid, size, \
     target, extended, unkept, content, seal, fields, edited";

/// Returns the columns of an entry in a schema version. Versions before 4 have no values, and those before 5 no edits.
pub(super) fn columns(version: i64) -> String {
    let later = [(4, "fields", "x'' AS fields"), (5, "edited", "NULL AS edited")];
    let missing = later.iter().filter(|(since, ..)| version < *since);
    missing.fold(COLUMNS.to_owned(), |columns, (_, name, none)| columns.replace(name, none))
}

/// Returns the queries that a valid history of a schema version answers.
pub(super) fn asks(version: i64) -> Vec<String> {
    let others = [
        "SELECT seal, size, stored, packed FROM content",
        "SELECT path, number FROM secret",
        "SELECT id, next FROM whole",
    ];
    let entries = format!("SELECT {}, weight FROM entry", columns(version));
    let later = [
        "SELECT old, new, at FROM name",
        "SELECT resource, first, last, entries, partial FROM undoing",
    ];
    let later = (2..=version).zip(later).map(|(_, ask)| ask);
    others.into_iter().chain(later).map(str::to_owned).chain([entries]).collect()
}

/// The parts of a prior state, as columns.
struct Parts<'a> {
    shape: &'static str,
    mode: u32,
    uid: u32,
    gid: u32,
    size: u64,
    target: &'a [u8],
    extended: Vec<u8>,
    missing: Option<&'static str>,
}

fn parts(former: &PriorState) -> Parts<'_> {
    let nothing = Parts {
        shape: "nothing",
        mode: 0,
        uid: 0,
        gid: 0,
        size: 0,
        target: &[],
        extended: Vec::new(),
        missing: None,
    };
    let PriorState::Thing(thing) = former else { return nothing };
    let (mode, uid, gid) = (thing.mode, thing.uid, thing.gid);
    let extended = [flat(&thing.extended), flat_enclosure(thing.enclosure)].concat();
    let base = Parts { mode, uid, gid, extended, ..nothing };
    match &thing.shape {
        PriorShape::File(size, content) => {
            let missing = match content {
                PriorContent::Bytes(_) => None,
                PriorContent::NotRecorded(why) => Some(word(*why)),
            };
            Parts { shape: "file", size: *size, missing, ..base }
        }
        PriorShape::Directory => Parts { shape: "directory", ..base },
        PriorShape::Link(target) => Parts { shape: "link", target, ..base },
        PriorShape::Other => Parts { shape: "other", ..base },
    }
}

const WORDS: [(NotRecorded, &str); 4] = [
    (NotRecorded::Same, "same"),
    (NotRecorded::Secret, "secret"),
    (NotRecorded::Large, "large"),
    (NotRecorded::Unreadable, "unreadable"),
];

fn word(missing: NotRecorded) -> &'static str {
    WORDS.iter().find(|(one, _)| *one == missing).map_or("same", |(_, word)| word)
}

/// Joins names and values, each preceded by its length.
fn flat(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut flat = Vec::new();
    for part in pairs.iter().flat_map(|(name, value)| [name, value]) {
        flat.extend((part.len() as u64).to_le_bytes());
        flat.extend(part);
    }
    flat
}

fn unflat(mut flat: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut parts = Vec::new();
    while !flat.is_empty() {
        let (length, rest) = flat.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (part, rest) = rest.split_at_checked(length)?;
        parts.push(part.to_vec());
        flat = rest;
    }
    let pairs = parts.chunks(2).map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone())));
    pairs.collect()
}

/// The name under which the enclosure of an object stands among its extended attributes. No attribute has this name.
const ENCLOSURE: &[u8] = b"enclosure";

fn flat_enclosure(enclosure: Option<Enclosure>) -> Vec<u8> {
    let Some(Enclosure { uid, gid, mode }) = enclosure else { return Vec::new() };
    let value = [uid, gid, mode].into_iter().flat_map(u32::to_le_bytes).collect();
    flat(&[(ENCLOSURE.to_vec(), value)])
}

fn unflat_enclosure(value: &[u8]) -> Option<Enclosure> {
    let mut numbers = value.chunks(4).map(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)));
    let mut number = || numbers.next().flatten();
    let (uid, gid, mode) = (number()?, number()?, number()?);
    numbers.next().is_none().then_some(Enclosure { uid, gid, mode })
}

/// Encodes each field with its values before and after; a letter marks unknown, absent and present values.
fn flat_values(values: &[FormerValue]) -> Vec<u8> {
    let mut pairs = Vec::new();
    for FormerValue { field, before, after } in values {
        let (unknown, absent) = (|| vec![b'?'], || vec![b'-']);
        let text = |text: &String| [b"=", text.as_bytes()].concat();
        let after = match after {
            After::Unknown => unknown(),
            After::Absent => absent(),
            After::Value(value) => text(value),
        };
        pairs.push((field.clone().into_bytes(), before.as_ref().map_or_else(absent, text)));
        pairs.push((field.clone().into_bytes(), after));
    }
    flat(&pairs)
}

fn unflat_values(bytes: &[u8]) -> Option<Vec<FormerValue>> {
    let value = |bytes: &[u8]| -> Option<After> {
        Some(match bytes.split_first()? {
            (b'?', []) => After::Unknown,
            (b'-', []) => After::Absent,
            (b'=', text) => After::Value(String::from_utf8(text.to_vec()).ok()?),
            _ => return None,
        })
    };
    let one = |pairs: &[(Vec<u8>, Vec<u8>)]| {
        let [(field, before), (_, after)] = pairs else { return None };
        let before = match value(before)? {
            After::Unknown => return None,
            After::Absent => None,
            After::Value(text) => Some(text),
        };
        let (field, after) = (String::from_utf8(field.clone()).ok()?, value(after)?);
        Some(FormerValue { field, before, after })
    };
    unflat(bytes)?.chunks(2).map(one).collect()
}

/// Returns the seal of a content. The seal is keyed, so that a short secret cannot be guessed from it (B-26).
pub(super) fn content_seal(key: &StateKey, bytes: &[u8]) -> KeyedHash {
    key.seal(&sealed_content(bytes))
}

/// Returns true if a stored seal is that of a content.
pub(super) fn has_content_seal(key: &StateKey, bytes: &[u8], seal: &KeyedHash) -> bool {
    key.verify(&sealed_content(bytes), seal)
}

/// Returns the bytes that the seal of a content covers.
fn sealed_content(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes.len() + 16);
    all.extend(b"history content:");
    all.extend(bytes);
    all
}

impl Stored {
    /// Returns the weight of the entry in bytes, without its content.
    pub(super) fn weight(&self) -> u64 {
        let parts = parts(&self.former);
        let sizes = [self.resource.len(), self.path.as_os_str().len(), parts.target.len()];
        let values = flat_values(&self.values).len();
        let texts = sizes.iter().sum::<usize>() + parts.extended.len() + values + 256;
        texts as u64
    }

    fn seal(&self, key: &StateKey) -> KeyedHash {
        key.seal(&self.sealed_bytes())
    }

    /// Returns the bytes that the seal of the entry covers.
    fn sealed_bytes(&self) -> Vec<u8> {
        let parts = parts(&self.former);
        let mut all = b"history entry:".to_vec();
        let numbers = [self.number, self.run, self.at, parts.size];
        let small = [parts.mode, parts.uid, parts.gid].map(u64::from);
        all.extend(numbers.iter().chain(&small).flat_map(|number| number.to_le_bytes()));
        let content = self.content.as_ref().map(KeyedHash::to_hex).unwrap_or_default();
        let texts = [
            self.resource.as_bytes(),
            self.path.as_os_str().as_encoded_bytes(),
            self.cause.as_bytes(),
            self.what.as_bytes(),
            parts.shape.as_bytes(),
            parts.target,
            &parts.extended,
            parts.missing.unwrap_or_default().as_bytes(),
            content.as_bytes(),
        ];
        let values = flat_values(&self.values);
        // Entries without values and edits have the same seal as in earlier schemas.
        let edited = self.edited.as_ref().map(|seal| format!("edited {}", seal.to_hex()));
        let later =
            [(!values.is_empty()).then_some(&*values), edited.as_ref().map(String::as_bytes)];
        for text in texts.into_iter().chain(later.into_iter().flatten()) {
            all.extend((text.len() as u64).to_le_bytes());
            all.extend(text);
        }
        all
    }

    /// Inserts the entry as a row.
    pub(super) fn insert(
        &self,
        connection: &rusqlite::Connection,
        key: &StateKey,
    ) -> rusqlite::Result<()> {
        let parts = parts(&self.former);
        let values = "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
             ?18, ?19";
        let sql = format!("INSERT INTO entry ({COLUMNS}, weight) VALUES ({values}, ?20)");
        connection.prepare_cached(&sql)?.execute(params![
            self.number,
            self.run,
            self.resource,
            self.path.as_os_str().as_encoded_bytes(),
            self.at,
            self.cause,
            self.what,
            parts.shape,
            parts.mode,
            parts.uid,
            parts.gid,
            parts.size,
            parts.target,
            parts.extended,
            parts.missing,
            self.content.as_ref().map(KeyedHash::to_hex),
            self.seal(key).to_hex(),
            flat_values(&self.values),
            self.edited.as_ref().map(KeyedHash::to_hex),
            self.weight(),
        ])?;
        Ok(())
    }

    /// Replaces the values in the stored row.
    pub(super) fn update_values(
        &self,
        connection: &rusqlite::Connection,
        key: &StateKey,
    ) -> rusqlite::Result<()> {
        let sql = "UPDATE entry SET fields = ?2, weight = ?3, seal = ?4 WHERE number = ?1";
        let values = flat_values(&self.values);
        let seal = self.seal(key).to_hex();
        connection.prepare_cached(sql)?.execute(params![
            self.number,
            values,
            self.weight(),
            seal
        ])?;
        Ok(())
    }

    /// Replaces the resource in the stored row.
    pub(super) fn rename(
        &self,
        connection: &rusqlite::Connection,
        key: &StateKey,
    ) -> rusqlite::Result<()> {
        let sql = "UPDATE entry SET resource = ?2, weight = ?3, seal = ?4 WHERE number = ?1";
        connection.prepare_cached(sql)?.execute(params![
            self.number,
            self.resource,
            self.weight(),
            self.seal(key).to_hex()
        ])?;
        Ok(())
    }

    /// Reads a row; returns `None` if the row is damaged.
    pub(super) fn read(row: &Row<'_>, key: &StateKey) -> rusqlite::Result<Option<Self>> {
        let thing = |shape| -> rusqlite::Result<Option<PriorState>> {
            let extended: Vec<u8> = row.get("extended")?;
            let Some(mut extended) = unflat(&extended) else { return Ok(None) };
            let mut enclosure = None;
            if extended.last().is_some_and(|(name, _)| name == ENCLOSURE) {
                enclosure = extended.pop().and_then(|(_, value)| unflat_enclosure(&value));
                if enclosure.is_none() {
                    return Ok(None);
                }
            }
            let (mode, uid, gid) = (row.get("mode")?, row.get("uid")?, row.get("gid")?);
            Ok(Some(PriorState::Thing(PriorEntry { shape, mode, uid, gid, extended, enclosure })))
        };
        let shape: String = row.get("shape")?;
        let former = match shape.as_str() {
            "nothing" => Some(PriorState::Nothing),
            "file" => {
                let missing: Option<String> = row.get("unkept")?;
                let why = WORDS.iter().find(|(_, word)| Some(*word) == missing.as_deref());
                let content = match (why, missing) {
                    (Some((why, _)), _) => Some(PriorContent::NotRecorded(*why)),
                    (None, None) => Some(PriorContent::Bytes(Vec::new())),
                    (None, Some(_)) => None,
                };
                let size = row.get("size")?;
                content.map(|content| thing(PriorShape::File(size, content))).transpose()?.flatten()
            }
            "directory" => thing(PriorShape::Directory)?,
            "link" => thing(PriorShape::Link(row.get("target")?))?,
            "other" => thing(PriorShape::Other)?,
            _ => None,
        };
        let Some(former) = former else { return Ok(None) };
        let values: Vec<u8> = row.get("fields")?;
        let Some(values) = unflat_values(&values) else { return Ok(None) };
        let path: Vec<u8> = row.get("path")?;
        let content: Option<String> = row.get("content")?;
        let edited: Option<String> = row.get("edited")?;
        let stored = Self {
            number: row.get("number")?,
            run: row.get("run")?,
            resource: row.get("resource")?,
            path: PathBuf::from(std::ffi::OsString::from_vec(path)),
            at: row.get("at")?,
            cause: row.get("cause")?,
            what: row.get("what")?,
            former,
            values,
            content: content.as_deref().and_then(KeyedHash::from_hex),
            edited: edited.as_deref().and_then(KeyedHash::from_hex),
        };
        let seal: String = row.get("seal")?;
        let seal = KeyedHash::from_hex(&seal);
        Ok(seal.filter(|seal| key.verify(&stored.sealed_bytes(), seal)).map(|_valid| stored))
    }
}

#[cfg(test)]
mod tests {
    use super::{After, FormerValue, flat, flat_values, unflat, unflat_values};

    #[test]
    fn values_survive_being_flat() {
        let value = |field: &str, before: Option<&str>, after: After| FormerValue {
            field: field.to_owned(),
            before: before.map(ToOwned::to_owned),
            after,
        };
        let values = vec![
            value("version", Some("1"), After::Value("=-?".to_owned())),
            value("hold", None, After::Unknown),
            value("", Some(""), After::Absent),
        ];
        assert_eq!(unflat_values(&flat_values(&values)), Some(values.clone()));
        assert_eq!(unflat_values(&[]), Some(Vec::new()));
        assert_eq!(unflat_values(&flat(&[(b"version".to_vec(), b"=1".to_vec())])), None);
        let both = [(b"a".to_vec(), b"?".to_vec()), (b"a".to_vec(), b"-".to_vec())];
        assert_eq!(unflat_values(&flat(&both)), None, "what was before is always known");
    }

    #[test]
    fn attributes_survive_being_flat() {
        let pairs = vec![(b"user.a".to_vec(), vec![0, 1, 255]), (b"b".to_vec(), Vec::new())];
        assert_eq!(unflat(&flat(&pairs)), Some(pairs.clone()));
        assert_eq!(unflat(&[]), Some(Vec::new()));
        assert_eq!(unflat(&flat(&pairs)[1..]), None);
        assert_eq!(unflat(&7_u64.to_le_bytes()), None);
    }
}
