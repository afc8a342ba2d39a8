//! The commands of the simulated host: each takes some time, can fail, and can create a file.

use crate::environment::{Shared, here, lock};
use crate::host::world::Who;
use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::host::simulated::{Machine, Running};
use steadfast_resources::host::{Captured, Command, End, Finished};
use tokio_util::sync::CancellationToken;

/// Installs the commands on a simulated host.
pub(crate) fn install(machine: &Machine, stage: &Shared) {
    let stage = Arc::clone(stage);
    machine.set_runner(move |command: &Command, stop: CancellationToken| -> Running {
        let work = work(Arc::clone(&stage), command.argv.clone(), stop);
        Box::pin(async move {
            let (end, held) = (work.await, false);
            let (stdout, stderr) = (Captured::default(), Captured::default());
            Ok(Finished { end, stdout, stderr, held })
        })
    });
}

/// A guard that counts a command as running until the guard is dropped, also after a kill.
struct InProgress(Shared, (u32, String));

impl InProgress {
    fn new(machine: Shared, command: &str) -> Self {
        let mut stage = lock(&machine);
        stage.note_deed(command);
        let this = (stage.life, command.to_owned());
        let count = stage.running.entry(this.clone()).or_default();
        *count += 1;
        if *count > 1 {
            let twice = format!("E-6: {command} runs {count} times at once");
            stage.wrong.push(twice);
        }
        drop(stage);
        Self(machine, this)
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        let mut stage = lock(&self.0);
        if let Some(count) = stage.running.get_mut(&self.1) {
            *count -= 1;
        }
        if stage.life == self.1.0 {
            let now = stage.now();
            stage.done.insert(self.1.1.clone(), now);
        }
    }
}

/// Runs `work NAME`, or `work NAME PATH`, which creates the file PATH.
async fn work(shared: Shared, argv: Vec<String>, stop: CancellationToken) -> End {
    let command = argv.get(..2).unwrap_or_default().join(" ");
    let _in_progress = InProgress::new(Arc::clone(&shared), &command);
    let (began, lasts) = {
        let mut stage = lock(&shared);
        let most = if stage.rough { stage.profile.job } else { 1 };
        (stage.now(), stage.chance.within(0, most))
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => return End::Cancelled { started: true },
        () = tokio::time::sleep(Duration::from_millis(lasts)) => {}
    }
    let mut stage = lock(&shared);
    let times = stage.profile.failures;
    if stage.rough && stage.chance.once_in(times) {
        stage.saw("a command failed");
        return End::Exited(1);
    }
    if let Some(path) = argv.get(2) {
        let made = here().write(path, "made\n");
        stage.take_in(&here(), Who::Us);
        if made.is_err() {
            return End::Exited(2);
        }
    }
    stage.ran.entry(command).or_default().push(began);
    End::Exited(0)
}
