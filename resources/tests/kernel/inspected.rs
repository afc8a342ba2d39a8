//! Inspection of kernel kinds: the declaration that `inspect` prints is converged.

use crate::stand_in::{FSTAB, SWAPS};
use crate::support::{SimulatedHost, valid};
use futures_util::FutureExt as _;
use std::path::PathBuf;
use steadfast_resources::inspect::{Field, Inspected, container_inspectors, inspectors};
use steadfast_resources::{CheckResult, Fields, Host, KindSet, Place};

/// Reads an object, whose declaration may differ.
fn read(simulated: &SimulatedHost, kind: &str, name: &str) -> Option<Inspected> {
    let inspector = inspectors().iter().find(|it| it.kind == kind).expect("an inspector");
    let _entered = simulated.machine.enter();
    let host = Host::default();
    (inspector.one)(&host, name).now_or_never().unwrap().unwrap()
}

/// Reads an object; its declaration must be converged.
fn inspect(simulated: &SimulatedHost, kind: &str, name: &str) -> Option<Inspected> {
    let found = read(simulated, kind, name)?;
    assert_eq!(found.note, None);
    let mut fields = Fields::default();
    for (field, value) in &found.fields {
        let Field::Shown(value) = value else { panic!("a secret") };
        fields.insert(field, value.clone());
    }
    let spec = KindSet::of_this_build().find(kind).unwrap();
    let place = Place { base: PathBuf::from("/") };
    let resource = spec.build_resource(&found.name, fields, &place).unwrap();
    let result = simulated.check(&resource);
    assert!(matches!(result, CheckResult::Same), "{found:?}: {result:?}");
    Some(found)
}

fn names(simulated: &SimulatedHost, kind: &str) -> Vec<String> {
    let inspector = inspectors().iter().find(|it| it.kind == kind).expect("an inspector");
    let _entered = simulated.machine.enter();
    let host = Host::default();
    let all = inspector.all.expect("a list");
    all(&host).now_or_never().unwrap().unwrap()
}

#[test]
fn modules_are_inspected_as_they_are() {
    let simulated = SimulatedHost::new();
    assert_eq!(inspect(&simulated, "kmod", "none"), None);
    let foreign = inspect(&simulated, "kmod", "ext4").unwrap();
    assert_eq!(foreign.fields.len(), 1, "not persistent: {foreign:?}");
    simulated.makes(&valid("kmod", "br-netfilter", &[("options", "a=1\nb=2")]));
    let own = inspect(&simulated, "kmod", "br-netfilter").unwrap();
    assert_eq!(own.fields.first().map(|(field, _)| *field), Some("options"));
    assert_eq!(names(&simulated, "kmod"), ["ext4", "br_netfilter"]);
}

#[test]
fn parameters_are_inspected_as_they_are() {
    let simulated = SimulatedHost::new();
    assert_eq!(inspect(&simulated, "sysctl", "net.ipv4.none"), None);
    assert_eq!(inspect(&simulated, "sysctl", "net.ipv4.tcp_mem").unwrap().fields.len(), 2);
    simulated.makes(&valid("sysctl", "net.ipv4.ip_forward", &[("value", "1")]));
    assert_eq!(inspect(&simulated, "sysctl", "net.ipv4.ip_forward").unwrap().fields.len(), 1);
    let file = "/etc/sysctl.d/60-steadfast.conf";
    let other = simulated.text(file).replace('1', "0");
    simulated.machine.write(file, other).unwrap();
    let found = read(&simulated, "sysctl", "net.ipv4.ip_forward").unwrap();
    assert!(found.note.is_some_and(|note| note.contains("another value")));
}

#[test]
fn swap_and_mounts_are_inspected_as_they_are() {
    let simulated = SimulatedHost::new();
    simulated.makes(&valid("swap", "/srv/swap", &[("size", "2M"), ("priority", "5")]));
    let swap = inspect(&simulated, "swap", "/srv/swap").unwrap();
    assert_eq!(swap.fields.first().map(|(field, _)| *field), Some("priority"));
    assert_eq!(names(&simulated, "swap"), ["/srv/swap"]);
    let given = [("device", "tmpfs"), ("type", "tmpfs"), ("options", "nosuid")];
    simulated.makes(&valid("mount", "/srv/data", &given));
    assert_eq!(inspect(&simulated, "mount", "/srv/data").unwrap().fields.len(), 3);
    assert_eq!(inspect(&simulated, "mount", "/nowhere"), None);
    assert_eq!(names(&simulated, "mount"), ["/", "/srv/data"]);
    assert!(inspect(&simulated, "mount", "/").is_some());
}

/// A mount with a password in its row is refused: `options` hold no secrets.
#[test]
fn the_password_of_a_mount_is_not_printed() {
    let simulated = SimulatedHost::new();
    let inspector = inspectors().iter().find(|it| it.kind == "mount").unwrap();
    for (options, has_password) in [
        ("username=eve,password=canary", true),
        ("pass=canary,ro", true),
        ("password2=canary", true),
        ("username=eve%canary", true),
        ("username=eve,credentials=/etc/cifs", false),
        ("user,noauto", false),
    ] {
        let row = format!("//server/share /srv/share cifs {options} 0 0\n");
        simulated.machine.write("/etc/fstab", format!("{FSTAB}\n{row}")).unwrap();
        let _entered = simulated.machine.enter();
        let host = Host::default();
        match (inspector.one)(&host, "/srv/share").now_or_never().unwrap() {
            Ok(found) => assert!(!has_password, "{found:?}"),
            Err(failure) => {
                assert!(has_password && failure.hint.is_some(), "{options}: {failure}");
                assert!(!failure.to_string().contains("canary"), "{failure}");
            }
        }
    }
}

/// A file whose variables no job can declare is refused: its jobs would run without them.
#[test]
fn jobs_beside_variables_are_refused() {
    let simulated = SimulatedHost::new();
    let inspector = container_inspectors().iter().find(|it| it.kind == "cron").unwrap();
    let read = |text: &str| {
        simulated.machine.write("/etc/cron.d/several", text).unwrap();
        let _entered = simulated.machine.enter();
        (inspector.read)(&Host::default(), "several").now_or_never().unwrap()
    };
    let jobs = "@daily root true a\n# steadfast: b\n@hourly root true b\n";
    assert_eq!(read(jobs).unwrap().unwrap().len(), 2);
    for variables in ["MAILTO=root\n", "PATH = /bin\nMAILTO=\"\"\n"] {
        for text in [format!("{variables}{jobs}"), format!("{jobs}{variables}")] {
            let failure = read(&text).expect_err("a refusal");
            assert!(failure.what.contains("MAILTO"), "{failure}");
            assert!(failure.hint.clone().unwrap().contains("inspect file"), "{failure}");
        }
    }
    let one = "MAILTO=root\n# why\n@daily root true a\n";
    assert_eq!(read(one).unwrap().unwrap().len(), 1, "a file of one job has a field for them");
}

#[test]
fn lines_of_hosts_are_inspected_as_they_are() {
    let simulated = SimulatedHost::new();
    let table = "127.0.0.1 localhost\n# a comment\n::1 localhost ip6-localhost # both\n192.0.2.7 db.example.org db\n";
    simulated.machine.write("/etc/hosts", table).unwrap();
    assert_eq!(names(&simulated, "hosts"), ["localhost", "localhost ipv6", "db.example.org"]);
    let fields = |name: &str| {
        let found = inspect(&simulated, "hosts", name).unwrap();
        found.fields.iter().map(|(field, _)| *field).collect::<Vec<_>>()
    };
    assert_eq!(fields("localhost"), ["ip"]);
    assert_eq!(fields("localhost ipv6"), ["host", "ip", "names"]);
    assert_eq!(fields("db.example.org"), ["ip", "names"]);
    assert_eq!(inspect(&simulated, "hosts", "db"), None, "no first name");
    simulated.machine.write("/etc/hosts", "10.0.0.1 a b\n10.0.0.2 a\n").unwrap();
    let note = read(&simulated, "hosts", "a").unwrap().note.unwrap();
    assert!(note.contains("removes the line of 10.0.0.2"), "{note}");
}

/// An automount stands for its file system until the first access.
#[test]
fn an_automount_counts_as_mounted() {
    let simulated = SimulatedHost::new();
    let given = [("device", "UUID=7"), ("type", "ext4"), ("options", "x-systemd.automount")];
    let mount = valid("mount", "/srv/data", &given);
    simulated.makes(&mount);
    let table = simulated.text("/proc/self/mountinfo");
    let kept: String = table.lines().take(1).flat_map(|line| [line, "\n"]).collect();
    let automount = "40 22 0:50 / /srv/data rw - autofs systemd-1 rw,fd=1\n";
    simulated.machine.write("/proc/self/mountinfo", kept + automount).unwrap();
    assert!(matches!(simulated.check(&mount), CheckResult::Same));
}

/// A module or a swap space that existed before does not go with its resource.
#[test]
fn objects_of_others_are_adopted() {
    let simulated = SimulatedHost::new();
    let creates = |resource: &_| match simulated.check(resource) {
        CheckResult::Differs(change) => change.creates,
        other => panic!("expected a difference, found {other:?}"),
    };
    assert!(!creates(&valid("kmod", "ext4", &[])), "loaded before");
    assert!(creates(&valid("kmod", "br_netfilter", &[])));
    assert!(creates(&valid("kmod", "br_netfilter", &[("blacklist", "true")])));
    let swap = valid("swap", "/srv/swap", &[("size", "2M")]);
    assert!(creates(&swap));
    let used = format!("{SWAPS}/srv/swap file 1 0 -2\n");
    simulated.machine.write("/proc/swaps", used).unwrap();
    assert!(!creates(&swap), "used before, without a row");
    simulated.machine.write("/proc/swaps", SWAPS).unwrap();
    simulated
        .machine
        .write("/etc/fstab", format!("{FSTAB}\n/srv/swap none swap sw 0 0\n"))
        .unwrap();
    assert!(!creates(&swap), "a row before");
}
