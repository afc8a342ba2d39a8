//! A systemd scope for commands that must outlive the unit of this process.
//!
//! systemd kills the remaining processes of a service after the end of its main process, and a killed package
//! manager leaves packages half configured. So package commands run in a scope beside the service.
//! `systemd-run` moves itself into the scope and then executes the command, so a kill before that changes
//! nothing.

use crate::host::wall;
use std::sync::OnceLock;

static IN_UNIT: OnceLock<bool> = OnceLock::new();

/// Wraps a command so that the end of this process's unit does not end it; returns the command unchanged
/// outside of a unit.
pub(super) fn apart(argv: Vec<String>) -> Vec<String> {
    #[cfg(feature = "simulated-host")]
    if super::simulated::is_here() {
        return argv;
    }
    if !*IN_UNIT.get_or_init(is_in_unit) {
        return argv;
    }
    let name = format!("--unit=steadfast-packages-{}", wall().as_nanos());
    let description = format!("--description={} for steadfast", argv[0]);
    let fixed = [
        "systemd-run",
        "--scope",
        "--quiet",
        "--collect",
        &name,
        &description,
        // A shutdown of the host waits for the command instead of ending it.
        "--property=KillSignal=SIGCONT",
        "--property=TimeoutStopSec=15min",
        "--property=After=basic.target",
        "--",
    ];
    fixed.iter().map(ToString::to_string).chain(argv).collect()
}

fn is_in_unit() -> bool {
    // Other users than root can neither make a scope nor change packages; apt reports that best.
    rustix::process::geteuid().is_root()
        && std::path::Path::new("/run/systemd/system").is_dir()
        && std::fs::read_to_string("/proc/self/cgroup").is_ok_and(|text| names_unit(&text))
}

/// Returns true if the cgroup of systemd's own hierarchy names a unit that is visible on this host.
fn names_unit(cgroups: &str) -> bool {
    cgroups
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            ["", "name=systemd"].contains(&controllers).then_some(path)
        })
        .filter(|path| !path.starts_with("/.."))
        .flat_map(|path| path.split('/'))
        .any(|part| matches!(part.rsplit_once('.'), Some((_, "service" | "scope"))))
}

#[cfg(test)]
mod tests {
    use super::names_unit;

    #[test]
    fn the_unit_of_a_process_is_found() {
        for (text, is_in_unit) in [
            ("0::/system.slice/steadfast.service\n", true),
            ("12:cpu:/\n1:name=systemd:/system.slice/steadfast.service\n0::/\n", true),
            ("0::/user.slice/user-0.slice/session-3.scope\n", true),
            ("0::/system.slice/steadfast.service/worker\n", true),
            ("0::/\n", false),
            ("0::/init.slice\n", false),
            ("4:memory:/system.slice/docker.service\n0::/\n", false),
            ("0::/../../user.slice/session-3.scope\n", false),
            ("", false),
            ("nonsense\n", false),
        ] {
            assert_eq!(names_unit(text), is_in_unit, "{text}");
        }
    }
}
