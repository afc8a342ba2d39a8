//! Random sequences of installs, failures, restarts, removals, panics and hangs, with a stop at any moment, with or
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
/// The longest stop without a deadline: six workers end one after the other, each with its grace and its cut-off.
const LONGEST: Duration = Duration::from_secs(6 * 3 + 1);

/// An act of a worker, by itself or on request.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Fail,
    End,
    Bounce,
    Uninstall,
    Panic,
    /// The worker hangs: its heartbeat ends.
    Hang,
}

#[derive(Clone, Copy, Debug)]
struct Character {
    /// The milliseconds until the worker is ready; it ignores stop requests meanwhile.
    starts: u16,
    /// The act that the worker does by itself, and the milliseconds until then.
    deed: Option<(Deed, u16)>,
    /// The milliseconds from a stop request to the end; none: it never ends.
    ends: Option<u16>,
    /// True if the start fails.
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

/// Draws stop requests: an optional deadline and the pause before the next request, both in milliseconds.
fn stops() -> impl Strategy<Value = Vec<(Option<u16>, u16)>> {
    let within = prop_oneof![1 => Just(None), 1 => (0..20_000_u16).prop_map(Some)];
    proptest::collection::vec((within, 0..4000_u16), 1..3)
}

/// The running workers and the violations found.
#[derive(Default)]
struct Stagehands {
    live: BTreeMap<usize, CancellationToken>,
    cues: BTreeMap<usize, mpsc::UnboundedSender<Deed>>,
    wrong: Vec<String>,
    /// The required inputs of each worker.
    requires: Vec<BTreeSet<usize>>,
    /// True once no worker acts by itself any more.
    calm: bool,
    /// The workers that were asked to end before the stop; none before the stop request.
    stops: Option<BTreeSet<usize>>,
    /// True once the supervisor knows of the stop: no start may follow.
    knows: bool,
    /// The deadline of the stop: all workers are cut off after it.
    over: Option<Instant>,
    /// The number of workers that ended in the checked order, so that the check is not vacuous.
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

/// A guard that registers a worker as running while it exists.
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
        // A worker that ended by itself, or was asked to end before the stop, is outside the order of the stop.
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

/// Yields until all effects of the present instant have happened.
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
            // The worker may have ended already.
            let _told = hands.cues.get(&number).map(|cue| cue.send(deed));
        }
        Step::Wait(time) => tokio::time::sleep(Duration::from_millis(u64::from(time))).await,
    }
}

/// Requests the stop once or twice, waits for the end, and returns the violations.
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
        // A removal during the stop does not change the order.
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
        // At rest, no worker outlives a worker that it requires, whatever happened before.
        hands.lock().expect("whole").calm = true;
        tokio::time::sleep(60 * second).await;
    }
    let wrong = end(requests, &supervisor, &hands).await;
    let ordered = hands.lock().expect("whole").ordered;
    (wrong, ordered)
}

/// Two workers of one name never run together. After the stop request none starts, and none is asked to end before
/// its dependents, even with further faults. The stop ends within its deadline and names the workers left behind.
#[test]
fn random_events_break_no_rule() {
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
