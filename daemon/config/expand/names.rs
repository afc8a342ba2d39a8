//! The names in a scope: their values and their types, and the probes that they wait for.

use crate::config::expand::cache::Cache;
use crate::config::expand::evaluate::Scope;
use crate::config::problem::quoted;
use crate::expressions::{Environment, MapKey, Scope as Values, Value, ValueType};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Returns true if one of the names is a variable whose problem is reported.
pub(super) fn has_failed(scope: &Scope, names: &BTreeSet<String>) -> bool {
    let failed = &scope.vars.failed;
    !failed.is_empty()
        && names.iter().any(|name| {
            let variable = name.strip_prefix("vars.").unwrap_or_default();
            failed.contains(variable.split('.').next().unwrap_or_default())
        })
}

/// Returns the probe in a name, and the path behind it: `shop/load` and `a.b` of `probe.shop/load.a.b`. The name of an
/// instance may contain dots.
pub(super) fn probe_in(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix("probe.")?;
    let begin = rest.rfind('/').map_or(0, |slash| slash + 1);
    let end = rest.get(begin..)?.find('.').map_or(rest.len(), |dot| begin + dot);
    let (probe, path) = rest.split_at_checked(end)?;
    Some((probe, path.strip_prefix('.').unwrap_or(path)))
}

/// Returns the identity of a probe: `shop/probe[load]` of `shop/load`.
pub(super) fn probe_identity(probe: &str) -> String {
    match probe.rsplit_once('/') {
        Some((instance, name)) => format!("{instance}/probe[{name}]"),
        None => format!("probe[{probe}]"),
    }
}

/// Returns the probe that a name waits for, or the resource that will change a fact.
pub(super) fn missing_value(scope: &Scope, name: &str) -> Option<String> {
    if let Some((probe, _)) = probe_in(name) {
        return (!scope.probes.contains_key(probe)).then(|| probe_identity(probe));
    }
    let mut steps = name.split('.');
    match (steps.next()?, steps.next()) {
        ("facts", _) => scope.facts.unknown_until(name).cloned(),
        ("vars", Some(variable)) => {
            let until = scope.vars.unknown.get(variable)?;
            (!is_known_part(scope, name)).then(|| until.clone())
        }
        ("params", Some(param)) => scope.probe_params.get(param).cloned().flatten(),
        _ => None,
    }
}

/// Returns true if a name is a known part of a map of which another part waits for a probe.
fn is_known_part(scope: &Scope, name: &str) -> bool {
    let mut steps = name.split('.').skip(1);
    let Some(variable) = steps.next() else { return false };
    // The map itself is not known: it lacks the part that waits.
    steps.next().is_some()
        && scope.vars.partial.contains(variable)
        && value_ref(scope, name).is_some_and(|value| !matches!(value, Value::Map(_)))
}

/// Returns true if the type of a name is known, although its value may not be.
pub(super) fn has_type(scope: &Scope, name: &str) -> bool {
    if let Some((probe, _)) = probe_in(name) {
        return scope.probes.contains_key(probe) || scope.probe_types.contains_key(probe);
    }
    let mut steps = name.split('.');
    match (steps.next(), steps.next()) {
        (Some("vars"), Some(variable)) if scope.vars.unknown.contains_key(variable) => {
            if scope.vars.partial.contains(variable) {
                return is_known_part(scope, name);
            }
            match scope.vars.root.value_type.as_ref() {
                ValueType::Map(keys) => keys.contains_key(variable),
                _ => false,
            }
        }
        _ => true,
    }
}

/// Returns true if a name depends on a probe.
pub(super) fn is_from_probe(scope: &Scope, name: &str) -> bool {
    let mut steps = name.split('.');
    match (steps.next(), steps.next()) {
        (Some("probe"), _) => true,
        (Some("vars"), Some(variable)) => scope.vars.from_probes.contains(variable),
        (Some("params"), Some(param)) => scope.probe_params.contains_key(param),
        _ => false,
    }
}

/// Returns a copy of the value of a dotted name.
pub(super) fn value_of(scope: &Scope, name: &str) -> Option<Value> {
    value_ref(scope, name).cloned()
}

/// Returns the value of a dotted name.
pub(super) fn value_ref<'scope>(scope: &'scope Scope, name: &str) -> Option<&'scope Value> {
    let (root, path) = match name.split_once('.') {
        Some((root, path)) => (root, Some(path)),
        None => (name, None),
    };
    let value: &Value = match root {
        "vars" if scope.params.is_none() => &scope.vars.root.value,
        "facts" => &scope.facts.root().value,
        "params" => &scope.params.as_ref()?.value,
        "item" => &scope.item.as_ref()?.root.value,
        "probe" => {
            let (probe, rest) = probe_in(name)?;
            let value = scope.probes.get(probe)?;
            return if rest.is_empty() { Some(value) } else { value.at_path(rest) };
        }
        _ => return None,
    };
    path.map_or(Some(value), |path| value.at_path(path))
}

/// Returns the types of the names in a scope.
pub(super) fn environment(
    scope: &Scope,
    (is_module, with_facts): (bool, bool),
    cache: &Cache,
) -> Environment {
    let mut environment = Environment::new().with_root("probe", probe_types(scope, cache));
    if with_facts {
        environment = environment.with_root("facts", Arc::clone(&scope.facts.root().value_type));
        for (name, reason) in crate::facts::display_facts() {
            environment = environment.refuse(&format!("facts.{name}"), reason);
        }
        let folder = crate::facts::LOCAL_FACTS;
        let advice = format!("this host lacks it: add {folder}/{{}}.yaml");
        environment = environment.with_open_map("facts.local", advice);
    }
    if is_module {
        let reason = "a module sees its params and facts only; pass the value by `with:`";
        environment = environment.refuse("vars", reason);
    } else {
        environment = environment.with_root("vars", Arc::clone(&scope.vars.root.value_type));
    }
    if let Some(params) = &scope.params {
        environment = environment.with_root("params", Arc::clone(&params.value_type));
        environment = environment.with_secret_params(Arc::clone(&scope.secrets));
    }
    if let Some(item) = &scope.item {
        let about = format!("items of `{}`", quoted(&item.of));
        let value_type = Arc::clone(&item.root.value_type);
        environment = environment.with_described_root("item", value_type, Some(&about));
    }
    environment
}

/// Returns the types of the probes: that of the value, or the declared one.
fn probe_types(scope: &Scope, cache: &Cache) -> Arc<ValueType> {
    let mut known = cache.probe_root.borrow_mut();
    if let Some((values, types, root)) = &*known
        && values.is_same(&scope.probes)
        && Arc::ptr_eq(types, &scope.probe_types)
    {
        return Arc::clone(root);
    }
    let root = Arc::new(make_probe_types(scope));
    *known = Some((scope.probes.clone(), Arc::clone(&scope.probe_types), Arc::clone(&root)));
    root
}

fn make_probe_types(scope: &Scope) -> ValueType {
    let declared = scope.probe_types.iter();
    let declared = declared.map(|(name, of)| (name.clone(), MapKey::required(of.clone())));
    let known = scope.probes.iter();
    let known = known.map(|(name, value)| (name.clone(), MapKey::required(value.value_type())));
    ValueType::Map(Arc::new(declared.chain(known).collect()))
}

/// Returns the values of the names in a scope.
pub(super) fn with_values<T>(
    scope: &Scope,
    (is_module, cache): (bool, &Cache),
    run: impl FnOnce(&Values<'_>) -> T,
) -> T {
    let probes = Value::Map(scope.probes.clone());
    let values = Values::new().with_engine_values(&cache.engine_values).with_work(&cache.work);
    let mut values = values.with_root("probe", &probes);
    if scope.facts.is_used() {
        values = values.with_root("facts", &scope.facts.root().value);
    }
    if !is_module {
        values = values.with_root("vars", &scope.vars.root.value);
    }
    if let Some(params) = &scope.params {
        values = values.with_root("params", &params.value);
    }
    if let Some(item) = &scope.item {
        values = values.with_root("item", &item.root.value);
    }
    run(&values)
}
