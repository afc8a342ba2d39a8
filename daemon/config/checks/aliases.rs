//! The check of aliases: each belongs to one resource, and is not the name of an existing one (B-18).

use super::{Validator, wrong_name};
use crate::config::problem::code::Code;
use crate::config::problem::location::{Element, Location};
use crate::config::problem::{Problem, quoted};
use std::collections::HashMap;
use std::sync::Arc;
use steadfast_resources::ResourceId;

impl Validator<'_> {
    /// Rejects aliases that are names of existing resources, or that two resources claim.
    pub(in crate::config) fn refuse_aliases(&mut self) {
        let mut claimed: HashMap<Arc<str>, usize> = HashMap::new();
        let mut found = Vec::new();
        for (vertex, candidate) in self.vertices.iter().enumerate() {
            for (alias, _) in &candidate.aliases {
                let first = claimed.insert(Arc::clone(alias), vertex);
                let (kind, shown) = (candidate.spec.kind, quoted(alias));
                let name = ResourceId::parse(alias).map(|id| id.name).unwrap_or_default();
                let mut second = None;
                let problem = if wrong_name(kind, name).is_some() {
                    Problem::new(Code::Alias, format!("`{shown}` is not a valid alias"))
                        .hint("write only the former name, for example aliases: [motd]")
                } else if let Some(still) = self.numbers.get(alias) {
                    let still = self.vertices.get(*still).map(|still| still.at);
                    second = still.and_then(|at| self.atlas.labelled(at, "declared here"));
                    Problem::new(
                        Code::Alias,
                        format!("`{shown}` is still a resource of this graph"),
                    )
                    .hint("an alias must not be the name of an existing resource")
                } else if let Some(first) = first {
                    let one = self.vertices.get(first).map(|one| quoted(&one.identity));
                    let one = one.unwrap_or_default();
                    Problem::new(Code::Alias, format!("`{shown}` is an alias of two resources"))
                        .hint(format!("`{one}` has the same alias; keep the alias on one resource"))
                } else {
                    continue;
                };
                found.push((candidate.at, problem, second));
            }
        }
        for (at, problem, second) in found {
            let Element::Name(index) = at.part else { continue };
            let part = Element::Field(index, super::metaparams::ALIASES.name);
            let place = self.atlas.place(Location { part, ..at });
            self.problems.push(problem.at(place).at(second));
        }
    }
}
