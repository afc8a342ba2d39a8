//! Three members of etcd (Debian's etcd-server) on this machine; they end with the test.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use steadfast::world::{EtcdSettings, EtcdWorld, World};
use tempfile::TempDir;

/// A member.
pub(crate) struct Member {
    pub(crate) child: Child,
    pub(crate) client: String,
    /// The command of the member: the network namespace, if any, and etcd with its arguments.
    command: Vec<String>,
}

/// The addresses of a member, and the words that run a command in its network namespace.
pub(crate) struct Address {
    pub(crate) client: String,
    pub(crate) peer: String,
    pub(crate) inside: Vec<String>,
}

/// A running cluster.
pub(crate) struct Cluster {
    pub(crate) members: Vec<Member>,
    _folder: TempDir,
}

/// Returns ports that are free now.
fn free_ports(number: usize) -> Vec<u16> {
    let listeners: Vec<_> =
        (0..number).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

fn start_member(words: &[String]) -> Child {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("etcd is installed: apt-get install etcd-server")
}

impl Cluster {
    /// Starts three members; `more` are further arguments of each.
    pub(crate) fn start(scheme: &str, more: &[String]) -> Self {
        let ports = free_ports(6);
        let addresses = [0, 1, 2].map(|number| Address {
            client: format!("{scheme}://127.0.0.1:{}", ports[number]),
            peer: format!("http://127.0.0.1:{}", ports[number + 3]),
            inside: Vec::new(),
        });
        Self::start_at(&addresses, more)
    }

    /// Starts three members at these addresses.
    pub(crate) fn start_at(addresses: &[Address; 3], more: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let peers: Vec<String> = addresses
            .iter()
            .enumerate()
            .map(|(number, address)| format!("m{number}={}", address.peer))
            .collect();
        let start = |(number, address): (usize, &Address)| {
            let Address { client, peer, inside } = address;
            let data = folder.path().join(format!("m{number}"));
            let mut command = inside.clone();
            command.extend([
                "etcd".to_owned(),
                format!("--name=m{number}"),
                format!("--data-dir={}", data.display()),
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster={}", peers.join(",")),
                "--heartbeat-interval=50".to_owned(),
                "--election-timeout=500".to_owned(),
            ]);
            command.extend_from_slice(more);
            Member { child: start_member(&command), client: client.clone(), command }
        };
        let members = addresses.iter().enumerate().map(start).collect();
        Self { members, _folder: folder }
    }

    /// Returns the settings of a client without TLS.
    pub(crate) fn settings(&self, cluster: &str) -> EtcdSettings {
        EtcdSettings {
            endpoints: self.members.iter().map(|member| member.client.clone()).collect(),
            cluster: cluster.to_owned(),
            ..EtcdSettings::default()
        }
    }

    pub(crate) fn kill(&mut self, number: usize) {
        self.members[number].child.kill().unwrap();
        self.members[number].child.wait().unwrap();
    }

    pub(crate) fn restart(&mut self, number: usize) {
        let member = &mut self.members[number];
        member.child = start_member(&member.command);
    }

    /// Makes each sync of a member's disk last 300 ms, until the value is dropped.
    pub(crate) fn slow_disk(&self, number: usize) -> SlowDisk {
        let id = self.members[number].child.id().to_string();
        let mut command = Command::new("strace");
        command.args(["--quiet=all", "--follow-forks", "--output=/dev/null"]);
        command.args(["--trace=fsync,fdatasync", "--inject=fsync,fdatasync:delay_exit=300000"]);
        command.args(["--attach", &id]).stdin(Stdio::null()).stderr(Stdio::null());
        SlowDisk(command.spawn().expect("strace is installed"))
    }

    pub(crate) fn signal(&self, number: usize, signal: &str) {
        let id = self.members[number].child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }
}

/// A tracer that delays the syncs of a member; the member continues without it.
pub(crate) struct SlowDisk(Child);

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // A TERM lets strace detach. The member may have ended, and the tracer with it.
        let id = self.0.id().to_string();
        drop(Command::new("kill").args(["-TERM", &id]).status());
        drop(self.0.wait());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for member in &mut self.members {
            // A frozen member is killed as well; it may have ended already.
            drop(member.child.kill());
            drop(member.child.wait());
        }
    }
}

/// Waits until the cluster answers.
pub(crate) async fn until_ready(world: &dyn World) {
    let began = Instant::now();
    while let Err(error) = world.list("").await {
        assert!(began.elapsed() < Duration::from_secs(30), "no answer: {error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Runs a test on a new cluster.
pub(crate) fn with_fresh_world(
    runtime: &tokio::runtime::Runtime,
    test: impl FnOnce(Arc<dyn World>),
) {
    let cluster = Cluster::start("http", &[]);
    let world: Arc<dyn World> = Arc::new(EtcdWorld::new(cluster.settings("test")));
    runtime.block_on(until_ready(world.as_ref()));
    test(world);
}
