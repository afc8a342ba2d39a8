//! The web server: two sites, one more, a wrong one, one less; and 20 kills of the daemon.

use super::boot;
use crate::host::Host;

pub(super) const PACKAGES: &[&str] =
    &["nginx-light", "openssl", "logrotate", "sudo", "nftables", "ca-certificates"];
const GRAPH: &str = "/etc/steadfast/examples/servers/web.yaml";
const TEMPLATE: &str = "/etc/steadfast/examples/modules/site/vhost.conf.j2";
const SHOP: &str = "/etc/nginx/sites-enabled/shop.example.org.conf";

impl Host {
    /// Returns the number of reloads of nginx since its last start.
    fn nginx_reloads(&self) -> usize {
        self.shell("journalctl -u nginx --no-pager | grep -c 'Reloaded nginx' || true")
            .trim()
            .parse()
            .expect("a number")
    }

    /// Returns the page of a site.
    fn page(&self, site: &str) -> String {
        let resolve = format!("{site}:443:127.0.0.1");
        let address = format!("https://{site}/");
        self.run(&["curl", "-sk", "--max-time", "5", "--resolve", &resolve, &address]).stdout
    }
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_web_server_serves_its_sites() {
    let host = boot(GRAPH, PACKAGES);
    host.start_whole();
    host.judge("web");
    host.shell(
        "nginx -t 2>&1; logrotate --debug /etc/logrotate.d/sites 2>&1; nft -c -f /etc/nftables.d/web.nft
         visudo -c; systemctl start renew-certificate",
    );
    assert_eq!(host.page("shop.example.org"), "<h1>The shop</h1>\n");
    // The judges changed nothing.
    host.wait_whole();
    reload_is_exact(&host);
    wrong_vhost_is_stopped(&host);

    // Drift by hand returns.
    let vhost = host.read(SHOP);
    host.shell(&format!("rm {SHOP}; systemctl stop nginx"));
    host.until("the site to be back", || {
        host.read(SHOP) == vhost && host.page("shop.example.org") == "<h1>The shop</h1>\n"
    });
}

/// nginx is reloaded exactly once when its configuration changed, and not otherwise.
fn reload_is_exact(host: &Host) {
    let before = host.nginx_reloads();
    host.reload_whole();
    assert_eq!(host.nginx_reloads(), before, "an equal graph");
    host.shell(&format!("sed -i 's/The shop/Our shop/' {GRAPH}"));
    host.reload_whole();
    assert_eq!(host.page("shop.example.org"), "<h1>Our shop</h1>\n");
    assert_eq!(host.nginx_reloads(), before, "a page is no configuration");
    host.shell(&format!("sed -i 's/Our shop/The shop/' {GRAPH}"));
    let add =
        format!("sed -i 's/^  sites:/&\\n    news.example.org: {{ heading: The news }}/' {GRAPH}");
    host.shell(&add);
    host.reload_whole();
    assert_eq!(host.page("news.example.org"), "<h1>The news</h1>\n");
    assert_eq!(host.nginx_reloads(), before + 1, "a new site");
    // Both sites change: one reload.
    host.shell(&format!("sed -i 's/    server_name/    server_tokens off;\\n&/' {TEMPLATE}"));
    host.reload_whole();
    assert_eq!(host.nginx_reloads(), before + 2, "all sites change");
    host.shell(&format!("sed -i /news.example.org/d {GRAPH}"));
    host.reload_whole();
    assert_eq!(host.nginx_reloads(), before + 3, "a removed site");
    host.shell("! test -e /etc/nginx/sites-enabled/news.example.org.conf; ! test -e /srv/www/news.example.org");
    assert_ne!(host.page("news.example.org"), "<h1>The news</h1>\n");
}

/// A wrong server block never reaches its place: the old site serves on, and a restart of all services starts it.
fn wrong_vhost_is_stopped(host: &Host) {
    let (before, vhost) = (host.nginx_reloads(), host.read(SHOP));
    host.shell(&format!("cp {TEMPLATE} /root/right; sed -i 's/    root /    rot /' {TEMPLATE}"));
    host.shell("steadfast reload || true");
    host.until("the rejection", || {
        let status = host.run(&["steadfast", "status"]).stdout;
        status.contains("shop.example.org/file[vhost]") && status.contains("unknown directive")
    });
    let serves = |when: &str| {
        assert_eq!(host.read(SHOP), vhost, "{when}");
        assert_eq!(host.page("shop.example.org"), "<h1>The shop</h1>\n", "{when}");
    };
    serves("rejected");
    assert_eq!(host.nginx_reloads(), before);
    // The nearest to a reboot that a host in memory allows: all services of the boot end and start again.
    host.write(
        "/run/systemd/system/nothing.target",
        "[Unit]\nRequires=basic.target\nAfter=basic.target\nAllowIsolate=yes\n",
    );
    host.shell(
        "systemctl enable steadfast; systemctl daemon-reload; systemctl isolate nothing.target",
    );
    host.until("the services to end", || {
        host.run(&["systemctl", "is-active", "nginx", "steadfast"]).stdout == "inactive\ninactive\n"
    });
    host.shell("systemctl isolate multi-user.target");
    host.until("nginx to be back", || !host.page("shop.example.org").is_empty());
    serves("started again");
    host.shell(&format!("cat /root/right >{TEMPLATE}"));
    host.reload_whole();
    serves("corrected");
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_killed_daemon_ends_with_the_same_web_server() {
    let host = boot(GRAPH, PACKAGES);
    host.restart_at_once();
    host.start();
    host.kill_at_random(
        20,
        &format!(
            "systemctl stop nginx renew-certificate.timer; rm -rf {SHOP} /srv/www /etc/nftables.d/web.nft
             nft flush ruleset; userdel ada; rm /home/grace/.ssh/authorized_keys"
        ),
    );
    host.wait_whole();
    host.judge("web");
    assert_eq!(host.shell("dpkg --audit"), "");
}
