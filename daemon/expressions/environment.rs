//! The names that an expression may use at one place, with their types.

use crate::expressions::error::{Cause, ExpressionError};
use crate::expressions::syntax::advice::shown_name;
use crate::expressions::syntax::parse::shortened;
use crate::expressions::value_type::{MapKey, ValueType};
use crate::nearest_name::nearest;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The names of one place: each root (`vars`, `facts`, `params`, `item`, `probe`) with its type, and the names that are
/// refused there with the reason.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    roots: Vec<Root>,
    /// The position of each root in the list.
    positions: HashMap<String, usize>,
    /// The parameters that are secrets.
    secrets: Arc<BTreeMap<String, Option<String>>>,
    refused: Vec<(String, String)>,
    /// The maps whose keys differ between hosts, each with the advice about an absent key.
    open: Vec<(String, String)>,
    /// True if the message about an unknown key looks at few of the known ones only.
    is_brief: bool,
}

#[derive(Clone, Debug)]
struct Root {
    name: String,
    value_type: Arc<ValueType>,
    /// The subject of messages about unknown keys, such as ``items of `vars.sites` ``.
    about: Option<String>,
}

/// The number of known keys that a message lists, and one more.
const LISTED: usize = 9;

/// The type of a name, and its first part that may be absent.
#[derive(Debug)]
pub(super) struct Resolved<'a> {
    pub(super) value_type: Cow<'a, ValueType>,
    pub(super) optional: Option<Vec<String>>,
}

impl Environment {
    /// Creates an environment without names.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a root with the type of its value: a map for `vars`, any type for `item`.
    #[must_use]
    pub fn with_root(self, name: &str, value_type: impl Into<Arc<ValueType>>) -> Self {
        self.with_described_root(name, value_type, None)
    }

    /// Adds or replaces a root. Messages about an unknown key begin with `about`, which is in the plural: ``items of
    /// `vars.sites` ``.
    #[must_use]
    pub fn with_described_root(
        mut self,
        name: &str,
        value_type: impl Into<Arc<ValueType>>,
        about: Option<&str>,
    ) -> Self {
        let root = Root {
            name: name.to_owned(),
            value_type: value_type.into(),
            about: about.map(str::to_owned),
        };
        let position = self.positions.get(name).copied();
        if let Some(known) = position.and_then(|position| self.roots.get_mut(position)) {
            *known = root;
        } else {
            self.positions.insert(name.to_owned(), self.roots.len());
            self.roots.push(root);
        }
        self
    }

    fn root(&self, name: &str) -> Option<&Root> {
        self.positions.get(name).and_then(|position| self.roots.get(*position))
    }

    /// Names the parameters that are secrets, each with the name of its secret: an expression cannot use them.
    #[must_use]
    pub fn with_secret_params(mut self, secrets: Arc<BTreeMap<String, Option<String>>>) -> Self {
        self.secrets = secrets;
        self
    }

    /// Refuses a root or a dotted name, and all names below, with a whole sentence as reason: `an identity must be
    /// known at load; a probe is not`.
    #[must_use]
    pub fn refuse(mut self, name: &str, reason: impl Into<String>) -> Self {
        self.refused.push((name.to_owned(), reason.into()));
        self
    }

    /// Lets a map lack any key: `default` may follow a name in it, whether the map has the key or not. `advice` is the
    /// hint about an absent key without a default, with `{}` for the key.
    #[must_use]
    pub fn with_open_map(mut self, name: &str, advice: impl Into<String>) -> Self {
        self.open.push((name.to_owned(), advice.into()));
        self
    }

    /// Returns true if the name lies below a map that may lack any key.
    pub(super) fn is_open(&self, path: &[String]) -> bool {
        self.advice_if_absent(path).is_some()
    }

    /// Returns true if the name lies below a map that may lack any key, and there is no such key.
    pub(super) fn is_absent(&self, path: &[String]) -> bool {
        let Some((first, keys)) = path.split_first() else { return false };
        let mut at = self.root_type(first);
        for key in keys {
            match at {
                Some(ValueType::Map(known)) => at = known.get(key).map(|it| &it.value_type),
                _ => return false,
            }
            if at.is_none() {
                return self.is_open(path);
            }
        }
        false
    }

    /// Adds the advice about an absent key of an open map.
    fn with_advice(&self, error: ExpressionError, path: &[String], key: &str) -> ExpressionError {
        let Some(advice) = self.advice_if_absent(path) else { return error };
        let advice = advice.replace("{}", &shortened(key));
        error.hint(format!("{advice}, or write `{} | default(VALUE)`", shown_name(path)))
    }

    fn advice_if_absent(&self, path: &[String]) -> Option<&str> {
        let dotted = path.join(".");
        let is_meant = |name: &String| dotted != *name && lies_below(&dotted, name);
        self.open.iter().find(|(name, _)| is_meant(name)).map(|(_, advice)| advice.as_str())
    }

    /// Chooses between messages that name the nearest of all known keys and messages that look at few of them: the
    /// search among thousands of names takes long for thousands of problems.
    #[must_use]
    pub const fn with_hints(mut self, wants_hints: bool) -> Self {
        self.is_brief = !wants_hints;
        self
    }

    /// Returns the number of known keys that a message looks at.
    const fn most_listed(&self) -> usize {
        if self.is_brief { LISTED } else { usize::MAX }
    }

    /// Returns the type of a root.
    #[must_use]
    pub fn root_type(&self, name: &str) -> Option<&ValueType> {
        self.root(name).map(|root| &*root.value_type)
    }

    /// Returns the type of a dotted name.
    pub(super) fn resolve(
        &self,
        path: &[String],
        range: (usize, usize),
    ) -> Result<Resolved<'_>, ExpressionError> {
        let wrong = |message: String| ExpressionError::new(Cause::Name, range, message);
        let dotted = path.join(".");
        if let Some((_, reason)) = self.refused.iter().find(|(name, _)| lies_below(&dotted, name)) {
            return Err(wrong(reason.clone()));
        }
        let (first, keys) = match path.split_first() {
            Some((first, keys)) => (first.as_str(), keys),
            None => return Err(wrong("expected a name".to_owned())),
        };
        if let ("params", [param, ..]) = (first, keys)
            && self.secrets.contains_key(param)
        {
            let param = shortened(param);
            let message = format!("`params.{param}` is a secret: no expression can use it");
            let hint = format!(
                "a field takes {{from: params.{param}}}, a template values: {{{param}: {{from: params.{param}}}}}"
            );
            return Err(wrong(message).hint(hint));
        }
        let Some(root) = self.root(first) else {
            return Err(self.unknown_root(path, range));
        };
        let mut resolved =
            Resolved { value_type: Cow::Borrowed(&*root.value_type), optional: None };
        for (index, key) in keys.iter().enumerate() {
            let (next, may_be_absent) = match &resolved.value_type {
                Cow::Borrowed(ValueType::Map(known)) => {
                    let Some(found) = known.get(key) else {
                        let known: Vec<&str> =
                            known.keys().map(String::as_str).take(self.most_listed()).collect();
                        let error = unknown_key(root, keys, index, &known, range);
                        return Err(self.with_advice(error, path, key));
                    };
                    (&found.value_type, found.optional)
                }
                Cow::Borrowed(ValueType::AnyMap(values)) => (&**values, true),
                other => {
                    let whole = shown_name(path.get(..=index).unwrap_or_default());
                    let key = shortened(key);
                    let message = format!("`{whole}` is {other}; it has no `{key}`");
                    let is_item = root.name == "item" && index == 0;
                    let hint = search_hint(other, (&whole, &key));
                    let hint = hint.or_else(|| is_item.then(|| "write `item`".to_owned()));
                    return Err(wrong(message).hint_if(hint));
                }
            };
            if may_be_absent && resolved.optional.is_none() {
                resolved.optional = Some(path.get(..=index + 1).unwrap_or_default().to_vec());
            }
            resolved.value_type = Cow::Borrowed(next);
        }
        Ok(resolved)
    }

    /// Returns the name that a name without a root stands for: `facts.os.id` of `os`, `os.id`, `os_id` and `codename`.
    fn meant_name(&self, path: &[String]) -> Option<Vec<String>> {
        let (name, rest) = path.split_first()?;
        let of_root = |root: &Root| -> Option<Vec<String>> {
            let keys = keys_of(&root.value_type)?;
            let mut whole = vec![root.name.clone()];
            if let Some(found) = keys.get(name) {
                whole.extend(path.iter().cloned());
                let is_group = root.name == "facts" && rest.is_empty();
                let main = main_key(&found.value_type).filter(|_| is_group);
                whole.extend(main.map(str::to_owned));
                return Some(whole);
            }
            if root.name != "facts" || !rest.is_empty() {
                return None;
            }
            let split = name.split_once('_');
            let has = |group: &str, key: &str| {
                let group = keys.get(group).and_then(|found| keys_of(&found.value_type));
                group.is_some_and(|keys| keys.contains_key(key))
            };
            let group = match split.filter(|(group, key)| has(group, key)) {
                Some((group, key)) => (group, key),
                None => (keys.keys().find(|group| has(group, name))?.as_str(), name.as_str()),
            };
            whole.extend([group.0.to_owned(), group.1.to_owned()]);
            Some(whole)
        };
        self.roots.iter().find_map(of_root)
    }

    fn unknown_root(&self, path: &[String], range: (usize, usize)) -> ExpressionError {
        let name = path.first().map(String::as_str).unwrap_or_default();
        let roots = || self.roots.iter().map(|root| root.name.as_str());
        // A name without its root is the usual slip.
        let hint = match (self.meant_name(path), nearest(name, roots())) {
            _ if name.starts_with("ansible_") => {
                "facts have names like `facts.os.id`: `steadfast facts` lists them".to_owned()
            }
            _ if matches!(name, "secret" | "secrets") => {
                "a field takes a secret as {secret: NAME}, a template by `values:`".to_owned()
            }
            _ if name == "item" => "add `for_each` to the entry".to_owned(),
            _ if matches!(name, "env" | "environ" | "ENV" | "ansible_env") => {
                "there is no environment: pass a value by --var NAME=VALUE".to_owned()
            }
            _ if matches!(name, "each" | "loop" | "element" | "it") => {
                "the item of a loop is `item`".to_owned()
            }
            (Some(meant), _) => format!("write `{}`", shown_name(&meant)),
            (None, Some(near)) => format!("nearest: `{near}`"),
            (None, None) if self.roots.is_empty() => "no names are known here".to_owned(),
            (None, None) => {
                let roots: Vec<&str> = roots().collect();
                let text = shortened(&path.join("."));
                format!(
                    "a text stands in quotes: \"{text}\"; a name begins with {}",
                    roots.join(", ")
                )
            }
        };
        let message = match name {
            "item" => "`item` exists only below `for_each`".to_owned(),
            "params" => "`params` exist only in a module".to_owned(),
            "secret" | "secrets" => "an expression cannot use a secret".to_owned(),
            _ => format!("unknown name `{}`", shortened(name)),
        };
        ExpressionError::new(Cause::Name, range, message).hint(hint)
    }
}

/// Returns the keys of a type of maps.
fn keys_of(found: &ValueType) -> Option<&BTreeMap<String, MapKey>> {
    match found {
        ValueType::Map(keys) => Some(keys),
        _ => None,
    }
}

/// Returns the key that probably stands for a map: `id` or `name` of a map of several values.
pub(super) fn main_key(found: &ValueType) -> Option<&str> {
    let keys = keys_of(found)?;
    let usual = ["id", "name", "count", "total_mb", "key", "value"];
    let usual = usual.into_iter().find(|key| keys.contains_key(*key));
    usual.or_else(|| keys.keys().next().map(String::as_str))
}

/// Returns the advice for a key of a list: a list is searched by `in` or `select`, and has functions.
fn search_hint(found: &ValueType, (whole, key): (&str, &str)) -> Option<String> {
    let ValueType::List(items) = found else { return None };
    if crate::expressions::functions::table::function_named(key).is_some() {
        return Some(format!("write `{whole} | {key}`"));
    }
    Some(match &**items {
        ValueType::Map(keys) => {
            let field = keys.keys().next().map_or("name", String::as_str);
            format!("a list is searched: `{whole} | select(\"{field}\", \"{key}\") | first`")
        }
        _ => format!("a list is searched: `\"{key}\" in {whole}`"),
    })
}

/// Returns true if the dotted name is `above` or lies below.
fn lies_below(dotted: &str, above: &str) -> bool {
    dotted.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the message about the key at `index`.
fn unknown_key(
    root: &Root,
    keys: &[String],
    index: usize,
    known: &[&str],
    range: (usize, usize),
) -> ExpressionError {
    let key = keys.get(index).map(String::as_str).unwrap_or_default();
    let above = keys.get(..index).unwrap_or_default().join(".");
    let near = nearest(key, known.iter().copied());
    let mut names: Vec<&str> = known.iter().copied().take(LISTED).collect();
    if names.len() == LISTED {
        names.pop();
        names.push("…");
    }
    let names = names.join(", ");
    let written = shortened(key);
    let message = match (&root.about, near) {
        (Some(about), _) => format!("{about} have no `{written}`; they have {names}"),
        (None, near) => {
            let noun = match root.name.as_str() {
                "vars" => "variable",
                "facts" => "fact",
                "params" => "parameter",
                "probe" => "probe",
                _ => "name",
            };
            let dot = if above.is_empty() { "" } else { "." };
            let whole = shortened(&format!("{above}{dot}{key}"));
            match near {
                Some(near) => format!("no {noun} `{whole}`; nearest: `{above}{dot}{near}`"),
                None => format!("no {noun} `{whole}`"),
            }
        }
    };
    let with_minus =
        known.iter().find(|name| name.strip_prefix(key).is_some_and(|rest| rest.starts_with('-')));
    let hint = match (with_minus, near, names.is_empty()) {
        (Some(name), _, _) => {
            let dot = if above.is_empty() { "" } else { "." };
            Some(format!(
                "a key with `-` stands in brackets: `{}{dot}{above}[\"{name}\"]`",
                root.name
            ))
        }
        (None, None, false) if root.about.is_none() => Some(format!("known: {names}")),
        (None, _, true) if root.name == "params" => {
            Some(format!("declare it in the module: params: {{{key}: {{type: string}}}}"))
        }
        (None, _, true) => Some(format!("`{}` is empty", root.name)),
        _ => None,
    };
    ExpressionError::new(Cause::Name, range, message).hint_if(hint)
}
