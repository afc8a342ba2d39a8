//! The kind `swap`.

use crate::stand_in::{FSTAB, SWAP_SPACE, SWAPS};
use crate::support::{SimulatedHost, rejected, valid};
use steadfast_resources::{HostObject, Outcome, SentValue, Value};

#[test]
fn wrong_fields_are_rejected() {
    for (name, given, field) in [
        ("swapfile", &[][..], None),
        ("/", &[], None),
        ("UUID=", &[], None),
        ("/a/../b", &[], None),
        ("/s", &[("state", "gone")], Some("state")),
        ("/s", &[("state", "off"), ("priority", "1")], Some("priority")),
        ("/s", &[("priority", "-1")], Some("priority")),
        ("/s", &[("size", "big")], Some("size")),
        ("/s", &[("size", "1K")], Some("size")),
        ("/dev/vdb1", &[("size", "1G")], Some("size")),
        ("/dev/vdb1", &[("state", "absent")], Some("state")),
        ("/s", &[("options", "pri=1")], Some("options")),
        ("/s", &[("options", "a b")], Some("options")),
    ] {
        rejected("swap", name, given, field);
    }
}

#[test]
fn a_swap_file_is_made_once_and_used() {
    let simulated = SimulatedHost::new();
    let swap = valid("swap", "/srv/swap", &[("size", "2M"), ("priority", "5")]);
    simulated.makes(&swap);
    let made = [
        "rm -f /srv/swap.steadfast-new",
        "fallocate -l 2097152 /srv/swap.steadfast-new",
        "mkswap /srv/swap.steadfast-new",
        "mv -n -T /srv/swap.steadfast-new /srv/swap",
        "swapon -p 5 /srv/swap",
    ];
    assert_eq!(simulated.calls(), made);
    assert_eq!(simulated.text("/etc/fstab"), format!("{FSTAB}\n/srv/swap none swap pri=5 0 0\n"));
    // The stand-in of mkswap writes a short file.
    let number = |number| SentValue::Shown(Value::Int(number));
    assert_eq!(swap.sends(), [("priority", number(5)), ("size", number(4096))]);
    simulated.machine.write("/proc/swaps", SWAPS).unwrap();
    simulated.makes(&swap);
    assert_eq!(simulated.calls(), ["swapon -p 5 /srv/swap"], "the file is never made again");
    assert_eq!(simulated.undoes("swap", "/srv/swap"), "swapoff /srv/swap");
    simulated.makes(&swap);
    simulated.calls();
    simulated.removes("swap", "/srv/swap", &swap);
    assert_eq!(simulated.calls(), ["swapoff /srv/swap"]);
    assert!(simulated.machine.content("/srv/swap").is_none());
    assert_eq!(simulated.text("/etc/fstab"), format!("{FSTAB}\n"));
}

/// A file that is no swap space is not overwritten.
#[test]
fn a_foreign_file_is_never_initialised() {
    let simulated = SimulatedHost::new();
    simulated.machine.write("/srv/swap", "data").unwrap();
    simulated.machine.chmod("/srv/swap", 0o600).unwrap();
    let swap = valid("swap", "/srv/swap", &[("size", "2M")]);
    let (what, _) = simulated.fails(&swap);
    assert!(what.contains("no header"), "{what}");
    assert_eq!(simulated.text("/srv/swap"), "data");
    assert_eq!(simulated.calls(), ["swapon /srv/swap"]);
}

/// A file without the signature of swap space is not removed, whatever its mode.
#[test]
fn a_foreign_file_is_never_removed() {
    let simulated = SimulatedHost::new();
    let absent = valid("swap", "/srv/notes", &[("state", "absent")]);
    for content in ["notes".to_owned(), "a".repeat(70_000)] {
        simulated.machine.write("/srv/notes", content.as_str()).unwrap();
        simulated.machine.chmod("/srv/notes", 0o600).unwrap();
        let (what, touched) = simulated.fails(&absent);
        assert!(what.contains("not a swap file") && !touched, "{what}");
        assert_eq!(simulated.text("/srv/notes"), content);
    }
    simulated.machine.write("/srv/notes", SWAP_SPACE).unwrap();
    simulated.makes(&absent);
    assert!(simulated.machine.content("/srv/notes").is_none());
}

/// Swap space holds the memory of all processes: a file of another user, one that others can read, and a link to a file
/// are refused before anything is written.
#[test]
fn a_file_that_others_can_read_is_no_swap_space() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let simulated = SimulatedHost::new();
    let refused = |expected: &str| {
        let (what, touched) = simulated.fails(&valid("swap", "/srv/swap", &[]));
        assert!(what.contains(expected) && !touched, "{what}");
        assert_eq!(simulated.calls(), [""; 0]);
        assert_eq!(simulated.text("/etc/fstab"), FSTAB);
    };
    simulated.machine.write("/srv/swap", "SWAP").unwrap();
    simulated.machine.chmod("/srv/swap", 0o644).unwrap();
    refused("another user can read or write the file");
    simulated.machine.chmod("/srv/swap", 0o600).unwrap();
    simulated.machine.chown("/srv/swap", 1000, 1000).unwrap();
    refused("another user can read or write the file");
    simulated.machine.remove("/srv/swap").unwrap();
    simulated.machine.write("/root-swap", "SWAP").unwrap();
    simulated.machine.symlink("/root-swap", "/srv/swap").unwrap();
    refused("not a regular file");
}

/// The kernel sets a priority only when swap space is turned on.
#[test]
fn a_changed_priority_needs_a_restart_of_the_swap_space() {
    let simulated = SimulatedHost::new();
    simulated.machine.write("/dev/vdb1", SWAP_SPACE).unwrap();
    let device = |priority| valid("swap", "/dev/vdb1", &[("priority", priority)]);
    simulated.makes(&device("1"));
    simulated.calls();
    simulated.makes(&device("2"));
    assert_eq!(simulated.calls(), ["swapoff /dev/vdb1", "swapon -p 2 /dev/vdb1"]);
    assert_eq!(simulated.undoes("swap", "/dev/vdb1"), "swapon -p 1 /dev/vdb1");
    let any = valid("swap", "/dev/vdb1", &[("persist", "false")]);
    assert_eq!(simulated.hold(&any), Outcome::Unchanged, "the kernel's priority satisfies none");
    let claimed = any.footprint().claims;
    let object = HostObject::Other("swap", "/dev/vdb1".to_owned());
    assert!(claimed.iter().any(|claim| claim.object == object));
    simulated.calls();
    let off = valid("swap", "/dev/vdb1", &[("state", "off")]);
    simulated.makes(&off);
    assert_eq!(simulated.calls(), ["swapoff /dev/vdb1"]);
    assert_eq!(simulated.text("/etc/fstab"), format!("{FSTAB}\n"));
}

/// A user who owns the parent directory could exchange the new file.
#[test]
fn a_parent_that_another_user_can_change_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let simulated = SimulatedHost::new();
    simulated.machine.chown("/srv", 1000, 1000).unwrap();
    let (what, touched) = simulated.fails(&valid("swap", "/srv/swap", &[("size", "2M")]));
    assert!(what.contains("another user could change /srv") && !touched, "{what}");
    assert_eq!(simulated.calls(), [""; 0]);
    assert_eq!(simulated.text("/etc/fstab"), FSTAB, "no row of swap space that is not in use");
}
