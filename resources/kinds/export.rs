//! `export`: offers a resource to other hosts by a key of the world. The configuration makes these resources of
//! `export: true` and of names that begin with `@@`; a graph declares them that way.

use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType, Interpreter};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::world::WorldKey;
use crate::kind::KindSpec;
use crate::permit::Permit;
use crate::removal::Removal;
use crate::resource::{Resource, Traits};
use crate::watch_source::WatchSource;
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "export",
    collectible: false,
    doc: "Offers a resource to other hosts. Write `export: true` on the resource instead; this kind is the result.",
    fields: &[
        FieldSpec::new("record", FieldType::Text, "The offered resource as JSON.")
            .mode(FieldMode::Literal(Interpreter::None))
            .required(),
        FieldSpec::new(
            "identity",
            FieldType::Text,
            "The identity that other hosts see, such as shop/file[key]. Default: the name.",
        )
        .mode(FieldMode::Literal(Interpreter::None)),
        FieldSpec::new(
            "values",
            FieldType::TextMap,
            "Received values of the fields of the resource.",
        )
        .mode(FieldMode::Value)
        .receives(Receives::Shown),
        FieldSpec::new("state", FieldType::Choice(&["exists", "absent"]), "State of the offer.")
            .known_at_load()
            .default("exists"),
    ],
    sends: &[],
    example: "export:\n  - name: noop[x]\n    record: '{\"schema\":1,\"kind\":\"noop\",\"name\":\"x\",\"fields\":{}}'\n",
    restore: None,
    build,
};

#[derive(Debug)]
struct Export {
    key: WorldKey,
    /// The declared record; none if the offer must be absent.
    record: Option<String>,
}

fn build(name: &str, mut fields: Fields, _: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let record = fields.text("record").unwrap_or_default();
    let record = with_values(record, fields.text_map("values").unwrap_or_default())?;
    if record.len() >= 100 * 1024 {
        let what = "expected less than 100 KiB in an exported resource";
        return Err(vec![Invalid::whole(what).hint("export a reference instead of the content")]);
    }
    let is_absent = fields.text("state").is_some_and(|state| state == "absent");
    let key = WorldKey::Export(fields.text("identity").unwrap_or_else(|| name.to_owned()));
    Ok(Arc::new(Export { key, record: (!is_absent).then_some(record) }))
}

/// Adds received values to the fields of a record.
fn with_values(record: String, values: Vec<(String, String)>) -> Result<String, Vec<Invalid>> {
    if values.is_empty() {
        return Ok(record);
    }
    let parsed = serde_json::from_str::<serde_json::Value>(&record).ok();
    let no_record = || vec![Invalid::field("record", "expected a record as JSON")];
    let mut parsed = parsed.ok_or_else(no_record)?;
    let fields = parsed.get_mut("fields").and_then(serde_json::Value::as_object_mut);
    fields.ok_or_else(no_record)?.extend(values.into_iter().map(|(key, text)| (key, text.into())));
    Ok(parsed.to_string())
}

impl Resource for Export {
    fn footprint(&self) -> Footprint {
        let (WorldKey::Export(key) | WorldKey::Shared(key) | WorldKey::Mapped(key)) = &self.key;
        let removal = Removal::new()
            .with("identity", Value::Text(key.clone()))
            .with("record", Value::Text("{}".to_owned()))
            .with("state", Value::Text("absent".to_owned()));
        Footprint {
            watch: vec![WatchSource::World(self.key.clone())],
            removal: self.record.is_some().then_some(removal),
            ..Footprint::default()
        }
    }

    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn check<'a>(&'a self, host: &'a Host, _: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            let found = match host.read_world(&self.key).await {
                Ok(found) => found.own,
                Err(failure) => return CheckResult::Unknown(failure.passing()),
            };
            if found == self.record {
                return CheckResult::Same;
            }
            let difference = Difference {
                aspect: "record",
                from: found.unwrap_or_default(),
                to: self.record.clone().unwrap_or_default(),
                diff: None,
            };
            CheckResult::Differs(Change {
                // A host owns its exports, whoever wrote them: they vanish with the declaration.
                creates: true,
                destructive: self.record.is_none(),
                ..Change::of(vec![difference])
            })
        })
    }

    fn apply<'a>(&'a self, host: &'a Host, permit: &'a Permit, _: Change) -> Answer<'a, Outcome> {
        Box::pin(async move {
            match host.write_world(permit, &self.key, self.record.as_deref()).await {
                Err(_) => Outcome::Interrupted,
                Ok(Err(failure)) => Outcome::Failed { failure, touched: true },
                Ok(Ok(())) => {
                    let done = if self.record.is_some() { "exported" } else { "withdrawn" };
                    Outcome::Changed(vec![done.to_owned()])
                }
            }
        })
    }
}
