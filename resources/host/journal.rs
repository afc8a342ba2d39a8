//! Sends entries to the systemd journal in its native protocol.

use super::Host;
use crate::failure::Failure;
use crate::permit::Permit;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

/// The socket of the journal.
pub const SOCKET: &str = "/run/systemd/journal/socket";
/// The deadline of sending: a journal that does not read blocks the sender no longer.
const PATIENCE: Duration = Duration::from_secs(5);

impl Host {
    /// Sends one entry to the journal; blocks at most five seconds while the journal does not read.
    ///
    /// # Errors
    ///
    /// Fails if the permit was revoked, the journal's socket is missing, or the journal does not read in time.
    #[expect(clippy::unused_self, reason = "what changes the host is asked of the host")]
    pub fn journal(&self, permit: &Permit, fields: &[(&str, &str)]) -> Result<(), Failure> {
        permit.check().map_err(|revoked| Failure::new(revoked.to_string()))?;
        send(Path::new(SOCKET), &encode(fields))
    }
}

fn send(socket: &Path, entry: &[u8]) -> Result<(), Failure> {
    let sent = UnixDatagram::unbound().and_then(|sender| {
        sender.set_write_timeout(Some(PATIENCE))?;
        sender.send_to(entry, socket)
    });
    match sent {
        Ok(_) => Ok(()),
        Err(why) => {
            Err(Failure::new(format!("the journal did not accept the entry: {why}")).hint(format!(
                "the socket of the journal is expected at {}; or omit `journal`",
                socket.display()
            )))
        }
    }
}

/// Encodes an entry for the journal. A value of one line follows `=`; a longer one follows its length, so no
/// value can forge a field.
#[must_use]
pub fn encode(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut entry = Vec::new();
    for (name, value) in fields {
        entry.extend_from_slice(name.as_bytes());
        if value.contains('\n') {
            entry.push(b'\n');
            entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            entry.push(b'=');
        }
        entry.extend_from_slice(value.as_bytes());
        entry.push(b'\n');
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::{encode, send};
    use std::os::unix::net::UnixDatagram;

    /// S-13: a value with newlines cannot forge a field of the journal.
    #[test]
    fn a_value_cannot_forge_a_field() {
        let entry = encode(&[("MESSAGE", "a\nPRIORITY=0"), ("PRIORITY", "5")]);
        assert_eq!(entry, b"MESSAGE\n\x0c\0\0\0\0\0\0\0a\nPRIORITY=0\nPRIORITY=5\n");
    }

    #[test]
    fn an_entry_is_one_datagram() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let journal = UnixDatagram::bind(&socket).unwrap();
        send(&socket, &encode(&[("MESSAGE", "hello")])).unwrap();
        let mut buffer = [0; 100];
        let count = journal.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"MESSAGE=hello\n");
    }

    #[test]
    fn a_missing_journal_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let failure = send(&folder.path().join("none"), b"MESSAGE=x\n").unwrap_err();
        assert!(failure.hint.unwrap().contains("none"));
    }
}
