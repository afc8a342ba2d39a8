//! The kind `kmod`.

use crate::support::{SimulatedHost, rejected, valid};
use steadfast_resources::{HostObject, Outcome, WatchSource};

const LOAD: &str = "/etc/modules-load.d/steadfast-br_netfilter.conf";
const SETTINGS: &str = "/etc/modprobe.d/steadfast-br_netfilter.conf";

#[test]
fn wrong_fields_are_rejected() {
    for (name, given, field) in [
        ("", &[][..], None),
        ("a b", &[], None),
        ("-r", &[], None),
        ("../a", &[], None),
        ("a", &[("state", "gone")], Some("state")),
        ("a", &[("state", "loaded"), ("blacklist", "true")], Some("blacklist")),
        ("a", &[("state", "absent"), ("options", "a=1")], Some("options")),
        ("a", &[("blacklist", "true"), ("persist", "true")], Some("persist")),
        ("a", &[("options", "=1")], Some("options")),
        ("a", &[("options", "a=1 # b")], Some("options")),
    ] {
        rejected("kmod", name, given, field);
    }
}

#[test]
fn a_module_is_loaded_now_and_at_boot() {
    let simulated = SimulatedHost::new();
    let module = valid("kmod", "br-netfilter", &[("options", "a=1\nb=2")]);
    simulated.makes(&module);
    assert_eq!(simulated.calls(), ["modprobe br_netfilter"]);
    assert!(simulated.text(LOAD).ends_with("\nbr_netfilter\n"));
    assert!(simulated.text(SETTINGS).ends_with("\noptions br_netfilter a=1 b=2\n"));
    let footprint = module.footprint();
    assert!(footprint.provides.contains(&HostObject::KernelModule("br_netfilter".to_owned())));
    assert!(footprint.watch.contains(&WatchSource::Polled("/proc/modules".into())));
    // Somebody unloads the module.
    simulated.machine.write("/proc/modules", "").unwrap();
    simulated.makes(&module);
    simulated.calls();
    assert_eq!(simulated.undoes("kmod", "br-netfilter"), "modprobe -r br-netfilter");
    assert_eq!(simulated.calls(), ["modprobe -r br_netfilter"]);
    simulated.makes(&module);
    simulated.calls();
    simulated.removes("kmod", "br-netfilter", &module);
    assert_eq!(simulated.calls(), ["modprobe -r br_netfilter"]);
    assert!(
        simulated.machine.content(LOAD).is_none() && simulated.machine.content(SETTINGS).is_none()
    );
}

#[test]
fn fields_choose_the_files() {
    let simulated = SimulatedHost::new();
    simulated.makes(&valid("kmod", "br_netfilter", &[("persist", "false")]));
    assert!(
        simulated.machine.content(LOAD).is_none() && simulated.machine.content(SETTINGS).is_none()
    );
    simulated.calls();
    let banned = valid("kmod", "br_netfilter", &[("blacklist", "true")]);
    simulated.makes(&banned);
    assert_eq!(simulated.calls(), ["modprobe -r br_netfilter"]);
    assert!(simulated.text(SETTINGS).ends_with("\nblacklist br_netfilter\n"));
    simulated.removes("kmod", "br_netfilter", &banned);
    assert!(simulated.machine.content(SETTINGS).is_none());
}

#[test]
fn a_module_in_the_kernel_itself_counts_as_loaded() {
    let simulated = SimulatedHost::new();
    let built_in = valid("kmod", "binfmt_misc", &[("persist", "false")]);
    assert_eq!(simulated.hold(&built_in), Outcome::Unchanged);
    let (what, touched) = simulated.fails(&valid("kmod", "binfmt_misc", &[("state", "absent")]));
    assert_eq!((what.as_str(), touched), ("binfmt_misc is built into the kernel", false));
    // A kernel without loadable modules has no table.
    simulated.machine.remove("/proc/modules").unwrap();
    assert_eq!(simulated.hold(&built_in), Outcome::Unchanged);
    let (what, _) = simulated.fails(&valid("kmod", "missing", &[]));
    assert!(what.contains("Module missing not found"), "{what}");
    let at_boot = simulated.machine.content("/etc/modules-load.d/steadfast-missing.conf");
    assert!(at_boot.is_none(), "a module that cannot be loaded is not loaded at each boot");
}
