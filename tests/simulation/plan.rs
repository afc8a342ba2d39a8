//! F-16: a plan equals the apply that follows, for random graphs on random hosts. A saved plan does not apply steps
//! that changed in between.

use crate::environment::{Shared, Stage, here, lock};
use crate::host::adversary::{meddle, put_back};
use crate::host::commands;
use crate::input::chance::Chance;
use crate::input::linked_paths::{led, put_links};
use crate::input::profile::Profile;
use crate::input::removal::{Places, cut_off, marked, owed, without_some, without_wrong_names};
use crate::input::shape::{Shape, Thing, load_outside};
use crate::judgement::comparison::{
    Deeds, Done, misplanned_refreshes, not_done, unequal, unplanned, untold,
};
use crate::life::Life;
use crate::runs::share;
use crate::schedule::until;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::api::{Action, Step};
use steadfast::config::{LoadedGraph, Options};
use steadfast::driver::{DriverEvent, DriverExit, Guard, Observer, Settings};
use steadfast::plan::{Plan, StepCollector};
use steadfast::store::MemoryStore;
use steadfast_engine::Slots;
use steadfast_resources::host::simulated::Machine;

/// The longest simulated time of one pass.
const LONGEST: Duration = Duration::from_mins(10);

/// The two situations after a change between plan and apply: the saved plan is still valid, or not.
const STILL: &str = "moved, and still as planned";
const NOT_STILL: &str = "moved, and not as planned";

/// The situations reached in all cases together, with their counts.
#[derive(Debug, Default)]
struct Seen(BTreeMap<&'static str, u32>);

impl Seen {
    fn note(&mut self, what: &'static str, count: usize) {
        *self.0.entry(what).or_default() += u32::try_from(count).expect("few");
    }

    fn count(&self, what: &str) -> u32 {
        self.0.get(what).copied().unwrap_or_default()
    }
}

/// The kinds of resources in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinds {
    All,
    /// Files, links and directories.
    Files,
    /// Files, links and directories; some cases have more links, with paths through these links.
    LedFiles,
}

/// A test case: a simulated host, its stored state, and the folder of its graph.
struct Case<'f> {
    stage: Shared,
    kept: MemoryStore,
    folder: &'f Path,
    chance: Chance,
    /// The random numbers for links inside paths; none for cases without such links.
    links: Option<Chance>,
    kinds: Kinds,
}

impl<'f> Case<'f> {
    fn new((seed, kinds): (u64, Kinds), folder: &'f Path) -> Self {
        let profile = Profile::draw(&mut Chance::of(seed, "profile"));
        let mut stage = Stage::new(profile, Chance::of(seed, "stage"), false);
        stage.rough = false;
        let machine = here();
        put_back(&mut stage, &machine, |_| false);
        let stage = Arc::new(Mutex::new(stage));
        commands::install(&machine, &stage);
        let chance = Chance::of(seed, "planned");
        let mut links = Chance::of(seed, "links");
        let links = (kinds != Kinds::Files && links.percent(40)).then_some(links);
        Self { stage, kept: MemoryStore::default(), folder, chance, links, kinds }
    }

    fn meddle(&mut self, most: u64) {
        for _ in 0..self.chance.below(most) {
            meddle(&mut lock(&self.stage), &here());
        }
    }

    /// Adds links to the graph and to the host in about half of the cases that have them.
    fn led(&mut self, mut shape: Shape) -> Shape {
        if self.kinds != Kinds::All {
            shape = only_files(shape);
        }
        let Some(chance) = &mut self.links else { return shape };
        if chance.percent(50) {
            put_links(&here(), chance);
        }
        ending(led(shape, chance))
    }

    fn read(&self, shape: &Shape) -> LoadedGraph {
        let path = self.folder.join("graph.yaml");
        std::fs::write(&path, shape.text()).expect("a graph file");
        load_outside(&path).unwrap_or_else(|rejected| panic!("{rejected}\n{}", shape.text()))
    }

    /// Runs one pass over a graph with this stored state.
    async fn pass(
        &self,
        loaded: LoadedGraph,
        (kept, guard): (&MemoryStore, Option<Arc<dyn Guard>>),
        observer: Box<dyn Observer>,
    ) -> DriverExit {
        let settings = Settings {
            one_shot: true,
            slots: Slots::default(),
            sweep: None,
            pause_limit: Duration::from_mins(2),
            whole: true,
            removes: true,
            repair_limit: None,
            clock: || (0, 0),
            guard,
        };
        let mut life = Life::with(&self.stage, kept, settings, observer);
        life.inbox.put(DriverEvent::Graph { graph: Ok(Box::new(loaded)), operator: true });
        let finished = tokio::time::timeout(LONGEST, until(&mut life, &self.stage, || false)).await;
        life.stopped(&self.stage);
        finished.expect("a pass comes to its end").expect("nobody else ends it")
    }

    async fn plan(&self, shape: &Shape) -> (Plan, Vec<Step>, DriverExit) {
        let loaded = self.read(shape);
        let (planned, noop) = loaded.clone().into_plan();
        let steps = StepCollector::new(noop);
        // A plan stores nothing.
        let kept = (&self.kept.fork(), None);
        let finished = self.pass(planned, kept, Box::new(steps.clone())).await;
        let names: BTreeSet<&str> = loaded.vertices.iter().map(|v| v.identity.as_ref()).collect();
        let mut steps = steps.take();
        for step in &mut steps {
            step.note_leaving(!names.contains(step.resource.as_str()));
        }
        let plan = Plan::new(
            (&loaded, &[], None),
            &Options::new(steadfast::config::KindSet::of_this_build()),
            steps.clone(),
        );
        (plan, steps, finished)
    }

    async fn apply(&self, shape: &Shape, guard: Option<Arc<dyn Guard>>) -> (Deeds, DriverExit) {
        let done = Done::default();
        let kept = (&self.kept, guard);
        let finished = self.pass(self.read(shape), kept, Box::new(done.clone())).await;
        let deeds = done.0.lock().expect("one thread").clone();
        (deeds, finished)
    }
}

/// Returns only the files, links and directories of a graph.
fn only_files(mut shape: Shape) -> Shape {
    let others = shape.resources.iter().filter(|(_, declared)| declared.thing.path().is_none());
    for name in others.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
        shape.remove(&name);
    }
    without_wrong_names(shape)
}

/// Alters a graph so that its pass ends and no kind makes a step unknown.
fn ending(mut shape: Shape) -> Shape {
    for (name, declared) in &mut shape.resources {
        // An apply retries without end, so an endless retry would never return.
        declared.meta.0.remove("retry");
        if let Thing::Test { changed, .. } = &mut declared.thing {
            *changed = true;
        }
        // No plan predicts that one command creates the file of another's guard, so each has its own path.
        if let Thing::Exec { creates: Some(path), .. } = &mut declared.thing {
            *path = Path::new("/made").join(name);
        }
    }
    shape
}

/// Applies up to two graphs to a fresh host, and returns the next graph to plan.
async fn prepared(case: &mut Case<'_>, places: &mut Places, sights: &mut Seen) -> Shape {
    let mut shape = marked(ending(Shape::draw(&mut case.chance)), &mut case.chance);
    case.meddle(12);
    shape = case.led(shape);
    for _ in 0..*case.chance.pick(&[0, 1, 1, 1, 2]) {
        places.note(&shape);
        case.apply(&shape, None).await;
        if case.chance.percent(30) {
            let loaded = case.read(&shape);
            let is_cut_off = cut_off(&mut case.kept, &loaded, &mut case.chance);
            sights.note("an apply that was cut off", usize::from(is_cut_off));
        }
        if case.chance.percent(70) {
            shape = without_some(shape, &mut case.chance);
        }
        if case.chance.percent(40) {
            shape = marked(ending(shape.altered(&mut case.chance)), &mut case.chance);
        }
        shape = ending(without_wrong_names(shape));
        case.meddle(6);
        shape = case.led(shape);
    }
    sights.note("a former name", shape.former.len());
    shape
}

async fn case(drawn: (u64, Kinds), folder: &Path, sights: &mut Seen) -> Vec<String> {
    let (mut case, mut places) = (Case::new(drawn, folder), Places::default());
    let shape = prepared(&mut case, &mut places, sights).await;
    let before = here().look(|tree| format!("{:?}", tree.all()));
    let planned = case.plan(&shape).await;
    let after = here().look(|tree| format!("{:?}", tree.all()));
    let mut wrong = Vec::new();
    if before != after {
        wrong.push("the plan has changed something".to_owned());
    }
    note_steps(&planned.1, sights);
    places.note(&shape);
    let not_planned = untold(&planned.2);
    if planned.2.rejection.is_none() {
        wrong.extend(places.unnamed((&planned.1, &not_planned), &shape, &case.kept));
    }
    let moves = case.chance.percent(40);
    wrong.extend(case.hold(&shape, &planned, (moves, &places), sights).await);
    if !wrong.is_empty() {
        wrong.push(shape.text());
        wrong.push(format!("{:#?}", planned.1));
    }
    wrong
}

const ACTIONS: [Action; 5] =
    [Action::Change, Action::Remove, Action::Refresh, Action::Unknown, Action::Held];

fn note_steps(steps: &[Step], sights: &mut Seen) {
    for action in ACTIONS {
        let count = steps.iter().filter(|step| step.action == action).count();
        sights.note(word(action), count);
    }
    sights.note("to leave", steps.iter().filter(|step| step.pending_removal).count());
}

impl Case<'_> {
    /// Lets the adversary change the host; returns true if the saved plan is still valid.
    async fn moves(&mut self, shape: &Shape, plan: &Plan, sights: &mut Seen) -> bool {
        self.meddle(4);
        // `apply --plan` makes this comparison before its first step.
        let (_, found, _) = self.plan(shape).await;
        let is_still = plan.is_still(&found).is_ok();
        sights.note(if is_still { STILL } else { NOT_STILL }, 1);
        is_still
    }

    /// Applies a plan, with or without changes by the adversary in between, and lists the deviations from the plan.
    async fn hold(
        &mut self,
        shape: &Shape,
        (plan, steps, planned): &(Plan, Vec<Step>, DriverExit),
        (moves, places): (bool, &Places),
        sights: &mut Seen,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        let is_still = !moves || self.moves(shape, plan, sights).await;
        let is_guarded = moves || self.chance.percent(50);
        let guard: Option<Arc<dyn Guard>> =
            if is_guarded { Some(Arc::new(plan.clone())) } else { None };
        let owed_before = owed(&self.kept, shape);
        let (deeds, applied) = self.apply(shape, guard).await;
        let owed_after = owed(&self.kept, shape);
        if planned.rejection != applied.rejection {
            wrong.push(format!("{:?} was planned, and {:?}", planned.rejection, applied.rejection));
        }
        if applied.rejection.is_some() {
            sights.note("refused, for something is protected", 1);
            let all = deeds.changed.keys();
            wrong.extend(all.map(|name| format!("{name}: changed by a graph that is refused")));
            return wrong;
        }
        let refused = deeds.failures.iter().filter(|(_, what)| what.starts_with("not as planned"));
        sights.note("changes", deeds.changed.len());
        sights.note("failures", deeds.failures.len());
        sights.note("refused as not planned", refused.clone().count());
        let loaded = self.read(shape);
        let not_done = not_done(&loaded, &applied);
        let owed = (&owed_before, &owed_after);
        wrong.extend(misplanned_refreshes(steps, owed, (&untold(planned), &not_done)));
        if is_still {
            wrong.extend(unequal(&loaded, (steps, planned), (&deeds, &applied)));
            wrong.extend(refused.map(|(name, what)| format!("{name}: {what}, and it is still")));
            wrong.extend(places.left_behind(steps, &not_done));
        } else {
            wrong.extend(unplanned(steps, &deeds));
        }
        wrong
    }
}

const fn word(action: Action) -> &'static str {
    match action {
        Action::Change => "to change",
        Action::Remove => "to remove",
        Action::Refresh => "to refresh",
        Action::Unknown => "unknown until another is changed",
        Action::Held => "held",
    }
}

fn play(drawn: (u64, Kinds), folder: &Path, sights: &mut Seen) -> Vec<String> {
    let machine = Machine::default();
    let _entered = machine.enter();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(tokio::task::unconstrained(case(drawn, folder, sights)))
}

/// The number of all cases.
const CASES: u64 = 10_000;

/// Returns the number of cases that are played.
fn count() -> u64 {
    share(CASES)
}

/// F-16: a plan and its apply are equal, or the plan says unknown. `STEADFAST_SEED` plays one case.
#[test]
fn a_plan_equals_its_apply() {
    is_varied(&cases(0..count() / 2, Kinds::All));
}

#[test]
fn a_plan_equals_its_apply_in_the_other_half() {
    is_varied(&cases(count() / 2..count(), Kinds::All));
}

/// F-16: a plan includes the effects of its own steps. Only steps on one object without an edge between them are
/// unknown.
#[test]
fn two_of_a_hundred_steps_on_files_are_unknown_at_most() {
    is_known_but_for(2, &cases(0..count() / 2, Kinds::Files));
}

/// F-16: a plan includes the effects of its own steps on paths through links, which exist or are planned.
#[test]
fn six_of_a_hundred_steps_behind_links_are_unknown_at_most() {
    is_known_but_for(6, &cases(0..count() / 2, Kinds::LedFiles));
}

fn is_known_but_for(percent: u32, seen: &Seen) {
    if std::env::var("STEADFAST_SEED").is_ok() {
        return;
    }
    let all: u32 = ACTIONS.map(|action| seen.count(word(action))).iter().sum();
    let unknown = seen.count(word(Action::Unknown));
    assert!(all > 500 && unknown * 100 <= all * percent, "{unknown} of {all}: {seen:?}");
}

fn cases(all: std::ops::Range<u64>, kinds: Kinds) -> Seen {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = std::env::var("STEADFAST_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let seeds = asked.map_or(all, |seed| seed..seed + 1);
    let mut seen = Seen::default();
    for seed in seeds {
        let drawn = (seed, kinds);
        let played = catch_unwind(AssertUnwindSafe(|| play(drawn, folder.path(), &mut seen)));
        let wrong = played.unwrap_or_else(|_panic| vec!["it panicked".to_owned()]);
        assert!(
            wrong.is_empty(),
            "{}\n{kinds:?}: STEADFAST_SEED={seed} cargo nextest run --test simulation planned::",
            wrong.join("\n")
        );
    }
    seen
}

/// Checks that each half of the cases has reached these situations, so that no check is vacuous.
fn is_varied(seen: &Seen) {
    if std::env::var("STEADFAST_SEED").is_ok() {
        return;
    }
    let often = [
        "to change",
        "to remove",
        "to refresh",
        "to leave",
        "a former name",
        "an apply that was cut off",
        "held",
        "changes",
        "failures",
        STILL,
        NOT_STILL,
    ];
    let rare = [
        "unknown until another is changed",
        "refused as not planned",
        "refused, for something is protected",
    ];
    for what in often.into_iter().chain(rare) {
        let count = seen.count(what);
        let least = share(if rare.contains(&what) { 5 } else { 100 }).max(1);
        assert!(u64::from(count) >= least, "{what}: {count} in all; {seen:?}");
    }
}
