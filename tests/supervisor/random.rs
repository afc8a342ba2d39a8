//! Anything in any order: installs, failures, restarts, removals, panics, hangs, and a stop at any moment with or
//! without a deadline.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::supervisor::{
    Delays, Failure, Kind, Manifold, Outputs, State, Supervisor, WorkerContext,
};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const GRACE: Duration = Duration::from_secs(2);
const CUT_OFF: Duration = Duration::from_secs(1);
/// Who waits for each other ends one after the other: each with its grace, and until it is left behind.
const LONGEST: Duration = Duration::from_secs(6 * 3 + 1);

/// What a worker does, by itself or on cue.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Fail,
    End,
    Bounce,
    Uninstall,
    Panic,
    /// It proves no more that it lives.
    Hang,
}

#[derive(Clone, Copy, Debug)]
struct Character {
    /// Milliseconds until it is ready; it does not look meanwhile whether it is to end.
    starts: u16,
    /// What it does by itself, and after how many milliseconds.
    deed: Option<(Deed, u16)>,
    /// Milliseconds until it ends when it is asked to; none: never.
    ends: Option<u16>,
    /// It does not start.
    refuses: bool,
    rank: u8,
    proves: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Install(usize, Vec<(usize, u8)>, Character),
    Remove(usize),
    Cue(usize, Deed),
    Wait(u16),
}

fn deed() -> impl Strategy<Value = Deed> {
    use Deed::{Bounce, End, Fail, Hang, Panic, Uninstall};
    proptest::sample::select(vec![Fail, End, Bounce, Uninstall, Panic, Hang])
}

fn character() -> impl Strategy<Value = Character> {
    let starts = prop_oneof![3 => Just(0_u16), 1 => 0..1500_u16];
    let deed = proptest::option::of((deed(), 0..3000_u16));
    let ends = prop_oneof![4 => Just(Some(0)), 2 => (0..1900_u16).prop_map(Some), 1 => Just(None)];
    let flags = (proptest::bool::weighted(0.1), 0..3_u8, any::<bool>());
    (starts, deed, ends, flags).prop_map(|(starts, deed, ends, (refuses, rank, proves))| {
        Character { starts, deed, ends, refuses, rank, proves }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let inputs = proptest::collection::vec((0..NAMES.len(), 0..3_u8), 0..4);
    prop_oneof![
        6 => (0..NAMES.len(), inputs, character()).prop_map(|(n, i, c)| Step::Install(n, i, c)),
        1 => (0..NAMES.len()).prop_map(Step::Remove),
        3 => (0..NAMES.len(), deed()).prop_map(|(n, deed)| Step::Cue(n, deed)),
        3 => (0..4000_u16).prop_map(Step::Wait),
    ]
}

/// The stop: within so many milliseconds, if it is said; asked for again after a while.
fn stops() -> impl Strategy<Value = Vec<(Option<u16>, u16)>> {
    let within = prop_oneof![1 => Just(None), 1 => (0..20_000_u16).prop_map(Some)];
    proptest::collection::vec((within, 0..4000_u16), 1..3)
}

/// Who runs, and what must never be.
#[derive(Default)]
struct Stagehands {
    live: BTreeMap<usize, CancellationToken>,
    cues: BTreeMap<usize, mpsc::UnboundedSender<Deed>>,
    wrong: Vec<String>,
    /// What each requires.
    requires: Vec<BTreeSet<usize>>,
    /// Nobody does anything by itself any more.
    calm: bool,
    /// The stop was asked for; of those that were asked to end before it, the order is not that of the stop.
    stops: Option<BTreeSet<usize>>,
    /// The supervisor knows of it: nobody is started any more.
    knows: bool,
    /// From then on all are cut off at once.
    over: Option<Instant>,
    /// So many have ended in the order of the stop: what is checked happens at all.
    ordered: u32,
}

fn worker(
    number: usize,
    inputs: &[(usize, u8)],
    character: Character,
    hands: &Arc<Mutex<Stagehands>>,
) -> Manifold {
    let kept = Arc::clone(hands);
    let play = move |_, life: WorkerContext| {
        let hands = Arc::clone(&kept);
        async move {
            let (_here, cues) = enter(number, &life, &hands);
            act(character, &life, &hands, cues).await
        }
    };
    let mut manifold = Manifold::new(NAMES[number], play).grace(GRACE).stop_rank(character.rank);
    if character.proves {
        manifold = manifold.heartbeat_within(Duration::from_millis(900));
    }
    for (input, need) in inputs {
        manifold = match need {
            0 => manifold.requires(NAMES[*input]),
            1 => manifold.uses(NAMES[*input]),
            _ => manifold.handles(NAMES[*input]),
        };
    }
    manifold
}

async fn act(
    character: Character,
    life: &WorkerContext,
    hands: &Mutex<Stagehands>,
    mut cues: mpsc::UnboundedReceiver<Deed>,
) -> Result<(), Failure> {
    tokio::time::sleep(Duration::from_millis(u64::from(character.starts))).await;
    if character.refuses {
        return Err(Failure::again("never"));
    }
    life.ready(Outputs::none());
    let by_itself = async {
        let Some((deed, after)) = character.deed else { return std::future::pending().await };
        tokio::time::sleep(Duration::from_millis(u64::from(after))).await;
        if hands.lock().expect("whole").calm { std::future::pending().await } else { deed }
    };
    let deed = life.during(async {
        tokio::select! {
            () = life.stopping().cancelled() => None,
            deed = by_itself => Some(deed),
            deed = cues.recv() => deed,
        }
    });
    match deed.await {
        Some(Deed::Fail) => return Err(Failure::again("broke")),
        Some(Deed::End) => return Ok(()),
        Some(Deed::Bounce) => return Err(Failure::new(Kind::Bounce, "new")),
        Some(Deed::Uninstall) => return Err(Failure::new(Kind::Uninstall, "done")),
        Some(Deed::Panic) => panic!("on cue"),
        Some(Deed::Hang) => std::future::pending().await,
        None => {}
    }
    match character.ends {
        Some(after) => tokio::time::sleep(Duration::from_millis(u64::from(after))).await,
        None => std::future::pending().await,
    }
    Ok(())
}

/// Somebody is there as long as this lives.
struct Here {
    number: usize,
    token: CancellationToken,
    hands: Arc<Mutex<Stagehands>>,
}

fn enter(
    number: usize,
    life: &WorkerContext,
    hands: &Arc<Mutex<Stagehands>>,
) -> (Here, mpsc::UnboundedReceiver<Deed>) {
    let mut state = hands.lock().expect("whole");
    let token = life.stopping().clone();
    if state.live.insert(number, token.clone()).is_some() {
        state.wrong.push(format!("two of {}", NAMES[number]));
    }
    if state.knows {
        state.wrong.push(format!("{} was started after the stop", NAMES[number]));
    }
    let (cue, cues) = mpsc::unbounded_channel();
    state.cues.insert(number, cue);
    drop(state);
    (Here { number, token, hands: Arc::clone(hands) }, cues)
}

impl Drop for Here {
    fn drop(&mut self) {
        let mut state = self.hands.lock().expect("whole");
        let left = self.number;
        state.live.remove(&left);
        let Some(before) = &state.stops else { return };
        let is_over = state.over.is_some_and(|over| over <= Instant::now());
        // One that ended by itself, or was asked before the stop, was not asked too early by the stop.
        let by_the_stop = self.token.is_cancelled() && !before.contains(&left);
        if is_over || !(by_the_stop || state.calm) {
            return;
        }
        state.ordered += 1;
        let outlived: Vec<_> = state
            .live
            .keys()
            .filter(|live| state.requires[**live].contains(&left))
            .map(|live| format!("{} outlived {}", NAMES[*live], NAMES[left]))
            .collect();
        state.wrong.extend(outlived);
    }
}

/// Lets everything happen that happens at this instant.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

async fn take(step: Step, supervisor: &Supervisor, hands: &Arc<Mutex<Stagehands>>) {
    match step {
        Step::Install(number, inputs, character) => {
            let manifold = worker(number, &inputs, character, hands);
            if supervisor.install(vec![manifold]).await.is_ok() {
                let needs = inputs.iter().filter(|(_, need)| *need == 0);
                let needs = needs.map(|(input, _)| *input).collect();
                hands.lock().expect("whole").requires[number] = needs;
            }
        }
        Step::Remove(number) => {
            let supervisor = supervisor.clone();
            tokio::spawn(async move { supervisor.remove(NAMES[number]).await });
        }
        Step::Cue(number, deed) => {
            let hands = hands.lock().expect("whole");
            // It may have ended already.
            let _told = hands.cues.get(&number).map(|cue| cue.send(deed));
        }
        Step::Wait(time) => tokio::time::sleep(Duration::from_millis(u64::from(time))).await,
    }
}

/// Asks for the stop, and again, and waits for the end; then what was wrong.
async fn end(
    stops: &[(Option<u16>, u16)],
    supervisor: &Supervisor,
    hands: &Arc<Mutex<Stagehands>>,
) -> Vec<String> {
    settle().await;
    let mut limit = Instant::now() + LONGEST;
    for (within, pause) in stops {
        let within = within.map(|within| Duration::from_millis(u64::from(within)));
        {
            let mut state = hands.lock().expect("whole");
            let asked = state.live.iter().filter(|(_, token)| token.is_cancelled());
            let asked = asked.map(|(number, _)| *number).collect();
            state.stops.get_or_insert(asked);
            if let Some(within) = within {
                let at = Instant::now() + within;
                state.over = Some(state.over.map_or(at, |over| over.min(at)));
                limit = limit.min(at);
            }
        }
        supervisor.stop(within);
        settle().await;
        if supervisor.report().state == State::Running {
            hands.lock().expect("whole").wrong.push("it runs on".to_owned());
        }
        hands.lock().expect("whole").knows = true;
        // A removal in the middle of it changes no order.
        let removal = supervisor.clone();
        tokio::spawn(async move { removal.remove(NAMES[0]).await });
        let pause = Duration::from_millis(u64::from(*pause));
        drop(tokio::time::timeout(pause, supervisor.ended()).await);
    }
    let ended = supervisor.ended().await;
    let state = hands.lock().expect("whole");
    let mut wrong = state.wrong.clone();
    let late = Instant::now().saturating_duration_since(limit);
    if late > Duration::from_millis(5) {
        wrong.push(format!("it took {late:?} too long"));
    }
    if let Some(live) =
        state.live.keys().find(|live| !ended.late.iter().any(|n| **n == *NAMES[**live]))
    {
        wrong.push(format!("{} was left behind and not named", NAMES[*live]));
    }
    wrong
}

async fn play(steps: Vec<Step>, calm: bool, requests: &[(Option<u16>, u16)]) -> (Vec<String>, u32) {
    let second = Duration::from_secs(1);
    let delays =
        Delays { error: second / 5, longest: 2 * second, cut_off: CUT_OFF, ..Delays::default() };
    let supervisor = Supervisor::start(delays).expect("valid");
    let requires = vec![BTreeSet::new(); NAMES.len()];
    let hands = Arc::new(Mutex::new(Stagehands { requires, ..Stagehands::default() }));
    for step in steps {
        take(step, &supervisor, &hands).await;
    }
    if calm {
        // All is at rest: then nobody outlives what it requires, whatever was before.
        hands.lock().expect("whole").calm = true;
        tokio::time::sleep(60 * second).await;
    }
    let wrong = end(requests, &supervisor, &hands).await;
    let ordered = hands.lock().expect("whole").ordered;
    (wrong, ordered)
}

/// Never two of one name; at the stop nobody is started, and nobody is asked to end whom another requires that lives,
/// also while faults go on; it ends within its deadline, and names whom it leaves.
#[test]
fn whatever_happens() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let config =
        ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let total = std::cell::Cell::new(0);
    let all = (proptest::collection::vec(step(), 1..30), any::<bool>(), stops());
    let result = runner.run(&all, |(steps, calm, requests)| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build().expect("a runtime");
        let (wrong, ordered) = runtime.block_on(play(steps, calm, &requests));
        total.set(total.get() + ordered);
        prop_assert!(wrong.is_empty(), "{wrong:?}");
        Ok(())
    });
    std::panic::set_hook(hook);
    if let Err(why) = result {
        panic!("{why}");
    }
    assert!(total.get() > 200, "the order was looked at {} times only", total.get());
}
