//! Tests of the differences that a check finds and of the requests that an apply sends.

use crate::fake::{Fake, Unit, changed, svc, wait};
use steadfast_resources::Outcome;
use tokio_util::sync::CancellationToken;

fn one(active: &'static str, file: &'static str) -> Fake {
    Fake::new(&[("a.service", Unit::new(active, file))])
}

#[test]
fn a_converged_unit_is_left_alone() {
    for (active, state) in [
        ("active", "running"),
        ("activating", "running"),
        ("reloading", "running"),
        ("inactive", "stopped"),
        ("failed", "stopped"),
        ("deactivating", "stopped"),
    ] {
        let fake = one(active, "enabled");
        let unit = svc("a", &[("state", state), ("startup", "enabled")]);
        assert_eq!(fake.plan(&unit, false), Vec::<String>::new(), "{active}");
        assert_eq!(fake.asked(), Vec::<String>::new());
    }
}

#[test]
fn a_plan_says_what_would_be_done_and_does_nothing() {
    for (active, from) in
        [("inactive", "stopped"), ("failed", "failed"), ("deactivating", "stopping")]
    {
        let fake = one(active, "disabled");
        let unit = svc("a", &[("state", "running"), ("startup", "enabled")]);
        let plan = ["startup: disabled -> enabled".to_owned(), format!("state: {from} -> running")];
        assert_eq!(fake.plan(&unit, true), plan);
        assert_eq!(fake.asked(), Vec::<String>::new(), "a dry run cannot write");
    }
}

#[test]
fn a_run_does_what_the_plan_says_and_is_right_the_second_time() {
    let fake = one("failed", "disabled");
    let unit = svc("a", &[("state", "running"), ("startup", "enabled")]);
    assert_eq!(fake.run(&unit, false), changed(&["enabled", "started"]));
    assert_eq!(fake.asked(), ["enable a.service", "reload all", "StartUnit a.service"]);
    assert_eq!(fake.plan(&unit, false), Vec::<String>::new());

    let unit = svc("a", &[("state", "stopped"), ("startup", "masked")]);
    assert_eq!(fake.run(&unit, false), changed(&["masked", "stopped"]));
    assert_eq!(fake.plan(&unit, false), Vec::<String>::new());
}

/// F4: a service that systemd restarts again and again is not as declared, although it runs at each check.
#[test]
fn a_service_that_is_restarted_again_and_again_is_flapping() {
    let fake = one("active", "enabled");
    let unit = svc("a", &[("state", "running")]);
    fake.change("a.service", |unit| unit.restarts = 40);
    assert_eq!(fake.plan(&unit, false), Vec::<String>::new(), "nobody knows when they were");
    for count in [41, 42] {
        fake.change("a.service", |unit| unit.restarts = count);
        assert_eq!(fake.plan(&unit, false), Vec::<String>::new(), "{count}");
    }
    fake.change("a.service", |unit| unit.restarts = 43);
    let told = fake.plan(&unit, false).join("\n");
    assert!(
        told.starts_with("unknown: flapping: systemd has restarted a.service 3 times"),
        "{told}"
    );
    assert_eq!(fake.asked(), Vec::<String>::new(), "nothing is done about it");
    // A manual start resets the count.
    fake.change("a.service", |unit| unit.restarts = 0);
    assert_eq!(fake.plan(&unit, false), Vec::<String>::new());
}

#[test]
fn nothing_declared_is_nothing_checked() {
    let fake = one("inactive", "disabled");
    fake.mute(true);
    assert_eq!(fake.plan(&svc("a", &[]), false), Vec::<String>::new(), "not even asked");
}

#[test]
fn a_mask_is_taken_away_before_anything_else() {
    let fake = one("inactive", "masked");
    let unit = svc("a", &[("state", "running"), ("startup", "enabled")]);
    assert_eq!(fake.run(&unit, false), changed(&["enabled", "started"]));
    let asked = fake.asked();
    assert_eq!(asked.iter().filter(|word| *word == "unmask a.service").count(), 2, "both kinds");
    assert_eq!(asked[2..], ["enable a.service", "reload all", "StartUnit a.service"]);
}

/// Unmasking a unit means removing its mask, which may be a file whose content somebody is about to write.
#[test]
fn an_empty_file_is_not_taken_away() {
    let fake = one("inactive", "masked");
    fake.write("a.service", "");
    let unit = svc("a", &[("startup", "enabled")]);
    assert!(fake.plan(&unit, false)[0].starts_with("unknown: the file of a.service is empty"));
    fake.write("a.service", "[Service]");
    assert_eq!(fake.run(&unit, false), changed(&["enabled"]));
}

#[test]
fn a_refresh_reloads_what_runs_and_restarts_what_cannot_reload() {
    let fake = one("active", "enabled");
    let unit = svc("a", &[("state", "running")]);
    assert_eq!(fake.plan(&unit, true), ["refresh:  -> reload"]);
    assert_eq!(fake.run(&unit, true), changed(&["reloaded"]));
    fake.change("a.service", |unit| unit.can_reload = false);
    assert_eq!(fake.run(&unit, true), changed(&["restarted"]));
    let unit = svc("a", &[("refresh", "restart")]);
    assert_eq!(fake.run(&unit, true), changed(&["restarted"]));
    assert_eq!(
        fake.asked(),
        [
            "ReloadOrTryRestartUnit a.service",
            "TryRestartUnit a.service",
            "TryRestartUnit a.service"
        ]
    );
    for none in [svc("a", &[("refresh", "none")]), svc("a", &[("state", "stopped")])] {
        assert!(!fake.plan(&none, true).iter().any(|line| line.starts_with("refresh")));
    }
}

#[test]
fn a_started_unit_is_not_refreshed_as_well() {
    let fake = one("inactive", "enabled");
    let unit = svc("a", &[("state", "running")]);
    assert_eq!(fake.run(&unit, true), changed(&["started"]));
    assert_eq!(fake.asked(), ["StartUnit a.service"]);
    // The unit was stopped between check and apply.
    let fake = one("active", "enabled");
    let change = fake.differs(&unit, true);
    fake.change("a.service", |unit| unit.active = "inactive");
    let permit = crate::fake::permit(&CancellationToken::new());
    assert_eq!(wait(unit.apply(&fake.host, &permit, change)), Outcome::Unchanged);
    assert_eq!(fake.asked(), Vec::<String>::new());
}

/// An apply verifies the premise and leaves a unit alone that is as declared by now.
#[test]
fn a_unit_that_is_right_by_now_is_left_alone() {
    let fake = one("inactive", "disabled");
    let unit = svc("a", &[("state", "running"), ("startup", "enabled")]);
    let change = fake.differs(&unit, false);
    fake.change("a.service", |unit| (unit.active, unit.file) = ("active", "enabled"));
    let permit = crate::fake::permit(&CancellationToken::new());
    assert_eq!(wait(unit.apply(&fake.host, &permit, change)), Outcome::Unchanged);
    assert_eq!(fake.asked(), Vec::<String>::new());
}

#[test]
fn changed_files_are_read_before_the_unit_is_used_and_at_once_only_where_asked() {
    let stale = || {
        let mut unit = Unit::new("active", "enabled");
        unit.stale = true;
        Fake::new(&[("a.service", unit)])
    };
    let plain = svc("a", &[("state", "running")]);
    let fake = stale();
    assert_eq!(fake.plan(&plain, false), Vec::<String>::new());
    assert_eq!(fake.run(&plain, true), changed(&["daemon-reload", "reloaded"]));
    let fake = stale();
    let eager = svc("a", &[("daemon_reload", "true")]);
    assert_eq!(fake.plan(&eager, false), ["units: changed on disk -> loaded by systemd"]);
    assert_eq!(fake.run(&eager, false), changed(&["daemon-reload"]));
    assert_eq!(fake.plan(&eager, false), Vec::<String>::new());
    let fake = stale();
    let never = svc("a", &[("state", "running"), ("daemon_reload", "false")]);
    assert_eq!(fake.run(&never, true), changed(&["reloaded"]));
}

#[test]
fn a_unit_that_does_not_exist_is_named() {
    let fake = Fake::new(&[]);
    let said = ["unknown: a.service does not exist"];
    assert_eq!(fake.plan(&svc("a", &[("state", "running")]), false), said);
    assert_eq!(fake.plan(&svc("a", &[("startup", "enabled")]), false), said);
    let absent = svc("a", &[("state", "stopped"), ("startup", "disabled")]);
    assert_eq!(fake.plan(&absent, false), Vec::<String>::new());
}

#[test]
fn a_file_that_systemd_has_not_read_yet_is_no_missing_unit() {
    let mut unit = Unit::new("inactive", "disabled");
    unit.load = "not-found";
    let fake = Fake::new(&[("a.service", unit)]);
    let unit = svc("a", &[("state", "running")]);
    let plan = ["units: changed on disk -> loaded by systemd", "state: stopped -> running"];
    assert_eq!(fake.plan(&unit, false), plan);
    assert_eq!(fake.run(&unit, false), changed(&["daemon-reload", "started"]));
}

#[test]
fn units_that_cannot_be_enabled_are_reported() {
    for (file, words) in [("static", "a.service is static"), ("generated", "is generated")] {
        let said = one("active", file).plan(&svc("a", &[("startup", "enabled")]), false);
        assert!(said[0].contains(words), "{said:?}");
    }
    assert_eq!(one("active", "static").plan(&svc("a", &[("startup", "disabled")]), false).len(), 0);
    let masked = one("inactive", "masked");
    masked.change("a.service", |unit| unit.load = "masked");
    let masked = masked.plan(&svc("a", &[("state", "running")]), false);
    assert!(masked[0].contains("a.service is masked"), "{masked:?}");
}
