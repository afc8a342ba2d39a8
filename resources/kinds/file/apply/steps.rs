//! Applies the plan of a check: verifies the premise again, and checks the permit before every step.

use crate::change::{Change, Outcome};
use crate::check_request::CheckRequest;
use crate::footprint::ClosedDirectory;
use crate::host::Host;
use crate::host::files::{
    Acceptance, AccountKind, Attributes, Content, Draft, Entry, EntryStat, Fault, Files, NewLists,
    PendingNote, Put, Reach, Why,
};
use crate::kinds::file::File;
use crate::kinds::file::Shape;
use crate::kinds::file::apply::together::Round;
use crate::kinds::file::apply::validate::Validation;
use crate::kinds::file::check::compare::{Look, Want, octal};
use crate::kinds::file::check::plan::{Below, Plan, Premise, Work};
use crate::kinds::file::check::steps::origins;
use crate::kinds::file::tree::walk::Tree;
use crate::permit::Permit;
use crate::prior_state::Loss;
use rustix::fs::FileType;
use tokio_util::sync::CancellationToken;

/// The context of an apply.
#[derive(Clone, Copy)]
pub(in crate::kinds::file) struct Hands<'a> {
    pub(in crate::kinds::file) file: &'a File,
    pub(in crate::kinds::file) host: &'a Host,
    pub(in crate::kinds::file) permit: &'a Permit,
    /// The files that one validation command judges with this one.
    pub(in crate::kinds::file) round: Option<&'a Round<'a>>,
}

impl File {
    pub(in crate::kinds::file) fn make_so(
        &self,
        host: &Host,
        permit: &Permit,
        change: Change,
    ) -> Outcome {
        self.make_so_with(Hands { file: self, host, permit, round: None }, change)
    }

    pub(in crate::kinds::file) fn make_so_with(&self, hands: Hands<'_>, change: Change) -> Outcome {
        let host = hands.host;
        // A premise of another kind is foreign: the check is made again.
        let mut premise = change.premise.downcast::<Premise>().ok().map(|premise| *premise);
        let mut moved = None;
        for _ in 0..2 {
            let current = match premise.take() {
                Some(premise) => premise,
                None => match self.inspect(host.files(), &CheckRequest::default()) {
                    Ok(None) => return Outcome::Unchanged,
                    Ok(Some(found)) => found.premise,
                    Err(failure) => return Outcome::Failed { failure, touched: false },
                },
            };
            match hands.run(&current) {
                Ok(done) if done.is_empty() => return Outcome::Unchanged,
                Ok(done) => return Outcome::Changed(done),
                // The premise has gone and nothing was done: try once more from the present state.
                Err(fault) if matches!(fault.why, Why::Moved) && !fault.touched => {
                    moved = Some(fault);
                }
                Err(fault) => return self.failed(host.files(), fault),
            }
        }
        self.failed(host.files(), moved.unwrap_or_else(Fault::moved))
    }

    fn failed(&self, files: &Files, fault: Fault) -> Outcome {
        if matches!(fault.why, Why::Revoked) {
            return Outcome::Interrupted;
        }
        let touched = fault.touched;
        Outcome::Failed { failure: files.failure(fault, &self.path), touched }
    }
}

impl Hands<'_> {
    fn files(&self) -> &Files {
        self.host.files()
    }

    fn run(&self, premise: &Premise) -> Result<Vec<String>, Fault> {
        let Some(spot) = self.files().open_entry(&self.file.path)? else {
            return Err(Fault::moved());
        };
        self.guard_closed(&spot)?;
        self.file.guard_place(self.files(), &spot)?;
        let content = self.file.content(self.files())?;
        if origins(content.as_ref()) != premise.origins {
            return Err(Fault::moved());
        }
        let mut done = Vec::new();
        if let Some(plan) = &premise.top {
            let want = self.file.want(content.as_ref());
            done = self.carry_out(&spot, plan, want)?;
        }
        if premise.below != Below::Nothing {
            let touched = !done.is_empty();
            let below = self.below(&spot, premise).map_err(|fault| fault.after(touched))?;
            done.extend(below);
        }
        Ok(done)
    }

    /// Rejects a change below a directory that another user put in the place of the declared one.
    fn guard_closed(&self, spot: &Entry<'_>) -> Result<(), Fault> {
        let Some(ClosedDirectory { path, owner }) = &self.file.rare().below else { return Ok(()) };
        let number = |text: &String| self.files().accounts().number(AccountKind::User, text);
        let owner = owner.as_ref().map(number).transpose().map_err(Fault::refused)?;
        let own = self.file.owner.as_ref().map(number).transpose().map_err(Fault::refused)?;
        self.files().guard_closed(spot, (path, owner), own)
    }

    fn below(&self, spot: &Entry<'_>, premise: &Premise) -> Result<Vec<String>, Fault> {
        let found = spot.look()?.filter(|seen| seen.kind == FileType::Directory);
        let Some(found) = found else { return Err(Fault::moved()) };
        let cancel = CancellationToken::new();
        let before = premise.top.as_ref().and_then(|plan| plan.found);
        let before = before.filter(|before| before.identity == found.identity);
        let tree = Tree::new(self.file, self.files(), &cancel, Some((*self, &premise.below)));
        let tree = tree.judged(before.map(|before| before.identity));
        tree.hold(spot, Some((&found, before.map_or(found.uid, |before| before.uid))))
            .map(crate::kinds::file::tree::report::Report::notes)
    }

    /// Carries out the plan for one object, if the premise still holds.
    pub(in crate::kinds::file) fn carry_out(
        &self,
        spot: &Entry<'_>,
        plan: &Plan,
        want: Want<'_>,
    ) -> Result<Vec<String>, Fault> {
        if !plan.fits(spot.look()?.as_ref()) {
            return Err(Fault::moved());
        }
        let secret = self.is_unrecorded(spot, plan, want);
        let content = !matches!(plan.work, Work::Attributes(_));
        let what = what(plan);
        let purged = matches!(want, Want::Absent) && !matches!(self.file.shape, Shape::Absent);
        let losing = Loss { content, secret, purged, edited: None, what: &what };
        let found = plan.found.as_ref();
        // A staged file is written and synced while the history syncs its record.
        let record = if matches!(plan.work, Work::Write { .. }) && !plan.clear {
            spot.begin_note(self.permit, found, losing)?
        } else {
            spot.note(self.permit, found, losing)?.into()
        };
        let done = self.do_it(spot, plan, (want, secret), &record);
        record.after(done)
    }

    fn do_it(
        &self,
        spot: &Entry<'_>,
        plan: &Plan,
        (want, secret): (Want<'_>, bool),
        record: &PendingNote<'_>,
    ) -> Result<Vec<String>, Fault> {
        let mut found = plan.found;
        let mut done = Vec::new();
        if plan.clear
            && let Some(seen) = found.take()
        {
            self.keep(spot, &seen)?;
            let all_below = self.file.force && seen.kind == FileType::Directory;
            let reach = if all_below { Reach::AllBelow { secret } } else { Reach::One };
            self.files().remove(self.permit, spot, &seen, reach)?;
            done.push("removed".to_owned());
        }
        let cleared = !done.is_empty();
        let rest = self.work(spot, plan, found, (want, record));
        done.extend(rest.map_err(|fault| fault.after(cleared))?);
        Ok(done)
    }

    /// Returns true if the history must not store the old or the new content.
    fn is_unrecorded(&self, spot: &Entry<'_>, plan: &Plan, want: Want<'_>) -> bool {
        let (file, files) = (self.file, self.files());
        let cancel = CancellationToken::new();
        let look = Look { file, files, spot, want, cancel: &cancel };
        let is_file = |seen: &EntryStat| seen.kind == FileType::RegularFile;
        let now = plan.found.filter(is_file).map(|seen| seen.mode);
        let then = match &plan.work {
            Work::Write { mode, .. } => Some(*mode),
            Work::Attributes(attributes) => attributes.mode.filter(|_| now.is_some()),
            Work::Remove | Work::Link(_) | Work::Directory(_) => None,
        };
        look.is_unrecorded(then.or(now).unwrap_or(0o644), now)
    }

    /// Makes the declared backup copy of a file that is about to be replaced or removed.
    fn keep(&self, spot: &Entry<'_>, seen: &EntryStat) -> Result<(), Fault> {
        match &self.file.rare().backup {
            Some(directory) if seen.kind == FileType::RegularFile && seen.size > 0 => {
                self.files().keep(self.permit, spot, seen, directory)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn work(
        &self,
        spot: &Entry<'_>,
        plan: &Plan,
        found: Option<EntryStat>,
        (want, record): (Want<'_>, &PendingNote<'_>),
    ) -> Result<Vec<String>, Fault> {
        let (files, permit) = (self.files(), self.permit);
        match (&plan.work, want, found) {
            (Work::Remove, _, _) => Ok(Vec::new()),
            (Work::Write { attributes, mode }, Want::Regular(content), found) => {
                let attributes = (*attributes, *mode);
                let put = self.write(spot, attributes, found.as_ref(), (content, record))?;
                Ok(vec![match (put, found) {
                    (Put::InPlace(why), _) => format!("content, in place: {why}"),
                    (Put::Whole, None) => "created".to_owned(),
                    (Put::Whole, Some(_)) => "content".to_owned(),
                }])
            }
            (Work::Link(attributes), Want::Link(target), found) => {
                if let Some(seen) = &found {
                    self.keep(spot, seen)?;
                }
                files.put_link(permit, spot, target, (*attributes, found.as_ref()))?;
                Ok(vec!["symlink".to_owned()])
            }
            (Work::Directory(attributes), _, None) => {
                // Until the declared list is set, nobody has rights by an inherited one.
                let is_listed = self.file.is_listed && spot.path() == self.file.path;
                let lists = if is_listed { NewLists::None } else { NewLists::Inherited };
                files.make_directory(permit, spot, *attributes, lists)?;
                Ok(vec!["created".to_owned()])
            }
            (Work::Attributes(attributes), _, Some(seen)) => {
                files.set_attributes(permit, spot, &seen, *attributes)?;
                Ok(self.file.attributes_done(*attributes))
            }
            // The plan belongs to another definition: check again.
            _ => Err(Fault::moved()),
        }
    }

    fn write(
        &self,
        spot: &Entry<'_>,
        (attributes, mode): (Attributes, u32),
        found: Option<&EntryStat>,
        (content, record): (Option<&Content<'_>>, &PendingNote<'_>),
    ) -> Result<Put, Fault> {
        let nothing = Content::default();
        let cancel = CancellationToken::new();
        let (file, files, want) = (self.file, self.files(), Want::Regular(content));
        let look = Look { file, files, spot, want, cancel: &cancel };
        let secret = look.is_unrecorded(mode, found.map(|seen| seen.mode));
        let validation = Validation {
            host: self.host,
            permit: self.permit,
            command: &file.rare().validate,
            path: spot.path(),
            secret,
        };
        let round = self.round;
        let member = round.as_ref().map(|round| round.member(&validation));
        let acceptance: &dyn Acceptance = match &member {
            Some(member) => member,
            None => &validation,
        };
        let has_validation = !file.rare().validate.is_empty() && content.is_some();
        let draft = Draft {
            content: content.unwrap_or(&nothing),
            owner: attributes.owner,
            group: attributes.group,
            mode,
            instead_of: found,
            acceptance: has_validation.then_some(acceptance),
            extended: None,
            sensitive: file.sensitive,
            whole_only: false,
            record: Some(record),
        };
        if let Some(seen) = found {
            self.keep(spot, seen)?;
        }
        files.put(self.permit, spot, &draft)
    }
}

/// Describes the changes of a plan, for the history.
fn what(plan: &Plan) -> String {
    let Some(found) = &plan.found else { return "created".to_owned() };
    let (first, attributes) = match &plan.work {
        Work::Remove => return "removed".to_owned(),
        Work::Write { attributes, mode } => {
            ("content", Attributes { mode: Some(*mode), ..*attributes })
        }
        Work::Link(attributes) => ("symlink", *attributes),
        Work::Directory(attributes) => ("directory", *attributes),
        Work::Attributes(attributes) => ("", *attributes),
    };
    let words = [
        (!first.is_empty(), first),
        (attributes.owner.is_some_and(|uid| uid != found.uid), "owner"),
        (attributes.group.is_some_and(|gid| gid != found.gid), "group"),
        (attributes.mode.is_some_and(|mode| mode != found.mode), "mode"),
    ];
    let words: Vec<&str> = words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    words.join(", ")
}

impl File {
    fn attributes_done(&self, done: Attributes) -> Vec<String> {
        let owner = done.owner.and(self.owner.as_deref()).map(|text| format!("owner {text}"));
        let group = done.group.and(self.group.as_deref()).map(|text| format!("group {text}"));
        let mode = done.mode.map(|mode| format!("mode {}", octal(mode)));
        [owner, group, mode].into_iter().flatten().collect()
    }
}
