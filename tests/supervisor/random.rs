//! Anything in any order: installs, failures, restarts, removals, panics, and a stop at any moment.

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::supervisor::{Delays, Failure, Kind, Life, Manifold, Outputs, Supervisor};
use tokio::time::Instant;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Who runs, and what must never be.
#[derive(Default)]
struct Stagehands {
    live: BTreeSet<usize>,
    wrong: Vec<String>,
    /// What each requires.
    requires: Vec<Vec<usize>>,
    /// Nobody does anything by itself any more.
    calm: bool,
    /// All is at rest, and the stop is asked for.
    stopping: bool,
}

#[derive(Clone, Copy, Debug)]
struct Character {
    /// 0: ends when asked. 1: fails after a while. 2: ends by itself. 3: asks for a restart. 4: panics. 5: does not start.
    /// 6: is slow to end. 7: never ends.
    habit: u8,
    /// Milliseconds until it does.
    after: u16,
}

#[derive(Clone, Debug)]
enum Step {
    Install(usize, Vec<(usize, u8)>, Character),
    Remove(usize),
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let character = (0..8_u8, 0..3000_u16).prop_map(|(habit, after)| Character { habit, after });
    let inputs = proptest::collection::vec((0..NAMES.len(), 0..3_u8), 0..4);
    prop_oneof![
        4 => (0..NAMES.len(), inputs, character).prop_map(|(n, i, c)| Step::Install(n, i, c)),
        1 => (0..NAMES.len()).prop_map(Step::Remove),
        3 => (0..4000_u16).prop_map(Step::Wait),
    ]
}

fn worker(
    number: usize,
    inputs: &[(usize, u8)],
    character: Character,
    hands: &Arc<Mutex<Stagehands>>,
) -> Manifold {
    let kept = Arc::clone(hands);
    let play = move |_, life: Life| {
        let hands = Arc::clone(&kept);
        async move {
            let _here = enter(number, &hands);
            act(character, &life, &hands).await
        }
    };
    let mut manifold = Manifold::new(NAMES[number], play).grace(Duration::from_secs(2));
    for (input, need) in inputs {
        manifold = match need {
            0 => manifold.requires(NAMES[*input]),
            1 => manifold.uses(NAMES[*input]),
            _ => manifold.handles(NAMES[*input]),
        };
    }
    manifold
}

async fn act(character: Character, life: &Life, hands: &Mutex<Stagehands>) -> Result<(), Failure> {
    let acts = async {
        tokio::time::sleep(Duration::from_millis(u64::from(character.after))).await;
        let calm = hands.lock().expect("whole").calm;
        if calm || !(1..5).contains(&character.habit) {
            std::future::pending::<()>().await;
        }
    };
    if character.habit == 5 {
        return Err(Failure::again("never"));
    }
    life.ready(Outputs::none());
    tokio::select! {
        () = life.stopping().cancelled() => {}
        () = acts => {
            return match character.habit {
                1 => Err(Failure::again("broke")),
                2 => Ok(()),
                3 => Err(Failure::new(Kind::Bounce, "new")),
                _ => panic!("on cue"),
            };
        }
    }
    match character.habit {
        6 => tokio::time::sleep(Duration::from_millis(1500)).await,
        7 => std::future::pending().await,
        _ => {}
    }
    Ok(())
}

/// Somebody is there as long as this lives.
struct Here {
    number: usize,
    hands: Arc<Mutex<Stagehands>>,
}

fn enter(number: usize, hands: &Arc<Mutex<Stagehands>>) -> Here {
    let mut state = hands.lock().expect("whole");
    if !state.live.insert(number) {
        state.wrong.push(format!("two of {}", NAMES[number]));
    }
    if state.stopping {
        state.wrong.push(format!("{} was started after the stop", NAMES[number]));
    }
    drop(state);
    Here { number, hands: Arc::clone(hands) }
}

impl Drop for Here {
    fn drop(&mut self) {
        let mut state = self.hands.lock().expect("whole");
        state.live.remove(&self.number);
        if !state.stopping {
            return;
        }
        let left = self.number;
        let outlived: Vec<_> = state
            .live
            .iter()
            .filter(|live| state.requires[**live].contains(&left))
            .map(|live| format!("{} outlived {}", NAMES[*live], NAMES[left]))
            .collect();
        state.wrong.extend(outlived);
    }
}

async fn play(steps: Vec<Step>, calm: bool) -> Vec<String> {
    let second = Duration::from_secs(1);
    let delays = Delays { error: second / 5, longest: 2 * second, ..Delays::default() };
    let supervisor = Supervisor::start(delays).expect("valid");
    let hands = Arc::new(Mutex::new(Stagehands {
        requires: vec![Vec::new(); NAMES.len()],
        ..Stagehands::default()
    }));
    for step in steps {
        match step {
            Step::Install(number, inputs, character) => {
                let manifold = worker(number, &inputs, character, &hands);
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
            Step::Wait(time) => tokio::time::sleep(Duration::from_millis(u64::from(time))).await,
        }
    }
    if calm {
        // In the middle of a restart nobody waits for those below, who are restarted as well: the order is that of the stop.
        hands.lock().expect("whole").calm = true;
        tokio::time::sleep(60 * second).await;
        hands.lock().expect("whole").stopping = true;
    }
    let begun = Instant::now();
    supervisor.stop(Some(20 * second));
    let ended = supervisor.ended().await;
    let took = begun.elapsed();
    let state = hands.lock().expect("whole");
    let mut wrong = state.wrong.clone();
    if took > 20 * second {
        wrong.push(format!("it took {took:?}"));
    }
    if let Some(live) =
        state.live.iter().find(|live| !ended.late.iter().any(|n| **n == *NAMES[**live]))
    {
        wrong.push(format!("{} was left behind and not named", NAMES[*live]));
    }
    wrong
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Never two of one name; at the stop nobody is started; it ends within its deadline, and names whom it leaves.
    #[test]
    fn whatever_happens(steps in proptest::collection::vec(step(), 1..25), calm in any::<bool>()) {
        std::panic::set_hook(Box::new(|_| {}));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
        let wrong = runtime.block_on(play(steps, calm));
        prop_assert!(wrong.is_empty(), "{wrong:?}");
    }
}
