//! Kinds for the simulated machine: files and commands, step by step as the real ones work, on files that are in memory.

use crate::stage::{Shared, lock};
use crate::world::{Node, Who};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::{
    Answer, Ask, Change, Claim, Difference, FieldSpec, FieldType, Fields, Host, Invalid, Nature,
    Outcome, Permit, Place, Receives, Repeat, Resource, Seat, Source, Spec, Trouble, Verdict,
};

thread_local! {
    /// The machine of the run that this thread plays.
    pub(crate) static MACHINE: RefCell<Option<Shared>> = const { RefCell::new(None) };
}

fn machine() -> Shared {
    MACHINE.with_borrow(|machine| Arc::clone(machine.as_ref().expect("a run is played")))
}

/// Files and directories.
pub(crate) static FILE: Spec = Spec {
    kind: "file",
    doc: "A file or directory of the simulated machine.",
    fields: &[
        FieldSpec::new("path", FieldType::Text, "Where."),
        FieldSpec::new("state", FieldType::Text, "exists or absent."),
        FieldSpec::new("content", FieldType::Text, "What.").receives(Receives::Shown),
        FieldSpec::new("mode", FieldType::Text, "Octal."),
    ],
    sends: &[],
    build: build_file,
};

/// Commands.
pub(crate) static EXEC: Spec = Spec {
    kind: "exec",
    doc: "A command of the simulated machine.",
    fields: &[
        FieldSpec::new("cmd", FieldType::Text, "Which."),
        FieldSpec::new("creates", FieldType::Text, "Nothing to do where it is."),
        FieldSpec::new("watchfiles", FieldType::Texts, "Runs when they change."),
        FieldSpec::new("refresh_only", FieldType::Bool, "Runs only when it is notified."),
        FieldSpec::new("always", FieldType::Bool, "Runs at each start."),
    ],
    sends: &[],
    build: build_exec,
};

#[derive(Debug)]
struct File {
    path: PathBuf,
    /// None: nothing is to be there.
    wanted: Option<Wanted>,
}

#[derive(Debug)]
enum Wanted {
    File { content: String, mode: Option<u32> },
    Directory { mode: Option<u32> },
}

#[expect(clippy::unnecessary_wraps, reason = "as every kind is built")]
fn build_file(
    name: &str,
    mut fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let path = fields.text("path").unwrap_or_else(|| name.to_owned());
    let mode = fields.text("mode").map(|text| u32::from_str_radix(&text, 8).expect("octal"));
    let content = fields.text("content").unwrap_or_default();
    let wanted = match fields.text("state").as_deref() {
        Some("absent") => None,
        _ if path.ends_with('/') => Some(Wanted::Directory { mode }),
        _ => Some(Wanted::File { content, mode }),
    };
    Ok(Arc::new(File { path: PathBuf::from(path.trim_end_matches('/')), wanted }))
}

/// One system call: somebody else may come in before it, and it may fail.
fn call<T>(act: impl FnOnce(&mut crate::stage::Stage) -> T) -> Result<T, Trouble> {
    let machine = machine();
    let mut stage = lock(&machine);
    stage.between_calls();
    if stage.is_faulty() {
        stage.saw("a system call failed");
        return Err(Trouble::new("input/output error"));
    }
    Ok(act(&mut stage))
}

impl File {
    fn look(&self) -> Result<Option<Node>, Trouble> {
        let parent = self.path.parent().expect("below the root").to_owned();
        call(|stage| stage.world.find(&parent).is_some())?;
        call(|stage| stage.world.at(&self.path).cloned())
    }

    /// What differs, and whether something that is there will be gone.
    fn differs(&self, found: Option<&Node>) -> Option<(&'static str, bool)> {
        match (&self.wanted, found) {
            (None, None) => None,
            (None, Some(_)) => Some(("state", true)),
            (Some(_), None) => Some(("state", false)),
            (Some(Wanted::File { content, mode }), Some(Node::File { content: is, mode: has })) => {
                if content != is {
                    return Some(("content", false));
                }
                mode.is_some_and(|mode| mode != *has).then_some(("mode", false))
            }
            (Some(Wanted::Directory { mode }), Some(Node::Directory { mode: has, .. })) => {
                mode.is_some_and(|mode| mode != *has).then_some(("mode", false))
            }
            (Some(_), Some(_)) => Some(("state", true)),
        }
    }

    fn put(&self, permit: &Permit, found: Option<&Node>) -> Result<(), (Trouble, bool)> {
        let untouched = |trouble| (trouble, false);
        let revoked = |revoked: steadfast_resources::Revoked| Trouble::new(revoked.to_string());
        permit.check().map_err(revoked).map_err(untouched)?;
        if self.look().map_err(untouched)?.as_ref() != found {
            return Err((Trouble::new("it kept changing meanwhile"), false));
        }
        let no_parent = || Trouble::new("its directory does not exist");
        let is_replaced = self.differs(found).is_some_and(|(_, destructive)| destructive);
        if is_replaced {
            call(|stage| stage.world.remove(&self.path, Who::Us)).map_err(untouched)?;
        }
        permit.check().map_err(revoked).map_err(|trouble| (trouble, is_replaced))?;
        let done = match &self.wanted {
            None => Ok(true),
            Some(Wanted::Directory { mode }) => call(|stage| {
                let entries = std::collections::BTreeMap::new();
                let node = Node::Directory { entries, mode: mode.unwrap_or(0o755) };
                stage.world.write(&self.path, node, Who::Us)
            }),
            Some(Wanted::File { content, mode }) => {
                let kept = match found {
                    Some(Node::File { mode, .. }) => *mode,
                    _ => 0o644,
                };
                let temporary = self
                    .path
                    .with_file_name(format!(".steadfast-{}", lock(&machine()).world.changes));
                let node = Node::File { content: content.clone(), mode: mode.unwrap_or(kept) };
                call(|stage| stage.world.write(&temporary, node, Who::Us)).and_then(|written| {
                    permit.check().map_err(revoked)?;
                    let renamed = call(|stage| stage.world.rename(&temporary, &self.path, Who::Us));
                    if !matches!(renamed, Ok(true)) {
                        drop(call(|stage| stage.world.remove(&temporary, Who::Us)));
                    }
                    Ok(written && renamed?)
                })
            }
        };
        match done {
            Ok(true) => Ok(()),
            Ok(false) => Err((no_parent(), true)),
            Err(trouble) => Err((trouble, true)),
        }
    }
}

impl Resource for File {
    fn claims(&self) -> Vec<Claim> {
        vec![Claim::Path(self.path.clone())]
    }

    fn watch(&self) -> Vec<Source> {
        vec![Source::Path { path: self.path.clone(), below: false }]
    }

    fn check<'a>(&'a self, _host: &'a Host, ask: Ask) -> Answer<'a, Verdict> {
        Box::pin(async move {
            if ask.cancel.is_cancelled() {
                return Verdict::Unknown(Trouble::new("cancelled"));
            }
            match self.look() {
                Err(trouble) => Verdict::Unknown(trouble),
                Ok(found) => match self.differs(found.as_ref()) {
                    None => Verdict::Same,
                    Some((aspect, destructive)) => {
                        let (from, to) = (format!("{found:?}"), format!("{:?}", self.wanted));
                        let differences = vec![Difference { aspect, from, to, diff: None }];
                        Verdict::Differs(Change {
                            differences,
                            destructive,
                            premise: Box::new(found),
                        })
                    }
                },
            }
        })
    }

    fn apply<'a>(
        &'a self,
        _host: &'a Host,
        permit: &'a Permit,
        change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let premise = change.premise.downcast::<Option<Node>>().expect("its own");
            match self.put(permit, premise.as_ref().as_ref()) {
                Ok(()) => Outcome::Changed(vec!["put".to_owned()]),
                Err(_) if permit.check().is_err() => Outcome::Interrupted,
                Err((trouble, touched)) => Outcome::Failed { trouble, touched },
            }
        })
    }
}

#[derive(Debug)]
struct Exec {
    command: String,
    creates: Option<PathBuf>,
    watched: Vec<PathBuf>,
    refresh_only: bool,
    always: bool,
}

#[expect(clippy::unnecessary_wraps, reason = "as every kind is built")]
fn build_exec(
    name: &str,
    mut fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    Ok(Arc::new(Exec {
        command: fields.text("cmd").unwrap_or_else(|| name.to_owned()),
        creates: fields.text("creates").map(PathBuf::from),
        watched: fields.texts("watchfiles").unwrap_or_default().iter().map(PathBuf::from).collect(),
        refresh_only: fields.bool("refresh_only").unwrap_or_default(),
        always: fields.bool("always").unwrap_or_default(),
    }))
}

/// Counts a run of a command for as long as it lasts, also where it is cut off.
struct InProgress(Shared, (u32, String));

impl InProgress {
    fn new(command: &str) -> Self {
        let machine = machine();
        let mut stage = lock(&machine);
        stage.note_deed(command);
        let this = (stage.life, command.to_owned());
        let count = stage.running.entry(this.clone()).or_default();
        *count += 1;
        if *count > 1 {
            let twice = format!("E-6: {command} runs {count} times at once");
            stage.wrong.push(twice);
        }
        drop(stage);
        Self(machine, this)
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        let mut stage = lock(&self.0);
        if let Some(count) = stage.running.get_mut(&self.1) {
            *count -= 1;
        }
        if stage.life == self.1.0 {
            let now = stage.now();
            stage.done.insert(self.1.1.clone(), now);
        }
    }
}

impl Exec {
    fn is_there(path: &Path) -> Result<bool, Trouble> {
        call(|stage| stage.world.find(path).is_some())
    }

    async fn run(&self, permit: &Permit) -> Outcome {
        if permit.check().is_err() {
            return Outcome::Interrupted;
        }
        let machine = machine();
        let _in_progress = InProgress::new(&self.command);
        let (began, lasts, life) = {
            let mut stage = lock(&machine);
            let most = stage.profile.job;
            let lasts = if stage.rough { stage.chance.within(0, most) } else { 1 };
            (stage.now(), lasts, stage.life)
        };
        tokio::select! {
            biased;
            () = permit.revoked() => return Outcome::Interrupted,
            () = tokio::time::sleep(Duration::from_millis(lasts)) => {}
        }
        let mut stage = lock(&machine);
        if stage.life != life || stage.dead {
            return Outcome::Interrupted;
        }
        let times = stage.profile.failures;
        if stage.rough && stage.chance.once_in(times) {
            stage.saw("a command failed");
            return Outcome::Failed { trouble: Trouble::new("exit 1, not 0"), touched: true };
        }
        stage.world.now = stage.now();
        if let Some(path) = &self.creates {
            let node = Node::File { content: String::new(), mode: 0o644 };
            if !stage.world.write(path, node, Who::Us) {
                return Outcome::Failed { trouble: Trouble::new("exit 2, not 0"), touched: true };
            }
        }
        let ran = stage.ran.entry(self.command.clone()).or_default();
        ran.push(began);
        Outcome::Changed(vec!["ran: exit 0".to_owned()])
    }
}

impl Resource for Exec {
    fn watch(&self) -> Vec<Source> {
        let paths = self.watched.iter().chain(&self.creates);
        paths.map(|path| Source::Path { path: path.clone(), below: false }).collect()
    }

    fn nature(&self) -> Nature {
        let repeat = match (self.creates.is_some(), self.always) {
            _ if self.refresh_only => Repeat::Events,
            (true, _) => Repeat::State,
            (false, true) => Repeat::EachStart,
            (false, false) => Repeat::Once,
        };
        Nature { seat: Seat::Command, repeat, ..Nature::default() }
    }

    fn check<'a>(&'a self, _host: &'a Host, ask: Ask) -> Answer<'a, Verdict> {
        Box::pin(async move {
            let is_asked = ask.refresh || (ask.run && !self.refresh_only);
            if !is_asked && (self.creates.is_none() || self.refresh_only) {
                return Verdict::Same;
            }
            match self.creates.as_deref().map(Self::is_there).transpose() {
                Err(trouble) => return Verdict::Unknown(trouble),
                Ok(Some(true)) => return Verdict::Same,
                Ok(Some(false) | None) => {}
            }
            let (from, to) = (String::new(), self.command.clone());
            let differences = vec![Difference { aspect: "command", from, to, diff: None }];
            Verdict::Differs(Change { differences, destructive: false, premise: Box::new(()) })
        })
    }

    fn apply<'a>(
        &'a self,
        _host: &'a Host,
        permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(self.run(permit))
    }
}
