//! Names that stand where a text is read: `vars.x` without `${ }`, and `{{ x }}` of other tools.

use crate::config::document::tree::Node;
use crate::config::expand::names::value_ref;
use crate::config::expand::resources::fields::{NAMES, find_name};
use crate::config::expand::{Context, Expander};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::expressions::Value;

/// The roots of names.
const ROOTS: [&str; 5] = ["vars", "facts", "params", "probe", "item"];

impl Expander<'_> {
    /// Warns about a text that is probably meant as an expression. `field` is the field or the variable.
    pub(in crate::config::expand) fn doubt_text(
        &mut self,
        context: &Context,
        node: usize,
        field: &str,
    ) {
        self.doubt_braces(context, node, field);
        if let Some(name) = self.reference_in(context, node) {
            let of_field = match field {
                "a value" => String::new(),
                field => format!(" in `{}`", quoted(field)),
            };
            let what = format!("`{}`{of_field} is a text, no expression", quoted(&name));
            let hint = format!("write \"${{{name}}}\"; quotes around the name keep the text");
            self.report(context, node, Problem::new(Code::Doubt, what).warning().hint(hint));
        }
    }

    /// Returns the known name that a scalar without quotes consists of.
    fn reference_in(&self, context: &Context, node: usize) -> Option<String> {
        let scalar = context.tree().scalar(node).filter(|scalar| scalar.plain)?;
        let (root, rest) = scalar.text.split_once('.').filter(|(root, _)| ROOTS.contains(root))?;
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        if !rest.chars().all(is_letter) {
            return None;
        }
        let first = rest.split('.').next().unwrap_or(rest);
        let is_known = match root {
            "vars" => !context.is_module() && self.variables.has(first),
            "facts" => crate::facts::is_known_name(rest),
            "probe" => context.scope.probe_types.contains_key(first),
            _ => value_ref(&context.scope, &scalar.text).is_some(),
        };
        is_known.then(|| scalar.text.to_string())
    }

    /// Reports the names in a list of texts that a loop runs over: the items are no values. Returns false if there are
    /// some.
    pub(in crate::config::expand) fn items_are_values(
        &mut self,
        context: &Context,
        node: usize,
    ) -> bool {
        let Some(Node::List(items)) = context.tree().node(node) else { return true };
        let items = items.clone();
        let is_list = |item: &usize| {
            let name = context.text_of(*item).unwrap_or_default();
            matches!(value_ref(&context.scope, name), Some(Value::List(_)))
        };
        // Lists of lists are joined by `+`.
        let joined = items.len() <= 9 && items.iter().all(is_list);
        let joined = joined.then(|| {
            let names: Vec<&str> = items.iter().filter_map(|item| context.text_of(*item)).collect();
            names.join(" + ")
        });
        let mut is_right = true;
        for item in items {
            let Some(name) = self.reference_in(context, item) else { continue };
            is_right = false;
            let what = format!("the item `{}` is a text, no expression", quoted(&name));
            let hint = match &joined {
                Some(joined) => format!("write for_each: {}", quoted(joined)),
                None => format!("write \"${{{name}}}\"; quotes around the name keep the text"),
            };
            self.report(context, item, Problem::new(Code::Loop, what).hint_with_value(hint));
        }
        is_right
    }

    /// Warns about `{{ vars.x }}` in a text that is copied as it is.
    pub(super) fn doubt_template(&mut self, context: &Context, node: usize, field: &str) {
        let text = context.text_of(node).unwrap_or_default();
        let inner = text.split("{{").skip(1).find_map(|rest| Some(rest.split_once("}}")?.0.trim()));
        let Some(inner) = inner.filter(|inner| {
            let root = inner.split_once('.').map_or("", |(root, _)| root);
            ROOTS.contains(&root)
        }) else {
            return;
        };
        let shown = quoted(inner);
        let what =
            format!("`{{{{ {shown} }}}}` in `{field}` is copied as it is, and not evaluated");
        let hint = format!("write template: {{text: \"…\"}} in place of `{field}`");
        self.report(context, node, Problem::new(Code::Doubt, what).warning().hint(hint));
    }

    /// Warns about `${vars.x}` in a template, which prints values by `{{ }}`.
    pub(super) fn doubt_expression(&mut self, context: &Context, node: usize, template: &str) {
        let rest = find_name(template, &NAMES).and_then(|at| template.get(at + 2..));
        let Some((inner, _)) = rest.and_then(|rest| rest.split_once('}')) else { return };
        let shown = quoted(inner.trim());
        let what = format!("`${{{shown}}}` in a template is copied as it is, and not evaluated");
        let hint = format!("write {{{{ {shown} }}}}");
        self.report(context, node, Problem::new(Code::Doubt, what).warning().hint(hint));
    }

    /// Warns about `{{ name }}`, the expression of other tools.
    fn doubt_braces(&mut self, context: &Context, node: usize, field: &str) {
        let Some(text) = context.text_of(node) else { return };
        let Some(inner) = text.split_once("{{").map(|(_, inner)| inner) else { return };
        let Some((name, _)) = inner.split_once("}}") else { return };
        let name = name.trim().to_owned();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return;
        }
        let what = format!("`{{{{ }}}}` in `{field}` is no expression");
        let problem = Problem::new(Code::Doubt, what).warning();
        let hint = if ROOTS.contains(&name.split('.').next().unwrap_or(&name)) {
            format!("write ${{{}}}", quoted(&name))
        } else {
            format!("write ${{vars.{}}} for a variable", quoted(&name))
        };
        self.report(context, node, problem.hint(hint));
    }
}
