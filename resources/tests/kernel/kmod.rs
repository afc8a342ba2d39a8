//! The kind `kmod`.

use crate::support::{Twin, rejected, valid};
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
    let twin = Twin::new();
    let module = valid("kmod", "br-netfilter", &[("options", "a=1\nb=2")]);
    twin.makes(&module);
    assert_eq!(twin.calls(), ["modprobe br_netfilter"]);
    assert!(twin.text(LOAD).ends_with("\nbr_netfilter\n"));
    assert!(twin.text(SETTINGS).ends_with("\noptions br_netfilter a=1 b=2\n"));
    let footprint = module.footprint();
    assert!(footprint.provides.contains(&HostObject::KernelModule("br_netfilter".to_owned())));
    assert!(footprint.watch.contains(&WatchSource::Polled("/proc/modules".into())));
    // Somebody unloads the module.
    twin.machine.write("/proc/modules", "").unwrap();
    twin.makes(&module);
    twin.calls();
    assert_eq!(twin.undoes("kmod", "br-netfilter"), "modprobe -r br-netfilter");
    assert_eq!(twin.calls(), ["modprobe -r br_netfilter"]);
    twin.makes(&module);
    twin.calls();
    twin.removes("kmod", "br-netfilter", &module);
    assert_eq!(twin.calls(), ["modprobe -r br_netfilter"]);
    assert!(twin.machine.content(LOAD).is_none() && twin.machine.content(SETTINGS).is_none());
}

#[test]
fn fields_choose_the_files() {
    let twin = Twin::new();
    twin.makes(&valid("kmod", "br_netfilter", &[("persist", "false")]));
    assert!(twin.machine.content(LOAD).is_none() && twin.machine.content(SETTINGS).is_none());
    twin.calls();
    let banned = valid("kmod", "br_netfilter", &[("blacklist", "true")]);
    twin.makes(&banned);
    assert_eq!(twin.calls(), ["modprobe -r br_netfilter"]);
    assert!(twin.text(SETTINGS).ends_with("\nblacklist br_netfilter\n"));
    twin.removes("kmod", "br_netfilter", &banned);
    assert!(twin.machine.content(SETTINGS).is_none());
}

#[test]
fn a_module_in_the_kernel_itself_counts_as_loaded() {
    let twin = Twin::new();
    let built_in = valid("kmod", "binfmt_misc", &[("persist", "false")]);
    assert_eq!(twin.hold(&built_in), Outcome::Unchanged);
    let (what, touched) = twin.fails(&valid("kmod", "binfmt_misc", &[("state", "absent")]));
    assert_eq!((what.as_str(), touched), ("binfmt_misc is built into the kernel", false));
    // A kernel without loadable modules has no table.
    twin.machine.remove("/proc/modules").unwrap();
    assert_eq!(twin.hold(&built_in), Outcome::Unchanged);
    let (what, _) = twin.fails(&valid("kmod", "missing", &[("persist", "false")]));
    assert!(what.contains("Module missing not found"), "{what}");
}
