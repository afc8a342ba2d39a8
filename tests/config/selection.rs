//! The options `--only` and `--skip`.

use crate::{edges, load_under};
use proptest::prelude::*;
use std::fmt::Write as _;
use steadfast::config::Options;

const CHAIN: &str = "
graph: g
resources:
  noop: [{name: a}, {name: d}]
  exec: [{name: b, subscribe: \"noop[a]\"}]
  file: [{name: c, subscribe: \"exec[b]\", before: \"noop[d]\"}]
";

fn chain(only: &[&str], skip: &[&str]) -> Result<Vec<String>, String> {
    let texts = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    let options = Options { only: texts(only), skip: texts(skip), ..crate::options() };
    let loaded = load_under(CHAIN, &options).map_err(|rejected| rejected.to_string())?;
    crate::into_engine(&loaded);
    Ok(edges(&loaded))
}

#[test]
fn edges_hold_across_what_is_left_out() {
    assert_eq!(chain(&[], &["exec[b]"]).unwrap(), ["noop[a] => file[c]", "file[c] -> noop[d]"]);
    assert_eq!(chain(&["noop"], &[]).unwrap(), ["noop[a] -> noop[d]"]);
    assert_eq!(chain(&["noop", "file"], &["noop[a]"]).unwrap(), ["file[c] -> noop[d]"]);
    assert_eq!(chain(&["file[c]"], &[]).unwrap(), [""; 0]);
}

#[test]
fn a_selection_of_nothing_is_refused() {
    let expected = "\
--only files: the graph has no such resource or kind [C501]
  hint: did you mean `file`?

--skip exec[bb]: the graph has no such resource or kind [C501]
  hint: did you mean `exec[b]`?

the graph was rejected: 2 problems (more: steadfast explain C501)
";
    assert_eq!(chain(&["files"], &["exec[bb]"]).unwrap_err(), expected);
    assert!(
        chain(&["noop"], &["noop"])
            .unwrap_err()
            .contains("--only and --skip together select no resource")
    );
    let options = Options { semaphore: Some(0), ..crate::options() };
    assert!(load_under(CHAIN, &options).unwrap_err().to_string().contains("--sema should be"));
}

/// Two paths of left-out vertices join the same resources: the new edge notifies if one path notifies throughout.
#[test]
fn the_better_way_counts() {
    let text =
        "graph: g\nresources: {noop: [{name: a}, {name: z}], exec: [{name: p}, {name: q}]}\nedges:
- {from: {kind: noop, name: a}, to: {kind: exec, name: p}}
- {from: {kind: exec, name: p}, to: {kind: exec, name: q}, notify: true}
- {from: {kind: noop, name: a}, to: {kind: exec, name: q}, notify: true}
- {from: {kind: exec, name: q}, to: {kind: noop, name: z}, notify: true}
";
    let options = Options { skip: vec!["exec".to_owned()], ..crate::options() };
    assert_eq!(edges(&load_under(text, &options).unwrap()), ["noop[a] => noop[z]"]);
}

/// Computes the vertices reachable from each vertex, by any edges and by notifying edges alone.
fn reached(count: usize, edges: &[(usize, usize, bool)]) -> Vec<Vec<(bool, bool)>> {
    let mut table = vec![vec![(false, false); count]; count];
    for (from, to, notify) in edges {
        table[*from][*to] = (true, table[*from][*to].1 || *notify);
    }
    for via in 0..count {
        for from in 0..count {
            for to in 0..count {
                let (a, b) = (table[from][via], table[via][to]);
                table[from][to].0 |= a.0 && b.0;
                table[from][to].1 |= a.1 && b.1;
            }
        }
    }
    table
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
    /// A random acyclic graph loads, and the engine accepts it. Leaving resources out changes neither the order of
    /// the others nor, along notifying paths, their refreshes.
    #[test]
    fn order_survives_selection(
        edges in prop::collection::vec((0..7_usize, 0..7_usize, any::<bool>()), 0..12),
        left_out in prop::collection::btree_set(0..7_usize, 0..5),
    ) {
        let mut text = String::from("graph: g\nresources:\n  noop:\n");
        for vertex in 0..7 {
            writeln!(text, "  - name: v{vertex}").unwrap();
        }
        writeln!(text, "edges:").unwrap();
        for (from, to, notify) in &edges {
            let end = |vertex| format!("{{kind: noop, name: v{vertex}}}");
            writeln!(text, "- {{from: {}, to: {}, notify: {notify}}}", end(from), end(to)).unwrap();
        }
        let before = reached(7, &edges);
        let cyclic = (0..7).any(|vertex| before[vertex][vertex].0);
        let skip = left_out.iter().map(|vertex| format!("noop[v{vertex}]")).collect();
        let loaded = load_under(&text, &Options { skip, ..crate::options() });
        prop_assert_eq!(loaded.is_err(), cyclic);
        let Ok(loaded) = loaded else { return Ok(()) };
        crate::into_engine(&loaded);
        let kept: Vec<usize> = (0..7).filter(|vertex| !left_out.contains(vertex)).collect();
        let links: Vec<_> = loaded.edges.iter().map(|e| (kept[e.from], kept[e.to], e.notify)).collect();
        let after = reached(7, &links);
        for from in &kept {
            for to in &kept {
                prop_assert_eq!(before[*from][*to], after[*from][*to], "{} to {}", from, to);
            }
        }
    }
}
