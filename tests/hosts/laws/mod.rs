//! The laws of all kinds on a booted Debian, as one table: H1 to H8.
//!
//! A new kind must have a case in `cases.rs`, or a reason in `UNTRIED`. Each test boots one host and judges all cases
//! on it; the scripts of a case use no part of steadfast. Reading order: this file, then `cases.rs`, `inspected.rs`,
//! `speed.rs` and `mistakes.rs`.

mod cases;
mod inspected;
mod mistakes;
mod speed;

use crate::host::{Host, within};
use crate::service::GRAPH;
use cases::{CASES, UNTRIED};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use steadfast_resources::KindSet;

/// One resource of one kind, and the scripts that prepare, observe and break its object.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: &'static str,
    name: &'static str,
    /// The fields besides the name, as the inner part of a flow mapping of YAML.
    fields: &'static str,
    /// The script that makes the state of the host before the graph is applied.
    prepare: &'static str,
    /// The script that prints the object.
    observe: &'static str,
    /// The output of `observe` while the object is as declared.
    declared: &'static str,
    /// Scripts that break the object, with an event.
    breaks: &'static [&'static str],
    repair: Repair,
    removal: Removal,
    undo: Undo,
}

/// The cause of a repair, and so its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    /// An event of the kernel or of a program.
    Event,
    /// An event, and then a transaction of apt, which takes its time.
    Transaction,
}

/// The state after the resource has left the graph with `on_remove: delete`.
#[derive(Clone, Copy, Debug)]
enum Removal {
    AsBefore,
    /// Another state, with its output and the reason.
    Otherwise(&'static str, &'static str),
    /// The kind has no removal, with the reason; `on_remove: delete` is an error.
    None(&'static str),
}

/// The state after `steadfast undo`.
#[derive(Clone, Copy, Debug)]
enum Undo {
    AsBefore,
    /// Another state, with its output and the reason.
    Otherwise(&'static str, &'static str),
    /// The undo is refused with a message that contains this text.
    Refused(&'static str),
}

/// The state of the host that all cases share.
const PREPARE: &str = r#"
mkdir -p /srv/laws /repo /more /etc/cron.d /etc/nftables.d
make() {
  mkdir -p "/run/build-$1/DEBIAN"
  printf 'Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: d\n' "$1" \
    >"/run/build-$1/DEBIAN/control"
  dpkg-deb --root-owner-group -Znone --build "/run/build-$1" "$2" >/dev/null
  (cd "$2"; for deb in *.deb; do
    dpkg-deb -f "$deb"; echo "Filename: ./$deb"; echo "Size: $(stat -c %s "$deb")"
    echo "SHA256: $(sha256sum "$deb" | cut -d' ' -f1)"; echo
  done >Packages)
}
make laws-pkg /repo
make laws-more /more
rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] copy:/repo ./' >/etc/apt/sources.list
apt-get -q update >/dev/null 2>&1
"#;

impl Case {
    fn identity(&self) -> String {
        format!("{}[{}]", self.kind, self.name)
    }

    /// Returns the declaration as a document of a graph.
    fn item(&self, metaparams: &str) -> String {
        format!("  \"{}\":\n    - {{{}{metaparams}}}\n", self.kind, self.inner())
    }

    /// Returns the declaration as a flow mapping of YAML.
    fn mapping(&self) -> String {
        format!("{{{}}}", self.inner())
    }

    fn inner(&self) -> String {
        let separator = if self.fields.is_empty() { "" } else { ", " };
        format!("name: \"{}\"{separator}{}", self.name, self.fields)
    }

    fn metaparams(&self) -> &'static str {
        match self.removal {
            Removal::None(_) => "",
            Removal::AsBefore | Removal::Otherwise(..) => ", meta: {on_remove: delete}",
        }
    }

    fn observed(&self, host: &Host) -> String {
        host.run(&["sh", "-c", &format!("({}) 2>/dev/null", self.observe)]).stdout
    }

    fn is_declared(&self, host: &Host) -> bool {
        self.observed(host) == self.declared
    }

    /// Returns a complaint unless the object is in this state.
    fn complaint(&self, host: &Host, law: &str, expected: &str) -> Option<String> {
        let found = self.observed(host);
        let name = self.identity();
        (found != expected)
            .then(|| format!("{law}: {name}: expected {expected:?}, found {found:?}"))
    }
}

fn graph(cases: &[Case]) -> String {
    let items = cases.iter().map(|case| case.item(case.metaparams()));
    format!("graph: laws\nresources:\n{}", items.collect::<String>())
}

/// Boots a host in the state before the graph; returns it with the output of each `observe`.
fn prepared() -> (Host, Vec<String>) {
    let host = Host::boot();
    host.shell(PREPARE);
    for case in CASES {
        host.shell(case.prepare);
    }
    let before = CASES.iter().map(|case| case.observed(&host)).collect();
    host.write(GRAPH, &graph(CASES));
    (host, before)
}

/// Runs a command of steadfast on the graph; returns its exit code and all output.
fn run(host: &Host, words: &[&str]) -> (Option<i32>, String) {
    let answer = host.run(&[&["steadfast"], words].concat());
    (answer.code, answer.stdout + &answer.stderr)
}

fn apply(host: &Host) -> (Option<i32>, String) {
    run(host, &["apply", "--yes", "--detailed-exitcode", GRAPH])
}

fn judge(complaints: &[String], host: &Host) {
    let all = complaints.join("\n");
    assert!(
        complaints.is_empty(),
        "{} laws are broken:\n{all}\n{}",
        complaints.len(),
        host.report()
    );
}

#[test]
fn each_kind_has_a_case_or_a_reason() {
    let tried: BTreeSet<&str> = CASES.iter().map(|case| case.kind).collect();
    for spec in KindSet::of_this_build().specs() {
        let has_reason = UNTRIED.iter().any(|(kind, _)| *kind == spec.kind);
        let kind = spec.kind;
        assert!(
            tried.contains(kind) != has_reason,
            "{kind}: expected a case in tests/hosts/laws/cases.rs, or a reason in UNTRIED"
        );
    }
    assert!(CASES.iter().all(|case| !case.breaks.is_empty()), "each case breaks its object");
}

/// H1: other programs see the declared state. H2: a second apply changes nothing. H3: the plan shows each change of the
/// apply, and nothing afterwards.
#[test]
fn an_apply_does_the_plan_and_a_second_one_nothing() {
    let (host, before) = prepared();
    let mut complaints = Vec::new();
    for (case, before) in CASES.iter().zip(&before) {
        assert_ne!(before, case.declared, "{} is declared before", case.identity());
    }
    let (code, planned) = run(&host, &["plan", "--detailed-exitcode", GRAPH]);
    assert_eq!(code, Some(2), "{planned}");
    for (case, before) in CASES.iter().zip(&before) {
        complaints.extend(case.complaint(&host, "H3 the plan changed the host", before));
        if !planned.contains(&case.identity()) {
            complaints.push(format!("H3: {} is not in the plan:\n{planned}", case.identity()));
        }
    }
    let (code, said) = apply(&host);
    assert_eq!(code, Some(2), "{said}");
    for case in CASES {
        complaints.extend(case.complaint(&host, "H1", case.declared));
        if !said.contains(&case.identity()) {
            complaints.push(format!("H3: {} is not in the apply:\n{said}", case.identity()));
        }
    }
    judge(&complaints, &host);
    let stamps =
        "find /etc /srv/laws /root -xdev -printf '%p %T@ %C@\\n' | sort | grep -v /etc/steadfast";
    let first = host.shell(stamps);
    let (code, planned) = run(&host, &["plan", "--detailed-exitcode", GRAPH]);
    assert_eq!(code, Some(0), "H3: nothing is left to do: {planned}");
    let (code, said) = apply(&host);
    assert_eq!(code, Some(0), "H2: {said}");
    assert_eq!(host.shell(stamps), first, "H2: no file is touched");
}

/// H6: an object that the graph made goes with its declaration.
#[test]
fn objects_leave_the_host_with_the_graph() {
    let (host, before) = prepared();
    let (code, said) = apply(&host);
    assert_eq!(code, Some(2), "{said}");
    host.write(GRAPH, "graph: laws\nresources:\n  noop:\n    - name: left\n");
    let (_, said) = apply(&host);
    let mut complaints = Vec::new();
    for (case, before) in CASES.iter().zip(&before) {
        let expected = match case.removal {
            Removal::AsBefore => before,
            Removal::Otherwise(state, reason) => {
                assert!(!reason.is_empty(), "{}", case.identity());
                state
            }
            Removal::None(reason) => {
                assert!(!reason.is_empty(), "{}", case.identity());
                case.declared
            }
        };
        complaints.extend(case.complaint(&host, "H6", expected));
    }
    judge(&complaints.iter().map(|it| format!("{it}\n{said}")).collect::<Vec<_>>(), &host);
    // A kind without a removal says so at the load.
    for case in CASES.iter().filter(|case| matches!(case.removal, Removal::None(_))) {
        let item = case.item(", meta: {on_remove: delete}");
        host.write("/run/one.yaml", &format!("graph: one\nresources:\n{item}"));
        let (code, said) = run(&host, &["plan", "/run/one.yaml"]);
        assert!(code != Some(0) && said.contains("on_remove"), "{}: {said}", case.identity());
    }
}

/// H7: an undo restores the state before, or is refused with a reason.
#[test]
fn an_undo_restores_the_state_before() {
    let (host, before) = prepared();
    let (code, said) = apply(&host);
    assert_eq!(code, Some(2), "{said}");
    let mut complaints = Vec::new();
    for (case, before) in CASES.iter().zip(&before) {
        let (planned, plan) = run(&host, &["undo", &case.identity(), "--plan"]);
        let is_idle = |line: &&str| {
            let values = line.strip_prefix("~ ").and_then(|line| line.split_once(": "));
            let values = values.and_then(|(_, values)| values.split_once(" -> "));
            values.is_some_and(|(now, before)| now == before)
        };
        if let Some(line) = plan.lines().find(is_idle) {
            complaints.push(format!("H7: {}: a plan without a change: {line}", case.identity()));
        }
        let (code, said) = run(&host, &["undo", &case.identity()]);
        if (planned == Some(0)) != (code == Some(0)) {
            complaints.push(format!("H7: {}: plan {plan}\nundo {said}", case.identity()));
        }
        let expected = match case.undo {
            Undo::AsBefore => before,
            Undo::Otherwise(state, reason) => {
                assert!(!reason.is_empty(), "{}", case.identity());
                state
            }
            Undo::Refused(why) => {
                if code == Some(0) || !said.contains(why) {
                    complaints.push(format!("H7: {}: {code:?}: {said}", case.identity()));
                }
                case.declared
            }
        };
        let complaint = case.complaint(&host, "H7", expected);
        complaints.extend(complaint.map(|it| format!("{it}\n{code:?}: {said}")));
    }
    judge(&complaints, &host);
}

/// The longest time from a change by hand to its repair. The promise is 100 ms on an idle machine (benches/hosts); a
/// test machine that compiles needs more.
fn limit(case: &Case) -> Duration {
    match case.repair {
        Repair::Event => Duration::from_secs(10),
        Repair::Transaction => Duration::from_secs(90),
    }
}

/// H5: an apply that is killed at any moment converges at the next run. H4: everything that is broken by hand comes
/// back within its time, while a daemon runs.
#[expect(clippy::print_stdout, reason = "the times of the repairs are its output")]
#[test]
fn broken_objects_come_back() {
    let (host, _before) = prepared();
    for milliseconds in [20, 60, 150, 400] {
        let script = format!(
            "steadfast apply {GRAPH} >/dev/null 2>&1 & sleep {}; kill -9 $! 2>/dev/null; wait || true",
            f64::from(milliseconds) / 1000.0
        );
        host.run(&["bash", "-c", &script]);
    }
    let (code, said) = apply(&host);
    assert!(matches!(code, Some(0 | 2)), "H5: {code:?}: {said}");
    let mut complaints: Vec<String> =
        CASES.iter().filter_map(|case| case.complaint(&host, "H5", case.declared)).collect();
    host.start();
    host.until("convergence", || {
        host.log().iter().any(|line| line.contains("converged"))
            && CASES.iter().all(|case| case.is_declared(&host))
    });
    for case in CASES {
        for damage in case.breaks {
            let start = Instant::now();
            host.shell(damage);
            let is_back = within(limit(case), || case.is_declared(&host));
            println!("{}: {damage}: {:?}", case.identity(), start.elapsed());
            if !is_back {
                let complaint = case.complaint(&host, "H4", case.declared);
                complaints.extend(complaint.map(|it| format!("{it}\nafter {damage}")));
            }
        }
    }
    judge(&complaints, &host);
}

/// H8: without root, each change is a refusal with a hint.
#[test]
fn without_root_each_change_is_a_clear_failure() {
    let (host, before) = prepared();
    let script = "mkdir /run/state && chown nobody /run/state && chmod a+rX /etc/steadfast && exec setpriv \
                  --reuid nobody --clear-groups steadfast apply --state-dir /run/state \"$0\"";
    let answer = host.run(&["bash", "-c", script, GRAPH]);
    let said = answer.stdout + &answer.stderr;
    assert_eq!(answer.code, Some(1), "{said}");
    let mut complaints = Vec::new();
    for (case, before) in CASES.iter().zip(&before) {
        complaints.extend(case.complaint(&host, "H8", before));
        // A package waits for its repository, which has failed.
        if said.lines().any(|line| line.starts_with("waiting ") && line.contains(&case.identity()))
        {
            continue;
        }
        let is_begin = |line: &&str| line.starts_with("failed ");
        let is_own = |line: &&str| is_begin(line) && line.contains(&case.identity());
        let mut lines = said.lines().skip_while(|line| !is_own(line));
        let first = lines.next().unwrap_or_default();
        let rest = lines.take_while(|line| !is_begin(line) && !line.starts_with("waiting "));
        let failure = std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n");
        if !failure.contains("(hint: ") {
            let name = case.identity();
            complaints.push(format!("H8: {name} has no failure with a hint: {failure}"));
        }
    }
    judge(&complaints, &host);
}
