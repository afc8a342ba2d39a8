//! The inputs of a worker.

use crate::harness::{Cue, Stage};
use std::sync::{Arc, Mutex};
use steadfast::supervisor::{Failure, Handle, Inputs, Kind, Manifold, Missing, Outputs, State};

type Seen = Arc<Mutex<Vec<Inputs>>>;

/// Creates a worker that records its inputs and runs.
fn keeper(seen: &Seen) -> Manifold {
    let seen = Arc::clone(seen);
    Manifold::new("keeper", move |inputs, life| {
        seen.lock().expect("whole").push(inputs);
        async move {
            life.ready(Outputs::none());
            life.stopping().cancelled().await;
            Ok(())
        }
    })
}

/// present, missing and undeclared inputs have different results.
#[tokio::test(start_paused = true)]
async fn missing_inputs_are_told_apart() {
    let stage = Stage::new();
    let seen = Seen::default();
    let keeper = keeper(&seen).requires("there").uses("gone").handles("later");
    stage.install(vec![stage.worker("there"), stage.worker("stranger"), keeper]).await;
    stage.runs(&["there", "stranger", "keeper"]).await;
    let inputs = seen.lock().expect("whole")[0].clone();
    assert_eq!(inputs.runs("there"), Ok(()), "A-8");
    let undeclared = inputs.runs("stranger").unwrap_err();
    assert_eq!(undeclared, Missing::Undeclared("stranger".into()), "A-9");
    assert!(undeclared.to_string().contains("not a declared"));
    let idle = inputs.get::<u32>("gone").unwrap_err();
    assert_eq!(idle, Missing::NotRunning("gone".into()), "A-10");
    assert!(idle.to_string().contains("not running"));
    let other = inputs.get::<u64>("there").unwrap_err();
    assert!(other.to_string().contains("offers no u64"), "A-11: {other}");
    assert_eq!(inputs.get::<&'static str>("there"), Ok("there"), "A-12");
    assert!(matches!(inputs.get::<u32>("later"), Err(Missing::Undeclared(_))), "late-bound only");
    assert!(inputs.handle::<u32>("stranger").is_err());
}

/// the inputs given at a start do not change; new values come with a restart.
#[tokio::test(start_paused = true)]
async fn given_inputs_do_not_change() {
    let stage = Stage::new();
    let seen = Seen::default();
    stage.install(vec![stage.worker("there"), keeper(&seen).requires("there")]).await;
    stage.runs(&["keeper"]).await;
    stage.cue("there", Cue::End(Err(Failure::new(Kind::Bounce, "changed"))));
    stage.until("a second start", || stage.starts("keeper") == 2).await;
    let seen = seen.lock().expect("whole");
    let values: Vec<_> = seen.iter().map(|inputs| inputs.get::<u32>("there")).collect();
    assert_eq!(values, [Ok(1), Ok(2)]);
}

/// P-3: a late-bound input comes and goes without a restart of the worker.
#[tokio::test(start_paused = true)]
async fn a_handle_follows_without_a_restart() {
    let stage = Stage::new();
    let seen = Seen::default();
    stage.install(vec![keeper(&seen).handles("later")]).await;
    stage.runs(&["keeper"]).await;
    let handle: Handle<u32> = seen.lock().expect("whole")[0].handle("later").expect("declared");
    assert_eq!(handle.get(), Err(Missing::NotRunning("later".into())));
    stage.install(vec![stage.worker("later")]).await;
    stage.runs(&["later"]).await;
    assert_eq!(handle.get(), Ok(1));
    stage.fail("later");
    stage.until("it is gone", || handle.get().is_err()).await;
    stage.until("it is back", || handle.get() == Ok(2)).await;
    assert_eq!((stage.starts("keeper"), stage.state("keeper")), (1, Some(State::Running)));
}

/// P-2: a start waits for an optional input that is starting, and not for one that fails.
#[tokio::test(start_paused = true)]
async fn an_optional_input_is_no_condition() {
    let stage = Stage::new();
    let seen = Seen::default();
    let optional = stage.worker("optional");
    stage.refuse("optional", vec![Failure::again("not yet")]);
    stage.install(vec![optional, keeper(&seen).uses("optional")]).await;
    stage.runs(&["keeper"]).await;
    assert_eq!(stage.state("optional"), Some(State::Waiting));
    stage.until("it is told", || stage.starts("keeper") == 2).await;
    let seen = seen.lock().expect("whole");
    let given: Vec<bool> = seen.iter().map(|inputs| inputs.runs("optional").is_ok()).collect();
    assert_eq!(given, [false, true]);
}
