//! Reading and writing of lines with a maximum length and a time limit.

use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

/// The reason why no line was read.
#[derive(Debug)]
pub(super) enum NoLine {
    /// The other side closed the connection before the first byte.
    End,
    /// The other side closed the connection in the middle of a line.
    Half,
    /// The line is longer than allowed.
    Long,
    /// The time limit was reached.
    Late,
    /// The connection failed.
    Failed(io::Error),
}

/// Reads one line of at most `most` bytes and returns the line without its newline.
pub(super) async fn read(
    from: &mut (impl AsyncBufRead + Unpin),
    most: usize,
    within: Option<Duration>,
) -> Result<Vec<u8>, NoLine> {
    let mut line = Vec::new();
    let limit = most as u64 + 1;
    let mut bounded = from.take(limit);
    let reading = bounded.read_until(b'\n', &mut line);
    let read = match within {
        Some(within) => timeout(within, reading).await.map_err(|_elapsed| NoLine::Late)?,
        None => reading.await,
    };
    read.map_err(NoLine::Failed)?;
    match line.pop() {
        Some(b'\n') => Ok(line),
        None => Err(NoLine::End),
        Some(_) if line.len() >= most => Err(NoLine::Long),
        Some(_) => Err(NoLine::Half),
    }
}

/// Writes one line and its newline.
pub(super) async fn write(
    to: &mut (impl AsyncWrite + Unpin),
    mut line: Vec<u8>,
    within: Duration,
) -> io::Result<()> {
    line.push(b'\n');
    write_all(to, &line, within).await
}

/// Writes complete lines.
pub(super) async fn write_all(
    to: &mut (impl AsyncWrite + Unpin),
    lines: &[u8],
    within: Duration,
) -> io::Result<()> {
    let late = |_elapsed| io::Error::new(io::ErrorKind::TimedOut, "the client does not read");
    timeout(within, to.write_all(lines)).await.map_err(late)?
}
/// Returns the milliseconds since the boot of the host, with all suspends.
pub(super) fn milliseconds_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1000 + u64::try_from(now.tv_nsec).unwrap_or_default() / 1_000_000
}
