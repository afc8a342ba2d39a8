//! `--log journald`: each log event as an entry of the journal, with its fields.

use super::log_queue::{LogLine, log_line};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::{Errno, IoSlice};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};
use std::fmt::Debug;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::OnceLock;
use steadfast_resources::host::journal;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, Scope};

/// A socket that sends entries to the journal.
#[derive(Debug, Default)]
pub(in crate::cli) struct JournalSocket(OnceLock<Result<OwnedFd, Errno>>);

impl JournalSocket {
    fn socket(&self) -> Result<&OwnedFd, Errno> {
        let open = || {
            let flags = SocketFlags::CLOEXEC;
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)
        };
        self.0.get_or_init(open).as_ref().map_err(|error| *error)
    }

    /// Checks that the journal listens. A hanging journal counts as listening.
    pub(in crate::cli) fn probe(&self) -> Result<(), Errno> {
        let address = SocketAddrUnix::new(journal::SOCKET)?;
        // An empty entry, which the journal discards.
        match rustix::net::sendto(self.socket()?, &[], SendFlags::DONTWAIT, &address) {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends an entry, and waits while the journal does not read. An entry that the journal rejects is lost.
    pub(in crate::cli) fn send(&self, entry: &[u8]) {
        let _refused = self.socket().and_then(|socket| {
            let address = SocketAddrUnix::new(journal::SOCKET)?;
            match rustix::net::sendto(socket, entry, SendFlags::NOSIGNAL, &address) {
                Err(Errno::MSGSIZE) => send_large(socket, entry, &address),
                sent => sent.map(drop),
            }
        });
    }
}

/// Sends an entry that is larger than a datagram: in a sealed file, as the protocol requires.
fn send_large(socket: &OwnedFd, entry: &[u8], address: &SocketAddrUnix) -> Result<(), Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = std::fs::File::from(rustix::fs::memfd_create("steadfast-log", flags)?);
    file.write_all(entry).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&files));
    let nothing: [IoSlice<'_>; 0] = [];
    rustix::net::sendmsg_addr(socket, address, &nothing, &mut control, SendFlags::NOSIGNAL)
        .map(drop)
}

/// A layer that sends each log event to the journal, through the queue of the log.
#[derive(Debug)]
pub(in crate::cli) struct JournalLayer;

impl<S> Layer<S> for JournalLayer
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut all = Fields::default();
        all.put("PRIORITY", priority(*metadata.level()));
        all.put("SYSLOG_IDENTIFIER", "steadfast");
        all.put("TARGET", metadata.target());
        metadata.file().into_iter().for_each(|file| all.put("CODE_FILE", file));
        if let Some(line) = metadata.line() {
            all.put("CODE_LINE", &line.to_string());
        }
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            all.put("SPAN_NAME", span.name());
            if let Some(fields) = span.extensions().get::<Fields>() {
                all.0.extend_from_slice(&fields.0);
            }
        }
        event.record(&mut all);
        log_line(LogLine::Journal(all.0));
    }
}

/// Returns the syslog priority of a level: a change of state is a notice.
fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "5",
        Level::DEBUG => "6",
        Level::TRACE => "7",
    }
}

/// The encoded fields of an entry.
#[derive(Debug, Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn put(&mut self, name: &str, value: &str) {
        self.0.extend_from_slice(&journal::encode(&[(name, value)]));
    }

    /// Adds a field of steadfast; only `message` has a name that the journal knows.
    fn put_own(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            return self.put("MESSAGE", value);
        }
        let name = field.name().replace('.', "_").to_ascii_uppercase();
        self.put(&format!("STEADFAST_{name}"), value);
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_own(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put_own(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
    use std::io::{Read as _, Seek as _};
    use std::os::unix::net::UnixDatagram;

    /// An entry that is larger than a datagram arrives as a file.
    #[test]
    fn a_large_entry_arrives_as_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let journal = UnixDatagram::bind(&path).expect("bound");
        let socket = UnixDatagram::unbound().expect("a socket").into();
        let entry = journal::encode(&[("MESSAGE", &"x".repeat(1 << 20))]);
        let address = SocketAddrUnix::new(&path).expect("an address");
        send_large(&socket, &entry, &address).expect("sent");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        rustix::net::recvmsg(&journal, &mut [], &mut control, RecvFlags::empty())
            .expect("received");
        let Some(RecvAncillaryMessage::ScmRights(mut files)) = control.drain().next() else {
            panic!("no file")
        };
        let mut file = std::fs::File::from(files.next().expect("a file"));
        file.rewind().expect("a file");
        let mut read = Vec::new();
        file.read_to_end(&mut read).expect("read");
        assert_eq!(read, entry);
    }
}
