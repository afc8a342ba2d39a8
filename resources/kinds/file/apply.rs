//! From the plan of a check to the host: the premise is verified again, and every step asks the permit.

use super::check::octal;
use super::plan::{Plan, Work};
use super::{File, Shape};
use crate::change::{Change, Outcome};
use crate::host::files::{Attributes, Draft, Fault, Files, Put, Seen, Spot, Why};
use crate::permit::Permit;
use rustix::fs::FileType;
use tokio_util::sync::CancellationToken;

impl File {
    pub(super) fn make_so(&self, files: &Files, permit: &Permit, change: Change) -> Outcome {
        // A premise of another kind cannot be ours: the check is made again.
        let mut plan = change.premise.downcast::<Plan>().ok().map(|plan| *plan);
        let mut moved = None;
        for _ in 0..2 {
            let current = match plan.take() {
                Some(plan) => plan,
                None => match self.inspect(files, &CancellationToken::new()) {
                    Ok(None) => return Outcome::Unchanged,
                    Ok(Some(finding)) => finding.plan,
                    Err(trouble) => return Outcome::Failed { trouble, touched: false },
                },
            };
            match self.run(files, permit, &current) {
                Ok(done) => return Outcome::Changed(done),
                // What the check saw is gone, and nothing was done: once more, from what is there now.
                Err(fault) if matches!(fault.why, Why::Moved) && !fault.touched => {
                    moved = Some(fault);
                }
                Err(fault) => return self.failed(files, fault),
            }
        }
        self.failed(files, moved.unwrap_or_else(Fault::moved))
    }

    fn failed(&self, files: &Files, fault: Fault) -> Outcome {
        if matches!(fault.why, Why::Revoked) {
            return Outcome::Interrupted;
        }
        let touched = fault.touched;
        Outcome::Failed { trouble: files.trouble(fault, &self.path), touched }
    }

    fn run(&self, files: &Files, permit: &Permit, plan: &Plan) -> Result<Vec<String>, Fault> {
        let Some(spot) = files.spot(&self.path)? else {
            return Err(Fault::moved());
        };
        if spot.look()? != plan.found {
            return Err(Fault::moved());
        }
        let mut found = plan.found;
        let mut done = Vec::new();
        if plan.clear
            && let Some(seen) = found.take()
        {
            let all_below = self.force && seen.kind == FileType::Directory;
            files.remove(permit, &spot, &seen, all_below)?;
            done.push("removed".to_owned());
        }
        let cleared = !done.is_empty();
        let rest = self.work((files, permit), &spot, plan, found);
        done.extend(rest.map_err(|fault| fault.after(cleared))?);
        Ok(done)
    }

    fn work(
        &self,
        (files, permit): (&Files, &Permit),
        spot: &Spot<'_>,
        plan: &Plan,
        found: Option<Seen>,
    ) -> Result<Vec<String>, Fault> {
        match (&plan.work, &self.shape, found) {
            (Work::Remove, _, _) => Ok(Vec::new()),
            (Work::Write { attributes, mode }, Shape::Regular(content), found) => {
                let draft = Draft {
                    content: content.as_deref().unwrap_or_default().as_bytes(),
                    owner: attributes.owner,
                    group: attributes.group,
                    mode: *mode,
                    instead_of: found.as_ref(),
                };
                let put = files.put(permit, spot, &draft)?;
                Ok(vec![match (put, found) {
                    (Put::InPlace(why), _) => format!("content, in place: {why}"),
                    (Put::Whole, None) => "created".to_owned(),
                    (Put::Whole, Some(_)) => "content".to_owned(),
                }])
            }
            (Work::Link(attributes), Shape::Link(target), found) => {
                files.put_link(permit, spot, target, (*attributes, found.as_ref()))?;
                Ok(vec!["symlink".to_owned()])
            }
            (Work::Directory(attributes), _, None) => {
                files.make_directory(permit, spot, *attributes)?;
                Ok(vec!["created".to_owned()])
            }
            (Work::Attributes(attributes), _, Some(seen)) => {
                files.set_attributes(permit, spot, &seen, *attributes)?;
                Ok(self.attributes_done(*attributes))
            }
            // A plan of another definition: look again.
            _ => Err(Fault::moved()),
        }
    }

    fn attributes_done(&self, done: Attributes) -> Vec<String> {
        let owner = done.owner.and(self.owner.as_deref()).map(|text| format!("owner {text}"));
        let group = done.group.and(self.group.as_deref()).map(|text| format!("group {text}"));
        let mode = done.mode.map(|mode| format!("mode {}", octal(mode)));
        [owner, group, mode].into_iter().flatten().collect()
    }
}
