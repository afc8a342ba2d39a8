//! The kind `cron`.

use crate::support::{SimulatedHost, build, rejected, valid};
use steadfast_resources::{Claim, HostObject, Outcome};

const JOB: (&str, &str) = ("job", "/bin/true");

#[test]
fn wrong_fields_are_rejected() {
    for (name, given, field) in [
        ("a.b", &[JOB][..], None),
        ("a b", &[JOB], None),
        ("", &[JOB], None),
        ("a", &[], Some("job")),
        ("a", &[("job", " ")], Some("job")),
        ("a", &[("job", "a\nb")], Some("job")),
        ("a", &[JOB, ("minute", "60")], Some("minute")),
        ("a", &[JOB, ("weekday", "someday")], Some("weekday")),
        ("a", &[JOB, ("special", "@often")], Some("special")),
        ("a", &[JOB, ("special", "@daily"), ("hour", "1")], Some("special")),
        ("a", &[JOB, ("user", "a b")], Some("user")),
        ("a", &[JOB, ("env", "A-B=1")], Some("env")),
        ("a", &[JOB, ("env", "A= \"'")], Some("env")),
        ("a", &[JOB, ("file", "a.b")], Some("file")),
        ("a", &[JOB, ("file", "../b")], Some("file")),
        ("a", &[JOB, ("file", "b"), ("env", "A=1")], Some("file")),
        ("a", &[JOB, ("state", "absent")], Some("job")),
        ("a", &[("state", "gone")], Some("state")),
    ] {
        rejected("cron", name, given, field);
    }
    let long = "x".repeat(999);
    rejected("cron", "a", &[("job", &long)], Some("job"));
    assert!(build("cron", "a", &[("job", long.get(1..).unwrap())]).is_ok());
}

#[test]
fn a_job_gets_a_file_that_cron_accepts() {
    let simulated = SimulatedHost::new();
    let given = [JOB, ("minute", "*/5"), ("env", "MAILTO=\nPATH=/bin"), ("user", "root")];
    let job = valid("cron", "backup", &given);
    simulated.makes(&job);
    let path = "/etc/cron.d/backup";
    let text = "# Managed by steadfast: cron[backup]\nMAILTO=\"\"\nPATH=/bin\n*/5 * * * * root /bin/true\n";
    assert_eq!(simulated.text(path), text);
    assert!(text.ends_with('\n'), "cron ignores a last line without a line break");
    simulated.machine.chmod(path, 0o666).unwrap();
    simulated.makes(&job);
    simulated.machine.chown(path, 65534, 65534).unwrap();
    simulated.makes(&job);
    let node = simulated.machine.look(|tree| tree.at(path).cloned()).unwrap();
    assert_eq!((node.mode, node.uid, node.gid), (0o644, 0, 0));
    simulated.machine.write(path, "other").unwrap();
    simulated.makes(&job);
    assert!(job.footprint().claims.contains(&Claim::path(path)));
    simulated.removes("cron", "backup", &job);
    assert!(simulated.machine.content(path).is_none());
    simulated.makes(&job);
    // The directory is made again.
    for object in [path, "/etc/cron.d"] {
        simulated.machine.remove(object).unwrap();
    }
    simulated.makes(&job);
    assert_eq!(simulated.text(path), text);
}

#[test]
fn jobs_share_a_file_with_foreign_lines() {
    let simulated = SimulatedHost::new();
    let foreign = "SHELL=/bin/sh\n* * * * * root true\n";
    simulated.machine.write("/etc/cron.d/jobs", foreign).unwrap();
    let one = valid("cron", "one job", &[JOB, ("file", "jobs"), ("special", "@daily")]);
    let two = valid("cron", "two", &[JOB, ("file", "/etc/cron.d/jobs")]);
    simulated.makes(&one);
    simulated.makes(&two);
    assert_eq!(simulated.hold(&one), Outcome::Unchanged);
    let own =
        "# steadfast: one job\n@daily root /bin/true\n# steadfast: two\n* * * * * root /bin/true\n";
    assert_eq!(simulated.text("/etc/cron.d/jobs"), format!("{foreign}{own}"));
    let is_whole = |claim: &Claim| matches!(claim.object, HostObject::Path(_));
    assert!(!one.footprint().claims.iter().any(is_whole), "the file belongs to nobody");
    simulated.removes("cron", "one job", &one);
    simulated.removes("cron", "two", &two);
    assert_eq!(simulated.text("/etc/cron.d/jobs"), foreign);
}

/// cron ignores a job of an unknown user without a word.
#[test]
fn an_unknown_user_is_a_failure_before_any_change() {
    let simulated = SimulatedHost::new();
    let job = valid("cron", "backup", &[JOB, ("user", "nobody-knows")]);
    let (what, touched) = simulated.fails(&job);
    assert!(what.contains("nobody-knows") && !touched, "{what}");
    assert!(simulated.machine.content("/etc/cron.d/backup").is_none());
    let needs = job.footprint().requires;
    assert!(needs.iter().any(|need| need.token == HostObject::User("nobody-knows".to_owned())));
}

#[test]
fn a_percent_sign_gives_a_warning() {
    let warnings = |job: &str| valid("cron", "a", &[("job", job)]).footprint().warnings.len();
    assert_eq!((warnings("date +%F"), warnings("date +\\%F"), warnings("true")), (1, 0, 0));
}
