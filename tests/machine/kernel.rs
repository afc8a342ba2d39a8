//! The kinds `kmod`, `swap`, `sysctl` and `mount` with a kernel of their own: applied, broken by hand, repaired, kept
//! across a restart of the machine, and removed.

use crate::machine::Machine;

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
        "rm /etc/modprobe.d/*steadfast*",
    ] {
        machine.shell(damage);
        machine.until(LOOK, &declared);
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
