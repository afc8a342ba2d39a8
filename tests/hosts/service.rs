//! The service on a test host: the state of its unit, and its log.

use crate::host::{Answer, Host};

/// The path of the unit's graph.
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

/// The content of `/etc/held` in [`ONE_FILE`].
pub(crate) const DECLARED: &str = "as declared\n";

impl Host {
    /// Boots a host whose service has applied this graph to `/etc/held`.
    pub(crate) fn holding(graph: &str) -> Self {
        let host = Self::boot();
        host.write(GRAPH, graph);
        host.start();
        host.until("the graph to be applied", || host.is_held());
        host
    }

    /// Returns true if `/etc/held` has its declared content.
    pub(crate) fn is_held(&self) -> bool {
        self.read("/etc/held").as_deref() == Some(DECLARED)
    }

    /// Runs `systemctl start`, which returns once the daemon is ready.
    pub(crate) fn start(&self) {
        let answer = self.systemctl("start");
        assert_eq!(answer.code, Some(0), "systemctl start: {}\n{}", answer.stderr, self.report());
    }

    /// Runs start, stop, restart or reload on the service.
    pub(crate) fn systemctl(&self, verb: &str) -> Answer {
        self.run(&["systemctl", verb, "steadfast.service"])
    }

    /// Returns a property of the service.
    pub(crate) fn property(&self, name: &str) -> String {
        let show = ["systemctl", "show", "--value", "--property", name, "steadfast.service"];
        self.run(&show).stdout.trim().to_owned()
    }

    /// Returns the daemon's process id inside the host; 0 if none runs.
    pub(crate) fn daemon(&self) -> u32 {
        self.property("MainPID").parse().expect("systemd tells a number")
    }

    /// Sends a signal to the daemon, and only to it.
    pub(crate) fn signal(&self, name: &str) {
        self.shell(&format!("kill -{name} {}", self.daemon()));
    }

    /// Injects a fault into a worker of the daemon, over its socket.
    #[cfg(feature = "fault-injection")]
    pub(crate) fn put_fault(&self, worker: &str, how: &str) {
        use std::io::{BufRead as _, BufReader, Write as _};
        let path = format!("/proc/{}/root/run/steadfast/control.socket", self.leader());
        let socket = std::os::unix::net::UnixStream::connect(path).expect("it listens");
        let ask = format!(r#"{{"verb":"fault","worker":"{worker}","how":"{how}"}}"#);
        writeln!(&socket, r#"{{"protocol":1,"request":{ask}}}"#).expect("sent");
        let mut answer = String::new();
        BufReader::new(socket).read_line(&mut answer).expect("an answer");
        assert_eq!(answer.trim(), r#"{"protocol":1,"reply":"done"}"#);
    }

    /// Returns the log lines of the daemon, without systemd's own lines about it.
    pub(crate) fn log(&self) -> Vec<String> {
        // For a process that ended at once, journald may lack the command name.
        let either = ["_COMM=steadfast", "+", "SYSLOG_IDENTIFIER=steadfast"];
        let journal = [&["journalctl", "--no-pager", "--output=cat"][..], &either].concat();
        self.run(&journal).stdout.lines().map(str::to_owned).collect()
    }

    /// Overrides options of the unit, before its start.
    pub(crate) fn adjust(&self, options: &str) {
        let path = "/etc/systemd/system/steadfast.service.d/test.conf";
        self.write(path, &format!("[Service]\n{options}\n"));
        self.shell("systemctl daemon-reload");
    }
}
