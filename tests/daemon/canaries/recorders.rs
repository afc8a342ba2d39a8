//! Recorders of each sort, which receive all recorded events.

use super::sinks::{OutputSink, Silence};
use super::table::CANARY;
use crate::host::Host;
use crate::receiver::{Answer, Receiver};

pub(super) struct Recorders {
    receiver: Receiver,
    journal: OutputSink,
}

impl Recorders {
    /// Returns the settings with the recorders. A header is a secret too.
    pub(super) fn open(host: &Host) -> Self {
        let receiver = Receiver::new(&[], Answer::Taken);
        let headers = format!("{{Authorization: {CANARY}-header}}");
        let settings = format!(
            "recorders:\n- file: {{path: $DIR/recorded.jsonl}}\n- journald: {{socket: $DIR/journal}}\n\
             - webhook: {{url: \"{}\", headers: {headers}}}\n",
            receiver.url
        );
        host.write("steadfast.yaml", host.full(&settings)).chmod("steadfast.yaml", 0o600);
        Self { receiver, journal: OutputSink::open(host, "journal") }
    }

    /// Asserts that the file, the journal and the webhook received many events and no canary.
    pub(super) fn hold(&self, host: &Host, silence: &Silence<'_>) {
        let failed = |text: &str| text.matches("failed").count() > 20;
        let file = host.read("recorded.jsonl");
        assert!(failed(&file), "the file was told");
        silence.holds("the recorder's file", file.as_bytes());
        let journal = self.journal.heard();
        assert!(failed(&String::from_utf8_lossy(&journal)), "the journal was told");
        silence.holds("the journal", &journal);
        let came = self.receiver.came();
        assert!(came.iter().all(|came| came.token.starts_with(CANARY)), "the header was sent");
        let bodies: String = came.into_iter().map(|came| came.body).collect();
        assert!(failed(&bodies), "the webhook was told");
        silence.holds("the bodies of the webhook", bodies.as_bytes());
    }
}
