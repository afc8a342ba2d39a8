//! `steadfast schema`: the JSON Schema of graph files.

use super::args::Schema;
use super::exit::Exit;
use super::output::{error, print};
use crate::config::json_schema;
use steadfast_resources::KindSet;

/// Prints the schema.
pub(super) fn print_schema(_args: &Schema) -> Exit {
    match serde_json::to_string_pretty(&json_schema(&KindSet::of_this_build())) {
        Ok(text) => {
            print(text);
            Exit::Well
        }
        Err(problem) => {
            error(format!("cannot write the schema: {problem}"), None);
            Exit::Failed
        }
    }
}
