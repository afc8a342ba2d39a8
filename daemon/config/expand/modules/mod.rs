//! Uses of modules: each use makes one instance, or one for each item of its loop.
//!
//! Reading order: this file, `module_files`, `params`, `meta`, `instances`, `uses`, `module_page`. The folder never
//! reads the host.

mod instances;
mod meta;
pub(in crate::config::expand) mod module_files;
pub(in crate::config) mod module_page;
pub(in crate::config::expand) mod params;
pub(in crate::config::expand) mod uses;

use crate::config::ast::Relation;
use crate::config::document::tree::Node;
use crate::config::document::{Document, Exports, Inactivity, ModuleEdge};
use crate::config::expand::evaluate::{Root, Scope};
use crate::config::expand::modules::params::{Declaration, DeclaredType};
use crate::config::expand::names::is_from_probe;
use crate::config::expand::outcome::Outcome;
use crate::config::expand::resources::conditions::Condition;
use crate::config::expand::resources::with_item;
use crate::config::expand::{Context, Expander, Parsed};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::expressions::{Value, ValueType};
use crate::nearest_name::nearest;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The keys of a use.
pub(in crate::config::expand) const USE_KEYS: [&str; 10] =
    ["use", "as", "with", "for_each", "when", "meta", "after", "before", "notify", "subscribe"];

/// The keys of a use in other tools, each with the key here.
const FOREIGN_KEYS: [(&str, &str); 12] = [
    ("module", "use"),
    ("source", "use"),
    ("path", "use"),
    ("name", "as"),
    ("id", "as"),
    ("params", "with"),
    ("parameters", "with"),
    ("vars", "with"),
    ("args", "with"),
    ("inputs", "with"),
    ("values", "with"),
    ("loop", "for_each"),
];

/// The work of an export of an instance: the check that a resource is declared.
const WORK_OF_EXPORT: u64 = 6;

/// A module: its files and declarations.
pub(in crate::config::expand) struct Module {
    pub(in crate::config::expand) name: String,
    pub(in crate::config::expand) files: Vec<Arc<Parsed>>,
    pub(in crate::config::expand) params: BTreeMap<String, Declaration>,
    pub(in crate::config::expand) param_types: Arc<ValueType>,
    /// The resources and probes that other files may name.
    pub(in crate::config::expand) exports: Arc<Exports>,
}

/// The values that a use gives to the parameters.
#[derive(Default)]
struct Given {
    values: BTreeMap<String, Value>,
    /// The parameters whose values come from probes; each with the probe that it waits for, if that has not answered.
    of_probes: BTreeMap<String, Option<String>>,
    secrets: BTreeMap<String, String>,
    /// True if a value is wrong, and reported.
    is_wrong: bool,
}

impl Expander<'_> {
    /// Expands all uses of modules in a file; returns the documents of the instances.
    pub(in crate::config::expand) fn expand_modules(
        &mut self,
        context: &Context,
        node: usize,
        document: &mut Document,
    ) -> Vec<Document> {
        if context.is_null(node) {
            return Vec::new();
        }
        let Some(Node::List(items)) = context.tree().node(node) else {
            let what = "`modules` should be a list, such as [{use: DIR, as: NAME}]";
            self.report(context, node, Problem::new(Code::Include, what));
            return Vec::new();
        };
        let before = self.documents.len();
        for item in items.clone() {
            self.expand_use(context, item, document);
            if self.used.is_over {
                break;
            }
        }
        self.documents.split_off(before)
    }

    fn expand_use(&mut self, context: &Context, item: usize, document: &mut Document) {
        if !self.check_use(context, item) {
            self.is_complete = false;
            return;
        }
        let Some((_, use_node)) = context.tree().entry(item, "use") else { return };
        let Some(module) = self.load_module(context, use_node) else {
            self.is_complete = false;
            return;
        };
        let Some((_, for_each)) = context.tree().entry(item, "for_each") else {
            self.expand_instance(context, (item, &module), document);
            return;
        };
        document.loops_modules = true;
        let Some(items) = self.loop_items(context, for_each) else {
            self.is_complete = false;
            return;
        };
        for each in items {
            let inner = with_item(context, &each);
            self.expand_instance(&inner, (item, &module), document);
            if self.used.is_over {
                return;
            }
        }
    }

    /// Reports unknown keys of a use; returns false if the other keys cannot be understood without them.
    fn check_use(&mut self, context: &Context, item: usize) -> bool {
        let mut is_right = true;
        for (key, _) in context.tree().entries(item).to_vec() {
            let text = context.text_of(key).unwrap_or_default().to_owned();
            if !USE_KEYS.contains(&text.as_str()) {
                let foreign = FOREIGN_KEYS.iter().find(|(foreign, _)| *foreign == text);
                let near = foreign.map(|(_, key)| *key).or_else(|| nearest(&text, USE_KEYS));
                let hint = near.map_or_else(
                    || format!("valid keys: {}", USE_KEYS.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                let what = format!("unknown key `{}` in a use of a module", quoted(&text));
                self.report(context, key, Problem::new(Code::UnknownKey, what).hint(hint));
                is_right &= near.is_some_and(|near| !["as", "with", "for_each"].contains(&near));
            }
        }
        if context.tree().entry(item, "use").is_none() {
            let what = "a use of a module needs `use`: the folder of the module";
            let folder = context.text_of(item).unwrap_or("FOLDER");
            let hint = format!("write {{use: {}, as: NAME}}", quoted(folder));
            self.report(context, item, Problem::new(Code::MissingKey, what).hint_with_value(hint));
            return false;
        }
        is_right
    }

    /// Expands one instance of a module.
    fn expand_instance(
        &mut self,
        context: &Context,
        (item, module): (usize, &Arc<Loaded>),
        document: &mut Document,
    ) -> Option<()> {
        if !self.count_instance(context, item) {
            return None;
        }
        let (mut inactive, mut is_wrong) = (context.inactive.clone(), false);
        self.uses.begin_resource();
        if let Some((_, when)) = context.tree().entry(item, "when") {
            match self.evaluate_condition(context, when) {
                Condition::Holds(_) => {}
                Condition::Fails(reason) => inactive = Some(Inactivity::join(inactive, reason)),
                Condition::Wrong => is_wrong = true,
            }
        }
        let names = self.instance_names(context, item);
        let module_ref: &Module = &module.module;
        let meta = self.meta_of_use(context, item);
        let mut given = self.given_params(context, item, &module.module.params)?;
        let (own, instance) = names?;
        if given.is_wrong || is_wrong {
            return None;
        }
        let meta = meta?;
        let node = context.tree().entry(item, "with").map_or(item, |(_, node)| node);
        let what = format!("module `{}` ({})", module_ref.name, quoted(&own));
        let secrets = self.given_secrets(context, node, (&what, &mut given), module_ref);
        let values = self.complete_params(context, node, (&what, &mut given), module_ref)?;
        let secrets = secrets?;
        let params_at_load = if self.facts.at_load().is_some() {
            Some(self.params_at_load(context, (item, node), &what, module_ref)?)
        } else {
            None
        };
        let exports = module_ref.exports.list.len() as u64;
        if !self.count_work(context, context.tree().span(item), exports * WORK_OF_EXPORT) {
            return None;
        }
        let origin = Self::instance_origin(context, item, (&instance, module_ref));
        self.add_module_edges(context, item, &instance, document);
        self.add_probe_edges(context, item, &instance, document);
        let params = Root {
            value: Arc::new(Value::Map(values.into())),
            value_type: Arc::clone(&module_ref.param_types),
        };
        let scope = Scope {
            params: Some(Arc::new(params)),
            secrets: Arc::new(secrets),
            probe_params: Arc::new(given.of_probes),
            params_at_load,
            ..Scope::new(&self.facts, &instance)
        };
        let contexts = self.instance_contexts(context, (scope, &origin, inactive), module);
        let first = self.documents.len();
        for mut inner in self.follow_includes(contexts) {
            self.see_probes(&mut inner);
            self.expand_document(&inner);
            let bytes = self.documents.last().map_or(0, |document| document.tree.bytes());
            if !self.count_copies(context, item, bytes) {
                return None;
            }
        }
        self.add_meta_defaults(context, (item, first), &meta)
    }

    /// Returns the name of an instance, and its name with those of the instances around it.
    fn instance_names(&mut self, context: &Context, item: usize) -> Option<(String, Arc<str>)> {
        let own = self.instance_name(context, item)?;
        let instance: Arc<str> = format!("{}{own}", context.origin.prefix()).into();
        if !self.instances.insert(Arc::clone(&instance)) {
            let what = format!("two uses of modules are named `{}`", quoted(&instance));
            let hint = "give each use a name of its own by `as:`";
            self.report(context, item, Problem::new(Code::Include, what).hint(hint));
            return None;
        }
        Some((own, instance))
    }

    /// Returns the name of an instance: `as`, the key of the item, or the name of the folder.
    fn instance_name(&mut self, context: &Context, item: usize) -> Option<String> {
        let (name, node) = match context.tree().entry(item, "as") {
            Some((_, node)) => (self.static_path(context, node)?, node),
            None => match &context.scope.item {
                Some(each) if context.tree().entry(item, "for_each").is_some() => {
                    (each.key.to_string(), item)
                }
                _ => {
                    let what = "a use of a module needs `as`: the name of the instance";
                    self.report(context, item, Problem::new(Code::MissingKey, what));
                    return None;
                }
            },
        };
        let mut letters = name.chars();
        let is_right = letters.next().is_some_and(|first| first.is_ascii_alphanumeric())
            && letters.all(|it| it.is_ascii_alphanumeric() || "._-".contains(it));
        if !is_right {
            let what = format!("`{}` cannot be the name of an instance", quoted(&name));
            let hint = "use letters, digits, `.`, `_` and `-`, beginning with a letter or digit";
            self.report(context, node, Problem::new(Code::Include, what).hint(hint));
            return None;
        }
        Some(name)
    }

    /// Evaluates `with`.
    fn given_params(
        &mut self,
        context: &Context,
        item: usize,
        declared: &BTreeMap<String, Declaration>,
    ) -> Option<Given> {
        let mut given = Given::default();
        let Some((_, node)) = context.tree().entry(item, "with") else { return Some(given) };
        if context.is_null(node) {
            return Some(given);
        }
        let Some(Node::Map(pairs)) = context.tree().node(node) else {
            let what = "`with` should be a map of parameters";
            let example = declared.keys().next().map_or("NAME", String::as_str);
            let hint = format!("write with: {{{example}: VALUE}}");
            self.report(context, node, Problem::new(Code::Param, what).hint(hint));
            return None;
        };
        let mut is_wrong = false;
        for (key, value) in pairs.clone() {
            let name = context.text_of(key).unwrap_or_default().to_owned();
            let is_secret =
                declared.get(&name).is_some_and(|it| it.value_type == DeclaredType::Secret);
            if is_secret {
                is_wrong |= self.give_secret(context, value, (name, &mut given)).is_none();
                continue;
            }
            if !declared.contains_key(&name) {
                let near = nearest(&name, declared.keys().map(String::as_str));
                let known: Vec<&str> = declared.keys().map(String::as_str).collect();
                let hint = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if known.is_empty() => {
                        let name = quoted(&name);
                        format!(
                            "the module declares none; add params: {{{name}: {{type: string}}}}"
                        )
                    }
                    None => format!("params of the module: {}", known.join(", ")),
                };
                let what = format!("the module has no param `{}`", quoted(&name));
                self.report(context, key, Problem::new(Code::Param, what).hint(hint));
                is_wrong = true;
                continue;
            }
            self.uses.set_in_params(true);
            let given_value = self.node_outcome(context, value);
            self.uses.set_in_params(false);
            if self.uses_probe(context, value) {
                given.of_probes.insert(name.clone(), None);
            }
            match given_value {
                Outcome::Known(value) => drop(given.values.insert(name, value)),
                Outcome::Unknown(until) => {
                    let declared = declared.get(&name).map(|it| &it.value_type);
                    is_wrong |= !self.may_fit(context, value, (&name, declared));
                    given.of_probes.insert(name, Some(until));
                }
                Outcome::Failed => is_wrong = true,
            }
        }
        given.is_wrong = is_wrong;
        Some(given)
    }

    /// Reports a value that waits for a probe and whose type does not fit its parameter, whatever the answer is.
    fn may_fit(
        &mut self,
        context: &Context,
        node: usize,
        (name, declared): (&str, Option<&DeclaredType>),
    ) -> bool {
        let Some(declared) = declared else { return true };
        let found = match context.tree().node(node) {
            Some(Node::List(_)) => Some(ValueType::List(Arc::new(ValueType::Unknown))),
            Some(Node::Map(_)) => Some(ValueType::AnyMap(Arc::new(ValueType::Unknown))),
            _ => self.type_of_scalar(context, node),
        };
        let Some(found) = found.filter(|found| !declared.may_take(found)) else { return true };
        let what = format!("`{}` wants {}, got {found}", quoted(name), declared.word());
        self.report(context, node, Problem::new(Code::Param, what));
        false
    }

    /// Returns true if the value of a node comes from a probe.
    fn uses_probe(&mut self, context: &Context, node: usize) -> bool {
        let mut names = Vec::new();
        self.names_below(context, node, &mut names);
        names.iter().any(|name| is_from_probe(&context.scope, name))
    }

    /// Gives a param the secret of `{secret: NAME}` or `{from: params.NAME}`. A param that has none itself gives none.
    fn give_secret(
        &mut self,
        context: &Context,
        node: usize,
        (param, given): (String, &mut Given),
    ) -> Option<()> {
        if let [(key, value)] = context.tree().entries(node)
            && let (Some(key), Some(text)) = (context.text_of(*key), context.text_of(*value))
        {
            match key {
                "secret" if !context.is_module() => {
                    let name = self.static_text(context, *value, "a secret")?;
                    given.secrets.insert(param, name);
                    return Some(());
                }
                "from" => {
                    let found = text.strip_prefix("params.");
                    if let Some(secret) = found.and_then(|name| context.scope.secrets.get(name)) {
                        given.secrets.extend(secret.clone().map(|secret| (param, secret)));
                        return Some(());
                    }
                }
                _ => {}
            }
        }
        let what = "a secret parameter wants {secret: NAME}";
        let hint = "NAME is an entry of `secrets`; within a module, pass {from: params.NAME} on";
        self.report(context, node, Problem::new(Code::Param, what).hint(hint));
        None
    }

    /// Returns each secret parameter of a module with the name of its secret.
    fn given_secrets(
        &mut self,
        context: &Context,
        node: usize,
        (what, given): (&str, &mut Given),
        module: &Module,
    ) -> Option<BTreeMap<String, Option<String>>> {
        let mut secrets = BTreeMap::new();
        let mut is_wrong = false;
        for (name, declaration) in &module.params {
            if declaration.value_type != DeclaredType::Secret {
                continue;
            }
            let secret = given.secrets.remove(name);
            if secret.is_none() && !declaration.may_be_absent() {
                let problem = format!("{what} lacks `{}`", quoted(name));
                let hint = format!("write with: {{{name}: {{secret: NAME}}}}");
                self.report(context, node, Problem::new(Code::Param, problem).hint(hint));
                is_wrong = true;
            }
            secrets.insert(name.clone(), secret);
        }
        (!is_wrong).then_some(secrets)
    }

    /// Adds the edges that a use gives to all resources of its instance.
    fn add_module_edges(
        &mut self,
        context: &Context,
        item: usize,
        instance: &Arc<str>,
        document: &mut Document,
    ) {
        for (key, value) in context.tree().entries(item).to_vec() {
            let Some(relation) = context.text_of(key).and_then(Relation::parse) else { continue };
            let targets = match context.tree().node(value) {
                Some(Node::List(items)) => items.clone(),
                _ if context.is_null(value) => Vec::new(),
                _ => vec![value],
            };
            for target in targets {
                let Some(text) = self.static_path(context, target) else { continue };
                document.module_edges.push(ModuleEdge {
                    instance: Arc::clone(instance),
                    relation,
                    target: format!("{}{text}", context.origin.prefix()),
                    span: context.tree().span(target),
                });
            }
        }
    }
}

/// A module that was read, with its folder.
pub(in crate::config::expand) struct Loaded {
    pub(in crate::config::expand) folder: PathBuf,
    pub(in crate::config::expand) module: Module,
}
