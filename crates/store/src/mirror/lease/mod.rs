//! The lease of a run on a store in a bucket: the object `_nigh/lock.json`, which says which run
//! may write.
//!
//! A run makes the lock by a conditional put, renews it every ten seconds in a separate thread,
//! again by conditional puts, and marks it as free at the end. A lock that was not renewed for a
//! minute may belong to a dead run. Another run then watches it for two more minutes and takes it
//! over if it does not change; any change ends the watch. The watch uses only the clock of the
//! watching machine, so clocks that disagree cannot end a run that is alive. The lock of a process
//! of this machine that has ended is taken over at once.
//!
//! Two margins make this safe; assertions check them for [`TIMES`].
//!
//! - A live run is never taken for dead. Between two changes of its lock lie at most a pause, a
//!   renewal without a response (a put and a read, each of which takes at most [`PATIENCE`]),
//!   another pause, and a put that is done late: `2 * renewed + 3 * PATIENCE < watched`.
//! - A run that was taken for dead does no harm before it notices. It removes an object only while
//!   its last renewal is fresh, counted from before that renewal's put, and waits at most
//!   [`PATIENCE`] for the response: `fresh + PATIENCE < watched`.
//!
//! A run whose lock was taken over ends at its next renewal. A run that was suspended at that time
//! cannot commit either, because the manifest has changed since the run began.

#[cfg(test)]
mod tests;

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use super::Notify;
use crate::config::age;
use crate::objects::{Bucket, ObjectVersion, PATIENCE, PutCondition, PutOutcome};
use crate::records::short_hash;

/// The key of the lock.
const LOCK: &str = "_nigh/lock.json";
/// How often taking the lock is tried while other runs try it too.
const ATTEMPTS: usize = 5;

/// The intervals by which a lock is renewed and taken over.
#[derive(Clone, Copy)]
struct LeaseTimes {
    /// The pause between two renewals.
    renewed: Duration,
    /// The owner of a lock that was not renewed for this long may be dead.
    stale: Duration,
    /// How long another run watches a stale lock before it takes it over.
    watched: Duration,
    /// The pause between two reads of a watched lock.
    looked_at: Duration,
    /// A lock that was renewed within this time certainly still belongs to its run.
    fresh: Duration,
}

const TIMES: LeaseTimes = LeaseTimes {
    renewed: Duration::from_secs(10),
    stale: Duration::from_secs(60),
    watched: Duration::from_secs(120),
    looked_at: Duration::from_secs(1),
    fresh: Duration::from_secs(30),
};
// The two margins described above.
const _: () = assert!(2 * TIMES.renewed.as_secs() + 3 * PATIENCE.as_secs() < TIMES.watched.as_secs());
const _: () = assert!(TIMES.fresh.as_secs() + PATIENCE.as_secs() < TIMES.watched.as_secs());
// The next renewal comes early enough to keep the lock fresh.
const _: () = assert!(2 * TIMES.renewed.as_secs() < TIMES.fresh.as_secs());

/// The content of `lock.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Lock {
    /// Whether no run has the lock; then the other fields are those of the last run that had it.
    free: bool,
    /// The run that has the lock: a hash that no other run has.
    run: String,
    owner: LockOwner,
    /// When the run took the lock.
    since: Timestamp,
    /// When the run last renewed the lock, by its own clock.
    renewed: Timestamp,
}

/// The process that has a lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct LockOwner {
    host: String,
    process: u32,
    user: Option<String>,
    /// The boot of the machine and the namespace of its process numbers. If both are the same, a
    /// process whose number does not exist has ended.
    machine: Option<String>,
}

impl LockOwner {
    /// This process.
    fn this() -> LockOwner {
        let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok().map(|link| link.display().to_string());
        let machine = read("/proc/sys/kernel/random/boot_id").zip(namespace);
        LockOwner {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            process: std::process::id(),
            user: ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok()),
            machine: machine.map(|(boot, namespace)| format!("{boot} {namespace}")),
        }
    }

    /// Whether this is a process of this machine that has ended. A process that may not be
    /// signalled exists, even if /proc does not show it. A number that no process can have does not
    /// exist.
    fn is_gone(&self) -> bool {
        let this = LockOwner::this();
        let same = this.machine.is_some() && this.machine == self.machine && this.host == self.host;
        let process = i32::try_from(self.process).ok().and_then(Pid::from_raw);
        same && process.is_none_or(|process| test_kill_process(process) == Err(rustix::io::Errno::SRCH))
    }
}

impl Lock {
    /// Describes the owner of the lock, and when it took and renewed it, for a message.
    fn describe(&self, now: Timestamp) -> String {
        let LockOwner { host, process, user, .. } = &self.owner;
        let user = user.as_ref().map_or(String::new(), |user| format!(" of {user}"));
        let since = self.since.strftime("%F %T UTC");
        let ago = |then: Timestamp| age(now.duration_since(then).as_secs());
        let (held, renewed) = (ago(self.since), ago(self.renewed));
        let renewal = if self.renewed > now {
            format!("its clock is ahead: it renewed the lock at {}", self.renewed.strftime("%F %T UTC"))
        } else {
            format!("it renewed the lock {renewed} ago")
        };
        format!("process {process}{user} on {host} since {since}, for {held}; {renewal}")
    }

    /// Whether the lock was not renewed for a while, by both clocks. A time far in the future
    /// counts as stale too: it says nothing about the owner, and the watch decides.
    fn is_stale(&self, now: Timestamp, times: LeaseTimes) -> bool {
        now.duration_since(self.renewed).unsigned_abs() >= times.stale
    }
}

/// The lock of a store in a bucket. Dropping it frees the lock.
pub(super) struct Lease {
    shared: Arc<SharedLease>,
    /// Dropping this ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The part of a lease that the renewing thread, the run and a signal handler share.
pub(super) struct SharedLease {
    bucket: Bucket,
    times: LeaseTimes,
    /// Locked during requests to the bucket.
    state: Mutex<HeldLock>,
    /// Never locked during a request, so that a change of phase takes no time.
    phase: Mutex<LeasePhase>,
}

/// The run's own lock, as it last put it.
struct HeldLock {
    lock: Lock,
    tag: ObjectVersion,
    /// When the last renewal that is known to be done began.
    renewed: Instant,
    /// Why the run no longer has the lock, if it lost it.
    lost: Option<String>,
}

/// How far the run that has the lock has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeasePhase {
    /// Nothing of the run is published.
    Held,
    /// The commit is under way, or its outcome is unknown.
    Committing,
    /// Everything the run made is published.
    Published,
    /// The run will publish nothing.
    GivenUp,
}

impl Lease {
    /// Takes the lock and starts to renew it. If another run takes it over before the commit,
    /// `lost` is called with the reason.
    ///
    /// # Errors
    /// If another run has the lock: the message describes that run. If the service ignores
    /// conditions.
    pub fn take(bucket: &Bucket, say: &Notify, lost: impl Fn(&str) + Send + 'static) -> Result<Lease> {
        Lease::take_for(bucket, TIMES, say, lost)
    }

    fn take_for(
        bucket: &Bucket,
        times: LeaseTimes,
        say: &Notify,
        lost: impl Fn(&str) + Send + 'static,
    ) -> Result<Lease> {
        let owner = LockOwner::this();
        for _ in 0..ATTEMPTS {
            let when = match read(bucket)? {
                None => PutCondition::Absent,
                Some((lock, tag)) if lock.free => PutCondition::Is(tag),
                Some((lock, tag)) => {
                    await_end(bucket, times, &lock, &tag, say)?;
                    PutCondition::Is(tag)
                }
            };
            let (now, renewed) = (Timestamp::now(), Instant::now());
            let run = short_hash(format!("{owner:?} {now}").as_bytes());
            let lock = Lock { free: false, run, owner: owner.clone(), since: now, renewed: now };
            let bytes = lock.bytes()?;
            if let PutOutcome::Done(tag) = bucket.put_if(LOCK, &bytes, &when)? {
                let state = Mutex::new(HeldLock { lock, tag, renewed, lost: None });
                let phase = Mutex::new(LeasePhase::Held);
                let shared = Arc::new(SharedLease { bucket: bucket.clone(), times, state, phase });
                // From here on an error drops the lease, which frees the lock.
                let mut lease = Lease { shared, stop: None, thread: None };
                bucket.check_conditions(LOCK, &bytes)?;
                lease.start_renewing(say, lost)?;
                return Ok(lease);
            }
        }
        bail!("{} keeps changing: other runs try to write to this store", bucket.url(LOCK))
    }

    /// Starts the thread that renews the lock.
    fn start_renewing(&mut self, say: &Notify, lost: impl Fn(&str) + Send + 'static) -> Result<()> {
        let (stop, stopped) = channel::<()>();
        let shared = self.shared.clone();
        let say = say.clone();
        let renew = move || {
            let mut warned = false;
            while stopped.recv_timeout(shared.times.renewed) == Err(RecvTimeoutError::Timeout) {
                let Err(error) = shared.renew() else {
                    warned = false;
                    continue;
                };
                let (reason, silence) = shared.silence();
                if reason.is_some() || shared.phase() == LeasePhase::GivenUp {
                    // If the commit is under way, the run learns its outcome from the commit
                    // itself.
                    if let Some(reason) = reason.filter(|_| shared.give_up()) {
                        lost(&format!("{reason}: nothing of this run is published"));
                    }
                    return;
                }
                // The run goes on while the network is down: it may come back before another run
                // takes the lock over.
                if silence >= shared.times.stale && !warned {
                    warned = true;
                    let (lock, silence) = (shared.bucket.url(LOCK), age(silence.as_secs() as i64));
                    say(&format!(
                        "{lock} could not be renewed for {silence}: if this goes on, another run may take over the store, \
                         and this run cannot publish ({error:#})"
                    ));
                }
            }
        };
        let thread = std::thread::Builder::new().name("lock".to_owned()).spawn(renew);
        self.thread = Some(thread.context("cannot start the thread that renews the store's lock")?);
        self.stop = Some(stop);
        Ok(())
    }

    /// The shared part, for the run and a signal handler.
    pub fn shared(&self) -> Arc<SharedLease> {
        self.shared.clone()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread has no result.
            let _ = thread.join();
        }
        self.shared.free();
    }
}

impl SharedLease {
    fn state(&self) -> MutexGuard<'_, HeldLock> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The phase of the run.
    pub fn phase(&self) -> LeasePhase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a phase. A lease that was given up stays so; returns whether the phase was entered.
    pub fn enter(&self, next: LeasePhase) -> bool {
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        if *phase != LeasePhase::GivenUp {
            *phase = next;
        }
        *phase == next
    }

    /// Why the run lost the lock, if it did; and for how long the lock was not renewed.
    fn silence(&self) -> (Option<String>, Duration) {
        let state = self.state();
        (state.lost.clone(), state.renewed.elapsed())
    }

    /// Gives the lease up: from now on the run publishes nothing. Returns false, and does nothing,
    /// if the commit has begun or the lease was given up before. Sends no request, so it takes no
    /// time.
    pub fn give_up(&self) -> bool {
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        let held = *phase == LeasePhase::Held;
        if held {
            *phase = LeasePhase::GivenUp;
        }
        held
    }

    /// Renews the lock, which proves that the run still has it.
    ///
    /// # Errors
    /// If the run lost the lock or gave it up, or the service does not respond.
    pub fn renew(&self) -> Result<()> {
        let mut state = self.state();
        if state.lock.free || self.phase() == LeasePhase::GivenUp {
            bail!("the lock {} was given up: nothing more is published", self.bucket.url(LOCK));
        }
        let lock = Lock { renewed: Timestamp::now(), ..state.lock.clone() };
        self.put(&mut state, lock)
    }

    /// Puts a lock in the place of the run's own one.
    fn put(&self, state: &mut HeldLock, lock: Lock) -> Result<()> {
        if let Some(lost) = &state.lost {
            bail!("{lost}");
        }
        for _ in 0..2 {
            // The renewal counts from before the put, because the response may be late.
            let begun = Instant::now();
            if let PutOutcome::Done(tag) =
                self.bucket.put_if(LOCK, &lock.bytes()?, &PutCondition::Is(state.tag.clone()))?
            {
                (state.lock, state.tag, state.renewed) = (lock, tag, begun);
                return Ok(());
            }
            match read(&self.bucket)? {
                // An earlier put of this run, whose response was lost, was done after all: put
                // again in its place.
                Some((current, tag)) if current.run == lock.run => state.tag = tag,
                current => {
                    let owner = current.map_or("it is gone".to_owned(), |(lock, _)| lock.describe(Timestamp::now()));
                    let lost = format!("this run no longer has the lock {} ({owner})", self.bucket.url(LOCK));
                    state.lost = Some(lost.clone());
                    bail!("{lost}")
                }
            }
        }
        bail!("{} keeps changing", self.bucket.url(LOCK))
    }

    /// Commits by a put, if the run still has the lock and has not given it up. It cannot be given
    /// up during the put.
    ///
    /// # Errors
    /// If the run lost the lock or gave it up. If the put fails: then it is unknown whether it was
    /// done.
    pub fn commit(&self, put: impl FnOnce() -> Result<PutOutcome>) -> Result<PutOutcome> {
        self.renew()?;
        if !self.enter(LeasePhase::Committing) {
            bail!("the lock {} was given up: nothing is published", self.bucket.url(LOCK));
        }
        let put = put()?;
        self.enter(match &put {
            PutOutcome::Done(_) => LeasePhase::Published,
            PutOutcome::Refused => LeasePhase::Held,
        });
        Ok(put)
    }

    /// Whether the lock was renewed so recently that no other run can have taken it over.
    pub fn is_fresh(&self) -> bool {
        let state = self.state();
        let holds = state.lost.is_none() && !state.lock.free && self.phase() != LeasePhase::GivenUp;
        holds && state.renewed.elapsed() < self.times.fresh
    }

    /// Marks the lock as free. If the service does not respond, the lock becomes stale by itself.
    pub fn free(&self) {
        self.give_up();
        let mut state = self.state();
        if !state.lock.free {
            state.lock.free = true;
            let lock = state.lock.clone();
            let _ = self.put(&mut state, lock);
        }
    }
}

impl Lock {
    fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self).context("a lock is plain data")?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

fn read(bucket: &Bucket) -> Result<Option<(Lock, ObjectVersion)>> {
    let Some((bytes, tag)) = bucket.get(LOCK)? else { return Ok(None) };
    let lock = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is not a lock of this nigh: remove it, if no run writes", bucket.url(LOCK)))?;
    Ok(Some((lock, tag)))
}

/// Returns when the owner of a lock is known to be dead, or the lock is free.
///
/// Morally it does this:
///
/// ```text
/// if the owner is an ended process of this machine: return
/// if the lock was renewed within the last minute: fail
/// for two minutes by this machine's clock:
///     if the lock changes: return if it is free or gone, else fail
/// return
/// ```
///
/// # Errors
/// If the owner is alive: the lock is not stale, or changes during the watch.
fn await_end(bucket: &Bucket, times: LeaseTimes, lock: &Lock, tag: &ObjectVersion, say: &Notify) -> Result<()> {
    // The watch begins now and uses this machine's clock only.
    let begun = Instant::now();
    let now = Timestamp::now();
    let (store, owner) = (bucket.url(""), lock.describe(now));
    let refused = |lock: &Lock| {
        format!(
            "another run writes to the store {store} ({}): wait for it, or use another --store",
            lock.describe(Timestamp::now())
        )
    };
    if lock.owner.is_gone() {
        say(&format!("the last run on {store} has ended without freeing its lock ({owner}): taking over the lock"));
        return Ok(());
    }
    if !lock.is_stale(now, times) {
        bail!(refused(lock));
    }
    say(&format!("the run that writes to {store} may be dead ({owner}): watching its lock for {:?}", times.watched));
    while begun.elapsed() < times.watched {
        std::thread::sleep(times.looked_at);
        match read(bucket)? {
            Some((_, current)) if current == *tag => {}
            Some((lock, _)) if !lock.free => bail!(refused(&lock)),
            // Free or gone: the conditional put that follows decides.
            _ => return Ok(()),
        }
    }
    say(&format!("the run on {store} is dead: taking over its lock"));
    Ok(())
}
