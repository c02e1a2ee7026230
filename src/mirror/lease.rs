//! Who writes to a store in a bucket: the object `lock.json`.
//!
//! It is made by a conditional put, renewed by the same every ten seconds in a thread of its own, and marked as free at
//! the end. One that was not renewed for a minute may be that of a run that died: it is watched for twenty seconds
//! more, so that clocks that disagree cannot end a run that lives, and then taken over. One of a process of this
//! machine that is no more is taken over at once.
//!
//! A run whose lock was taken over ends at its next renewal; were it asleep, it could not commit, for the manifest is
//! not what it was any more.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::Say;
use crate::objects::{Bucket, Put, Tag, When};
use crate::records::{age, short_hash};

/// The object.
const LOCK: &str = "lock.json";
/// How often it is renewed.
const RENEWED: Duration = Duration::from_secs(10);
/// Not renewed for so long, its owner may be dead.
const STALE: SignedDuration = SignedDuration::from_secs(60);
/// For so long it is watched then.
const WATCHED: Duration = Duration::from_secs(20);
/// Renewed within so long, it is surely still ours.
const FRESH: Duration = Duration::from_secs(30);
/// Attempts to take it, where others try as well.
const ATTEMPTS: usize = 5;

/// The content of the object.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Lock {
    /// Whether nobody writes; all else is of the last who did.
    free: bool,
    /// Which run: its own name, never given twice.
    run: String,
    owner: Owner,
    /// Since when.
    since: Timestamp,
    /// When it was renewed last, by the owner's clock.
    renewed: Timestamp,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Owner {
    host: String,
    process: u32,
    user: Option<String>,
    /// The machine as it runs since it was started, and what it shows as processes: where it is the same, a process
    /// that cannot be seen is no more.
    machine: Option<String>,
}

impl Owner {
    fn this() -> Owner {
        let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let processes = std::fs::read_link("/proc/self/ns/pid").ok().map(|link| link.display().to_string());
        let machine = read("/proc/sys/kernel/random/boot_id").zip(processes);
        Owner {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            process: std::process::id(),
            user: ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok()),
            machine: machine.map(|(boot, processes)| format!("{boot} {processes}")),
        }
    }

    /// Whether it is a process of this machine that is no more.
    fn is_gone(&self) -> bool {
        let here = Owner::this();
        let same = here.machine.is_some() && here.machine == self.machine && here.host == self.host;
        same && here.process != self.process && !std::path::Path::new(&format!("/proc/{}", self.process)).exists()
    }
}

impl Lock {
    /// Who has it, as a person is told.
    fn told(&self, now: Timestamp) -> String {
        let Owner { host, process, user, .. } = &self.owner;
        let user = user.as_ref().map_or(String::new(), |user| format!(" of {user}"));
        let since = self.since.strftime("%F %T UTC");
        let ago = |then: Timestamp| age(now.duration_since(then).as_secs());
        let (held, renewed) = (ago(self.since), ago(self.renewed));
        format!("process {process}{user} on {host} since {since}, for {held}; it gave a sign of life {renewed} ago")
    }
}

/// The lock of a store in a bucket, as long as this is held.
pub(super) struct Lease {
    shared: Arc<Shared>,
    /// Ends the thread when it is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and the run have in common.
pub(super) struct Shared {
    bucket: Bucket,
    state: Mutex<State>,
}

struct State {
    lock: Lock,
    tag: Tag,
    renewed: Instant,
    /// Why it is not ours any more.
    lost: Option<String>,
}

impl Lease {
    /// Takes the lock; `lost` is called with the reason where somebody else has taken it meanwhile.
    ///
    /// # Errors
    /// Where another run has it: names it, and its age. Where the service takes no notice of conditions.
    pub fn take(bucket: &Bucket, say: &Say, lost: impl Fn(&str) + Send + 'static) -> Result<Lease> {
        let owner = Owner::this();
        for _ in 0..ATTEMPTS {
            let when = match read(bucket)? {
                None => When::Absent,
                Some((lock, tag)) if lock.free => When::Is(tag),
                Some((lock, tag)) => {
                    await_end(bucket, &lock, &tag, say)?;
                    When::Is(tag)
                }
            };
            let now = Timestamp::now();
            let run = short_hash(format!("{owner:?} {now}").as_bytes());
            let lock = Lock { free: false, run, owner: owner.clone(), since: now, renewed: now };
            let bytes = lock.bytes()?;
            if let Put::Done(tag) = bucket.put_if(LOCK, &bytes, &when)? {
                bucket.check_conditions(LOCK, &bytes)?;
                let state = State { lock, tag, renewed: Instant::now(), lost: None };
                let shared = Arc::new(Shared { bucket: bucket.clone(), state: Mutex::new(state) });
                return Lease::renewing(shared, lost);
            }
        }
        bail!("{} changes all the time: other runs try to write to this store", bucket.url(LOCK))
    }

    /// Begins to renew.
    fn renewing(shared: Arc<Shared>, lost: impl Fn(&str) + Send + 'static) -> Result<Lease> {
        let (stop, stopped) = channel::<()>();
        let renewed = shared.clone();
        let renew = move || {
            while stopped.recv_timeout(RENEWED) == Err(RecvTimeoutError::Timeout) {
                // A network that is down is no reason to give up: nobody takes over whom nobody can see either.
                let _ = renewed.renew();
                if let Some(reason) = &renewed.state().lost {
                    return lost(reason);
                }
            }
        };
        let thread = std::thread::Builder::new().name("lock".to_owned()).spawn(renew);
        let thread = Some(thread.context("cannot start the thread that renews the store's lock")?);
        Ok(Lease { shared, stop: Some(stop), thread })
    }

    /// What a handler of signals needs to free the lock.
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
        self.shared.free();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes sure, now, that the lock is still ours.
    ///
    /// # Errors
    /// Where it is not, or the store does not answer.
    pub fn renew(&self) -> Result<()> {
        let mut state = self.state();
        if let Some(lost) = &state.lost {
            bail!("{lost}");
        }
        let lock = Lock { renewed: Timestamp::now(), ..state.lock.clone() };
        match self.bucket.put_if(LOCK, &lock.bytes()?, &When::Is(state.tag.clone()))? {
            Put::Done(tag) => {
                (state.lock, state.tag, state.renewed) = (lock, tag, Instant::now());
                Ok(())
            }
            Put::Refused => {
                let now = read(&self.bucket)?;
                if let Some((lock, tag)) = &now
                    && lock.run == state.lock.run
                {
                    // An earlier renewal that was taken for lost.
                    (state.lock, state.tag) = (lock.clone(), tag.clone());
                    return Ok(());
                }
                let other = now.map_or("it is gone".to_owned(), |(lock, _)| lock.told(Timestamp::now()));
                let lock = self.bucket.url(LOCK);
                let lost = format!("{lock} is not this run's any more ({other}): nothing was published");
                state.lost = Some(lost.clone());
                bail!("{lost}")
            }
        }
    }

    /// Whether it was renewed so recently that nobody can have taken it over.
    pub fn is_fresh(&self) -> bool {
        let state = self.state();
        state.lost.is_none() && state.renewed.elapsed() < FRESH
    }

    /// Says that nobody writes any more; where that does not reach the store, the lock grows old.
    pub fn free(&self) {
        let mut state = self.state();
        if state.lost.is_none() && !state.lock.free {
            state.lock.free = true;
            if let Ok(bytes) = state.lock.bytes() {
                let _ = self.bucket.put_if(LOCK, &bytes, &When::Is(state.tag.clone()));
            }
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

fn read(bucket: &Bucket) -> Result<Option<(Lock, Tag)>> {
    let Some((bytes, tag)) = bucket.get(LOCK)? else { return Ok(None) };
    let lock = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is no lock of this nigh: remove it, if no run writes", bucket.url(LOCK)))?;
    Ok(Some((lock, tag)))
}

/// Returns when the owner of a lock is known to be dead.
fn await_end(bucket: &Bucket, lock: &Lock, tag: &Tag, say: &Say) -> Result<()> {
    let now = Timestamp::now();
    let (store, whose) = (bucket.url(""), lock.told(now));
    let refused = |lock: &Lock| {
        format!(
            "another run writes to the store {store} ({}): wait for it, or take another --store",
            lock.told(Timestamp::now())
        )
    };
    if lock.owner.is_gone() {
        say(&format!("the run that wrote to {store} is no more ({whose}): its lock is taken over"));
        return Ok(());
    }
    if now.duration_since(lock.renewed) < STALE {
        bail!(refused(lock));
    }
    say(&format!("the run that writes to {store} may be dead ({whose}): watching it for {WATCHED:?}"));
    let begun = Instant::now();
    while begun.elapsed() < WATCHED {
        std::thread::sleep(Duration::from_secs(1));
        match read(bucket)? {
            Some((_, found)) if found == *tag => {}
            Some((lock, _)) if !lock.free => bail!(refused(&lock)),
            // Free, or gone: the put that follows finds out.
            _ => return Ok(()),
        }
    }
    say(&format!("it is dead: the lock of {store} is taken over"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_runs_is_not_gone() {
        let this = Owner::this();
        assert!(!this.is_gone());
        // The parent runs as well; and nothing is known of other machines.
        let parent = rustix::process::getppid().map_or(1, |id| id.as_raw_nonzero().get() as u32);
        assert!(!Owner { process: parent, ..this.clone() }.is_gone());
        assert!(!Owner { machine: Some("another".into()), process: u32::MAX, ..this.clone() }.is_gone());
        if this.machine.is_some() {
            assert!(Owner { process: u32::MAX, ..this }.is_gone());
        }
    }
}
