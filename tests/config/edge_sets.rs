//! Edges that name a set: one vertex stands for a set that many resources wait for.

use crate::language::{accepted, edges, with_facts};
use crate::language_bounds::{lines, refused};
use std::collections::{BTreeMap, BTreeSet};
use steadfast::config::LoadedGraph;

fn load(text: &str) -> LoadedGraph {
    accepted(&[("web.yaml", text)])
}

/// Returns the resources before another one, barriers left out.
fn before(loaded: &LoadedGraph, name: &str) -> BTreeSet<String> {
    let mut into: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (from, to, _) in edges(loaded) {
        into.entry(to).or_default().push(from);
    }
    let (mut open, mut found) = (vec![name.to_owned()], BTreeSet::new());
    while let Some(next) = open.pop() {
        for from in into.get(&next).into_iter().flatten() {
            if found.insert(from.clone()) {
                open.push(from.clone());
            }
        }
    }
    found.retain(|name| !name.starts_with("noop[barrier "));
    found
}

/// K8 of an attack: n resources that each wait for m others need n + m edges.
#[test]
fn many_resources_wait_for_one_set() {
    let waiting = |key: &str| {
        let noops = lines(3000, |n| format!("  - {{name: n{n}, {key}: [\"file[*]\"]}}\n"));
        let files = lines(2000, |n| format!("  - {{name: /f{n}}}\n"));
        format!("graph: g\nresources:\n  noop:\n{noops}  file:\n{files}")
    };
    for key in ["after", "before"] {
        let loaded = load(&waiting(key));
        assert_eq!(
            (loaded.vertices.len(), loaded.edges.len()),
            (5001, 2000 + 2000 + 2999),
            "{key}"
        );
        let name = if key == "after" { "noop[n2999]" } else { "file[/f7]" };
        let all = if key == "after" { 2000 } else { 3000 };
        assert_eq!(before(&loaded, name).len(), all, "{key}");
    }
}

/// Few edges need no vertex, and many make the same order.
#[test]
fn a_barrier_keeps_the_order() {
    let of = |count: usize| {
        let noops = lines(count, |n| {
            format!("  - {{name: n{n}, after: [\"test[a*]\"], before: [\"test[b*]\"]}}\n")
        });
        let tests = lines(40, |n| format!("  - {{name: a{n}}}\n  - {{name: b{n}}}\n"));
        load(&format!("graph: g\nresources:\n  noop:\n{noops}  test:\n{tests}"))
    };
    let few = of(3);
    assert_eq!((few.vertices.len(), few.edges.len()), (83, 3 * 80));
    let many = of(200);
    assert_eq!(many.vertices.len(), 282, "two barriers");
    assert!(many.edges.len() < 3000, "{}", many.edges.len());
    let a: BTreeSet<String> = (0..40).map(|n| format!("test[a{n}]")).collect();
    assert_eq!(before(&many, "noop[n0]"), a);
    assert_eq!(before(&many, "noop[n199]"), a);
    assert_eq!(before(&many, "test[b7]").len(), 240);
}

/// Uses of a module share the vertex of a set.
#[test]
fn uses_of_modules_share_a_barrier() {
    let users = lines(50, |n| format!("  - {{name: u{n}}}\n"));
    let names: Vec<String> = (0..500).map(|n| format!("m{n}")).collect();
    let web = format!(
        "graph: g\nresources:\n  noop:\n{users}modules:\n- {{use: m, for_each: [{}], after: [\"noop[u*]\"]}}\n",
        names.join(", ")
    );
    let module = "module: m\nresources: {test: [a, b, c]}\n";
    let loaded = accepted(&[("web.yaml", &web), ("m/m.yaml", module)]);
    assert_eq!(loaded.vertices.len(), 50 + 1500 + 1);
    assert!(loaded.edges.len() < 3000, "{}", loaded.edges.len());
    assert_eq!(before(&loaded, "m499/test[c]").len(), 50);
}

/// Members that wait for their own set are a cycle, with little memory.
#[test]
fn members_that_wait_for_their_set_are_a_cycle() {
    let noops = lines(3000, |n| format!("  - {{name: n{n}, after: [\"noop[*]\"]}}\n"));
    let graph = format!("graph: g\nresources:\n  noop:\n{noops}");
    refused(&[("web.yaml", &graph)], "dependency cycle of 2 resources");
    let one =
        "graph: g\nresources:\n  noop:\n  - {name: last, after: [\"noop[*]\"]}\n  - a\n  - b\n";
    assert_eq!(load(one).edges.len(), 2);
}

/// Each pattern has edges of its own: their number is bounded.
#[test]
fn plain_edges_of_many_sets_are_bounded() {
    let name = |n: usize| "x".repeat(n + 1);
    let noops = lines(600, |n| format!("  - {{name: n{n}, after: [\"exec[{}*]\"]}}\n", name(n)));
    let execs = lines(1000, |n| format!("  - {{name: {}{n}, cmd: /bin/true}}\n", name(700)));
    let graph = format!("graph: g\nresources:\n  noop:\n{noops}  exec:\n{execs}");
    refused(&[("web.yaml", &graph)], "the edges with patterns are too many; the limit is 300 000");
}

/// The order holds through an inactive resource between many others, by a vertex in its place.
#[test]
fn a_barrier_replaces_a_wide_inactive_resource() {
    let noops = lines(400, |n| format!("  - {{name: a{n}, before: [\"test[t]\"]}}\n"));
    let more = lines(400, |n| format!("  - {{name: b{n}, after: [\"test[t]\"]}}\n"));
    let loaded = load(&format!(
        "graph: g\nresources:\n  noop:\n{noops}{more}  test:\n  - {{name: t, when: false}}\n"
    ));
    assert_eq!((loaded.vertices.len(), loaded.edges.len()), (801, 800));
    assert_eq!(before(&loaded, "noop[b7]").len(), 400);
    let few = load(
        "graph: g\nresources:\n  noop:\n  - {name: a, before: [\"test[t]\"]}\n  - {name: b, after: [\"test[t]\"]}\n  test:\n  - {name: t, when: false}\n",
    );
    assert_eq!(few.edges.len(), 1);
}

/// Many inactive resources, each with edges, and many patterns end soon.
#[test]
fn many_inactive_resources_and_patterns_end_soon() {
    let start = crate::processor_time::ProcessorTime::start();
    let noops = lines(10_000, |n| {
        format!("  - {{name: n{n}, when: false, after: [\"noop[n{}]\"]}}\n", n + 1)
    });
    let tests = lines(10_000, |n| format!("  - {{name: t{n}, after: [\"noop[n{n}*]\"]}}\n"));
    let text = format!("graph: g\nresources:\n  noop:\n{noops}  - n10000\n  test:\n{tests}");
    let loaded = crate::language::Tree::new(&[("web.yaml", &text)]).load(&with_facts()).unwrap();
    let is_declared = |name: &str| !name.starts_with("noop[barrier ");
    let declared = loaded.vertices.iter().filter(|it| is_declared(&it.identity)).count();
    assert_eq!(declared, 10_001);
    assert!(loaded.vertices.len() + loaded.edges.len() < 50_000, "{}", loaded.edges.len());
    assert!(start.used() < std::time::Duration::from_secs(20), "{:?}", start.used());
}
