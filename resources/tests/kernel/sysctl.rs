//! The kind `sysctl`.

use crate::support::{SimulatedHost, permit, rejected, valid};
use std::path::Path;
use std::sync::Arc;
use steadfast_resources::host::{Limits, Overlay};
use steadfast_resources::{
    CheckResult, Host, HostObject, Need, Outcome, Resource, SentValue, Value, WatchSource,
};

const NAME: &str = "net.ipv4.ip_forward";
const RUNTIME: &str = "/proc/sys/net/ipv4/ip_forward";
const FILE: &str = "/etc/sysctl.d/60-steadfast.conf";

fn forward(value: &str) -> Arc<dyn Resource> {
    valid("sysctl", NAME, &[("value", value)])
}

#[test]
fn wrong_fields_are_rejected() {
    let value = ("value", "1");
    for (name, given, field) in [
        ("/proc/sys/net/a", &[value][..], None),
        ("net.*", &[value], None),
        ("net/../a", &[value], None),
        ("net", &[value], None),
        (NAME, &[], Some("value")),
        (NAME, &[("value", "a\nb")], Some("value")),
        (NAME, &[value, ("path", "here")], Some("path")),
        (NAME, &[value, ("runtime", "false"), ("persist", "false")], Some("persist")),
        (NAME, &[value, ("state", "absent")], Some("value")),
        (NAME, &[value, ("state", "on")], Some("state")),
    ] {
        rejected("sysctl", name, given, field);
    }
}

#[test]
fn the_value_is_set_now_and_at_boot() {
    let simulated = SimulatedHost::new();
    simulated.machine.write(FILE, "# foreign\nkernel.panic=1").unwrap();
    let forward = forward("1");
    let done = simulated.makes(&forward);
    assert_eq!(done, ["runtime 1", "line"]);
    assert_eq!(simulated.text(RUNTIME), "1\n");
    assert_eq!(simulated.text(FILE), "# foreign\nkernel.panic=1\nnet.ipv4.ip_forward = 1\n");
    let value = SentValue::Shown(Value::Text("1".to_owned()));
    assert_eq!(forward.sends(), [("value", value)]);
    simulated.machine.write(RUNTIME, "0\n").unwrap();
    assert_eq!(simulated.makes(&forward), ["runtime 1"]);
    assert_eq!(simulated.undoes("sysctl", NAME), "sysctl -w net.ipv4.ip_forward='0'");
    assert_eq!(simulated.text(RUNTIME), "0\n");
    simulated.removes("sysctl", NAME, &forward);
    assert_eq!(simulated.text(FILE), "# foreign\nkernel.panic=1\n");
    assert_eq!(simulated.text(RUNTIME), "0\n", "the removal leaves the present value");
}

#[test]
fn blanks_do_not_matter_and_fields_choose_the_halves() {
    let simulated = SimulatedHost::new();
    let name = "net/ipv4/tcp_mem";
    let only = |given: (&str, &str)| valid("sysctl", name, &[("value", " 1 2  3"), given]);
    assert_eq!(simulated.hold(&only(("persist", "false"))), Outcome::Unchanged);
    assert!(only(("persist", "false")).footprint().removal.is_none());
    simulated.makes(&only(("runtime", "false")));
    assert_eq!(simulated.text(FILE), "net.ipv4.tcp_mem = 1 2  3\n");
    let elsewhere = only(("path", "/etc/sysctl.d/70-own.conf"));
    simulated.makes(&elsewhere);
    simulated.removes("sysctl", name, &elsewhere);
    assert_eq!(simulated.text("/etc/sysctl.d/70-own.conf"), "");
    assert!(!simulated.text(FILE).is_empty());
}

#[test]
fn a_missing_parameter_fails_until_its_module_is_there() {
    let simulated = SimulatedHost::new();
    let name = "net.bridge.bridge-nf-call-iptables";
    let given = [("value", "1"), ("module", "br-netfilter"), ("persist", "false")];
    let bridge = valid("sysctl", name, &given);
    let (what, touched) = simulated.fails(&bridge);
    assert!(what.contains("the kernel has no such parameter") && !touched, "{what}");
    let module = HostObject::KernelModule("br_netfilter".to_owned());
    assert!(bridge.footprint().requires.contains(&Need::exact(module, "has the parameter")));
    simulated.machine.make_directories("/proc/sys/net/bridge").unwrap();
    simulated.machine.write("/proc/sys/net/bridge/bridge-nf-call-iptables", "0\n").unwrap();
    simulated.makes(&bridge);
    let path = Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables");
    assert!(bridge.footprint().watch.contains(&WatchSource::Polled(path.to_owned())));
}

/// A parameter is written in place with one call, and never created; a link is not followed.
#[test]
fn a_parameter_is_written_in_place() {
    let simulated = SimulatedHost::new();
    let ino = |simulated: &SimulatedHost| simulated.machine.look(|tree| tree.ino(RUNTIME));
    let before = ino(&simulated);
    simulated.makes(&forward("1"));
    assert_eq!(ino(&simulated), before);
    let _entered = simulated.machine.enter();
    let host = Host::default();
    let write = |path: &str| host.files().write_tunable(&permit(), Path::new(path), b"1\n");
    assert!(write("/proc/sys/net/ipv4/missing").is_err());
    assert!(simulated.machine.content("/proc/sys/net/ipv4/missing").is_none());
    simulated.machine.symlink("ip_forward", "/proc/sys/net/ipv4/link").unwrap();
    assert!(write("/proc/sys/net/ipv4/link").is_err());
    assert!(write("/proc/sys/net/ipv4").is_err());
}

/// A plan works in an overlay, where a parameter must not be written.
#[test]
fn an_overlay_refuses_to_write_a_parameter() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("tunable");
    std::fs::write(&path, "0\n").unwrap();
    let host = Host::default();
    let overlay = Overlay::new(Limits { bytes: 1 << 20, nodes: 1 << 10 }).unwrap();
    let write = || host.files().write_tunable(&permit(), &path, b"1\n");
    let work = std::pin::pin!(async { write() });
    let fault = futures_util::FutureExt::now_or_never(overlay.apply(work)).unwrap().unwrap_err();
    assert!(!fault.touched);
    let what = host.files().failure(fault, &path).what;
    assert!(what.contains("a plan writes no kernel parameters"), "{what}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "0\n");
    write().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n");
}

/// The kernel may make another value of a written one.
#[test]
fn a_value_that_the_kernel_changes_is_a_failure() {
    let simulated = SimulatedHost::new();
    simulated.machine.set_faults([]);
    simulated.machine.set_hook(Some(Box::new(|machine, call| {
        if call.name == "read" && machine.content(RUNTIME).as_deref() == Some(b"9\n") {
            machine.foreign(|machine| machine.write(RUNTIME, "5\n").unwrap());
        }
    })));
    let (what, touched) = simulated.fails(&forward("9"));
    assert_eq!((what.as_str(), touched), ("runtime was written, and is 5 now", true));
    simulated.machine.set_hook(None);
    assert!(
        matches!(simulated.check(&forward("5")), CheckResult::Differs(_)),
        "no line was written"
    );
}
