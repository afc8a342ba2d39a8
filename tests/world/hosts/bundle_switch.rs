//! The switch of a host from one bundle to the next: the running graph keeps its sources until the driver swaps graphs.

use super::deploys::{make, openssl, site_of, start};
use super::site::Site;
use std::os::unix::fs::{DirBuilderExt as _, symlink};

/// A command that runs until the file `go` exists.
const SLOW: &str = "resources:\n  exec:\n  - name: slow\n    shell: /bin/sh\n    cmd: touch $SITE/started; while [ ! -e $SITE/go ]; do sleep 0.1; done\n";

fn write(site: &Site, name: &str, text: &str) {
    site.write(name, &text.replace("$SITE/", &site.path("").display().to_string()));
}

/// Returns a site with a host that runs bundle 40: a file `f` from the source `f.txt`, a file `own` that a removal
/// deletes, and a command that does not end yet.
fn site_with_slow_bundle() -> Site {
    let site = site_of(&["a"], "state/bundles/current");
    write(&site, "graph/slow.yaml", SLOW);
    write(
        &site,
        "graph/files.yaml",
        "resources:\n  file:\n  - {name: f, path: $SITE/f, source: f.txt}\n  - {name: own, path: $SITE/own, content: x, meta: {on_remove: delete}}\n",
    );
    site.write("graph/f.txt", "40");
    let bundle = make(&site, "40", "40", &[]);
    let (code, text) = site.ask("a", &["deploy", &bundle, "--timeout", "5s"]);
    assert_eq!(code, 1, "the command does not end: {text}");
    site.wait_until("the command runs", || site.path("started").exists());
    site.wait_for_file("f", "40");
    site.wait_for_file("own", "x");
    site
}

/// Deploys bundle 41, which has only a file `g` from another source with the same name. The graph of bundle 40 runs on
/// until its command ends.
fn deploy_next(site: &Site) {
    std::fs::remove_file(site.path("graph/slow.yaml")).unwrap();
    write(
        site,
        "graph/files.yaml",
        "resources:\n  file:\n  - {name: g, path: $SITE/g, source: f.txt}\n",
    );
    site.write("graph/f.txt", "41");
    let bundle = make(site, "41", "41", &[]);
    let (code, text) = site.ask("a", &["deploy", &bundle, "--timeout", "5s"]);
    assert_eq!(code, 1, "the graph waits for the command: {text}");
    let current = std::fs::read_link(site.path("a/state/bundles/current")).unwrap();
    assert!(current.display().to_string().starts_with("41-"), "{}", current.display());
}

#[test]
fn the_running_graph_keeps_its_sources_until_the_swap() {
    let site = site_with_slow_bundle();
    deploy_next(&site);
    assert_eq!(site.read("f"), "40", "the running graph is that of bundle 40");
    assert!(!site.read("a/log").contains("the bundle 41 runs"));
    site.write("go", "");
    site.wait_for_file("g", "41");
    assert_eq!(site.read("f"), "40");
    site.wait_until("the swap is told", || site.read("a/log").contains("the bundle 41 runs"));
    site.wait_until("the removal is done", || !site.path("own").exists());
}

/// A daemon that is killed between the switch of the link and the swap of the graphs removes at its next start what the
/// new bundle leaves out.
#[test]
fn a_kill_before_the_swap_keeps_the_consent_to_removals() {
    let mut site = site_with_slow_bundle();
    deploy_next(&site);
    site.kill("a");
    site.write("go", "");
    site.start("a");
    site.wait_for_file("g", "41");
    site.wait_until("the removal is done", || !site.path("own").exists());
}

/// A graph that names the state directory through another path is checked before the link moves, too.
#[test]
fn a_rejected_bundle_changes_nothing_behind_another_spelling() {
    let mut site = Site::with_file();
    openssl(&site, &["genpkey", "-algorithm", "ed25519", "-out", "$SITE/key.pem"]);
    openssl(
        &site,
        &["pkey", "-in", "$SITE/key.pem", "-pubout", "-out", "$SITE/trusted/deploy.pub"],
    );
    let mut folders = std::fs::DirBuilder::new();
    folders.recursive(true).mode(0o700).create(site.path("a/real")).unwrap();
    std::fs::create_dir(site.path("graph")).unwrap();
    symlink("real", site.path("a/state")).unwrap();
    let graph = site.path("a/real/bundles/current").display().to_string();
    start(&mut site, &["a"], &graph);
    write(
        &site,
        "graph/files.yaml",
        "resources:\n  file:\n  - {name: f, path: $SITE/f, source: f.txt}\n",
    );
    site.write("graph/f.txt", "10");
    let bundle = make(&site, "10", "10", &[]);
    let (code, text) = site.ask("a", &["deploy", &bundle]);
    assert_eq!(code, 0, "{text}");
    let current = std::fs::read_link(site.path("a/real/bundles/current")).unwrap();
    site.write("graph/f.txt", "11");
    site.write("graph/wrong.yaml", "resources:\n  nokind:\n  - {name: x}\n");
    let bundle = make(&site, "11", "11", &[]);
    let (code, text) = site.ask("a", &["deploy", &bundle, "--timeout", "60s"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("11-") && text.contains("wrong.yaml"), "the bundle is named: {text}");
    let now = std::fs::read_link(site.path("a/real/bundles/current")).unwrap();
    assert_eq!(now, current);
    let moved = site.read("a/log");
    assert!(!moved.contains("bundles/current/wrong.yaml"), "the link never moved: {moved}");
    site.write("f", "drift");
    site.wait_for_file("f", "10");
}
