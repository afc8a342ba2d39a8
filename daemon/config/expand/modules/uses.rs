//! The record of the facts and probes that an expansion uses, and of those that a static field uses.

use crate::config::UsedInputs;
use crate::config::expand::sources::host_facts::Facts;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The names that expressions used so far.
#[derive(Debug, Default)]
pub(in crate::config::expand) struct UseRecord {
    /// All names.
    names: BTreeSet<String>,
    /// The names in static fields.
    static_names: BTreeSet<String>,
    /// The names in the definitions of each variable.
    of_variables: BTreeMap<String, BTreeSet<String>>,
    /// The names in values for parameters of modules.
    of_params: BTreeSet<String>,
    /// True while the values for parameters are evaluated.
    is_in_params: bool,
    /// The probes that the present resource uses.
    of_resource: BTreeSet<String>,
    /// The probes behind each variable and behind the parameters, as far as they were asked for.
    probes_behind: HashMap<String, Arc<BTreeSet<String>>>,
}

impl UseRecord {
    /// Notes the names of an evaluated expression. A probe of an instance of a module has the name of the instance in
    /// front, such as `probe.shop/old_tls`.
    pub(in crate::config::expand) fn note_names<'names>(
        &mut self,
        names: impl IntoIterator<Item = &'names String>,
        instance: &str,
    ) {
        for name in names {
            let full = match name.strip_prefix("probe.") {
                Some(probe) if !instance.is_empty() => Some(format!("probe.{instance}/{probe}")),
                _ => None,
            };
            let name = full.as_ref().unwrap_or(name);
            if !self.names.contains(name) {
                self.names.insert(name.clone());
            }
            if self.is_in_params && !self.of_params.contains(name) {
                self.of_params.insert(name.clone());
                self.probes_behind.clear();
            }
            if name.starts_with("probe.") || name.starts_with("vars.") {
                self.of_resource.insert(name.clone());
            }
        }
    }

    /// Notes the names of an expression in a static field.
    pub(in crate::config::expand) fn note_static(&mut self, names: &[String]) {
        self.static_names.extend(names.iter().cloned());
    }

    /// Notes the names in the definition of a variable.
    pub(in crate::config::expand) fn note_variable(&mut self, variable: &str, names: &[String]) {
        if names.is_empty() {
            return;
        }
        let all = self.of_variables.entry(variable.to_owned()).or_default();
        all.extend(names.iter().cloned());
        self.probes_behind.clear();
    }

    /// Begins or ends the values for parameters of a module.
    pub(in crate::config::expand) const fn set_in_params(&mut self, is_in_params: bool) {
        self.is_in_params = is_in_params;
    }

    /// Begins a resource.
    pub(in crate::config::expand) fn begin_resource(&mut self) {
        self.of_resource.clear();
    }

    /// Ends a resource; returns the names of the probes that it uses, also through variables.
    pub(in crate::config::expand) fn end_resource(&mut self) -> Vec<String> {
        let names = std::mem::take(&mut self.of_resource);
        let mut probes = parts_after(&names, "probe.");
        for name in names.iter().filter(|name| !name.starts_with("probe.")) {
            probes.extend(self.probes_behind(name).iter().cloned());
        }
        probes.into_iter().collect()
    }

    /// Returns the probes that a variable or a parameter uses, also through others.
    fn probes_behind(&mut self, name: &str) -> Arc<BTreeSet<String>> {
        let top = self.group_of(name);
        let mut open = vec![(top.clone(), false)];
        let mut visited = HashSet::new();
        while let Some((name, is_done)) = open.pop() {
            if self.probes_behind.contains_key(&name) {
                continue;
            }
            let below = self.names_behind(&name);
            if is_done {
                let mut probes = parts_after(below, "probe.");
                let others = below.iter().map(|name| self.group_of(name));
                // A variable that uses itself has none yet; the problem is reported elsewhere.
                let known = others.filter_map(|name| self.probes_behind.get(&name));
                probes.extend(known.flat_map(|probes| probes.iter().cloned()));
                self.probes_behind.insert(name, Arc::new(probes));
            } else if visited.insert(name.clone()) {
                let others: Vec<String> = below.iter().map(|name| self.group_of(name)).collect();
                open.push((name, true));
                open.extend(others.into_iter().map(|name| (name, false)));
            }
        }
        self.probes_behind.get(&top).map(Arc::clone).unwrap_or_default()
    }

    /// Returns the part of a name that decides about the names behind: `vars.sites`, `params`, or the root.
    fn group_of(&self, name: &str) -> String {
        let mut steps = name.split('.');
        match (steps.next(), steps.next()) {
            (Some("vars"), Some(variable)) if self.of_variables.contains_key(variable) => {
                format!("vars.{variable}")
            }
            (Some(root), _) => root.to_owned(),
            _ => String::new(),
        }
    }

    /// Returns the names in the definition of a variable, or in the values of parameters.
    fn names_behind(&self, group: &str) -> &BTreeSet<String> {
        static NOTHING: BTreeSet<String> = BTreeSet::new();
        match group.split_once('.') {
            Some(("vars", variable)) => self.of_variables.get(variable).unwrap_or(&NOTHING),
            None if group == "params" => &self.of_params,
            _ => &NOTHING,
        }
    }

    /// Returns the names with those of the variables and parameters among them.
    fn closure(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let mut all = names.clone();
        let mut open: Vec<String> = names.iter().cloned().collect();
        while let Some(name) = open.pop() {
            for name in self.names_behind(&self.group_of(&name)) {
                if all.insert(name.clone()) {
                    open.push(name.clone());
                }
            }
        }
        all
    }

    /// Returns the used inputs.
    pub(in crate::config::expand) fn finish(&self, facts: &Facts) -> UsedInputs {
        let all = self.closure(&self.names);
        let facts_of = |names: &BTreeSet<String>| -> BTreeSet<String> {
            let names = names.iter().filter_map(|name| name.strip_prefix("facts."));
            names.map(str::to_owned).collect()
        };
        let fact_names = facts_of(&all);
        UsedInputs {
            facts: (!fact_names.is_empty()).then(|| facts.shared_value()),
            facts_at_load: facts.at_load().map(|facts| facts.shared_value()),
            static_names: facts_of(&self.closure(&self.static_names)),
            fact_names,
            probes: parts_after(&all, "probe."),
        }
    }
}

/// Returns the first part behind a prefix of each name that has it. The name of an instance may contain dots.
fn parts_after(names: &BTreeSet<String>, prefix: &str) -> BTreeSet<String> {
    let part = |name: &String| {
        let rest = name.strip_prefix(prefix)?;
        let begin = rest.rfind('/').map_or(0, |slash| slash + 1);
        let end = rest.get(begin..)?.find('.').map_or(rest.len(), |dot| begin + dot);
        rest.get(..end).map(str::to_owned)
    };
    names.iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn names_are_followed_through_variables_and_params() {
        let mut record = UseRecord::default();
        record.note_variable("a", &names(&["vars.b", "facts.os.id"]));
        record.note_variable("b", &names(&["facts.hostname", "probe.old.x"]));
        record.set_in_params(true);
        record.note_names(&names(&["facts.mounts"]), "");
        record.set_in_params(false);
        record.note_static(&names(&["params.p"]));
        record.begin_resource();
        record.note_names(&names(&["vars.a", "facts.cpu.count"]), "");
        assert_eq!(record.end_resource(), ["old"]);
        let used = record.finish(&Facts::new(None, None));
        let expected = ["cpu.count", "hostname", "mounts", "os.id"];
        assert_eq!(used.fact_names.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        assert_eq!(used.static_names, BTreeSet::from(["mounts".to_owned()]));
        assert_eq!(used.probes, BTreeSet::from(["old".to_owned()]));
    }
}
