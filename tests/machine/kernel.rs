//! The kinds `kmod`, `swap`, `sysctl` and `mount` with a kernel of their own: applied, broken by hand, repaired, kept
//! across a restart of the machine, and removed.

use crate::machine::Machine;
use std::time::{Duration, Instant};

/// The longest time to a repair: a poll of 30 s, and time for an emulated machine.
const POLL: Duration = Duration::from_mins(1);

const DECLARED: &str = r"
graph: machine
resources:
  file:
    - name: /srv/data/
    - name: /srv/data/held
      content: on the disk
  kmod:
    - name: nbd
      options: [nbds_max=3]
      meta: {on_remove: delete}
    - name: pcspkr
      blacklist: true
      meta: {on_remove: delete}
  sysctl:
    - name: vm.swappiness
      value: 7
      meta: {on_remove: delete}
    - name: kernel.panic_on_oops
      value: 1
      meta: {on_remove: delete}
    - name: fs.inotify.max_user_watches
      value: 77777
      persist: false
  swap:
    - name: /swapfile
      size: 8M
      priority: 5
      meta: {on_remove: delete}
  mount:
    - name: /srv/data
      device: LABEL=data
      type: ext4
      options: [noatime]
      passno: 2
      meta: {on_remove: delete}
";

const LEFT: &str = "
graph: machine
resources:
  file:
    - name: /srv/data/
";

/// All that the graph declares, as other programs see it.
const LOOK: &str = "
    set -eu
    test -d /sys/module/nbd; echo loaded
    cat /sys/module/nbd/parameters/nbds_max
    grep -h . /etc/modprobe.d/*steadfast*.conf /etc/modules-load.d/*steadfast*.conf | grep -v '^#' | sort
    cat /proc/sys/vm/swappiness /proc/sys/kernel/panic_on_oops /proc/sys/fs/inotify/max_user_watches
    grep -v '^#' /etc/sysctl.d/60-steadfast.conf | sort
    awk 'NR > 1 { print $1, $2, $5 }' /proc/swaps
    findmnt --noheadings --output SOURCE,FSTYPE /srv/data
    findmnt --noheadings --output OPTIONS /srv/data | grep -o noatime
    cat /srv/data/held
    grep -E ' /srv/data |/swapfile' /etc/fstab | sort
";

#[test]
#[ignore = "boots a virtual machine: tests/run --slow kernel"]
fn the_kernel_of_a_machine_is_held_across_a_restart() {
    let mut machine = Machine::boot();
    machine.shell("mkfs.ext4 -q -L data /dev/vdb; udevadm settle");
    machine.write("/etc/steadfast/graph.yaml", DECLARED);
    machine.shell("systemctl enable --now steadfast");
    let applied = "steadfast wait --timeout 120 >/dev/null && echo applied";
    machine.until(applied, "applied\n");
    let declared = machine.shell(LOOK);
    for part in [
        "loaded\n3\n",
        "\n7\n1\n77777\n",
        "/swapfile file 5\n",
        "/dev/vdb ext4\n",
        "noatime\non the disk",
        "LABEL=data /srv/data ext4 noatime 0 2",
    ] {
        assert!(declared.contains(part), "{part:?} in:\n{declared}");
    }
    assert_eq!(machine.run("steadfast plan --detailed-exitcode").code, 0);

    for damage in [
        "rmmod nbd",
        "echo 60 >/proc/sys/vm/swappiness",
        "echo 0 >/proc/sys/kernel/panic_on_oops",
        "echo 8192 >/proc/sys/fs/inotify/max_user_watches",
        "sed -i /swappiness/d /etc/sysctl.d/60-steadfast.conf",
        "swapoff /swapfile",
        "umount /srv/data",
        "mount -o remount,relatime /srv/data",
        "sed -i /swapfile/d /etc/fstab",
        r"sed -i '\|/srv/data|d' /etc/fstab",
        "rm /etc/modprobe.d/*steadfast*",
        "rm /etc/modules-load.d/*steadfast*",
    ] {
        machine.shell(damage);
        let begun = Instant::now();
        machine.until(LOOK, &declared);
        assert!(begun.elapsed() < POLL, "{damage}: {:?}", begun.elapsed());
    }

    machine.reboot();
    machine.until(applied, "applied\n");
    machine.until(LOOK, &declared);
    let before = "journalctl -u steadfast -b --no-pager | grep -c ' changed ' || true";
    let changes = machine.shell(before);
    // Only `fs.inotify.max_user_watches` is not persistent.
    assert_eq!(changes, "1\n", "{}", machine.shell("journalctl -u steadfast -b --no-pager"));

    machine.write("/etc/steadfast/graph.yaml", LEFT);
    machine.shell("systemctl reload steadfast");
    machine.until(
        "set -e; ! grep -q ^nbd /proc/modules; ! findmnt /srv/data >/dev/null; wc -l </proc/swaps; \
         ! test -e /swapfile; ! grep -E 'data|swapfile' /etc/fstab; ls /etc/modprobe.d | grep -c steadfast || true",
        "1\n0\n",
    );
}

/// The resources of [`DECLARED`] that a removal or an undo reverts: name, and the script that prints the object.
const OBJECTS: &[(&str, &str)] = &[
    (
        "kmod[nbd]",
        "grep -c '^nbd ' /proc/modules; ls /etc/modprobe.d /etc/modules-load.d | grep nbd",
    ),
    ("kmod[pcspkr]", "cat /etc/modprobe.d/steadfast-pcspkr.conf 2>/dev/null | tail -n +2"),
    ("swap[/swapfile]", "tail -n +2 /proc/swaps | wc -l; ls /swapfile; grep swapfile /etc/fstab"),
    ("mount[/srv/data]", "findmnt -no FSTYPE /srv/data; grep /srv/data /etc/fstab"),
    (
        "sysctl[vm.swappiness]",
        "cat /proc/sys/vm/swappiness; grep swappiness /etc/sysctl.d/60-steadfast.conf",
    ),
];

fn looks(machine: &mut Machine) -> Vec<String> {
    OBJECTS
        .iter()
        .map(|(_, script)| machine.run(&format!("({script}) 2>/dev/null")).stdout)
        .collect()
}

/// The laws H2, H3, H5, H7 and H8 of tests/hosts/laws, and those of `inspect`, for the kinds that need a kernel.
#[test]
#[ignore = "boots a virtual machine: tests/run --slow kernel"]
fn the_laws_hold_for_the_kinds_of_the_kernel() {
    const GRAPH: &str = "/etc/steadfast/graph.yaml";
    let mut machine = Machine::boot();
    machine.shell("mkfs.ext4 -q -L data /dev/vdb; udevadm settle");
    machine.write(GRAPH, DECLARED);
    let before = looks(&mut machine);
    // H8: without root each change is a failure, and nothing changes.
    let answer = machine.run(&format!(
        "mkdir -p /run/state; chown nobody /run/state; chmod a+rX /etc/steadfast
         exec setpriv --reuid nobody --clear-groups steadfast apply --state-dir /run/state {GRAPH}"
    ));
    let said = answer.stdout + &answer.stderr;
    assert_eq!(answer.code, 1, "{said}");
    // H3: the plan names each change, and makes none.
    let planned = machine.run(&format!("steadfast plan --detailed-exitcode {GRAPH}"));
    assert_eq!(planned.code, 2, "{planned:?}");
    assert_eq!(looks(&mut machine), before);
    for (identity, _) in OBJECTS {
        assert!(planned.stdout.contains(identity), "{identity}: {planned:?}");
        let is_told = |line: &str| {
            let is_failed = line.starts_with("failed ") && line.contains("(hint: ");
            is_failed || line.starts_with("waiting ")
        };
        let is_own = |line: &str| line.contains(identity) && is_told(line);
        assert!(said.lines().any(is_own), "H8: {identity}: {said}");
    }
    // H5: an apply that is killed converges at the next run.
    for seconds in ["0.3", "0.8", "1.5", "3"] {
        machine.run(&format!(
            "steadfast apply --yes {GRAPH} >/dev/null 2>&1 & sleep {seconds}; kill -9 $!; wait || true"
        ));
    }
    let apply = format!("steadfast apply --yes --detailed-exitcode {GRAPH}");
    let done = machine.run(&apply);
    assert!(matches!(done.code, 0 | 2), "{done:?}");
    let declared = looks(&mut machine);
    let changed = declared.iter().zip(&before).filter(|(now, then)| now != then).count();
    assert_eq!(changed, OBJECTS.len(), "{declared:?}\n{before:?}");
    // H2: nothing is left to do.
    let again = machine.run(&apply);
    assert_eq!(again.code, 0, "{again:?}");
    // The plan of a printed object is empty.
    let mut printed = Vec::new();
    for (identity, _) in OBJECTS {
        let (kind, name) = identity.trim_end_matches(']').split_once('[').expect("an identity");
        let text = machine.shell(&format!("steadfast inspect {kind} {name}"));
        machine.write("/run/one.yaml", &text);
        let plan = "steadfast plan --detailed-exitcode --state-dir /run/inspected /run/one.yaml";
        let plan = machine.run(plan);
        assert_eq!(plan.code, 0, "{text}\n{plan:?}");
        printed.push((kind, name, text));
    }
    // H6: the objects go with the graph; the value of a parameter stays until the next boot.
    machine.write(GRAPH, LEFT);
    let left = machine.run(&apply);
    assert!(matches!(left.code, 0 | 2), "{left:?}");
    let after = looks(&mut machine);
    let is_parameter = |identity: &str| identity.starts_with("sysctl");
    for (((identity, _), after), before) in OBJECTS.iter().zip(&after).zip(&before) {
        assert!(is_parameter(identity) || after == before, "{identity}: {after}\n{left:?}");
    }
    machine.shell("echo 60 >/proc/sys/vm/swappiness");
    // An apply of the printed objects makes them again, and they print the same text.
    for (kind, name, text) in &printed {
        machine.write("/run/one.yaml", text);
        let made = machine.run("steadfast apply --yes --state-dir /run/inspected /run/one.yaml");
        assert_eq!(made.code, 0, "{text}\n{made:?}");
        assert_eq!(&machine.shell(&format!("steadfast inspect {kind} {name}")), text);
        // H7: an undo restores the state before.
        let undone =
            machine.run(&format!("steadfast undo --state-dir /run/inspected '{kind}[{name}]'"));
        assert_eq!(undone.code, 0, "{kind}[{name}]: {undone:?}");
    }
    let undone = looks(&mut machine);
    for (((identity, _), undone), before) in OBJECTS.iter().zip(&undone).zip(&before) {
        assert_eq!(undone, before, "H7: {identity}");
    }
}
