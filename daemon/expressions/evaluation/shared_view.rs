//! A view of a list or map. The engine charges a filter for each item of the list that it gives back, even if it is the
//! list that it has got: a filter that only charges work gives back a view of it.

use minijinja::value::{DynObject, Enumerator, Object, ObjectRepr, Value};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Returns a value that reads as the same list or map; other values are returned as they are.
pub(super) fn view_of(value: Value) -> Value {
    let is_wide = |object: &DynObject| matches!(object.repr(), ObjectRepr::Seq | ObjectRepr::Map);
    match value.as_object() {
        Some(object) if is_wide(object) && !value.is_tuple() => {
            Value::from_object(View(object.clone()))
        }
        _ => value,
    }
}

#[derive(Debug)]
struct View(DynObject);

impl Object for View {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        self.0.repr()
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get_value(key)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.0.enumerate()
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        self.0.enumerator_len()
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.0.is_true()
    }

    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        match other.downcast_ref::<Self>() {
            Some(other) => self.0.custom_cmp(&other.0),
            None => self.0.custom_cmp(other),
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.render(f)
    }
}
