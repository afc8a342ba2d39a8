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
    // The problem is told once, with the rejection of the bundle: the loader never read the graph through the link.
    let log = site.read("a/log");
    assert_eq!(log.matches("wrong.yaml").count(), 1, "{log}");
    site.write("f", "drift");
    site.wait_for_file("f", "10");
}

/// A second deploy of a bundle is a new request: neither the rejection of the first one nor its pause counts.
#[test]
fn a_second_deploy_of_a_bundle_begins_anew() {
    let mut site = site_of(&["a"], "state/bundles/current");
    let settings = site.read("a/steadfast.yaml");
    std::fs::create_dir(site.path("other")).unwrap();
    site.kill("a");
    site.write("a/steadfast.yaml", &settings.replace("/bundles\n", "/other\n"));
    site.start("a");
    site.settings("b", "none");
    let bundle = make(&site, "x", "10", &[]);
    let deploy =
        |timeout: &str| site.ask("b", &["deploy", &bundle, "--hosts", "a", "--timeout", timeout]);
    site.wait_until("the host is seen", || site.ask("b", &["fleet"]).1.contains("1 of 1 hosts"));
    let (code, text) = deploy("60s");
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("rejected the bundle") && text.contains("site-10.tar"), "{text}");
    std::fs::copy(&bundle, site.path("other/site-10.tar")).unwrap();
    let begun = std::time::Instant::now();
    let (code, text) = deploy("50s");
    assert_eq!(code, 0, "{text}");
    assert!(begun.elapsed().as_secs() < 50, "the pause of the first try is a minute");
}

/// A deploy that fails takes back its request from hosts that have not begun: they do not run the bundle when it can be
/// fetched at last. A host that has rejected the graph keeps the request, and `fleet` shows the reason.
#[test]
fn a_failed_deploy_takes_back_its_requests() {
    let mut site = site_of(&["a"], "state/bundles/current");
    let settings = site.read("a/steadfast.yaml");
    std::fs::create_dir(site.path("other")).unwrap();
    site.kill("a");
    site.write("a/steadfast.yaml", &settings.replace("/bundles\n", "/other\n"));
    site.start("a");
    site.settings("b", "none");
    site.wait_until("the host is seen", || site.ask("b", &["fleet"]).1.contains("1 of 1 hosts"));
    let bundle = make(&site, "x", "10", &[]);
    let deploy =
        |bundle: &str| site.ask("b", &["deploy", bundle, "--hosts", "a", "--timeout", "60s"]);
    let (code, text) = deploy(&bundle);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("a: the request is taken back"), "{text}");
    assert_eq!(site.ask("b", &["world", "list", "want/"]).1, "");
    std::fs::copy(&bundle, site.path("other/site-10.tar")).unwrap();
    site.wait_until("no rejection is shown", || !site.ask("b", &["fleet"]).1.contains("rejected"));
    site.write("graph/wrong.yaml", "resources:\n  nokind:\n  - {name: x}\n");
    let wrong = make(&site, "y", "11", &[]);
    std::fs::copy(&wrong, site.path("other/site-11.tar")).unwrap();
    let (code, text) = deploy(&wrong);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("nokind") && !text.contains("taken back"), "{text}");
    let fleet = site.ask("b", &["fleet"]).1;
    assert!(fleet.contains("rejected") && fleet.contains("nokind"), "{fleet}");
    assert_eq!(site.read("target"), "", "neither bundle ran");
}

/// A host gives up the fetch of a request that was taken back: the next request does not wait for its time limit.
#[test]
fn a_fetch_ends_with_its_request() {
    let mut site = site_of(&["a"], "state/bundles/current");
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("  bundles: https://{}/b\n", server.local_addr().unwrap());
    let (is_asked, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        while let Ok((stream, _)) = server.accept() {
            open.push(stream);
            // The receiver is gone when the test has ended.
            is_asked.send(()).unwrap_or_default();
        }
    });
    let settings = site.read("a/steadfast.yaml");
    let lines = settings.lines().filter(|line| !line.trim().starts_with("bundles:"));
    site.kill("a");
    site.write("a/steadfast.yaml", &(lines.collect::<Vec<_>>().join("\n") + "\n" + &address));
    site.start("a");
    site.wait_until("the host is seen", || site.ask("a", &["fleet"]).1.contains("1 of 1 hosts"));
    for sequence in ["10", "11"] {
        let bundle = make(&site, "x", sequence, &[]);
        let (code, text) = site.ask("a", &["deploy", &bundle, "--timeout", "10s"]);
        assert_eq!(code, 1, "{text}");
        asked.try_recv().unwrap_or_else(|_| panic!("{sequence} is fetched at once"));
    }
}
