//! Watch commands, run through the host.

use crate::watch::{LineSource, LineStream, SourceError, SourceFuture};
use steadfast_resources::Host;
use steadfast_resources::host::{Command, End, Lines};
use tokio_util::sync::CancellationToken;

/// The host as a source of output lines of watch commands.
#[derive(Debug)]
pub(in crate::driver) struct HostLines(pub(in crate::driver) Host);

impl LineSource for HostLines {
    fn open<'s>(
        &'s self,
        command: &'s Command,
    ) -> SourceFuture<'s, Result<Box<dyn LineStream>, SourceError>> {
        Box::pin(async {
            // Dropping the stream ends the command, so nothing uses this token.
            let cancel = CancellationToken::new();
            let lines = self
                .0
                .lines(command, &cancel)
                .await
                .map_err(|failure| SourceError(failure.what))?;
            Ok(Box::new(Stream(lines)) as Box<dyn LineStream>)
        })
    }
}

struct Stream(Lines);

impl LineStream for Stream {
    fn next(&mut self) -> SourceFuture<'_, bool> {
        Box::pin(async { self.0.next().await.is_some() })
    }

    fn ended(self: Box<Self>) -> SourceFuture<'static, String> {
        Box::pin(async move {
            match self.0.ended().await {
                Ok(finished) => match finished.end {
                    End::Exited(code) => format!("exit code {code}"),
                    End::Killed(signal) => format!("signal {signal}"),
                    End::TimedOut => "timed out".to_owned(),
                    End::Cancelled { .. } => "cancelled".to_owned(),
                },
                Err(failure) => failure.what,
            }
        })
    }
}
