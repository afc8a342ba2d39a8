//! Every example is applied in its own folder without root, and is converged at the second apply.

use crate::host::Host;
use std::path::{Path, PathBuf};

/// The examples that need a test host: see tests/hosts/units and tests/hosts/packages.
const NEED_A_HOST: &[&str] = &["packages.yaml", "service.yaml"];

/// Returns the files and folders of `examples/`.
fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let entries = std::fs::read_dir(folder).expect("examples/");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    // Kinds change the host they run on: `each_kind_has_a_valid_example` loads theirs.
    // Modules and tools are no graphs; whole servers are tried on hosts (tests/hosts/servers.rs).
    let others = ["kinds", "modules", "tools", "servers", "fleet"];
    paths.retain(|path| !others.iter().any(|name| path.ends_with(name)));
    paths.sort();
    paths
}

#[test]
fn each_kind_has_a_valid_example() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/kinds");
    for spec in steadfast_resources::KindSet::of_this_build().specs() {
        let name = format!("{}.yaml", spec.kind.replace([':', '_'], "-"));
        assert!(folder.join(&name).is_file(), "expected examples/kinds/{name}, found none");
    }
    for entry in std::fs::read_dir(folder).expect("examples/kinds") {
        let example = entry.expect("an entry").path();
        let host = Host::of_nobody("graph: unused\n");
        let checked = host.finish({
            let mut command = host.bare(&["check"]);
            command.arg(&example);
            command
        });
        checked.exits(0).prints("valid: ");
        assert!(checked.stderr.is_empty(), "{example:?}: {checked}");
    }
}

/// Returns the blocks of YAML in a page of the guide that are whole graphs.
fn graphs_of_page(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).expect("a page");
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks
        .filter(|block| block.starts_with("graph:") && block.contains("\nresources:"))
        .map(ToOwned::to_owned)
        .collect()
}

#[test]
fn each_graph_of_the_guide_is_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide");
    let mut graphs = 0;
    for entry in std::fs::read_dir(folder).expect("docs/guide") {
        let page = entry.expect("an entry").path();
        for graph in graphs_of_page(&page) {
            graphs += 1;
            let host = Host::of_nobody(&graph);
            let checked = host.ask(&["check"]);
            checked.exits(0).prints("valid: ");
            assert!(checked.stderr.is_empty(), "{page:?}: {graph}: {checked}");
        }
    }
    assert!(graphs >= 30, "{graphs} graphs");
}

/// Copies the YAML files of an example, with their paths under `$DIR`.
fn copy(host: &Host, example: &Path) {
    let put = |from: &Path, name: &str| {
        let text = std::fs::read_to_string(from).expect("an example is text");
        host.write(name, host.full(&text.replace("/tmp/", "$DIR/")));
    };
    if example.is_dir() {
        host.remove("graph.yaml").make_directory("graph.yaml").chmod("graph.yaml", 0o755);
        for entry in std::fs::read_dir(example).expect("a folder") {
            let entry = entry.expect("an entry");
            put(&entry.path(), &format!("graph.yaml/{}", entry.file_name().display()));
        }
    } else {
        put(example, "graph.yaml");
    }
}

#[test]
fn every_example_is_valid_and_works_without_root() {
    let examples = examples();
    assert!(examples.len() >= 4, "{examples:?}");
    for example in examples {
        let host = Host::of_nobody("graph: unused\n");
        let checked = host.finish({
            let mut command = host.bare(&["check"]);
            command.arg(&example);
            command
        });
        checked.exits(0).prints("valid: ");
        assert!(checked.stderr.is_empty(), "{example:?}: {checked}");
        if NEED_A_HOST.iter().any(|name| example.ends_with(name)) {
            continue;
        }
        copy(&host, &example);
        host.apply().exits(0);
        host.ask(&["apply", "--detailed-exitcode"]).exits(0);
        host.plan().exits(0).prints(" 0 resources to change");
        let daemon = host.run(&[]);
        daemon.wait_for("converged");
    }
}

#[test]
fn the_example_of_the_readme_is_repaired() {
    let host = Host::of_nobody("graph: unused\n");
    copy(&host, &Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/hello.yaml"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let declared = host.read("steadfast-hello/motd");
    assert_eq!(host.lines("steadfast-hello/changes").len(), 1);
    host.remove("steadfast-hello/motd");
    daemon.wait_for_of("changed", "file[motd]");
    daemon.wait_for("converged");
    assert_eq!(host.read("steadfast-hello/motd"), declared);
    assert_eq!(host.lines("steadfast-hello/changes").len(), 2);
    assert_eq!(host.read("steadfast-hello/latest"), declared, "through the link");
}
