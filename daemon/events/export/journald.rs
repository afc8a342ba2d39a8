//! A sink that sends each event to the systemd journal as an entry with fields, in the journal's native protocol.

use super::{Batch, Sending, Sink};
use crate::api::Level;
use crate::events::PublishedEvent;
use crate::events::render::headline;
use std::path::PathBuf;
use std::time::Duration;
use steadfast_resources::host::journal;
use tokio::net::UnixDatagram;
use tokio::time::timeout;

/// The time limit of a batch.
const PATIENCE: Duration = Duration::from_secs(10);

/// The maximum length of the description in bytes: one entry is one datagram.
const LONGEST: usize = 32 * 1024;

/// The journal of the host.
#[derive(Debug)]
pub struct ToJournald {
    socket: PathBuf,
}

impl ToJournald {
    /// Creates a sink for the socket of a journal.
    #[must_use]
    pub fn new(socket: PathBuf) -> Self {
        Self { socket }
    }
}

impl Sink for ToJournald {
    fn send(&self, batch: Batch) -> Sending {
        let path = self.socket.clone();
        Box::pin(async move {
            let failed = |error: std::io::Error| format!("{}: {error}", path.display());
            let sending = async {
                let socket = UnixDatagram::unbound().map_err(failed)?;
                socket.connect(&path).map_err(failed)?;
                for event in &batch.events {
                    socket.send(&entry(event)).await.map_err(failed)?;
                }
                Ok(())
            };
            let sent = timeout(PATIENCE, sending).await;
            let sent =
                sent.unwrap_or_else(|_| Err("the journal did not accept the event".to_owned()));
            Ok(sent?)
        })
    }
}

/// Encodes an event as an entry of the journal.
fn entry(event: &PublishedEvent) -> Vec<u8> {
    let mut end = event.message.len().min(LONGEST);
    while !event.message.is_char_boundary(end) {
        end -= 1;
    }
    let says = event.message.get(..end).unwrap_or_default();
    let number = event.number.unwrap_or_default().to_string();
    let priority = match event.level {
        Level::Debug => "7",
        Level::Info => "6",
        Level::Warn => "4",
        Level::Error => "3",
    };
    let at = (event.at * 1000).to_string();
    let name = event.kind.name();
    // A long payload is left out: one entry is one datagram. The event log has it.
    let data = serde_json::to_value(&event.kind).ok();
    let data = data.and_then(|kind| kind.get("data").map(ToString::to_string));
    let data = data.filter(|data| data.len() <= LONGEST);
    let fields = [
        ("MESSAGE", Some(headline(name, event.resource.as_deref(), says))),
        ("PRIORITY", Some(priority.to_owned())),
        ("SYSLOG_IDENTIFIER", Some("steadfast".to_owned())),
        ("STEADFAST_EVENT", Some(name.to_owned())),
        ("STEADFAST_NUMBER", Some(number)),
        ("STEADFAST_AT_USEC", Some(at)),
        ("STEADFAST_RESOURCE", event.resource.clone()),
        ("STEADFAST_CLASS", event.kind.class().map(ToOwned::to_owned)),
        ("STEADFAST_DATA", data),
    ];
    let fields: Vec<(&str, &str)> =
        fields.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
    journal::encode(&fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::EventKind;
    use crate::events::NewEvent;

    /// S-13: the description of an event is always a value and never a field; a long one is cut between characters.
    #[test]
    fn message_text_makes_no_field() {
        let says = format!("one\nPRIORITY=0\n{}", "ü".repeat(LONGEST));
        let event = PublishedEvent::new(
            Some(7),
            5,
            NewEvent { message: says, ..NewEvent::new(EventKind::Stuck, Level::Error) },
        );
        let bytes = entry(&event);
        assert!(bytes.len() < LONGEST + 500);
        let length = usize::try_from(u64::from_le_bytes(bytes[8..16].try_into().unwrap())).unwrap();
        assert_eq!(&bytes[..8], b"MESSAGE\n");
        let message = std::str::from_utf8(&bytes[16..16 + length]).expect("whole characters");
        assert!(message.starts_with("stuck: one\nPRIORITY=0\n"));
        let rest = std::str::from_utf8(&bytes[16 + length..]).expect("text");
        assert!(rest.starts_with("\nPRIORITY=3\nSYSLOG_IDENTIFIER=steadfast\n"), "{rest}");
        assert!(rest.ends_with("STEADFAST_NUMBER=7\nSTEADFAST_AT_USEC=5000\n"), "{rest}");
    }
}
