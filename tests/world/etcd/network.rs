//! Three network namespaces on one bridge; a member can be cut off from all, or from its peers only.

use super::cluster::Address;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of networks of this process so far.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A bridge with a namespace for each member. They end with this value.
pub(crate) struct Network {
    /// The part of all names that belongs to this network alone.
    id: u32,
}

#[track_caller]
fn ip(words: &[&str]) {
    let output = Command::new("ip").args(words).output().unwrap();
    assert!(
        output.status.success(),
        "ip {}: {} (needs root)",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
}

impl Network {
    pub(crate) fn start() -> Self {
        let started = STARTED.fetch_add(1, Ordering::SeqCst);
        let network = Self { id: std::process::id() * 10 + started };
        let bridge = network.bridge();
        ip(&["link", "add", &bridge, "type", "bridge"]);
        ip(&["addr", "add", &format!("{}/24", network.host(1)), "dev", &bridge]);
        ip(&["link", "set", &bridge, "up"]);
        for number in 0..3 {
            let (space, outer, inner) =
                (network.space(number), network.outer(number), format!("sfi{number}"));
            ip(&["netns", "add", &space]);
            ip(&["link", "add", &outer, "type", "veth", "peer", "name", &inner, "netns", &space]);
            ip(&["link", "set", &outer, "master", &bridge, "up"]);
            let address = format!("{}/24", network.member(number));
            ip(&["-n", &space, "addr", "add", &address, "dev", &inner]);
            ip(&["-n", &space, "link", "set", &inner, "up"]);
            ip(&["-n", &space, "link", "set", "lo", "up"]);
        }
        network
    }

    fn bridge(&self) -> String {
        format!("sfb{}", self.id)
    }

    fn space(&self, number: usize) -> String {
        format!("steadfast-{}-{number}", self.id)
    }

    fn outer(&self, number: usize) -> String {
        format!("sf{number}v{}", self.id)
    }

    fn host(&self, last: usize) -> String {
        // A range for documentation and tests (RFC 2544), so that no real network is hidden.
        format!("198.18.{}.{last}", self.id % 250)
    }

    fn member(&self, number: usize) -> String {
        self.host(number + 11)
    }

    /// Returns the addresses of three members.
    pub(crate) fn addresses(&self) -> [Address; 3] {
        [0, 1, 2].map(|number| Address {
            client: format!("http://{}:2379", self.member(number)),
            peer: format!("http://{}:2380", self.member(number)),
            inside: ["ip", "netns", "exec", &self.space(number)].map(str::to_owned).into(),
        })
    }

    /// Cuts a member off from peers and clients, or connects it again.
    pub(crate) fn cut(&self, number: usize, is_cut: bool) {
        let state = if is_cut { "down" } else { "up" };
        ip(&["link", "set", &self.outer(number), state]);
    }

    /// Cuts a member off from its peers only: clients still reach it, and it must not answer from old data.
    pub(crate) fn cut_from_peers(&self, number: usize, is_cut: bool) {
        let action = if is_cut { "add" } else { "del" };
        for peer in (0..3).filter(|peer| *peer != number) {
            let route = format!("{}/32", self.member(peer));
            ip(&["-n", &self.space(number), "route", action, "blackhole", &route]);
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let spaces =
            (0..3).map(|number| vec!["netns".to_owned(), "del".into(), self.space(number)]);
        let bridge = vec!["link".to_owned(), "del".into(), self.bridge()];
        for words in spaces.chain([bridge]) {
            // A part that is not there any more needs no removal.
            drop(Command::new("ip").args(words).output());
        }
    }
}
