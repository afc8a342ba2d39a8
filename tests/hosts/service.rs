//! The service on a test host: what its unit is doing, as systemd tells, and what it has logged.

use crate::host::{Answer, Host};

/// Where the unit finds its graph.
pub(crate) const GRAPH: &str = "/etc/steadfast/graph.yaml";

/// A graph of one file, `/etc/held`, with the content `as declared`.
pub(crate) const ONE_FILE: &str = r#"
graph: host
resources:
  file:
    - name: /etc/held
      content: "as declared\n"
      mode: "0640"
      owner: root
      group: root
"#;

/// What `/etc/held` holds under [`ONE_FILE`].
pub(crate) const DECLARED: &str = "as declared\n";

impl Host {
    /// A host on which the service runs and has made what this graph declares of `/etc/held`.
    pub(crate) fn holding(graph: &str) -> Self {
        let host = Self::boot();
        host.write(GRAPH, graph);
        host.start();
        host.until("the graph to be applied", || host.is_held());
        host
    }

    /// Whether `/etc/held` has its declared content.
    pub(crate) fn is_held(&self) -> bool {
        self.read("/etc/held").as_deref() == Some(DECLARED)
    }

    /// `systemctl start`, which returns when the daemon says that it is ready.
    pub(crate) fn start(&self) {
        let answer = self.systemctl("start");
        assert_eq!(answer.code, Some(0), "systemctl start: {}\n{}", answer.stderr, self.tell());
    }

    /// One of start, stop, restart, reload on the service.
    pub(crate) fn systemctl(&self, verb: &str) -> Answer {
        self.run(&["systemctl", verb, "steadfast.service"])
    }

    /// A property of the service.
    pub(crate) fn property(&self, name: &str) -> String {
        let show = ["systemctl", "show", "--value", "--property", name, "steadfast.service"];
        self.run(&show).stdout.trim().to_owned()
    }

    /// The daemon's process id, inside the host; 0 when there is none.
    pub(crate) fn daemon(&self) -> u32 {
        self.property("MainPID").parse().expect("systemd tells a number")
    }

    /// Sends a signal to the daemon, and only to it.
    pub(crate) fn signal(&self, name: &str) {
        self.shell(&format!("kill -{name} {}", self.daemon()));
    }

    /// Puts a fault into a worker of the daemon, over its socket.
    #[cfg(debug_assertions)]
    pub(crate) fn put_fault(&self, worker: &str, how: &str) {
        use std::io::{BufRead as _, BufReader, Write as _};
        let path = format!("/proc/{}/root/run/steadfast/control.socket", self.leader());
        let socket = std::os::unix::net::UnixStream::connect(path).expect("it listens");
        let ask = format!(r#"{{"verb":"fault","worker":"{worker}","how":"{how}"}}"#);
        writeln!(&socket, r#"{{"protocol":1,"ask":{ask}}}"#).expect("sent");
        let mut answer = String::new();
        BufReader::new(socket).read_line(&mut answer).expect("an answer");
        assert_eq!(answer.trim(), r#""done""#);
    }

    /// What the daemon has logged, a line each, without what systemd says of it.
    pub(crate) fn log(&self) -> Vec<String> {
        // Of one that has ended at once journald may not know any more what it was.
        let either = ["_COMM=steadfast", "+", "SYSLOG_IDENTIFIER=steadfast"];
        let journal = [&["journalctl", "--no-pager", "--output=cat"][..], &either].concat();
        self.run(&journal).stdout.lines().map(str::to_owned).collect()
    }

    /// Changes options of the unit for this host, before it is started.
    pub(crate) fn adjust(&self, options: &str) {
        let path = "/etc/systemd/system/steadfast.service.d/test.conf";
        self.write(path, &format!("[Service]\n{options}\n"));
        self.shell("systemctl daemon-reload");
    }
}
