//! Cycles through resources that wait for a probe: an answer must not close one.

use crate::language::{Tree, accepted, with_facts};

const PROBE: &str = "  probe:\n  - {name: p, args: [/bin/true], type: int}\n  - {name: q, args: [/bin/true], type: bool}\n  - {name: t, args: [/bin/true], type: text}\n";

fn graph(resources: &str) -> String {
    format!("graph: g\nresources:\n{PROBE}{resources}")
}

/// Returns a cycle of two resources, each with other keys.
fn ring(one: &str, two: &str) -> String {
    graph(&format!(
        "  test:\n  - {{name: a, after: [\"test[b]\"]{one}}}\n  - {{name: b, after: [\"test[a]\"]{two}}}\n"
    ))
}

/// Members of a cycle that are active together are refused before the answer.
#[test]
fn a_cycle_that_an_answer_closes_is_refused() {
    for (one, two) in [
        (", text: \"${probe.t}\"", ""),
        (", text: \"${probe.t}\"", ", text: \"${probe.t}\""),
        (", text: \"${probe.t}\"", ", when: probe.q"),
        (", when: probe.p > 1", ""),
        ("", ", when: probe.p > 1"),
        (", when: probe.p > 1", ", when: probe.p > 1"),
        (", when: probe.p > 1", ", when: [probe.p > 1, probe.q]"),
    ] {
        let problems = Tree::new(&[("web.yaml", &ring(one, two))]).problems(&with_facts());
        assert!(problems.contains("dependency cycle of 2 resources"), "{one} {two}: {problems}");
        assert_eq!(problems.matches("dependency cycle").count(), 1, "{problems}");
    }
    let own = "  noop: [{name: a, when: probe.q, after: [\"noop[a]\"]}]\n";
    let problems = Tree::new(&[("web.yaml", &graph(own))]).problems(&with_facts());
    assert!(problems.contains("`noop[a]` would wait for itself"), "{problems}");
}

/// Three members, of which two have one condition, are refused; so is an active one beside two conditions.
#[test]
fn a_longer_cycle_is_refused() {
    for conditions in [["probe.q", "probe.p > 1", "probe.q"], ["probe.q", "not probe.q", "true"]] {
        let [one, two, three] = conditions;
        let text = graph(&format!(
            "  noop:\n  - {{name: a, when: {one}, after: [\"noop[c]\"]}}\n  - {{name: b, when: {two}, after: [\"noop[a]\"]}}\n  - {{name: c, when: {three}, after: [\"noop[b]\"]}}\n"
        ));
        let problems = Tree::new(&[("web.yaml", &text)]).problems(&with_facts());
        assert!(problems.contains("dependency cycle of 3 resources"), "{problems}");
    }
}

/// Different conditions may exclude each other; a condition that is false excludes its resource.
#[test]
fn conditions_that_may_exclude_each_other_are_accepted() {
    for (one, two) in [
        (", when: probe.q", ", when: not probe.q"),
        (", when: [probe.p > 1, probe.q]", ", when: [probe.p > 1, not probe.q]"),
        (", when: false and probe.q", ""),
    ] {
        accepted(&[("web.yaml", &ring(one, two))]);
    }
    // The same text has another meaning for another item.
    let items = "  noop:\n  - {for_each: {in: {x: {other: y, at: 1}, y: {other: x, at: 2}}}, when: probe.p == item.value.at, after: [\"noop[${item.value.other}]\"]}\n";
    accepted(&[("web.yaml", &graph(items))]);
    let same = items.replace("probe.p == item.value.at", "probe.q");
    let problems = Tree::new(&[("web.yaml", &graph(&same))]).problems(&with_facts());
    assert!(problems.contains("dependency cycle of 2 resources"), "{problems}");
}

/// The condition of a use is that of all its resources.
#[test]
fn a_use_that_waits_holds_as_a_whole() {
    let module = |more: [&str; 2]| {
        format!(
            "module: m\nparams: {{q: {{type: bool}}}}\nresources:\n  noop:\n  - {{name: a, after: [\"noop[b]\"]{}}}\n  - {{name: b, after: [\"noop[a]\"]{}}}\n",
            more[0], more[1]
        )
    };
    let web = format!(
        "graph: g\nmodules: [{{use: m, as: shop, with: {{q: \"${{probe.q}}\"}}, when: probe.p > 1}}]\nresources:\n{PROBE}"
    );
    for (more, is_refused) in [
        (["", ""], true),
        ([", when: params.q", ""], true),
        ([", when: params.q", ", when: not params.q"], false),
    ] {
        let module = module(more);
        let loaded = Tree::new(&[("web.yaml", &web), ("m/m.yaml", &module)]).load(&with_facts());
        match loaded {
            Ok(_) => assert!(!is_refused, "{more:?}"),
            Err(it) => {
                let problems = it.with_source();
                assert!(is_refused && problems.contains("dependency cycle"), "{problems}");
            }
        }
    }
}
