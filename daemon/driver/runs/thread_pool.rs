//! A thread pool for blocking work: checks and applies that make system calls.
//!
//! The engine limits the number of jobs. Checks are quick, so a few threads serve them. An apply waits for the disk, so
//! each one gets its own thread at once, and many syncs run in parallel. Threads are added if queued work makes no
//! progress (a hanging file system).
//!
//! A wake-up costs more than a check. So a thread is woken only for a job that no awake thread will take, and the
//! driver is notified when few jobs are left, not after each job.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of waiting jobs below which the driver is notified, so that it has time to add more.
const FEW: usize = 16;

/// The time after which an idle thread ends.
const IDLE: Duration = Duration::from_secs(5);
/// The time without progress of queued work after which a thread is added.
const STALL: Duration = Duration::from_millis(5);

/// A pool of threads for one type of jobs, growing on demand up to a limit.
pub(in crate::driver) struct Pool<J>(Arc<Shared<J>>);

struct Shared<J> {
    state: Mutex<State<J>>,
    work: Condvar,
    /// Runs one job.
    act: Box<dyn Fn(J) + Send + Sync>,
    /// Notifies the driver of finished jobs: after each blocking job, and after other jobs when few are left.
    done: Box<dyn Fn() + Send + Sync>,
    base: usize,
    most: usize,
}

struct State<J> {
    /// The queue; the flag is true for a blocking job.
    jobs: VecDeque<(bool, J)>,
    threads: usize,
    /// The number of threads that wait for work and have not been woken.
    idle: usize,
    /// The number of threads that were woken and have not resumed yet.
    woken: usize,
    /// The number of threads in a blocking job.
    blocked: usize,
    /// The time at which a job was last taken, or put into an empty queue.
    moved: Instant,
    /// True if the last start of a thread failed, which is logged once.
    lacks_threads: bool,
}

impl<J> std::fmt::Debug for Pool<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.0.lock();
        f.debug_struct("Pool")
            .field("threads", &state.threads)
            .field("queued", &state.jobs.len())
            .finish()
    }
}

impl<J> State<J> {
    fn is_stalled(&self) -> bool {
        !self.jobs.is_empty() && self.moved.elapsed() > STALL
    }
}

impl<J> Shared<J> {
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J: Send + 'static> Pool<J> {
    /// Creates a pool of at most `most` threads that run jobs with `act`. The threads call `done` after each blocking
    /// job, and after other jobs when few are left; while jobs wait ([`Pool::is_waiting`]), some finished jobs may not
    /// be notified yet.
    #[must_use]
    pub(in crate::driver) fn new(
        most: usize,
        act: impl Fn(J) + Send + Sync + 'static,
        done: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let base = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        let moved = Instant::now();
        let jobs = VecDeque::new();
        let state =
            State { jobs, threads: 0, idle: 0, woken: 0, blocked: 0, moved, lacks_threads: false };
        let (state, work) = (Mutex::new(state), Condvar::new());
        let (act, done) = (Box::new(act), Box::new(done));
        Self(Arc::new(Shared { state, work, act, done, base, most }))
    }

    /// Queues a job. `blocks` means that the job waits for a device: then it gets a thread at once.
    pub(in crate::driver) fn run(&self, blocks: bool, job: J) {
        let mut state = self.0.lock();
        if state.jobs.is_empty() {
            state.moved = Instant::now();
        }
        state.jobs.push_back((blocks, job));
        // Awake threads take the job, unless it blocks or they make no progress.
        let awake = state.threads - state.idle - state.blocked;
        if blocks || awake < self.0.base || state.is_stalled() {
            self.add_hands(&mut state);
        }
    }

    /// Adds a thread if queued work makes no progress. The driver calls this periodically.
    pub(in crate::driver) fn nudge(&self) {
        let mut state = self.0.lock();
        if state.is_stalled() {
            self.add_hands(&mut state);
        }
    }

    /// Returns true if work is queued, so that [`Pool::nudge`] is useful.
    #[must_use]
    pub(in crate::driver) fn is_waiting(&self) -> bool {
        !self.0.lock().jobs.is_empty()
    }

    /// Wakes or starts one thread, unless enough threads for all jobs are on their way.
    fn add_hands(&self, state: &mut State<J>) {
        if state.woken >= state.jobs.len() {
            return;
        }
        if state.idle > 0 {
            state.idle -= 1;
            state.woken += 1;
            self.0.work.notify_one();
        } else if state.threads < self.0.most {
            self.grow(state);
        }
    }

    fn grow(&self, state: &mut State<J>) {
        let shared = Arc::clone(&self.0);
        let name = "steadfast-work".to_owned();
        match std::thread::Builder::new().name(name).spawn(move || work(&shared)) {
            Ok(_handle) => {
                state.threads += 1;
                state.lacks_threads = false;
            }
            // The other threads serve the queue; without any, the next call of `nudge` tries again.
            Err(error) if !std::mem::replace(&mut state.lacks_threads, true) => {
                tracing::warn!(%error, "cannot start a thread; retrying");
            }
            Err(_) => {}
        }
    }
}

fn work<J>(shared: &Shared<J>) {
    let mut state = shared.lock();
    loop {
        if let Some((blocks, job)) = state.jobs.pop_front() {
            state.moved = Instant::now();
            state.blocked += usize::from(blocks);
            drop(state);
            (shared.act)(job);
            state = shared.lock();
            state.blocked -= usize::from(blocks);
            // Decided after the job: with an empty queue every later end is notified.
            if blocks || state.jobs.len() < FEW {
                drop(state);
                (shared.done)();
                state = shared.lock();
            }
            continue;
        }
        state.idle += 1;
        let (next, timeout) =
            shared.work.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
        state = next;
        // Any waiting thread may get the wake-up; only the number of pending wake-ups matters.
        if state.woken > 0 {
            state.woken -= 1;
        } else {
            state.idle -= 1;
        }
        if timeout.timed_out() && state.jobs.is_empty() {
            state.threads -= 1;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    type Job = Box<dyn FnOnce() + Send>;

    fn pool(most: usize, done: impl Fn() + Send + Sync + 'static) -> Pool<Job> {
        Pool::new(most, |job: Job| job(), done)
    }

    /// E-6, F-12: hanging jobs do not keep others from running.
    #[test]
    fn a_hung_job_holds_up_nobody() {
        let pool = pool(16, || ());
        let (free, hung) = mpsc::channel::<()>();
        let hung = Arc::new(Mutex::new(hung));
        for _ in 0..8 {
            let hung = Arc::clone(&hung);
            pool.run(false, Box::new(move || drop(hung.lock().map(|h| h.recv()))));
        }
        let (done, answer) = mpsc::channel();
        pool.run(false, Box::new(move || done.send(()).expect("the test waits")));
        let deadline = Instant::now() + Duration::from_secs(30);
        while answer.try_recv().is_err() {
            assert!(Instant::now() < deadline, "the ninth job never ran");
            pool.nudge();
            std::thread::yield_now();
        }
        drop(free);
    }

    /// E-6: blocking jobs have their own threads, and leave those of quick jobs alone.
    #[test]
    fn jobs_that_block_hold_up_no_quick_one() {
        let pool = pool(16, || ());
        let (free, blocked) = mpsc::channel::<()>();
        let blocked = Arc::new(Mutex::new(blocked));
        for _ in 0..8 {
            let blocked = Arc::clone(&blocked);
            pool.run(true, Box::new(move || drop(blocked.lock().map(|b| b.recv()))));
        }
        while pool.is_waiting() {
            std::thread::yield_now();
        }
        let (done, answer) = mpsc::channel();
        // No nudge follows: the job must get a thread at once.
        pool.run(false, Box::new(move || done.send(()).expect("the test waits")));
        answer.recv_timeout(Duration::from_secs(30)).expect("the quick job never ran");
        drop(free);
    }

    /// The last job is always notified, with its result available.
    #[test]
    fn the_last_job_is_always_told() {
        let (sender, receiver) = mpsc::channel();
        let results = Arc::new(Mutex::new(0));
        let pool = pool(4, move || {
            // The test may be over.
            let _told = sender.send(());
        });
        for _ in 0..1000 {
            let results = Arc::clone(&results);
            pool.run(false, Box::new(move || *results.lock().unwrap() += 1));
        }
        let mut calls = 0;
        while *results.lock().unwrap() < 1000 {
            receiver.recv_timeout(Duration::from_secs(30)).expect("results lie there untold");
            calls += 1;
        }
        assert!(calls <= 1000, "at most once for each: {calls}");
    }
}
