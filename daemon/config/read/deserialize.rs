//! The deserializers of the fast reader: maps, lists and scalars that may be null, and scalars as written.

use crate::config::scalar;
use crate::config::scalar::Scalar;
use crate::config::source_file::SourceFile;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use steadfast_resources::KindSet;
use steadfast_resources::{FieldSpec, FieldType, Place, Value};

/// The data that all parts of the reader share for one file.
#[derive(Clone, Copy)]
pub(in crate::config) struct Reader<'a> {
    pub(in crate::config) source: &'a SourceFile,
    pub(in crate::config) kinds: &'a KindSet,
    pub(in crate::config) place: &'a Place,
}

/// A reader of a map or null.
pub(in crate::config) trait Entries<'de>: Sized {
    type Out;
    fn read<A: MapAccess<'de>>(self, map: A) -> Result<Self::Out, A::Error>;
}

/// A reader of a list or null.
pub(in crate::config) trait Items<'de>: Sized {
    type Out;
    fn read<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Out, A::Error>;
}

macro_rules! nullable {
    ($wrapper:ident, $inner:ident, $trait:ident, $deserialize:ident, $visit:ident, $access:ident) => {
        pub(in crate::config) struct $wrapper<T>(pub(in crate::config) T);
        struct $inner<T>(T);

        impl<'de, T: $trait<'de>> DeserializeSeed<'de> for $wrapper<T> {
            type Value = Option<T::Out>;
            fn deserialize<D: Deserializer<'de>>(self, de: D) -> Result<Self::Value, D::Error> {
                de.deserialize_option(self)
            }
        }

        impl<'de, T: $trait<'de>> Visitor<'de> for $wrapper<T> {
            type Value = Option<T::Out>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a collection")
            }
            fn visit_none<E>(self) -> Result<Self::Value, E> {
                Ok(None)
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(None)
            }
            fn visit_some<D: Deserializer<'de>>(self, de: D) -> Result<Self::Value, D::Error> {
                de.$deserialize($inner(self.0)).map(Some)
            }
        }

        impl<'de, T: $trait<'de>> Visitor<'de> for $inner<T> {
            type Value = T::Out;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a collection")
            }
            fn $visit<A: $access<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
                self.0.read(access)
            }
        }
    };
}

nullable!(Map, MapVisitor, Entries, deserialize_map, visit_map, MapAccess);
nullable!(List, ListVisitor, Items, deserialize_seq, visit_seq, SeqAccess);

/// A reader of a scalar as written, or null.
#[derive(Clone, Copy)]
pub(in crate::config) struct Plain<'a>(pub(in crate::config) Reader<'a>);

impl<'de> DeserializeSeed<'de> for Plain<'_> {
    type Value = Option<Scalar<'de>>;
    fn deserialize<D: Deserializer<'de>>(self, de: D) -> Result<Self::Value, D::Error> {
        de.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Plain<'_> {
    type Value = Option<Scalar<'de>>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scalar")
    }
    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_some<D: Deserializer<'de>>(self, de: D) -> Result<Self::Value, D::Error> {
        de.deserialize_str(Verbatim(self.0)).map(Some)
    }
}

/// A reader of a scalar as written. The byte before a scalar shows if it was quoted.
#[derive(Clone, Copy)]
pub(in crate::config) struct Verbatim<'a>(pub(in crate::config) Reader<'a>);

impl<'de> DeserializeSeed<'de> for Verbatim<'_> {
    type Value = Scalar<'de>;
    fn deserialize<D: Deserializer<'de>>(self, de: D) -> Result<Self::Value, D::Error> {
        de.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Verbatim<'_> {
    type Value = Scalar<'de>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scalar")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        let before = self.0.offset(text).and_then(|at| at.checked_sub(1));
        let before = before.and_then(|at| self.0.source.text.as_bytes().get(at));
        let plain = !matches!(before, Some(b'"' | b'\''));
        Ok(Scalar { text: Cow::Borrowed(text), plain })
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Scalar { text: Cow::Owned(text.to_owned()), plain: false })
    }
}

/// A reader of several texts, or of one text if that is accepted as a list.
#[derive(Clone, Copy)]
pub(in crate::config) struct OneOrMany<'a> {
    pub(in crate::config) reader: Reader<'a>,
    pub(in crate::config) list_only: bool,
}

impl<'de> DeserializeSeed<'de> for OneOrMany<'_> {
    type Value = Option<Vec<String>>;
    fn deserialize<D: Deserializer<'de>>(self, de: D) -> Result<Self::Value, D::Error> {
        de.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OneOrMany<'_> {
    type Value = Option<Vec<String>>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("texts")
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        if self.list_only { Err(declined()) } else { Ok(Some(vec![text.to_owned()])) }
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element_seed(Plain(self.reader))? {
            match text {
                Some(Scalar { text: Cow::Borrowed(text), .. }) => texts.push(text.to_owned()),
                _ => return Err(declined()),
            }
        }
        Ok(Some(texts))
    }
}

/// A reader of a map of texts, in the order written.
pub(in crate::config) struct TextMap<'a>(pub(in crate::config) Reader<'a>);

impl<'de> Entries<'de> for TextMap<'_> {
    type Out = Vec<(String, String)>;
    fn read<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Out, A::Error> {
        let mut entries: Vec<(String, String)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while let Some(key) = self.0.key(&mut map)? {
            let text = self.0.text(&key, &mut map)?;
            let key = key.text.into_owned();
            if key == "<<" || !seen.insert(key.clone()) {
                return Err(declined());
            }
            entries.push((key, text));
        }
        Ok(entries)
    }
}

impl Reader<'_> {
    /// Returns the offset in the file of a text that was borrowed from it.
    pub(in crate::config) fn offset(self, text: &str) -> Option<usize> {
        let at = (text.as_ptr() as usize).checked_sub(self.source.text.as_ptr() as usize)?;
        (at + text.len() <= self.source.text.len()).then_some(at)
    }

    pub(in crate::config) fn key<'de, A: MapAccess<'de>>(
        self,
        map: &mut A,
    ) -> Result<Option<Scalar<'de>>, A::Error> {
        map.next_key_seed(Verbatim(self))
    }

    /// Reads the scalar of a key; declines it if YAML readers disagree about its end.
    pub(in crate::config) fn scalar<'de, A: MapAccess<'de>>(
        self,
        key: &Scalar<'de>,
        map: &mut A,
    ) -> Result<Option<Scalar<'de>>, A::Error> {
        let scalar = map.next_value_seed(Plain(self))?;
        match &scalar {
            Some(Scalar { text: Cow::Owned(_), .. }) if !self.is_sure(key) => Err(declined()),
            _ => Ok(scalar),
        }
    }

    /// Returns true if the value of a key is a block, or a quoted text on one line.
    fn is_sure(self, key: &Scalar<'_>) -> bool {
        let Cow::Borrowed(text) = key.text else { return false };
        let after = self.offset(text).map(|at| at + text.len() + usize::from(!key.plain));
        let rest = after.and_then(|at| self.source.text.get(at..)).unwrap_or_default();
        let value = rest.trim_start_matches(' ').strip_prefix(':').unwrap_or_default();
        let mut characters =
            value.trim_start_matches(' ').bytes().take_while(|byte| *byte != b'\n');
        match characters.next() {
            Some(b'|' | b'>') => true,
            Some(b'\'') => characters.any(|byte| byte == b'\''),
            Some(b'"') => loop {
                match characters.next() {
                    Some(b'"') => return true,
                    Some(b'\\') => drop(characters.next()),
                    Some(_) => {}
                    None => return false,
                }
            },
            _ => false,
        }
    }

    /// Reads a text; declines null.
    pub(in crate::config) fn text<'de, A: MapAccess<'de>>(
        self,
        key: &Scalar<'de>,
        map: &mut A,
    ) -> Result<String, A::Error> {
        let scalar = self.scalar(key, map)?;
        scalar.map(|scalar| scalar.text.into_owned()).ok_or_else(declined)
    }

    /// Reads the value of a field, if one is given; declines a field that needs a warning.
    pub(in crate::config) fn field<'de, A: MapAccess<'de>>(
        self,
        field: &'static FieldSpec,
        key: &Scalar<'de>,
        map: &mut A,
    ) -> Result<Option<Value>, A::Error> {
        if field.later || field.ignored.is_some() {
            return Err(declined());
        }
        match field.takes {
            FieldType::Text
            | FieldType::Bool
            | FieldType::Int
            | FieldType::Float
            | FieldType::Choice(_)
            | FieldType::Seconds
            | FieldType::Milliseconds
            | FieldType::Duration => match self.scalar(key, map)? {
                Some(scalar) if scalar::lacks_unit(field, &scalar) => Err(declined()),
                Some(scalar) => scalar::convert(field.takes, scalar).ok_or_else(declined).map(Some),
                None => Ok(None),
            },
            FieldType::Texts => {
                let texts = OneOrMany { reader: self, list_only: field.list_only };
                Ok(map.next_value_seed(texts)?.map(Value::Texts))
            }
            FieldType::TextMap => Ok(map.next_value_seed(Map(TextMap(self)))?.map(Value::TextMap)),
            FieldType::Anything => Err(declined()),
        }
    }
}

pub(in crate::config) fn declined<E: serde::de::Error>() -> E {
    E::custom("left to the slow reader")
}
