//! The inputs of a graph as data: a saved plan is bound to them.

use super::LoadedGraph;
use super::expand::sources::inputs::GivenValues;
use super::hash::Stable;
use super::source_file::Role;
use std::collections::BTreeMap;

impl LoadedGraph {
    /// Returns the name of each input with a text that differs if the input differs: a file that was read, by its path,
    /// with a digest; a used fact as `facts.NAME`, and the answer of a probe as `probe.NAME`, with the value.
    #[must_use]
    pub fn bound_inputs(&self) -> BTreeMap<String, String> {
        let mut inputs = BTreeMap::new();
        for text in &self.texts {
            if text.role == Role::Values {
                let given: GivenValues = serde_json::from_str(&text.content).unwrap_or_default();
                for (name, value) in &given.probes {
                    inputs.insert(format!("probe.{name}"), json_text(value));
                }
            } else {
                let digest = Stable::new().text(&text.content).finish();
                inputs.insert(text.path.display().to_string(), format!("{digest:016x}"));
            }
        }
        for name in &self.used.fact_names {
            let value = self.used.facts.as_deref().and_then(|facts| facts.at_path(name));
            let text = value.map_or_else(|| "absent".to_owned(), json_text);
            inputs.insert(format!("facts.{name}"), text);
        }
        inputs
    }
}

fn json_text(value: &crate::expressions::Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
