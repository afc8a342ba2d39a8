//! `--only` and `--skip`.

use crate::{edges, load_under};
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
    let options = Options { only: texts(only), skip: texts(skip), ..Options::default() };
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

the graph was refused: 2 problems
";
    assert_eq!(chain(&["files"], &["exec[bb]"]).unwrap_err(), expected);
    assert!(chain(&["noop"], &["noop"]).unwrap_err().contains("leave no resource"));
    let options = Options { semaphore: Some(0), ..Options::default() };
    assert!(load_under(CHAIN, &options).unwrap_err().to_string().contains("--sema should be"));
}

/// A diamond of left-out vertices: one way notifies all along, the other does not.
#[test]
fn the_better_way_counts() {
    let text =
        "graph: g\nresources: {noop: [{name: a}, {name: z}], exec: [{name: p}, {name: q}]}\nedges:
- {from: {kind: noop, name: a}, to: {kind: exec, name: p}}
- {from: {kind: exec, name: p}, to: {kind: exec, name: q}, notify: true}
- {from: {kind: noop, name: a}, to: {kind: exec, name: q}, notify: true}
- {from: {kind: exec, name: q}, to: {kind: noop, name: z}, notify: true}
";
    let options = Options { skip: vec!["exec".to_owned()], ..Options::default() };
    assert_eq!(edges(&load_under(text, &options).unwrap()), ["noop[a] => noop[z]"]);
}
