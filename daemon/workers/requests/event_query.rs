//! Replies to event queries: recorded events from the log, and new ones from the stream.

use super::places::{run_in_place, wait_for_place};
use crate::api::{Event, PROTOCOL, Reply, ReplySink};
use crate::events::{
    Next, PublishedEvent, Reader, Stream, Subscriber, Unreadable, Wanted, without_values,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The time for which the reply collects events that belong together.
pub(in crate::workers) const TOGETHER: Duration = Duration::from_millis(5);

/// The size of one write, in bytes.
const ENOUGH: usize = 64 * 1024;

/// The number of events read at once.
const PAGE: usize = 1000;

/// A query for events.
pub(in crate::workers) struct EventQuery<'a> {
    pub(in crate::workers) events: &'a Stream,
    pub(in crate::workers) wanted: Wanted,
    /// True if the caller may not see the values before and after changes: they can be contents that the caller cannot
    /// read.
    pub(in crate::workers) hides_values: bool,
    /// The right to read the log: a read goes on after its client has left.
    pub(in crate::workers) readers: Arc<Semaphore>,
}

/// Adds an event, as JSON, to the lines of a reply: the form of [`Data::Event`](crate::api::Data::Event). The JSON is
/// shared by all subscribers that may see the values.
fn push(lines: &mut String, json: &str, hides_values: bool) {
    if !hides_values {
        push_data(lines, "event", json);
    } else if let Some(hidden) = without_values(json) {
        push_data(lines, "event", &hidden);
    }
}

/// Adds data to the lines of a reply, in the form of [`ReplyLine`](crate::api::ReplyLine).
fn push_data(lines: &mut String, name: &str, json: &str) {
    lines.push_str(&format!("{{\"protocol\":{PROTOCOL},\"reply\":{{\"data\":{{\"{name}\":"));
    lines.push_str(json);
    lines.push_str("}}}\n");
}

/// Adds the number of lost events to the lines of a reply, in the form of [`Data::Missed`](crate::api::Data::Missed).
fn push_missed(lines: &mut String, missed: u64) {
    push_data(lines, "missed", &missed.to_string());
}

impl EventQuery<'_> {
    /// Sends recorded events and then, with `follow`, new events until the daemon ends (C-19).
    pub(in crate::workers) async fn send(
        &self,
        state_directory: &Path,
        follow: bool,
        replies: &mut dyn ReplySink,
    ) -> Result<(), Reply> {
        // The subscription begins before the log is read, so that each event is sent once.
        let (lately, follower) = self.events.follow(|event| self.fits(event));
        let standing = self.events.progress().borrow().clone();
        let unreadable = |why: Unreadable| Reply::Unavailable(why.to_string());
        let directory = state_directory.to_owned();
        let opened = self.read(move || Reader::open(&directory)).await.map_err(unreadable);
        match opened {
            Ok(Some(reader)) => {
                let wanted = self.wanted.clone();
                let begin = move || {
                    let from = reader.begin(&wanted);
                    from.map(|from| (reader, from))
                };
                let (reader, from) = self.read(begin).await.map_err(unreadable)?;
                self.send_stored(reader, from, standing.last_number, replies)
                    .await
                    .map_err(unreadable)?;
            }
            // Without a log, the events in memory are sent.
            Ok(None) => {}
            Err(why) if standing.problem.is_none() => return Err(why),
            Err(_) => {}
        }
        if standing.problem.is_some() {
            let mut lines = String::new();
            for event in lately.iter().filter(|event| event.number.is_none()) {
                push(&mut lines, event.json(), self.hides_values);
            }
            replies.send_lines(&lines).await;
        }
        if follow {
            self.send_new(follower, standing.last_number, replies).await;
        }
        Ok(())
    }

    async fn send_stored(
        &self,
        mut reader: Reader,
        mut from: u64,
        last: u64,
        replies: &mut dyn ReplySink,
    ) -> Result<(), Unreadable> {
        while from <= last {
            let (wanted, hides_values) = (self.wanted.clone(), self.hides_values);
            let page = self.read(move || {
                let events = reader.read(from, last, PAGE)?;
                let next = events.last().and_then(|event| event.number).map(|number| number + 1);
                let mut lines = String::new();
                let fits = |event: &&PublishedEvent| wanted.admits(event);
                for event in events.iter().filter(fits) {
                    push(&mut lines, event.json(), hides_values);
                }
                Ok::<_, Unreadable>((reader, next, lines))
            });
            let (back, next, lines) = page.await?;
            let Some(next) = next else { return Ok(()) };
            (reader, from) = (back, next);
            if !replies.send_lines(&lines).await {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn send_new(&self, mut follower: Subscriber, last: u64, replies: &mut dyn ReplySink) {
        let is_new = |event: &Event| event.number.is_none_or(|number| number > last);
        let is_wanted = |event: &Event| is_new(event) && self.fits(event);
        let (mut lines, mut there) = (String::new(), true);
        while there {
            let Some(mut next) = follower.next_batch().await else { break };
            lines.clear();
            loop {
                match next {
                    Next::Event(event) if is_wanted(&event) => {
                        push(&mut lines, event.json(), self.hides_values);
                    }
                    Next::Event(_) => {}
                    Next::Missed(missed) => push_missed(&mut lines, missed),
                }
                match follower.try_next() {
                    Some(more) if lines.len() < ENOUGH => next = more,
                    Some(more) => {
                        // A write is limited in size; all events taken so far are sent.
                        next = more;
                        there = replies.send_lines(&std::mem::take(&mut lines)).await;
                    }
                    None => break,
                }
            }
            there = there && replies.send_lines(&lines).await;
        }
        if there {
            lines.clear();
            push_data(&mut lines, "end", "\"the daemon ends\"");
            replies.send_lines(&lines).await;
        }
    }

    /// Reads on a thread that may wait for a disk.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Unreadable> + Send + 'static,
    ) -> Result<T, Unreadable> {
        let place = wait_for_place(&self.readers)
            .await
            .map_err(|error| Unreadable::other(error.to_string()))?;
        let done = run_in_place(place, work).await;
        done.map_err(|error| Unreadable::other(error.to_string()))?
    }

    fn fits(&self, event: &Event) -> bool {
        let Wanted { from, since, .. } = &self.wanted;
        from.is_none_or(|from| event.number.is_none_or(|number| number >= from))
            && since.is_none_or(|since| event.at >= since)
            && self.wanted.admits(event)
    }
}
