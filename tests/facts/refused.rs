//! Wrong values: the fact is absent, and a problem names it.

use crate::hosts::{FakeHost, text_of};

fn problems(host: &FakeHost) -> Vec<String> {
    host.collect().problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_wrong_host_name_is_absent() {
    let host = FakeHost::new().with("/proc/sys/kernel/hostname", "web; reboot\n");
    assert_eq!(text_of(&host.collect(), "hostname"), "absent");
    let expected = "fact hostname: the value \"web; reboot\" does not match";
    assert!(problems(&host).iter().any(|it| it.starts_with(expected)), "{:?}", problems(&host));
}

#[test]
fn cloud_data_is_checked() {
    let data = r#"{"v1": {"cloud_name": "$(id)", "instance_id": 7, "region": "eu\n1"}}"#;
    let host = FakeHost::new().with("/run/cloud-init/instance-data.json", data);
    assert_eq!(text_of(&host.collect(), "cloud"), "absent");
    assert_eq!(problems(&host).len(), 2, "{:?}", problems(&host));
}

#[test]
fn wrong_local_facts_are_reported() {
    let host = FakeHost::new()
        .with("/etc/steadfast/facts.d/a.yaml", "1")
        .with("/etc/steadfast/facts.d/a.json", "2")
        .with("/etc/steadfast/facts.d/b-c.yaml", "1")
        .with("/etc/steadfast/facts.d/d.yaml", "[")
        .with("/etc/steadfast/facts.d/e.yaml", "");
    assert_eq!(text_of(&host.collect(), "local"), "{\"a\":2}");
    let problems = problems(&host);
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(problems[0].contains("a.json and a.yaml both exist"), "{problems:?}");
    assert!(problems[3].contains("found null"), "{problems:?}");
}

/// All local facts together have a bounded number of values.
#[test]
fn too_many_local_values_are_reported() {
    let list = format!("[{}]", vec!["1"; 60_000].join(","));
    let host = FakeHost::new()
        .with("/etc/steadfast/facts.d/a.yaml", &list)
        .with("/etc/steadfast/facts.d/b.json", &list)
        .with("/etc/steadfast/facts.d/c.yaml", "1");
    let expected = "fact local.b: more than 100000 values up to line 1";
    assert!(problems(&host)[0].starts_with(expected), "{:?}", problems(&host));
    assert_eq!(host.collect().values.at_path("local.c"), Some(&1.into()));
}

/// S-11: a file that another user can change gives no fact to root.
#[test]
fn s_11_local_facts_of_other_users_are_not_used() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let host = FakeHost::new().with("/etc/steadfast/facts.d/rack.yaml", "row: 3\n");
    let folder = host.path("/etc/steadfast/facts.d");
    std::os::unix::fs::chown(folder.join("rack.yaml"), Some(1000), None).unwrap();
    assert_eq!(text_of(&host.collect(), "local"), "{}");
    let problems = problems(&host);
    assert!(problems[0].starts_with("fact local.rack: another user could change"), "{problems:?}");
}

/// A pipe in the place of a file does not block the collection.
#[test]
fn a_pipe_does_not_block() {
    let host = FakeHost::new();
    std::fs::create_dir_all(host.path("/etc")).unwrap();
    let pipe = host.path("/etc/os-release");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(text_of(&host.collect(), "os.id"), "linux");
}
