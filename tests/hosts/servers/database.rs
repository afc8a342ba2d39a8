//! The database server: its databases and their owners, its backup, and 10 kills of the daemon.

use super::boot;

const PACKAGES: &[&str] = &["postgresql", "sudo"];
const GRAPH: &str = "/etc/steadfast/examples/servers/database.yaml";
const PSQL: &str = "cd /; setpriv --reuid postgres --clear-groups psql -XtAc";

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_database_server_answers_queries() {
    let host = boot(GRAPH, PACKAGES);
    host.start_whole();
    host.judge("database");
    let query = "SELECT d.datname || ' ' || r.rolname FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba ORDER BY 1";
    let owners = host.shell(&format!("{PSQL} \"{query}\""));
    assert!(owners.contains("blog blog\n") && owners.contains("shop shop\n"), "{owners}");
    assert_eq!(host.shell(&format!("{PSQL} 'SHOW max_connections'")), "50\n");
    host.shell("visudo -c; systemctl start backup-databases; zgrep -q 'CREATE DATABASE' /var/backups/postgresql/all-*.gz");
    host.wait_whole();

    // No event tells of a dropped database: the next check finds it.
    host.shell(&format!("{PSQL} 'DROP DATABASE blog'; systemctl restart steadfast"));
    host.until("the database to be back", || {
        host.shell(&format!("{PSQL} \"{query}\"")).contains("blog blog\n")
    });
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_killed_daemon_ends_with_the_same_database_server() {
    let host = boot(GRAPH, PACKAGES);
    host.restart_at_once();
    host.start();
    host.kill_at_random(
        10,
        "systemctl stop postgresql backup-databases.timer; rm -f /etc/sudoers.d/operators
         rm -rf /var/backups/postgresql; echo 'max_connections = 9' >/etc/postgresql/*/main/conf.d/tuning.conf",
    );
    host.wait_whole();
    host.judge("database");
    assert_eq!(host.shell("dpkg --audit"), "");
}
