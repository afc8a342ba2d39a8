//! Bundles and deploys on three hosts.

use super::site::{LIMIT, Site};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};

pub(super) fn openssl(site: &Site, words: &[&str]) {
    let words =
        words.iter().map(|word| word.replace("$SITE", &site.path("").display().to_string()));
    assert!(Command::new("openssl").args(words).output().unwrap().status.success());
}

fn site() -> Site {
    site_of(&["a", "b", "c"], "state/bundles/current")
}

/// Starts hosts with this setting `graph`.
pub(super) fn site_of(hosts: &[&str], graph: &str) -> Site {
    let mut site = Site::with_file();
    openssl(&site, &["genpkey", "-algorithm", "ed25519", "-out", "$SITE/key.pem"]);
    openssl(
        &site,
        &["pkey", "-in", "$SITE/key.pem", "-pubout", "-out", "$SITE/trusted/deploy.pub"],
    );
    std::fs::create_dir(site.path("graph")).unwrap();
    start(&mut site, hosts, graph);
    site
}

/// Starts hosts with this setting `graph`, and waits until each of them is converged.
pub(super) fn start(site: &mut Site, hosts: &[&str], graph: &str) {
    for host in hosts {
        // The first graph stands where the bundles will lie.
        let bundles = site.path(host).join("state/bundles/first");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&bundles).unwrap();
        std::fs::write(
            bundles.join("site.yaml"),
            "graph: first\nresources:\n  noop:\n  - {name: x}\n",
        )
        .unwrap();
        std::os::unix::fs::symlink("first", site.path(host).join("state/bundles/current")).unwrap();
        site.settings(host, graph);
        site.start(host);
    }
    site.wait_until("all hosts are seen", || {
        let number = hosts.len();
        site.ask(hosts[0], &["fleet"]).1.contains(&format!("{number} of {number} hosts converged"))
    });
}

pub(super) fn make(site: &Site, content: &str, sequence: &str, more: &[&str]) -> String {
    let target = site.path("target").display().to_string();
    let graph = format!(
        "graph: site\nresources:\n  exec:\n  - {{name: mark, shell: /bin/sh, cmd: 'echo {content} >> {target}'}}\n"
    );
    site.write("graph/site.yaml", &graph);
    let name = format!("site-{sequence}.tar");
    let output = site.path(&name).display().to_string();
    let (key, folder) = (site.path("key.pem"), site.path("graph"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
    command.arg("bundle").arg(folder).arg("--key").arg(key);
    command.args(["--output", &output, "--cluster", "local", "--sequence", sequence]).args(more);
    let made = command.output().unwrap();
    assert!(made.status.success(), "{made:?}");
    output
}

/// Returns the block of commands of the guide that contains a text.
fn block_of_the_guide(text: &str) -> String {
    let page = std::fs::read_to_string("docs/guide/many-hosts.md").unwrap();
    let mut blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.find(|block| block.contains(text)).expect("a block of the page").to_owned()
}

/// Returns the commands of the guide that make a key, and those that deploy a bundle.
fn commands_of_the_guide() -> (String, String) {
    let block = block_of_the_guide("steadfast deploy");
    let (key, deploy) = block.split_once("\n\n").expect("two parts");
    (key.to_owned(), deploy.to_owned())
}

/// Writes a program of the site's folder `bin`.
fn program(site: &Site, name: &str, script: &str) {
    let path = site.path("bin").join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs commands of the guide in the site's folder, with the programs of the folder `bin`.
fn run_commands(site: &Site, commands: &str) -> String {
    let search =
        format!("{}:{}", site.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-euc", commands]).current_dir(site.path("")).env("PATH", search);
    let output = shell.stdin(Stdio::null()).output().unwrap();
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{commands}\n{text}");
    text
}

/// The commands of docs/guide/many-hosts.md deploy a bundle as they are printed there, except the cluster, the time of
/// the splay, and the way to the server of the bundles.
#[test]
fn the_commands_of_the_guide_deploy_a_bundle() {
    let mut site = Site::with_file();
    let (key, deploy) = commands_of_the_guide();
    std::fs::create_dir(site.path("bin")).unwrap();
    let settings = site.path("web1/steadfast.yaml").display().to_string();
    let binary = env!("CARGO_BIN_EXE_steadfast");
    let with_settings = format!(
        "verb=$1; shift\ncase $verb in deploy) set -- \"$@\" --config {settings} ;; esac\nexec {binary} \"$verb\" \"$@\""
    );
    program(&site, "steadfast", &with_settings);
    let bundles = site.path("bundles").display().to_string();
    program(
        &site,
        "scp",
        &format!("[ \"$2\" = deploy.example.org:/srv/bundles/ ]\nexec cp \"$1\" {bundles}/"),
    );
    run_commands(&site, &key);
    std::fs::copy(site.path("deploy.pub"), site.path("trusted/deploy.pub")).unwrap();
    start(&mut site, &["web1", "web2"], "state/bundles/current");
    std::fs::create_dir(site.path("site")).unwrap();
    let target = site.path("target").display().to_string();
    let graph = format!(
        "graph: site\nresources:\n  exec:\n  - {{name: mark, shell: /bin/sh, cmd: 'echo x >> {target}'}}\n"
    );
    site.write("site/site.yaml", &graph);
    for printed in ["--cluster prod", "--splay 5m", "--sequence 42"] {
        assert!(deploy.contains(printed), "{printed}: {deploy}");
    }
    let deploy = deploy.replace("--cluster prod", "--cluster local").replace("5m", "1s");
    let text = run_commands(&site, &deploy);
    assert!(text.contains("2 hosts run sequence 42"), "{text}");
    assert_eq!(site.read("target"), "x\nx\n");
    assert!(site.path("bundles/site-42.tar").is_file());
}

#[test]
fn a_bundle_is_deployed_in_waves() {
    let site = site();
    let bundle = make(&site, "one", "10", &[]);
    let (code, text) = site.ask("a", &["deploy", &bundle, "--wave", "1"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("wave 3") && text.contains("3 hosts run sequence 10"), "{text}");
    assert_eq!(site.read("target"), "one\none\none\n");
    // The same content once more: each host runs it again only with a higher sequence.
    let (code, text) = site.ask("a", &["deploy", &bundle]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(site.read("target"), "one\none\none\n");
    let old = make(&site, "two", "9", &[]);
    let (code, text) = site.ask("a", &["deploy", &old]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("expected a sequence above 10, found 9"), "{text}");
    assert_eq!(site.read("target"), "one\none\none\n");
}

/// A host whose name begins the name of another one runs nothing of that one.
#[test]
fn a_host_runs_no_bundle_of_another_one() {
    let site = site_of(&["a", "ab"], "state/bundles/current");
    let bundle = make(&site, "one", "10", &[]);
    let (code, text) = site.ask("a", &["deploy", &bundle, "--hosts", "ab"]);
    assert_eq!(code, 0, "{text}");
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(site.read("target"), "one\n");
}

/// A host that is lost during a deploy is requested after the last wave, and runs the bundle when it returns.
#[test]
fn a_lost_host_runs_the_bundle_when_it_returns() {
    let mut site = site_of(&["a", "b"], "state/bundles/current");
    site.kill("b");
    site.wait_until("the host is lost", || site.ask("a", &["fleet"]).1.contains("b: lost"));
    let bundle = make(&site, "one", "10", &[]);
    let (code, text) = site.ask("a", &["deploy", &bundle]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("b: lost, requested after the last wave"), "{text}");
    assert_eq!(site.read("target"), "one\n");
    site.start("b");
    site.wait_until("the host runs the bundle", || site.read("target") == "one\none\n");
}

/// Rejected bundles change nothing: the running graph goes on to read its own sources, however many are rejected.
#[test]
fn rejected_bundles_leave_the_running_one() {
    let site = site_of(&["a"], "state/bundles/current");
    let out = site.path("out").display().to_string();
    let file = format!("resources:\n  file:\n  - {{name: f, path: {out}, source: f.txt}}\n");
    site.write("graph/file.yaml", &file);
    for (number, is_right) in
        [("10", true), ("11", false), ("12", false), ("13", false), ("14", false)]
    {
        site.write("graph/f.txt", number);
        let wrong = if is_right { "" } else { "resources:\n  nokind:\n  - {name: x}\n" };
        site.write("graph/wrong.yaml", wrong);
        let bundle = make(&site, number, number, &[]);
        let (code, text) = site.ask("a", &["deploy", &bundle, "--timeout", "60s"]);
        assert_eq!(code, i32::from(!is_right), "{text}");
        assert_eq!(site.read("out"), "10", "{number}");
    }
    std::fs::remove_file(site.path("out")).unwrap();
    site.wait_until("the running graph repairs its file", || site.read("out") == "10");
    assert!(!site.read("target").contains("11"));
    // The bundle that runs is no older one, and its request ends the rejection of the newer one.
    let running = site.path("site-10.tar").display().to_string();
    let (code, text) = site.ask("a", &["deploy", &running, "--timeout", "60s"]);
    assert_eq!(code, 0, "{text}");
    site.wait_until("no rejection is shown", || !site.ask("a", &["fleet"]).1.contains("rejected"));
}

/// A daemon that runs another graph rejects bundles: they would change nothing.
#[test]
fn a_bundle_beside_another_graph_is_rejected() {
    let site = site_of(&["a"], "state/bundles/first/site.yaml");
    let bundle = make(&site, "one", "10", &[]);
    let (code, text) = site.ask("a", &["deploy", &bundle, "--timeout", "60s"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("the bundle would not run"), "{text}");
    assert_eq!(site.read("target"), "");
}

/// The canary fails: no other host is touched.
#[test]
fn a_failed_canary_stops_the_deploy() {
    let site = site();
    site.write("graph/other.yaml", "resources:\n  exec:\n  - {name: fails, cmd: /bin/false}\n");
    let bundle = make(&site, "bad", "10", &[]);
    let (code, text) = site.ask("a", &["deploy", &bundle, "--canary", "1"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("a has failed") && !text.contains("wave 2"), "{text}");
    assert_eq!(site.read("target"), "bad\n");
}

/// The commands of docs/guide/many-hosts.md make the first graph of a host that runs bundles.
#[test]
fn the_commands_of_the_guide_make_a_first_graph() {
    let mut site = Site::with_file();
    let state = site.path("a/state").display().to_string();
    std::fs::create_dir(site.path("a")).unwrap();
    let commands = block_of_the_guide("install -d");
    run_commands(&site, &commands.replace("/var/lib/steadfast", &state));
    site.settings("a", "state/bundles/current");
    site.start("a");
    site.wait_until("the first graph is converged", || {
        site.ask("a", &["fleet"]).1.contains("1 of 1 hosts converged")
    });
}

/// Each attack on a bundle is rejected by the host, and nothing of it runs.
#[test]
fn attacks_on_bundles_run_nowhere() {
    let site = site();
    let rejected = |words: &str, bundle: &str| {
        let (code, text) = site.ask("a", &["deploy", bundle, "--timeout", "60s"]);
        assert_eq!(code, 1, "{words}: {text}");
        assert!(text.contains(words), "{words}: {text}");
        assert_eq!(site.read("target"), "", "{words}");
    };
    openssl(&site, &["genpkey", "-algorithm", "ed25519", "-out", "$SITE/other.pem"]);
    let good = std::fs::read(site.path("key.pem")).unwrap();
    std::fs::copy(site.path("other.pem"), site.path("key.pem")).unwrap();
    rejected("no key in the folder of trusted keys", &make(&site, "x", "11", &[]));
    std::fs::write(site.path("key.pem"), good).unwrap();
    // The deployer's world names the file of another bundle.
    let bundle = make(&site, "x", "12", &[]);
    let other = make(&site, "y", "13", &[]);
    let (mut one, two) = (std::fs::read(&bundle).unwrap(), std::fs::read(&other).unwrap());
    let tail = one.len() - 2048;
    one.truncate(tail);
    one.extend_from_slice(&two[tail..]);
    std::fs::write(&bundle, one).unwrap();
    rejected("that the manifest does not list so", &bundle);
}

/// A second deploy is refused while the first one runs, with the name of its holder.
#[test]
fn two_deploys_exclude_each_other() {
    let site = site();
    let bundle = make(&site, "x", "10", &[]);
    site.signal("b", "-STOP");
    std::thread::scope(|scope| {
        let first = scope
            .spawn(|| site.ask("a", &["deploy", &bundle, "--canary", "3", "--timeout", "20s"]));
        site.wait_until("the first deploy runs", || {
            !site.ask("a", &["world", "list", "deploy/"]).1.is_empty()
        });
        let (code, text) = site.ask("c", &["deploy", &bundle]);
        assert_eq!(code, 75, "{text}");
        assert!(text.contains("another deploy is running"), "{text}");
        let (code, text) = first.join().unwrap();
        assert_eq!(code, 1, "{text}");
    });
    site.signal("b", "-CONT");
    assert!(site.ask("a", &["world", "list", "deploy/"]).1.is_empty(), "the lease is given back");
}

/// A rollback is the old content under a higher sequence.
#[test]
fn a_rollback_is_a_higher_sequence() {
    let site = site_of(&["a"], "state/bundles/current");
    for (content, sequence) in [("old", "10"), ("new", "11"), ("old", "12")] {
        let bundle = make(&site, content, sequence, &[]);
        let (code, text) = site.ask("a", &["deploy", &bundle]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains(&format!("1 hosts run sequence {sequence}")), "{text}");
    }
    assert_eq!(site.read("target"), "old\nnew\nold\n");
}

/// With `--splay` each host of a wave starts at its own moment, within the time.
#[test]
fn a_splay_spreads_the_hosts_of_a_wave() {
    let site = site();
    let bundle = make(&site, "$(date +%s)", "10", &[]);
    let (code, text) = site.ask("a", &["deploy", &bundle, "--splay", "20s", "--wave", "3"]);
    assert_eq!(code, 0, "{text}");
    let times: Vec<u64> = site.read("target").lines().map(|it| it.parse().unwrap()).collect();
    let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!(times.len() == 3 && last - first >= 2, "{times:?}");
    let (code, text) = site.ask("a", &["deploy", &bundle, "--splay", "2h"]);
    assert_eq!(code, 64, "{text}");
    assert!(text.contains("at most 1h"), "{text}");
}

/// Serves a folder over https, with a certificate that its own authority has signed.
const SERVER: &str = r#"
import http.server, os, ssl, sys
os.chdir(sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2] + "/server.pem", sys.argv[2] + "/server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// A host fetches its bundle over https, from a server that its trusted certificates verify.
#[test]
fn a_bundle_comes_over_https() {
    let mut site = site_of(&["a"], "state/bundles/current");
    for words in [
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout $SITE/ca.key -out $SITE/ca.pem",
        "req -newkey rsa:2048 -nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost \
         -keyout $SITE/server.key -out $SITE/server.csr",
        "x509 -req -in $SITE/server.csr -CA $SITE/ca.pem -CAkey $SITE/ca.key -days 2 \
         -copy_extensions copy -out $SITE/server.pem",
    ] {
        openssl(&site, &words.split_whitespace().collect::<Vec<_>>());
    }
    let folder = site.path("");
    let mut server = Command::new("setpriv");
    server
        .args(["--pdeathsig", "KILL", "python3", "-c", SERVER])
        .arg(folder.join("bundles"))
        .arg(&folder);
    let mut server = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let settings = site.path("a/steadfast.yaml");
    let text = std::fs::read_to_string(&settings).unwrap();
    let address = format!("  bundles: https://localhost:{}\n", port.trim());
    let lines = text.lines().filter(|line| !line.trim().starts_with("bundles:"));
    let text = lines.collect::<Vec<_>>().join("\n") + "\n" + &address;
    std::fs::write(&settings, text).unwrap();
    site.kill("a");
    site.start_with("a", &[("SSL_CERT_FILE", &site.path("ca.pem").display().to_string())]);
    let bundle = make(&site, "one", "10", &[]);
    std::fs::copy(&bundle, site.path("bundles/site-10.tar")).unwrap();
    let (code, text) = site.ask("a", &["deploy", &bundle]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(site.read("target"), "one\n");
    // A server with another authority is not believed.
    site.kill("a");
    site.start("a");
    let bundle = make(&site, "two", "11", &[]);
    std::fs::copy(&bundle, site.path("bundles/site-11.tar")).unwrap();
    let (code, text) = site.ask("a", &["deploy", &bundle, "--timeout", "30s"]);
    assert_eq!(code, 1, "{text}");
    assert_eq!(site.read("target"), "one\n");
    server.kill().unwrap();
    server.wait().unwrap();
}

fn git(site: &Site, words: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(site.path("repository")).args([
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@y",
    ]);
    let output = command.args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
}

/// Adds a bundle to the repository.
fn commit(site: &Site, bundle: &str) {
    std::fs::copy(bundle, site.path("repository").join(bundle.rsplit('/').next().unwrap()))
        .unwrap();
    git(site, &["add", "."]);
    git(site, &["commit", "-q", "-m", "a bundle"]);
}

/// A host fetches its bundle from a branch of a git repository, and keeps nothing of the repository.
#[test]
fn a_bundle_comes_from_git() {
    let mut site = site_of(&["a"], "state/bundles/current");
    std::fs::create_dir(site.path("repository")).unwrap();
    git(&site, &["init", "-q", "-b", "prod"]);
    git(&site, &["config", "uploadpack.allowFilter", "true"]);
    let settings = site.path("a/steadfast.yaml");
    let text = std::fs::read_to_string(&settings).unwrap();
    let folder = format!("{}/bundles", site.path("").display().to_string().trim_end_matches('/'));
    let address = format!("git+file://{}#prod", site.path("repository").display());
    assert!(text.contains(&folder), "{text}");
    std::fs::write(&settings, text.replace(&folder, &address)).unwrap();
    site.kill("a");
    site.start("a");
    let bundle = make(&site, "one", "10", &[]);
    commit(&site, &bundle);
    let (code, text) = site.ask("a", &["deploy", &bundle]);
    assert_eq!(code, 0, "{text}\n{}", site.read("a/log"));
    assert_eq!(site.read("target"), "one\n");
    assert!(!site.path("a/state/bundles/git").exists());
    // A bundle that is not committed, and a branch that does not exist, are named.
    let bundle = make(&site, "two", "11", &[]);
    let (code, text) = site.ask("a", &["deploy", &bundle, "--timeout", "60s"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("site-11.tar"), "{text}");
    git(&site, &["branch", "-q", "-m", "prod", "other"]);
    let bundle = make(&site, "three", "12", &[]);
    let (code, text) = site.ask("a", &["deploy", &bundle, "--timeout", "60s"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("prod"), "{text}");
    assert_eq!(site.read("target"), "one\n");
}

/// A server of bundles that never answers delays neither the lease of the host nor its values.
#[test]
fn a_silent_server_of_bundles_delays_nothing_else() {
    let mut site = site_of(&["a"], "state/bundles/current");
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let (is_asked, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        while let Ok((stream, _)) = server.accept() {
            open.push(stream);
            // The receiver is gone when the test has ended.
            is_asked.send(()).unwrap_or_default();
        }
    });
    let settings = site.path("a/steadfast.yaml");
    let text = std::fs::read_to_string(&settings).unwrap();
    let folder = format!("{}/bundles", site.path("").display().to_string().trim_end_matches('/'));
    std::fs::write(&settings, text.replace(&folder, &format!("https://127.0.0.1:{port}/b")))
        .unwrap();
    site.kill("a");
    let value = |text: &str| {
        format!("graph: g\nresources:\n  kv: [{{name: k, key: release, value: {text}}}]\n")
    };
    site.graph("b", &value("one"));
    site.write(
        "a/state/bundles/first/site.yaml",
        "graph: first\nresources:\n  file:\n  - {name: f, path: $DIR/f, recv: {content: {world: release}}}\n"
            .replace("$DIR", &site.path("a").display().to_string())
            .as_str(),
    );
    site.start("a");
    site.start("b");
    site.wait_for_file("a/f", "one");
    let bundle = make(&site, "x", "10", &[]);
    std::thread::scope(|scope| {
        let deploy =
            scope.spawn(|| site.ask("b", &["deploy", &bundle, "--hosts", "a", "--timeout", "45s"]));
        asked.recv_timeout(LIMIT).expect("the host fetches the bundle");
        site.graph("b", &value("two"));
        let begun = std::time::Instant::now();
        site.wait_for_file("a/f", "two");
        assert!(begun.elapsed() < std::time::Duration::from_mins(1), "the fetch takes 2 min");
        assert_eq!(deploy.join().unwrap().0, 1);
        let fleet = site.ask("b", &["fleet"]).1;
        assert!(!fleet.contains("a: lost"), "{fleet}");
    });
}
