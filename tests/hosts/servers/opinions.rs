//! One resource of each kind that Ansible and Puppet read back.

use super::boot;

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn other_tools_agree_about_each_kind() {
    let host = boot("/etc/steadfast/servers/opinions.yaml", &["cron", "netbase"]);
    host.start_whole();
    // A line of hosts with a blank, and two ways to keep a job of cron.
    host.judge_but_for("opinions", 3);
    host.wait_whole();
}
