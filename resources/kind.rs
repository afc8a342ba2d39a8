//! The declaration of a kind: one table that serves the validator, the documentation and the schema.

use crate::failure::Failure;
use crate::fields::field_spec::{FieldRole, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::prior_state::FormerValue;
use crate::removal::Removal;
use crate::resource::Resource;
use crate::values::sent_values::SendSpec;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The limit of every declared or requested span of time: one year. A longer span is a mistake.
pub const LONGEST_SPAN: Duration = Duration::from_hours(365 * 24);

/// A kind: its name, its fields, and the function that builds its resources.
#[derive(Debug)]
pub struct KindSpec {
    /// The name in the graph file.
    pub kind: &'static str,
    /// The name is no object of the host, or a collector names the object by `path`: resources of the kind may come
    /// from another host.
    pub collectible: bool,
    /// One sentence for `explain`.
    pub doc: &'static str,
    /// The fields besides `name`, `meta` and the short edges.
    pub fields: &'static [FieldSpec],
    /// The values that the kind sends to other resources.
    pub sends: &'static [SendSpec],
    /// A complete resource as it stands in a graph, for `explain` and the reference. A test checks every example.
    pub example: &'static str,
    /// Builds a resource that restores recorded values for undo; none if the kind records none.
    pub restore: Option<Restore>,
    /// Builds a resource, or returns every problem at once. The function reads nothing from the host except the
    /// given fields.
    pub build: Build,
}

/// A function that builds a resource from its name, its fields and the place of its declaration.
pub type Build = fn(&str, Fields, &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>>;

/// A function that builds a resource from the values before a change; it fails if the kind cannot restore them.
pub type Restore = fn(&str, &[FormerValue]) -> Result<Restoring, Failure>;

/// A resource that restores the values from before a change.
#[derive(Debug)]
pub struct Restoring {
    /// The resource, checked and applied like a declared one.
    pub resource: Arc<dyn Resource>,
    /// The command with the same effect, for the operator.
    pub by_hand: String,
}

impl KindSpec {
    /// Returns the field of the object's path.
    #[must_use]
    pub fn path_field(&self) -> Option<&'static FieldSpec> {
        self.fields.iter().find(|field| field.role == Some(FieldRole::Path))
    }

    /// Returns the field that a template makes.
    #[must_use]
    pub fn template_field(&self) -> Option<&'static FieldSpec> {
        self.fields.iter().find(|field| field.role == Some(FieldRole::Template))
    }

    /// Returns the name of the field of the command, and of the field of its arguments.
    #[must_use]
    pub fn command_fields(&self) -> Option<(&'static str, &'static str)> {
        self.fields.iter().find_map(|field| match field.role {
            Some(FieldRole::Command { arguments }) => Some((field.name, arguments)),
            _ => None,
        })
    }

    /// Builds a resource after the checks of the field table: required fields, choices and conflicts.
    ///
    /// # Errors
    ///
    /// Returns every problem at once.
    pub fn build_resource(
        &self,
        name: &str,
        fields: Fields,
        place: &Place,
    ) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
        let of_table = self.table_problems(&fields);
        let (built, mut problems) = match (self.build)(name, fields, place) {
            Ok(resource) => (Some(resource), Vec::new()),
            Err(problems) => (None, problems),
        };
        // The message of the kind knows more than the table.
        for problem in of_table {
            if problems.iter().all(|known| known.field != problem.field) {
                problems.push(problem);
            }
        }
        built.filter(|_| problems.is_empty()).ok_or(problems)
    }

    /// Builds the resource that carries out a removal.
    ///
    /// # Errors
    ///
    /// Returns every problem of the fields, for example after the kind has changed in a new version.
    pub fn build_removal(
        &self,
        removal: &Removal,
        name: &str,
    ) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
        let mut fields = Fields::default();
        for (field, value) in removal.fields().iter().chain(removal.data()) {
            fields.insert(field, value.clone());
        }
        (self.build)(name, fields, &Place { base: PathBuf::from("/") })
    }

    /// Returns the problems that the field table alone finds.
    fn table_problems(&self, fields: &Fields) -> Vec<Invalid> {
        let mut problems = Vec::new();
        for spec in self.fields {
            if !fields.has(spec.name) {
                if spec.required {
                    let what = format!("expected `{}`, found none", spec.name);
                    let hint = format!("{}: {}", spec.name, spec.example.unwrap_or("…"));
                    problems.push(Invalid::field(spec.name, what).hint(hint));
                }
                continue;
            }
            if let (FieldType::Choice(words), Some(text)) =
                (spec.takes, fields.shown_text(spec.name))
                && !text.is_empty()
                && !words.contains(&text)
            {
                let what = format!("expected {}, found {text}", words.join(", "));
                let what = crate::parts::field_reader::bounded(what);
                problems.push(Invalid::field(spec.name, what));
            }
            if let (Some((least, most)), Some(Value::Int(number))) =
                (spec.range, fields.value(spec.name))
                && !(least..=most).contains(number)
            {
                let what = format!("expected {least} to {most}, found {number}");
                problems.push(Invalid::field(spec.name, what));
            }
            for other in spec.conflicts_with.iter().filter(|other| fields.has(other)) {
                let what = format!("`{}` and `{other}` exclude each other", spec.name);
                problems.push(Invalid::field(spec.name, what).hint("keep one of them"));
            }
        }
        problems
    }
}
