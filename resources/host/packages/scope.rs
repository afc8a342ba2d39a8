//! A unit of its own for what must outlive the unit that this process is in.
//!
//! systemd kills what is left of a service when its main process is gone, and a package manager that is killed leaves
//! packages half configured. So it runs in a scope beside the service. `systemd-run` puts itself there and then becomes the
//! command: what is killed before that has changed nothing.

use crate::host::wall;
use std::sync::OnceLock;

static IN_UNIT: OnceLock<bool> = OnceLock::new();

/// The command that runs this one where the end of our unit does not reach it; itself where we are in none.
pub(super) fn apart(argv: Vec<String>) -> Vec<String> {
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
        // Where the host is shut down it is waited for, and not told to end.
        "--property=KillSignal=SIGCONT",
        "--property=TimeoutStopSec=15min",
        "--property=After=basic.target",
        "--",
    ];
    fixed.iter().map(ToString::to_string).chain(argv).collect()
}

fn is_in_unit() -> bool {
    // Others than root may neither make a scope nor change packages: apt says so best.
    rustix::process::geteuid().is_root()
        && std::path::Path::new("/run/systemd/system").is_dir()
        && std::fs::read_to_string("/proc/self/cgroup").is_ok_and(|text| names_unit(&text))
}

/// Only systemd's own hierarchy counts, and nothing outside of what this host can see.
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
