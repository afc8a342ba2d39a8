//! Semaphores of the world and rolling changes on three hosts.

use super::site::Site;

const RESTART: &str = r#"graph: restart
resources:
  exec:
  - name: restart
    shell: /bin/sh
    cmd: 'echo "begin $HOST" >> $SITE/trace; sleep 0.5; echo "end $HOST" >> $SITE/trace'
    meta: {sema: ["world:restart:1"]}
"#;

/// Returns the largest number of hosts that were inside at once.
pub(super) fn most_inside(trace: &str) -> i32 {
    let steps = trace.lines().map(|line| if line.starts_with("begin") { 1 } else { -1 });
    let inside = steps.scan(0, |inside, step| {
        *inside += step;
        Some(*inside)
    });
    inside.max().unwrap_or_default()
}

#[test]
fn a_semaphore_of_the_world_admits_one_host_at_a_time() {
    let mut site = Site::with_file();
    for host in ["a", "b", "c"] {
        site.graph(host, RESTART);
        site.start(host);
    }
    site.wait_until("each host has restarted", || site.read("trace").lines().count() == 6);
    assert_eq!(most_inside(&site.read("trace")), 1, "{}", site.read("trace"));
    site.wait_until("all permits are given back", || {
        site.ask("a", &["world", "list", "sema/"]).1.is_empty()
    });
}

/// A host that is killed while it holds frees its permit when its lease ends, or by hand.
#[test]
fn a_killed_holder_is_released_by_hand() {
    let mut site = Site::with_file();
    site.graph("a", &RESTART.replace("sleep 0.5", "sleep 600"));
    site.start("a");
    site.wait_until("the first host holds", || site.read("trace").contains("begin a"));
    site.graph("b", &RESTART.replace("restart:1", "restart:2"));
    site.start("b");
    site.wait_until("the second host waits", || {
        site.ask("b", &["world", "list", "sema/"]).1.contains("/b/")
    });
    let (_, text) = site.ask("b", &["fleet"]);
    assert!(text.contains("at most 1 hold; this host declares 2"), "{text}");
    site.kill("a");
    site.wait_until("the time of its end is shown", || {
        site.ask("b", &["fleet"]).1.contains("at most 1 hold; not renewed, free in")
    });
    assert!(!site.read("trace").contains("begin b"), "the permit is still held");
    let (code, text) = site.ask("b", &["world", "release", "sema/restart", "a"]);
    assert_eq!(code, 0, "{text}");
    site.wait_until("the second host runs", || site.read("trace").contains("end b"));
}

const ROLL: &str = r#"graph: roll
resources:
  file:
  - {name: config, path: $DIR/config, content: "1", meta: {roll: {name: web, max: 1, settle: 1s}}}
  exec:
  - name: restart
    shell: /bin/sh
    cmd: 'echo "begin $HOST" >> $SITE/trace; echo "end $HOST" >> $SITE/trace'
    subscribe: ["file[config]"]
    meta: {roll: {name: web, max: 1, settle: 1s}}
"#;

/// A dead host keeps its slot and stops the roll, until an operator frees the slot.
#[test]
fn a_dead_host_stops_a_roll() {
    let mut site = Site::with_file();
    site.graph("a", &ROLL.replace("settle: 1s", "settle: 10m"));
    site.start("a");
    site.wait_until("the first host has changed", || site.read("trace").contains("end a"));
    site.kill("a");
    site.graph("b", ROLL);
    site.start("b");
    site.wait_until("the second host waits", || {
        site.ask("b", &["fleet"]).1.contains("roll/web: waited for by b")
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(site.read("b/config"), "");
    let (code, text) = site.ask("b", &["world", "release", "roll/web", "a"]);
    assert_eq!(code, 0, "{text}");
    site.wait_for_file("b/config", "1");
    site.wait_until("the slot is free", || site.ask("b", &["world", "list", "roll/"]).1.is_empty());
}

const HEALTHY: &str = r#"graph: roll
resources:
  probe:
  - {name: health, type: bool, cmd: [cat, $SITE/health]}
  file:
  - name: config
    path: $DIR/config
    content: "1"
    meta: {roll: {name: web, max: 1, settle: 1s, healthy: "probe[health]"}}
  exec:
  - name: restart
    shell: /bin/sh
    cmd: 'echo false > $SITE/health; echo "end $HOST" >> $SITE/trace'
    meta: {roll: {name: web, max: 1, settle: 1s, healthy: "probe[health]"}}
"#;

/// The probe of a roll is asked after the change: a service that the change has broken keeps the slot.
#[test]
fn an_unhealthy_host_stops_a_roll() {
    let mut site = Site::with_file();
    site.write("health", "true");
    site.graph("a", HEALTHY);
    site.start("a");
    site.wait_until("the first host has changed", || site.read("trace").contains("end a"));
    site.graph("b", HEALTHY);
    site.start("b");
    site.wait_until("the second host waits", || {
        site.ask("b", &["fleet"]).1.contains("roll/web: waited for by b")
    });
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(site.read("b/config"), "", "the first host is not healthy");
    assert!(site.ask("b", &["fleet"]).1.contains("roll/web: held by a"));
    site.write("health", "true");
    site.wait_for_file("b/config", "1");
}

/// A failed member keeps the slot with `on_failure: stop`, and frees it with `on_failure: continue`.
#[test]
fn a_failed_member_stops_a_roll_unless_it_continues() {
    for (word, goes_on) in [("stop", false), ("continue", true)] {
        let roll = format!("meta: {{roll: {{name: web, max: 1, settle: 1s, on_failure: {word}}}}}");
        let graph = format!(
            "graph: g\nresources:\n  file:\n  - {{name: f, path: $DIR/config, content: \"1\", {roll}}}\n  \
             exec:\n  - {{name: e, cmd: \"/bin/test $HOST = b\", shell: /bin/sh, {roll}}}\n"
        );
        let mut site = Site::with_file();
        site.graph("a", &graph);
        site.start("a");
        site.wait_until("the first host has failed", || {
            site.ask("a", &["fleet"]).1.contains("failed")
        });
        site.graph("b", &graph);
        site.start("b");
        if goes_on {
            site.wait_for_file("b/config", "1");
        } else {
            site.wait_until("the second host waits", || {
                site.ask("b", &["fleet"]).1.contains("roll/web: waited for by b")
            });
            std::thread::sleep(std::time::Duration::from_secs(3));
            assert_eq!(site.read("b/config"), "");
        }
    }
}

/// A roll whose probe is not declared, or answers no truth value, would never end: the graph is rejected.
#[test]
fn a_roll_needs_a_probe_with_a_truth_value() {
    let site = Site::with_file();
    for (probe, words) in [
        ("{name: other, type: bool, cmd: [\"true\"]}", "which is not declared"),
        ("{name: health, cmd: [\"true\"]}", "which answers no bool"),
    ] {
        let graph = format!(
            "graph: g\nresources:\n  probe: [{probe}]\n  noop:\n  - name: x\n    \
             meta: {{roll: {{name: web, healthy: \"probe[health]\"}}}}\n"
        );
        site.graph("a", &graph);
        let (code, text) = site.ask("a", &["check"]);
        assert_eq!(code, 65, "{text}");
        assert!(text.contains(words) && text.contains("graph.yaml:6:"), "{text}");
    }
}
