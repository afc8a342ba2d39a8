//! The expressions of the graph language through their public interface.

mod answers;
mod gate;
#[path = "../processor_time.rs"]
mod processor_time;
mod results;
mod template_work;
mod templates;

use std::sync::Arc;
use steadfast::expressions::{Environment, MapKey, Scope, Value, ValueType};

/// The values of the tests.
pub(crate) struct World {
    vars: Value,
    facts: Value,
    params: Value,
    item: Value,
}

pub(crate) fn world() -> World {
    let value = |json| Value::from_json(json).expect("a value");
    World {
        vars: value(serde_json::json!({
            "x": 3, "y": -7, "big": i64::MAX, "half": 0.5, "name": "web1", "empty": "", "on": true,
            "workers": 4, "domain": "example.org", "names": ["b", "a", "b"], "numbers": [3, 1, 2],
            "none": [], "mixed": [1, "a"], "my-key": 1,
            "sites": {"shop": {"port": 8081, "tls": true}, "blog": {"port": 8082}},
            "users": [{"name": "ada", "admin": true}, {"name": "bob", "admin": false}],
        })),
        facts: value(serde_json::json!({
            "cpu": {"count": 2}, "virtualisation": "kvm", "container": false,
            "os": {"version": "12", "codename": "bookworm"}, "address": "10.1.2.3",
        })),
        params: value(serde_json::json!({"port": 80})),
        item: value(serde_json::json!({"key": "shop", "value": {"port": 8081}})),
    }
}

impl World {
    pub(crate) fn environment(&self) -> Environment {
        let params = [
            ("port".to_owned(), MapKey::required(ValueType::Int)),
            ("tls".to_owned(), MapKey { value_type: ValueType::Bool, optional: true }),
        ];
        let site = [
            ("port".to_owned(), MapKey::required(ValueType::Int)),
            ("tls".to_owned(), MapKey { value_type: ValueType::Bool, optional: true }),
        ];
        let item = [
            ("key".to_owned(), MapKey::required(ValueType::Text)),
            ("value".to_owned(), MapKey::required(ValueType::Map(Arc::new(site.into())))),
        ];
        Environment::new()
            .with_root("vars", self.vars.value_type())
            .with_root("facts", self.facts.value_type())
            .with_root("params", ValueType::Map(Arc::new(params.into())))
            .with_described_root(
                "item",
                ValueType::Map(Arc::new(item.into())),
                Some("items of `vars.sites`"),
            )
            .refuse("probe", "an identity must be known at load; a probe is not")
            .refuse("facts.memory", "`facts.memory` changes all the time; use a probe")
    }

    pub(crate) fn scope(&self) -> Scope<'_> {
        Scope::new()
            .with_root("vars", &self.vars)
            .with_root("facts", &self.facts)
            .with_root("params", &self.params)
            .with_root("item", &self.item)
    }
}
