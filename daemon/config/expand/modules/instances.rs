//! Instances of modules: their origin, parameters and contexts, and the edges from probes that a use reads.

use crate::config::ast::Relation;
use crate::config::document::{Document, Inactivity, ModuleEdge, Origin};
use crate::config::expand::evaluate::{ParamsAtLoad, Root, Scope};
use crate::config::expand::modules::{Given, Loaded, Module};
use crate::config::expand::names::probe_identity;
use crate::config::expand::resources::name_within;
use crate::config::expand::{Context, Expander};
use crate::expressions::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Expander<'_> {
    /// Returns the values of all parameters. A parameter that waits for a probe has none yet.
    pub(super) fn complete_params(
        &mut self,
        context: &Context,
        node: usize,
        (what, given): (&str, &mut Given),
        module: &Module,
    ) -> Option<BTreeMap<String, Value>> {
        let values = (what, std::mem::take(&mut given.values));
        let is_known = |name: &String| !given.of_probes.get(name).is_some_and(Option::is_some);
        if module.params.keys().all(is_known) {
            return self.complete_fields(context, node, values, &module.params);
        }
        let mut declared = module.params.clone();
        declared.retain(|name, _| is_known(name));
        self.complete_fields(context, node, values, &declared)
    }

    /// Returns the parameters of an instance with the facts of the last load. Their amounts do not count: the load was
    /// within the budget.
    pub(super) fn params_at_load(
        &mut self,
        context: &Context,
        (item, node): (usize, usize),
        what: &str,
        module: &Module,
    ) -> Option<Arc<ParamsAtLoad>> {
        let used = self.used.clone();
        let mut given = self.given_params(&context.at_load(), item, &module.params)?;
        if given.is_wrong {
            self.used = used;
            return None;
        }
        let values = self.complete_params(context, node, (what, &mut given), module);
        let is_over = self.used.is_over;
        self.used = used;
        self.used.is_over = is_over;
        let values = values?;
        let (value, value_type) =
            (Arc::new(Value::Map(values.into())), Arc::clone(&module.param_types));
        let probe_params = Arc::new(given.of_probes);
        Some(Arc::new(ParamsAtLoad { params: Arc::new(Root { value, value_type }), probe_params }))
    }

    /// Returns the origin of the documents of an instance.
    pub(super) fn instance_origin(
        context: &Context,
        item: usize,
        (instance, module): (&Arc<str>, &Module),
    ) -> Arc<Origin> {
        let place = context.place(context.tree().span(item));
        let mut chain = vec![format!(
            "in module {} ({instance}), used at {}:{}:{}",
            module.name, place.file, place.line, place.column
        )];
        chain.extend(place.chain);
        Arc::new(Origin {
            instance: Arc::clone(instance),
            chain,
            module: module.name.clone(),
            exports: Arc::clone(&module.exports),
        })
    }

    /// Returns the contexts of the files of an instance.
    pub(super) fn instance_contexts(
        &mut self,
        context: &Context,
        (scope, origin, inactive): (Scope, &Arc<Origin>, Option<Arc<Inactivity>>),
        loaded: &Loaded,
    ) -> Vec<Context> {
        let mut open = context.open.clone();
        open.push(loaded.folder.clone());
        let inner = |parsed| Context {
            parsed,
            scope: scope.clone(),
            origin: Arc::clone(origin),
            inactive: inactive.clone(),
            item: None,
            open: open.clone(),
            probes: Arc::default(),
        };
        let contexts: Vec<Context> = loaded.module.files.iter().cloned().map(inner).collect();
        for inner in &contexts {
            self.note_probes(inner);
        }
        contexts
    }

    /// Adds an edge from each probe that the condition and the parameters of a use read to the resources of the
    /// instance.
    pub(super) fn add_probe_edges(
        &mut self,
        context: &Context,
        item: usize,
        instance: &Arc<str>,
        document: &mut Document,
    ) {
        let used = self.uses.end_resource();
        let used = used.iter().map(|probe| name_within(context, probe));
        let mut all: BTreeSet<String> = used.map(str::to_owned).collect();
        all.extend(context.probes.iter().cloned());
        for probe in all {
            document.module_edges.push(ModuleEdge {
                instance: Arc::clone(instance),
                relation: Relation::After,
                target: format!("{}{}", context.origin.prefix(), probe_identity(&probe)),
                span: context.tree().span(item),
            });
        }
    }
}
