//! The kind `mount`.

use crate::stand_in::FSTAB;
use crate::support::{SimulatedHost, build, rejected, valid};
use std::sync::Arc;
use steadfast_resources::host::systemd::Bus;
use steadfast_resources::{
    CheckRequest, CheckResult, HostObject, Outcome, Resource, SentValue, Value, WatchSource,
};

const POINT: &str = "/srv/data";

fn tmpfs(options: &str) -> Arc<dyn Resource> {
    valid("mount", POINT, &[("device", "tmpfs"), ("type", "tmpfs"), ("options", options)])
}

#[test]
fn wrong_fields_are_rejected() {
    let device = ("device", "tmpfs");
    for (name, given, field) in [
        ("srv", &[device][..], None),
        ("/srv/../etc", &[device], None),
        (POINT, &[], Some("device")),
        (POINT, &[("state", "present")], Some("device")),
        (POINT, &[("state", "gone"), device], Some("state")),
        (POINT, &[("state", "absent"), device], Some("device")),
        (POINT, &[("state", "unmounted"), ("options", "ro")], Some("options")),
        (POINT, &[("device", "-a")], Some("device")),
        (POINT, &[device, ("type", "swap")], Some("type")),
        (POINT, &[device, ("type", "a b")], Some("type")),
        (POINT, &[device, ("options", "a b")], Some("options")),
        (POINT, &[device, ("options", "remount")], Some("options")),
        (POINT, &[device, ("options", "bind")], Some("device")),
        (POINT, &[device, ("passno", "10")], Some("passno")),
        (POINT, &[device, ("freq", "-1")], Some("freq")),
        ("/", &[("state", "absent")], Some("state")),
        ("/usr", &[("state", "unmounted")], Some("state")),
    ] {
        rejected("mount", name, given, field);
    }
    assert!(build("mount", "/", &[("device", "UUID=1"), ("passno", "1")]).is_ok());
    let warned = valid("mount", POINT, &[("device", "//a/b"), ("options", "password=x")]);
    assert_eq!(warned.footprint().warnings.len(), 1);
}

/// The file systems of the running system are not unmounted: not by a removal, and not for another device.
#[test]
fn the_root_is_never_unmounted() {
    let simulated = SimulatedHost::new();
    let root = valid("mount", "/", &[("device", "tmpfs"), ("type", "tmpfs")]);
    assert!(root.footprint().removal.is_none());
    assert!(tmpfs("ro").footprint().removal.is_some());
    let (what, touched) = simulated.fails(&root);
    assert!(what.contains("the running system needs /") && !touched, "{what}");
    assert_eq!(simulated.calls(), [""; 0]);
}

#[test]
fn a_file_system_is_mounted_now_and_at_boot() {
    let simulated = SimulatedHost::new();
    let mount = tmpfs("size=1m\nnoexec");
    simulated.makes(&mount);
    assert_eq!(simulated.calls(), ["mount -t tmpfs -o size=1m,noexec tmpfs /srv/data"]);
    let row = "tmpfs /srv/data tmpfs size=1m,noexec 0 0\n";
    assert_eq!(simulated.text("/etc/fstab"), format!("{FSTAB}\n{row}"));
    assert!(mount.sends().contains(&("type", SentValue::Shown(Value::Text("tmpfs".to_owned())))));
    // Changed flags are repaired by a remount, and a missing mount by a mount.
    let table = simulated.text("/proc/self/mountinfo");
    simulated.machine.write("/proc/self/mountinfo", table.replace("rw,noexec", "ro")).unwrap();
    simulated.makes(&mount);
    assert_eq!(simulated.calls(), ["mount -o remount,rw,suid,dev,exec,size=1m,noexec /srv/data"]);
    simulated.machine.write("/proc/self/mountinfo", "").unwrap();
    simulated.makes(&mount);
    simulated.calls();
    assert_eq!(simulated.undoes("mount", POINT), "umount /srv/data");
    assert_eq!(simulated.calls(), ["umount /srv/data"]);
    simulated.makes(&mount);
    simulated.calls();
    simulated.removes("mount", POINT, &mount);
    assert_eq!(simulated.calls(), ["umount /srv/data"]);
    assert_eq!(simulated.text("/etc/fstab"), format!("{FSTAB}\n"));
}

#[test]
fn another_file_system_is_replaced_and_can_be_restored() {
    let simulated = SimulatedHost::new();
    simulated.machine.write("/dev/vdb1", "").unwrap();
    simulated.machine.write("/dev/vdc1", "").unwrap();
    let of = |device: &str| valid("mount", POINT, &[("device", device), ("type", "ext4")]);
    simulated.makes(&of("/dev/vdb1"));
    simulated.calls();
    simulated.makes(&of("/dev/vdc1"));
    let calls = ["umount /srv/data", "mount -t ext4 -o defaults /dev/vdc1 /srv/data"];
    assert_eq!(simulated.calls(), calls);
    assert_eq!(simulated.undoes("mount", POINT), "mount -o defaults /dev/vdb1 /srv/data");
    assert!(simulated.text("/proc/self/mountinfo").contains("ext4 /dev/vdb1"));
}

/// A device has several names below /dev.
#[test]
fn names_of_one_device_are_equal() {
    let simulated = SimulatedHost::new();
    simulated.machine.write("/dev/vdb1", "").unwrap();
    simulated.machine.make_directories("/dev/disk/by-uuid").unwrap();
    simulated.machine.symlink("../../vdb1", "/dev/disk/by-uuid/ab-12").unwrap();
    let line = "30 22 8:17 / /srv/data rw - ext4 /dev/vdb1 rw\n";
    simulated.machine.write("/proc/self/mountinfo", line).unwrap();
    for device in ["/dev/vdb1", "UUID=ab-12", "/dev/disk/by-uuid/ab-12"] {
        let mount = valid("mount", POINT, &[("device", device)]);
        simulated.hold(&mount);
        assert_eq!(simulated.calls(), [""; 0], "{device}");
    }
    simulated.machine.write("/dev/vdc1", "").unwrap();
    let other = valid("mount", POINT, &[("device", "/dev/vdc1")]);
    assert!(matches!(simulated.check(&other), CheckResult::Differs(_)));
}

#[test]
fn a_bind_mount_shows_its_source() {
    let simulated = SimulatedHost::new();
    let bind = valid("mount", POINT, &[("device", "/srv/source"), ("options", "bind,ro")]);
    simulated.makes(&bind);
    assert_eq!(simulated.calls(), ["mount -o bind,ro /srv/source /srv/data"]);
    assert!(simulated.text("/etc/fstab").contains("/srv/source /srv/data none bind,ro 0 0\n"));
    let table = simulated.text("/proc/self/mountinfo");
    simulated.machine.write("/proc/self/mountinfo", table.replace(" ro ", " rw ")).unwrap();
    simulated.makes(&bind);
    assert_eq!(simulated.calls(), ["mount -o remount,bind,rw,suid,dev,exec,ro /srv/data"]);
    let table = simulated.text("/proc/self/mountinfo");
    simulated
        .machine
        .write("/proc/self/mountinfo", table.replace("/srv/source", "/srv/other"))
        .unwrap();
    simulated.makes(&bind);
    assert_eq!(simulated.calls(), ["umount /srv/data", "mount -o bind,ro /srv/source /srv/data"]);
    let needs = bind.footprint().requires;
    for path in [POINT, "/srv/source"] {
        assert!(needs.iter().any(|need| need.token == HostObject::Path(path.into())), "{path}");
    }
    let unmounted = valid("mount", POINT, &[("state", "unmounted")]);
    simulated.makes(&unmounted);
    assert!(
        simulated.text("/etc/fstab").contains("/srv/source"),
        "fstab is not managed without a device"
    );
    assert_eq!(simulated.undoes("mount", POINT), "mount -o ro,bind /srv/source /srv/data");
}

#[test]
fn states_choose_the_halves() {
    let simulated = SimulatedHost::new();
    let present = valid("mount", POINT, &[("device", "tmpfs"), ("state", "present")]);
    simulated.makes(&present);
    assert_eq!(simulated.calls(), [""; 0]);
    assert!(present.footprint().provides.is_empty(), "nothing is mounted");
    simulated.hold(&tmpfs("ro"));
    let given = [("device", "tmpfs"), ("type", "tmpfs"), ("options", "ro"), ("state", "unmounted")];
    simulated.calls();
    simulated.makes(&valid("mount", POINT, &given));
    assert_eq!(simulated.calls(), ["umount /srv/data"]);
    assert!(simulated.text("/etc/fstab").contains("tmpfs /srv/data tmpfs ro 0 0"));
}

#[test]
fn a_refresh_remounts() {
    let simulated = SimulatedHost::new();
    let mount = tmpfs("ro");
    simulated.makes(&mount);
    simulated.calls();
    let ask = CheckRequest { refresh: true, ..CheckRequest::default() };
    let CheckResult::Differs(change) = simulated.check_with(&mount, ask) else {
        panic!("no reaction")
    };
    assert!(matches!(simulated.apply(&mount, change), Outcome::Changed(_)));
    assert_eq!(simulated.calls(), ["mount -o remount,rw,suid,dev,exec,ro /srv/data"]);
}

#[test]
fn mistakes_on_the_host_have_clear_messages() {
    let simulated = SimulatedHost::new();
    let fails = |name: &str| simulated.fails(&valid("mount", name, &[("device", "tmpfs")])).0;
    assert!(fails("/srv/missing").contains("the mount point does not exist"));
    simulated.machine.symlink("/srv/data", "/srv/link").unwrap();
    // The kernel's table would never have this path: each run would mount once more.
    assert!(fails("/srv/link").contains("a symbolic link"));
    let missing = valid("mount", POINT, &[("device", "/dev/missing"), ("type", "ext4")]);
    let (what, _) = simulated.fails(&missing);
    assert!(what.contains("special device does not exist"), "{what}");
    simulated.machine.write("/etc/fstab", "a /srv/data b c\nd /srv/data e f\n").unwrap();
    assert!(simulated.fails(&tmpfs("ro")).0.contains("expected one row"));
    simulated.machine.remove("/proc/self/mountinfo").unwrap();
    simulated.machine.write("/etc/fstab", "").unwrap();
    let unmounted = valid("mount", POINT, &[("state", "unmounted")]);
    assert!(simulated.fails(&unmounted).0.contains("mountinfo"));
}

#[test]
fn a_mount_is_watched_and_ordered() {
    let footprint = tmpfs("ro").footprint();
    assert!(footprint.provides.contains(&HostObject::Mount(POINT.into())));
    let unit = WatchSource::Unit { bus: Bus::System, unit: "srv-data.mount".into() };
    assert!(footprint.watch.contains(&unit));
    assert!(footprint.watch.contains(&WatchSource::Polled("/proc/self/mountinfo".into())));
    assert!(
        footprint.watch.contains(&WatchSource::Path { path: "/etc/fstab".into(), below: false })
    );
}

/// A user who owns a directory on the way can lead mount(8) and umount(8) to another place.
#[test]
fn a_way_that_another_user_can_change_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let simulated = SimulatedHost::new();
    let mount = tmpfs("ro");
    simulated.machine.chown("/srv", 1000, 1000).unwrap();
    let refused = |resource: &Arc<dyn Resource>| {
        let (what, touched) = simulated.fails(resource);
        assert!(what.contains("another user could change /srv") && !touched, "{what}");
        assert_eq!(simulated.calls(), [""; 0]);
    };
    refused(&mount);
    assert_eq!(simulated.text("/etc/fstab"), FSTAB, "no row of a mount that failed");
    simulated.machine.chown("/srv", 0, 0).unwrap();
    simulated.makes(&mount);
    simulated.calls();
    simulated.machine.chown("/srv", 1000, 1000).unwrap();
    refused(&valid("mount", POINT, &[("state", "unmounted")]));
    refused(&tmpfs("noexec"));
}

/// A user who owns the directory of the source could lead a bind mount into a private directory.
#[test]
fn a_bind_source_that_another_user_can_exchange_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let simulated = SimulatedHost::new();
    simulated.machine.make_directories("/home/eve/share").unwrap();
    simulated.machine.chown("/home/eve", 1000, 1000).unwrap();
    let options = [("device", "/home/eve/share"), ("options", "bind")];
    let (what, touched) = simulated.fails(&valid("mount", POINT, &options));
    assert!(what.contains("another user could change /home/eve") && !touched, "{what}");
    assert_eq!(simulated.calls(), [""; 0]);
    assert_eq!(simulated.text("/etc/fstab"), FSTAB, "no row of a mount that failed");
}

/// A row of a file system that cannot be mounted would stop the next boot.
#[test]
fn a_mount_that_fails_leaves_no_row() {
    let simulated = SimulatedHost::new();
    let missing = valid("mount", POINT, &[("device", "/dev/missing"), ("type", "ext4")]);
    simulated.fails(&missing);
    assert_eq!(simulated.text("/etc/fstab"), FSTAB);
}

/// A row is written for no mount point that a link leads to: the next boot would follow it.
#[test]
fn a_row_leads_through_no_link() {
    let simulated = SimulatedHost::new();
    simulated.machine.symlink("/srv/data", "/srv/link").unwrap();
    for state in ["present", "unmounted"] {
        let given = [("device", "tmpfs"), ("type", "tmpfs"), ("state", state)];
        let (what, touched) = simulated.fails(&valid("mount", "/srv/link", &given));
        assert!(what.contains("a symbolic link") && !touched, "{state}: {what}");
    }
    assert_eq!(simulated.text("/etc/fstab"), FSTAB);
}
