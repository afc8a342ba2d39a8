//! A public role of Ansible and a public class of Puppet, rewritten as modules (docs/guide/from-ansible.md and
//! from-puppet.md): after the apply, the role and the class themselves find nothing to change.

use super::boot;

/// Returns the excerpts of a page of the guide: the path in the first line of a block, and the other lines.
fn excerpts(page: &str) -> Vec<(String, String)> {
    let path = format!("{}/docs/guide/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a page");
    let blocks = text.split("```").skip(1).step_by(2);
    let excerpt = |block: &str| {
        let (path, rest) = block.split_once('\n')?.1.strip_prefix("# ")?.split_once('\n')?;
        Some((path.to_owned(), rest.to_owned()))
    };
    blocks.filter_map(excerpt).collect()
}

#[test]
fn the_guide_shows_the_files_of_the_role_the_class_and_their_modules() {
    for (page, count) in [("from-ansible.md", 5), ("from-puppet.md", 6)] {
        let all = excerpts(page);
        assert_eq!(all.len(), count, "{page}: {all:?}");
        for (path, lines) in all {
            let file = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
            assert!(text.contains(&lines), "{page}: {path} has no such lines:\n{lines}");
        }
    }
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_role_of_ansible_finds_nothing_to_change_after_its_module() {
    let packages = ["openssh-server", "sudo", "fail2ban", "python3-systemd", "unattended-upgrades"];
    let host = boot("/etc/steadfast/servers/security.yaml", &packages);
    host.start_whole();
    host.judge("security");
    host.wait_whole();
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_class_of_puppet_finds_nothing_to_change_after_its_module() {
    let host = boot(
        "/etc/steadfast/servers/motd.yaml",
        &["openssh-server", "puppet-module-puppetlabs-stdlib"],
    );
    host.start_whole();
    host.install_judges();
    host.shell(
        "DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
           puppet-module-puppetlabs-stdlib >/dev/null",
    );
    let class = |content: &str| {
        let manifest = format!(
            "class {{ 'motd': content => \"{content}\", issue_content => \"Authorised use only.\\n\",
               issue_net_content => \"Authorised use only.\\n\", dynamic_motd => false }}"
        );
        host.write("/root/site.pp", &manifest);
        // 0: nothing to change; 2: changes.
        host.run(&[
            "puppet",
            "apply",
            "--noop",
            "--detailed-exitcodes",
            "--modulepath",
            "/opt/servers/puppet:/usr/share/puppet/modules",
            "/root/site.pp",
        ])
    };
    let said = host.read("/etc/motd").expect("a message");
    assert!(said.starts_with("Debian ") && said.ends_with(", held by steadfast\n"), "{said}");
    let agrees = class(&said.replace('\n', "\\n"));
    assert_eq!(agrees.code, Some(0), "{agrees:?}");
    assert!(!agrees.stdout.contains("would have"), "{agrees:?}");
    // The class does look: another message is a change.
    let differs = class("another message\\n");
    assert!(differs.stdout.contains("noop"), "{differs:?}");
    host.wait_whole();
}
