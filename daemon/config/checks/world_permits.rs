//! Permits of the world in metaparameters: semaphores of all hosts (`sema: ["world:ID:N"]`) and rolling changes
//! (`roll`).

use super::Validator;
use crate::config::maintenance_window::Gate;
use crate::config::problem::code::Code;
use crate::config::problem::location::{Element, Location};
use crate::config::problem::{Problem, quoted};
use std::time::Duration;
use steadfast_resources::ResourceId;
use steadfast_resources::host::world::PermitRequest;

/// The permits of one resource.
#[derive(Debug, Default)]
pub(in crate::config) struct Permits {
    pub(in crate::config) semaphores: Vec<PermitRequest>,
    pub(in crate::config) roll: Option<Gate>,
}

impl Permits {
    /// Returns the problem of permits that exclude each other.
    pub(in crate::config) fn conflict(&self) -> Option<Problem> {
        (self.roll.is_some() && !self.semaphores.is_empty()).then(|| {
            let what = "`roll` and a semaphore of the world exclude each other on one resource";
            Problem::new(Code::Semaphore, what).hint("keep `roll`: it limits the hosts by `max`")
        })
    }

    /// Returns the gate of these permits, and its description.
    pub(in crate::config) fn into_gate(mut self) -> Option<(String, Gate)> {
        if let Some(gate) = self.roll {
            let name = gate.permits.first().map(|permit| permit.id.clone());
            return Some((format!("the roll {}", name.unwrap_or_default()), gate));
        }
        self.semaphores.sort();
        self.semaphores.dedup();
        if self.semaphores.is_empty() {
            return None;
        }
        let names = self.semaphores.iter().map(|permit| format!("world:{}", permit.id));
        let text = format!("the semaphore {}", names.collect::<Vec<_>>().join(", "));
        let (settle, healthy, stops_on_failure) = (None, None, false);
        Some((text, Gate { permits: self.semaphores, settle, healthy, stops_on_failure }))
    }
}

impl Validator<'_> {
    /// Reports each roll whose `healthy` is no declared probe with a truth value as its answer.
    pub(super) fn check_probes_of_rolls(&mut self) {
        let mut problems = Vec::new();
        for vertex in &self.vertices {
            let probe = vertex.meta.window.and_then(|window| self.metas.probe_of_roll(window));
            let Some(probe) = probe else { continue };
            let shown = quoted(probe);
            let declared = self.numbers.get(probe).and_then(|number| self.vertices.get(*number));
            let problem = match declared.map(|it| it.resource.as_ref()) {
                None => {
                    let what =
                        format!("`healthy` of `roll` names `{shown}`, which is not declared");
                    Problem::new(Code::Meta, what)
                        .hint("declare the probe with `type: bool`, in the same module as the roll")
                }
                Some(Some(resource)) if !resource.sends_key("bool") => {
                    let what =
                        format!("`healthy` of `roll` names `{shown}`, which answers no bool");
                    Problem::new(Code::Meta, what).hint("write `type: bool` in the probe")
                }
                Some(_) => continue,
            };
            let Location { file, part: Element::Name(index) } = vertex.at else { continue };
            problems.push(
                problem.at(self.atlas.place(Location { file, part: Element::Meta(index, "roll") })),
            );
        }
        for problem in problems {
            self.problems.push(problem);
        }
    }
}

/// Reads the rest of a semaphore after `world:`, such as `db-restart:2`.
pub(in crate::config) fn read_world_semaphore(
    rest: &str,
    identity: &str,
) -> Result<PermitRequest, Problem> {
    let (id, count) = match rest.rsplit_once(':') {
        Some((id, count)) => (id, count.parse::<u32>().ok().filter(|count| *count > 0)),
        None => (rest, Some(1)),
    };
    let is_id = !id.is_empty() && id.len() <= 200 && !id.chars().any(char::is_control);
    if let Some(size) = count.filter(|_| is_id) {
        Ok(PermitRequest { id: id.to_owned(), size, resource: Some(identity.to_owned()) })
    } else {
        let shown = quoted(rest);
        let what = format!("expected a semaphore as world:ID:COUNT, found `world:{shown}`");
        let hint = "ids that begin with `world:` are shared by all hosts; rename a local one";
        Err(Problem::new(Code::Semaphore, what).hint(hint))
    }
}

/// Reads `roll: {name, max, settle, healthy, on_failure}`.
pub(in crate::config) fn read_roll(map: &[(String, String)]) -> Result<Gate, Problem> {
    const KEYS: [&str; 5] = ["name", "max", "settle", "healthy", "on_failure"];
    let refuse = |what: String| Err(Problem::new(Code::Meta, what));
    if let Some((key, _)) = map.iter().find(|(key, _)| !KEYS.contains(&key.as_str())) {
        let what = format!("unknown key `{}` in `roll`", quoted(key));
        return Err(Problem::new(Code::UnknownKey, what).hint(format!("keys: {}", KEYS.join(", "))));
    }
    let get = |key: &str| map.iter().find(|(own, _)| own == key).map(|(_, text)| text.as_str());
    let Some(name) = get("name").filter(|name| !name.is_empty() && name.len() <= 200) else {
        return refuse("`roll` needs a `name`".to_owned());
    };
    let max = get("max").unwrap_or("1");
    let Some(size) = max.parse::<u32>().ok().filter(|size| *size > 0) else {
        return refuse(format!("`max` of `roll` should be at least 1, found `{}`", quoted(max)));
    };
    let settle = get("settle").unwrap_or("30s");
    let span =
        steadfast_resources::duration::seconds(settle).filter(|it| (0.0..=86_400.0).contains(it));
    let Some(settle) = span.map(Duration::from_secs_f64) else {
        let what =
            format!("`settle` of `roll` should be a time up to 1d, found `{}`", quoted(settle));
        return refuse(what);
    };
    let healthy = get("healthy").map(str::to_owned);
    let is_probe = |text: &String| ResourceId::parse(text).is_some_and(|id| id.kind == "probe");
    if let Some(other) = healthy.as_ref().filter(|text| !is_probe(text)) {
        return refuse(format!(
            "`healthy` of `roll` should be probe[NAME], found `{}`",
            quoted(other)
        ));
    }
    let stops_on_failure = match get("on_failure").unwrap_or("stop") {
        "stop" => true,
        "continue" => false,
        other => {
            let what = format!(
                "`on_failure` of `roll` should be stop or continue, found `{}`",
                quoted(other)
            );
            return refuse(what);
        }
    };
    let permits = vec![PermitRequest { id: name.to_owned(), size, resource: None }];
    Ok(Gate { permits, settle: Some(settle), healthy, stops_on_failure })
}
