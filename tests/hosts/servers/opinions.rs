//! One resource of each kind that Ansible and Puppet read back.

use super::boot;

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn other_tools_agree_about_each_kind() {
    let host = boot("/etc/steadfast/servers/opinions.yaml", &["cron", "netbase"]);
    host.start_whole();
    host.judge("opinions");
    host.wait_whole();
}
