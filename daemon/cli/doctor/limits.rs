//! The check of kernel limits: watches, open files, threads; those of the running daemon if there is one.

use super::{Finding, number};
use rustix::process::{Resource, getrlimit};
use std::fs;

/// The number of threads below which there is a problem, and a warning.
const THREADS: (u64, u64) = (128, 512);
/// The number of open files below which there is a problem, and a warning.
const FILES: (u64, u64) = (256, 1024);

/// The limits of inotify: name, file, values below which there is a problem and a warning, and purpose.
const INOTIFY: [(&str, &str, u64, u64, &str); 3] = [
    ("inotify watches", "max_user_watches", 1024, 65_536, "one per watched directory"),
    ("inotify instances", "max_user_instances", 4, 64, "the daemon needs two"),
    (
        "inotify queue",
        "max_queued_events",
        1024,
        16_384,
        "an overflow makes steadfast check every resource",
    ),
];

pub(super) fn look(daemon: Option<i32>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = INOTIFY.iter().map(inotify).collect();
    if let Some(pid) = daemon {
        findings.extend(watches_in_use(pid));
    }
    findings.push(files(daemon));
    findings.push(threads());
    findings
}

fn inotify(limit: &(&'static str, &str, u64, u64, &str)) -> Finding {
    let (name, file, least, enough, purpose) = *limit;
    let advice = || format!("`sysctl -w fs.inotify.{file}={enough}`, permanently in /etc/sysctl.d");
    match number(&format!("/proc/sys/fs/inotify/{file}")) {
        None => Finding::problem(
            name,
            "the kernel does not support inotify",
            "file watching is unavailable; steadfast will poll: `uname -r` names the kernel",
        ),
        Some(found) if found < least => {
            Finding::problem(name, format!("{found} ({purpose})"), advice())
        }
        Some(found) if found < enough => {
            Finding::warning(name, format!("{found} ({purpose})"), advice())
        }
        Some(found) => Finding::ok(name, format!("{found} ({purpose})")),
    }
}

/// Returns the use of watches by the daemon; `None` without permission.
fn watches_in_use(pid: i32) -> Option<Finding> {
    let most = number("/proc/sys/fs/inotify/max_user_watches")?;
    let mut used = 0_u64;
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo")).ok()?.flatten() {
        // A descriptor that was closed meanwhile is skipped.
        let Ok(text) = fs::read_to_string(entry.path()) else { continue };
        used += text.lines().filter(|line| line.starts_with("inotify wd:")).count() as u64;
    }
    let found = format!("{used} of {most} in use by the daemon");
    Some(if used.saturating_mul(10) > most.saturating_mul(8) {
        Finding::warning(
            "watches in use",
            found,
            format!("`sysctl -w fs.inotify.max_user_watches={}`", most.saturating_mul(4)),
        )
    } else {
        Finding::ok("watches in use", found)
    })
}

fn files(daemon: Option<i32>) -> Finding {
    let of_daemon = daemon.and_then(files_of);
    let whose = if of_daemon.is_some() { "the daemon" } else { "this shell" };
    let limit = of_daemon.or_else(|| getrlimit(Resource::Nofile).current);
    let Some(limit) = limit else { return Finding::ok("open files", "no limit") };
    let found = format!("{limit} for {whose}; up to a quarter of them for connections");
    let advice =
        "`systemctl edit steadfast`: LimitNOFILE=65536; commands of the daemon inherit the limit";
    match limit {
        limit if limit < FILES.0 => Finding::problem("open files", found, advice),
        limit if limit < FILES.1 => Finding::warning("open files", found, advice),
        _ => Finding::ok("open files", found),
    }
}

/// Returns the soft limit of open files of another process; `None` if it is unlimited or unreadable.
fn files_of(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn threads() -> Finding {
    let own = getrlimit(Resource::Nproc).current;
    let own = own.filter(|_| !rustix::process::geteuid().is_root());
    let limits = [
        ("kernel.threads-max", number("/proc/sys/kernel/threads-max")),
        ("kernel.pid_max", number("/proc/sys/kernel/pid_max")),
        ("ulimit -u", own),
        ("pids.max of the control group", of_control_group()),
    ];
    let tightest = limits.into_iter().filter_map(|(name, limit)| Some((limit?, name))).min();
    let Some((limit, name)) = tightest else { return Finding::ok("threads", "no limit") };
    let command = match name {
        "ulimit -u" => "`ulimit -u 65536`".to_owned(),
        "pids.max of the control group" => "`systemctl edit steadfast`: TasksMax=4096".to_owned(),
        sysctl => format!("`sysctl -w {sysctl}=32768`"),
    };
    let (found, advice) = (format!("{limit} ({name})"), format!("raise the limit: {command}"));
    match limit {
        limit if limit < THREADS.0 => Finding::problem("threads", found, advice),
        limit if limit < THREADS.1 => Finding::warning("threads", found, advice),
        _ => Finding::ok("threads", found),
    }
}

/// Returns the thread limit of this process's control group, in the unified hierarchy.
fn of_control_group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    number(&format!("/sys/fs/cgroup{path}/pids.max"))
}
