//! Tests of the kind `timer`.

use crate::support::{EVENT, LOOK, REFRESH, apply, build, change, check, differs};
use std::time::Duration;
use steadfast_resources::{OnInterrupt, Outcome, RunPolicy, Value, WatchSource};

#[test]
fn a_tick_is_a_change_and_a_restart_is_none() {
    let timer = build("timer", [("interval", Value::Float(0.5))]).unwrap();
    assert_eq!(timer.footprint().watch, [WatchSource::Every(Duration::from_millis(500))]);
    assert_eq!(timer.traits().repeat, RunPolicy::Events, "it does not tick at load");
    assert_eq!(timer.traits().on_interrupt, OnInterrupt::Skip);
    assert!(!differs(&timer, LOOK));
    let tick = change(check(&timer, EVENT));
    assert_eq!(apply(&timer, tick), Outcome::Changed(vec!["tick".to_owned()]));
    let restart = change(check(&timer, REFRESH));
    assert_eq!(apply(&timer, restart), Outcome::Unchanged);
    let both = change(check(&timer, (true, true)));
    assert_eq!(apply(&timer, both), Outcome::Changed(vec!["tick".to_owned()]));
}

#[test]
fn an_interval_is_needed_and_has_bounds() {
    assert!(build("timer", []).is_err());
    for seconds in [0.0, -1.0, 0.001, f64::NAN, f64::INFINITY, 1e12] {
        let problems = build("timer", [("interval", Value::Float(seconds))]).unwrap_err();
        assert_eq!(problems[0].field, Some("interval"), "{seconds}");
    }
}
