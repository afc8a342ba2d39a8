//! Values of data files, and paths of keys to them.

use std::collections::HashMap;
use std::fmt;

/// A value of a data file.
#[derive(Clone, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    /// A number as JSON writes it.
    Number(String),
    Text(String),
    /// A value that only one format has, as written: a date, a hexadecimal number, an alias.
    Other(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

/// Shows no value: a tree may be secret.
impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<value>")
    }
}

impl Tree {
    /// Returns true if both values are equal. The order of keys has no meaning.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::Number(two)) => is_same_number(one, two),
            (Self::List(one), Self::List(two)) => {
                one.len() == two.len() && one.iter().zip(two).all(|(one, two)| one.is_same(two))
            }
            (Self::Map(one), Self::Map(two)) => {
                let mut others = HashMap::with_capacity(two.len());
                for (key, value) in two {
                    others.entry(key).or_insert(value);
                }
                one.len() == two.len()
                    && one
                        .iter()
                        .all(|(key, one)| others.get(key).is_some_and(|two| one.is_same(two)))
            }
            _ => self == other,
        }
    }

    /// Returns the value at a path.
    pub(crate) fn get(&self, path: &[String]) -> Option<&Self> {
        let Some((key, rest)) = path.split_first() else { return Some(self) };
        let next = match self {
            Self::Map(entries) => &entries.iter().find(|(own, _)| own == key)?.1,
            Self::List(items) => items.get(key.parse::<usize>().ok()?)?,
            _ => return None,
        };
        next.get(rest)
    }

    /// Returns a copy in which the value at a path is this one, or is absent. Missing maps on the path are made;
    /// null counts as an empty map.
    ///
    /// # Errors
    ///
    /// Fails if another value is on the path, or if the path leads outside a list.
    pub(crate) fn with(&self, path: &[String], value: Option<&Self>) -> Result<Self, String> {
        let Some((key, rest)) = path.split_first() else {
            return Ok(value.cloned().unwrap_or(Self::Null));
        };
        match self {
            Self::List(items) => {
                let at = key.parse::<usize>().ok().filter(|at| *at < items.len());
                let Some(at) = at else {
                    return Err(format!("the list has {} items, and no item {key}", items.len()));
                };
                if rest.is_empty() && value.is_none() {
                    return Err("an item of a list is not removed: declare the whole list".into());
                }
                let mut items = items.clone();
                if let Some(item) = items.get_mut(at) {
                    *item = item.with(rest, value)?;
                }
                Ok(Self::List(items))
            }
            Self::Map(_) | Self::Null => {
                let mut entries = match self {
                    Self::Map(entries) => entries.clone(),
                    _ => Vec::new(),
                };
                let at = entries.iter().position(|(own, _)| own == key);
                match (at, value, rest.is_empty()) {
                    (Some(at), None, true) => drop(entries.remove(at)),
                    (Some(at), _, _) => {
                        if let Some((_, own)) = entries.get_mut(at) {
                            *own = own.with(rest, value)?;
                        }
                    }
                    (None, None, _) => return Ok(self.clone()),
                    (None, Some(_), _) => {
                        entries.push((key.clone(), Self::Null.with(rest, value)?));
                    }
                }
                Ok(Self::Map(entries))
            }
            Self::Other(text) if text.starts_with('*') => {
                Err(format!("the map with the key {key} is an alias"))
            }
            _ if value.is_none() => Ok(self.clone()),
            _ => Err(format!("expected a map with the key {key}, found another value")),
        }
    }
}

/// Returns true for a number as JSON writes it.
pub(crate) fn is_json_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|it| digits(it.strip_prefix(['+', '-']).unwrap_or(it)))
}

fn is_same_number(one: &str, two: &str) -> bool {
    let is_whole = |text: &str| !text.contains(['.', 'e', 'E']);
    if one == two || is_whole(one) || is_whole(two) {
        return one == two;
    }
    let value = |text: &str| text.parse::<f64>().ok().filter(|it| it.is_finite());
    value(one).is_some_and(|one| value(two) == Some(one))
}

/// Splits a path of keys at its dots; `"a.b".c` has the keys `a.b` and `c`.
///
/// # Errors
///
/// Fails if a key is empty or a quote is missing.
pub(crate) fn split_path(text: &str) -> Result<Vec<String>, String> {
    let (mut path, mut key, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    let mut was_quoted = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if is_quoted => key.extend(letters.next()),
            '"' if is_quoted => (is_quoted, was_quoted) = (false, true),
            '"' if key.is_empty() && !was_quoted => is_quoted = true,
            '.' if !is_quoted => {
                if key.is_empty() && !was_quoted {
                    return Err("expected keys between the dots, found an empty one".into());
                }
                path.push(std::mem::take(&mut key));
                was_quoted = false;
            }
            _ if was_quoted => return Err("expected a dot behind a quoted key".into()),
            letter => key.push(letter),
        }
    }
    if is_quoted {
        return Err("expected a closing quote".into());
    }
    if key.is_empty() && !was_quoted {
        return Err("expected keys between the dots, found an empty one".into());
    }
    path.push(key);
    Ok(path)
}

/// Writes keys as a path that [`split_path`] splits into the same keys.
pub(crate) fn written_path(keys: &[String]) -> String {
    let written = |key: &String| {
        if !key.is_empty() && !key.contains('.') && !key.starts_with('"') {
            return key.clone();
        }
        format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""))
    };
    keys.iter().map(written).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::{Tree, is_json_number, split_path, written_path};

    #[test]
    fn written_paths_are_read_again() {
        for keys in [vec!["a", "b"], vec!["a.b", "c\"d"], vec!["", "\"e\\f."]] {
            let keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
            assert_eq!(split_path(&written_path(&keys)).unwrap(), keys);
        }
    }

    #[test]
    fn paths_have_dots_and_quotes() {
        assert_eq!(split_path("a.b").unwrap(), ["a", "b"]);
        assert_eq!(split_path("\"a.b\".c").unwrap(), ["a.b", "c"]);
        assert_eq!(split_path("\"a\\\"b\"").unwrap(), ["a\"b"]);
        assert_eq!(split_path("\"\"").unwrap(), [""]);
        for wrong in ["", "a.", ".a", "a..b", "\"a", "\"a\"b"] {
            assert!(split_path(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_those_of_json() {
        for number in ["0", "-1", "12.50", "1e9", "1.5E-3"] {
            assert!(is_json_number(number), "{number}");
        }
        for text in ["", "01", "1.", ".5", "+1", "0x1f", "1_000", "1e", "nan", "10.0.0.1"] {
            assert!(!is_json_number(text), "{text}");
        }
    }

    #[test]
    fn values_are_compared_by_meaning() {
        let number = |text: &str| Tree::Number(text.into());
        assert!(number("1.0").is_same(&number("1.00")));
        assert!(!number("1").is_same(&number("1.0")));
        assert!(!number("1").is_same(&Tree::Text("1".into())));
    }

    /// Equal values with many keys are compared in one pass: a comparison of each key with each other one takes hours.
    #[test]
    fn maps_of_many_keys_are_compared_in_one_pass() {
        let map = |order: &mut dyn Iterator<Item = u32>| {
            Tree::Map(order.map(|key| (format!("a{key}"), Tree::Bool(true))).collect())
        };
        let (one, other) = (map(&mut (0..400_000)), map(&mut (0..400_000).rev()));
        assert!(one.is_same(&other));
        assert!(!one.is_same(&map(&mut (1..400_001))));
    }
}
