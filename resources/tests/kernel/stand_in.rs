//! The stand-in of a kernel on the simulated host: its tables, and the commands that change them.

use steadfast_resources::host::simulated::{Machine, Running, here};
use steadfast_resources::host::{Captured, Command, End, Finished};

/// The mounts of a fresh host.
const MOUNTS: &str = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n";

/// The first page of swap space: zeros, and the signature at the end.
pub(crate) const SWAP_SPACE: &str = match std::str::from_utf8(&PAGE) {
    Ok(text) => text,
    Err(_) => "",
};

const PAGE: [u8; 4096] = {
    let (mut page, signature) = ([0; 4096], *b"SWAPSPACE2");
    let mut at = 0;
    while at < signature.len() {
        page[4096 - signature.len() + at] = signature[at];
        at += 1;
    }
    page
};

/// The titles of the table of swap space.
pub(crate) const SWAPS: &str = "Filename\tType\tSize\tUsed\tPriority\n";

/// The foreign lines of a host's fstab.
pub(crate) const FSTAB: &str = "# foreign\n\nUUID=1 / ext4  errors=remount-ro 0 1\nbroken";

/// Makes the tables of a kernel, an fstab of foreign lines, and the folders of the kinds.
pub(crate) fn prepare(machine: &Machine) {
    for folder in [
        "/etc/cron.d",
        "/etc/sysctl.d",
        "/etc/modprobe.d",
        "/etc/modules-load.d",
        "/proc/self",
        "/proc/sys/net/ipv4",
        "/proc/sys/kernel",
        "/lib/modules/6.1",
        "/srv/data",
        "/srv/source",
        "/dev",
    ] {
        machine.make_directories(folder).unwrap();
    }
    for (path, text) in [
        ("/etc/fstab", FSTAB),
        ("/proc/self/mountinfo", MOUNTS),
        ("/proc/swaps", SWAPS),
        ("/proc/modules", "ext4 1 1 - Live 0x0\n"),
        ("/proc/sys/kernel/osrelease", "6.1\n"),
        ("/proc/sys/net/ipv4/ip_forward", "0\n"),
        ("/proc/sys/net/ipv4/tcp_mem", "1\t2\t3\n"),
        ("/lib/modules/6.1/modules.builtin", "kernel/fs/binfmt-misc.ko\n"),
    ] {
        machine.write(path, text).unwrap();
    }
}

/// Runs a command as another process of the simulated host.
pub(crate) fn run_command(command: &Command) -> Running {
    let argv: Vec<&str> = command.argv.iter().map(String::as_str).collect();
    let result = here().unwrap().foreign(|machine| run(machine, &argv));
    Box::pin(std::future::ready(Ok(finished(result))))
}

fn finished(result: Result<(), &'static str>) -> Finished {
    let mut stderr = Captured::default();
    stderr.push(result.err().unwrap_or_default().as_bytes());
    let end = End::Exited(i32::from(result.is_err()));
    Finished { end, stdout: Captured::default(), stderr, held: false }
}

fn run(machine: &Machine, argv: &[&str]) -> Result<(), &'static str> {
    match argv {
        ["mount", "-o", options, point] => {
            remount(machine, options, point);
            Ok(())
        }
        ["mount", "-t", kind, "-o", options, device, point] => {
            mount(machine, (kind, options), device, point)
        }
        ["mount", "-o", options, device, point] => mount(machine, ("ext4", options), device, point),
        ["umount", point] => {
            let table = read(machine, "/proc/self/mountinfo");
            let lines: Vec<&str> = table.lines().collect();
            let own = lines.iter().rposition(|line| line.split(' ').nth(4) == Some(point));
            let own = own.ok_or("umount: not mounted.")?;
            let kept = lines.iter().enumerate().filter(|(at, _)| *at != own);
            let text: String = kept.flat_map(|(_, line)| [line, "\n"]).collect();
            machine.write("/proc/self/mountinfo", text).unwrap();
            Ok(())
        }
        ["swapon", rest @ .., device] => {
            let priority = match rest {
                ["-p", priority, ..] => priority,
                _ => "-2",
            };
            let is_swap = machine.content(device).is_some_and(|it| it.ends_with(b"SWAPSPACE2"));
            let text = read(machine, "/proc/swaps") + &format!("{device} file 1 0 {priority}\n");
            is_swap.then(|| machine.write("/proc/swaps", text).unwrap()).ok_or("swapon: no header")
        }
        ["swapoff", device] => {
            let table = read(machine, "/proc/swaps");
            let kept = table.lines().filter(|line| !line.starts_with(device));
            let text: String = kept.flat_map(|line| [line, "\n"]).collect();
            machine.write("/proc/swaps", text).unwrap();
            Ok(())
        }
        ["rm", "-f", path] => machine.remove(path).map_err(|_errno| "rm"),
        ["fallocate", "-l", _, path] => {
            machine.write(path, "zeros").map_err(|_errno| "no space left")?;
            machine.chmod(path, 0o600).map_err(|_errno| "chmod")
        }
        ["mkswap", path] => machine.write(path, SWAP_SPACE).map_err(|_errno| "mkswap"),
        ["mv", "-n", "-T", from, to] => machine.rename_over(from, to).map_err(|_errno| "mv"),
        ["modprobe", "-r", name] => {
            let table = read(machine, "/proc/modules");
            let kept = table.lines().filter(|line| line.split(' ').next() != Some(name));
            let text: String = kept.flat_map(|line| [line, "\n"]).collect();
            machine.write("/proc/modules", text).unwrap();
            Ok(())
        }
        ["modprobe", "missing"] => Err("modprobe: FATAL: Module missing not found."),
        ["modprobe", name] => {
            let text = read(machine, "/proc/modules") + &format!("{name} 1 0 - Live 0x0\n");
            machine.write("/proc/modules", text).unwrap();
            Ok(())
        }
        _ => Err("the simulated host does not know this command"),
    }
}

fn read(machine: &Machine, path: &str) -> String {
    String::from_utf8(machine.content(path).unwrap_or_default()).unwrap()
}

fn mount(
    machine: &Machine,
    (kind, options): (&str, &str),
    device: &str,
    point: &str,
) -> Result<(), &'static str> {
    let is_bind = options.split(',').any(|option| option == "bind");
    if device.starts_with("/dev/") && machine.content(device).is_none() {
        return Err("mount: special device does not exist.");
    }
    let (number, root, source) =
        if is_bind { ("8:1", device, "/dev/sda1") } else { ("0:40", "/", device) };
    let flags = flags(options);
    let line = format!("30 22 {number} {root} {point} {flags} - {kind} {source} rw\n");
    let text = read(machine, "/proc/self/mountinfo") + &line;
    machine.write("/proc/self/mountinfo", text).unwrap();
    Ok(())
}

fn remount(machine: &Machine, options: &str, point: &str) {
    let text = read(machine, "/proc/self/mountinfo");
    let lines = text.lines().map(|line| {
        let mut words: Vec<&str> = line.split(' ').collect();
        let flags = flags(options);
        if words[4] == point {
            words[5] = &flags;
        }
        words.join(" ") + "\n"
    });
    machine.write("/proc/self/mountinfo", lines.collect::<String>()).unwrap();
}

/// Returns the flags of a mount as the kernel shows them.
fn flags(options: &str) -> String {
    let mut flags = vec!["rw"];
    for option in options.split(',') {
        match option {
            "ro" => flags[0] = "ro",
            "rw" => flags[0] = "rw",
            "noexec" | "nosuid" | "nodev" | "noatime" => flags.push(option),
            _ => {}
        }
    }
    flags.join(",")
}
