//! Who writes to a store in a bucket: the object `lock.json`.
//!
//! It is made by a conditional put, renewed by the same every ten seconds in a thread of its own, and marked as free at
//! the end. One that was not renewed for a minute may be that of a run that died: it is watched for two minutes more,
//! by the clock of who watches, so that clocks that disagree cannot end a run that lives, and then taken over. Any
//! change ends the watch. One of a process of this machine that is no more is taken over at once.
//!
//! Two margins make that safe, and [`TIMES`] is checked for them. A run that lives is not taken for dead: between two
//! changes of its lock are at most a pause, a renewal that gets no answer (a put and a look, each waited for until
//! [`PATIENCE`] ends), another pause, and a put that is done late: `2 * renewed + 3 * PATIENCE < watched`. And a run
//! that is taken for dead does no harm before it knows: it removes an object only while its last renewal is fresh,
//! counted from before that put, and waits no longer than [`PATIENCE`] for the answer: `fresh + PATIENCE < watched`.
//!
//! A run whose lock was taken over ends at its next renewal; were it asleep, it could not commit, for the manifest is
//! not what it was any more.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use super::Say;
use crate::objects::{Bucket, PATIENCE, Put, Tag, When};
use crate::records::{age, short_hash};

/// The object.
const LOCK: &str = "lock.json";
/// Attempts to take it, where others try as well.
const ATTEMPTS: usize = 5;

/// How long what takes, for a lock.
#[derive(Clone, Copy)]
struct LeaseTimes {
    /// The pause between two renewals.
    renewed: Duration,
    /// Not renewed for so long, its owner may be dead.
    stale: Duration,
    /// For so long it is watched then.
    watched: Duration,
    /// How often it is looked at meanwhile.
    looked_at: Duration,
    /// Renewed within so long, it is surely still ours.
    fresh: Duration,
}

const TIMES: LeaseTimes = LeaseTimes {
    renewed: Duration::from_secs(10),
    stale: Duration::from_secs(60),
    watched: Duration::from_secs(120),
    looked_at: Duration::from_secs(1),
    fresh: Duration::from_secs(30),
};
// As told above.
const _: () = assert!(2 * TIMES.renewed.as_secs() + 3 * PATIENCE.as_secs() < TIMES.watched.as_secs());
const _: () = assert!(TIMES.fresh.as_secs() + PATIENCE.as_secs() < TIMES.watched.as_secs());
// A renewal in the pause after a quick one keeps it fresh.
const _: () = assert!(2 * TIMES.renewed.as_secs() < TIMES.fresh.as_secs());

/// The content of the object.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Lock {
    /// Whether nobody writes; all else is of the last who did.
    free: bool,
    /// Which run: its own name, never given twice.
    run: String,
    owner: LockOwner,
    /// Since when.
    since: Timestamp,
    /// When it was renewed last, by the owner's clock.
    renewed: Timestamp,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct LockOwner {
    host: String,
    process: u32,
    user: Option<String>,
    /// The machine as it runs since it was started, and what it shows as processes: where it is the same, a process
    /// that cannot be seen is no more.
    machine: Option<String>,
}

impl LockOwner {
    fn this() -> LockOwner {
        let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let processes = std::fs::read_link("/proc/self/ns/pid").ok().map(|link| link.display().to_string());
        let machine = read("/proc/sys/kernel/random/boot_id").zip(processes);
        LockOwner {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            process: std::process::id(),
            user: ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok()),
            machine: machine.map(|(boot, processes)| format!("{boot} {processes}")),
        }
    }

    /// Whether it is a process of this machine that is no more. One that may not be signalled is there, whether it can
    /// be seen in /proc or not; a number that no process can have is none's.
    fn is_gone(&self) -> bool {
        let here = LockOwner::this();
        let same = here.machine.is_some() && here.machine == self.machine && here.host == self.host;
        let process = i32::try_from(self.process).ok().and_then(Pid::from_raw);
        same && process.is_none_or(|process| test_kill_process(process) == Err(rustix::io::Errno::SRCH))
    }
}

impl Lock {
    /// Who has it, as a person is told.
    fn told(&self, now: Timestamp) -> String {
        let LockOwner { host, process, user, .. } = &self.owner;
        let user = user.as_ref().map_or(String::new(), |user| format!(" of {user}"));
        let since = self.since.strftime("%F %T UTC");
        let ago = |then: Timestamp| age(now.duration_since(then).as_secs());
        let (held, renewed) = (ago(self.since), ago(self.renewed));
        let alive = match self.renewed > now {
            true => format!("its clock is ahead: it gave a sign of life at {}", self.renewed.strftime("%F %T UTC")),
            false => format!("it gave a sign of life {renewed} ago"),
        };
        format!("process {process}{user} on {host} since {since}, for {held}; {alive}")
    }

    /// Whether its owner may be dead, as far as clocks tell: one that is set in the future tells nothing.
    fn is_stale(&self, now: Timestamp, times: LeaseTimes) -> bool {
        now.duration_since(self.renewed).unsigned_abs() >= times.stale
    }
}

/// The lock of a store in a bucket, as long as this is held.
pub(super) struct Lease {
    shared: Arc<SharedLease>,
    /// Ends the thread when it is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and the run have in common.
pub(super) struct SharedLease {
    bucket: Bucket,
    times: LeaseTimes,
    /// Held while the store is asked.
    state: Mutex<HeldLock>,
    /// Never held while the store is asked: what is decided by it is decided at once.
    standing: Mutex<LeasePhase>,
}

struct HeldLock {
    lock: Lock,
    tag: Tag,
    /// When the last renewal began that is known to be done.
    renewed: Instant,
    /// Why it is not ours any more.
    lost: Option<String>,
}

/// How far the run is that has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeasePhase {
    /// Nothing of it is published.
    Held,
    /// Its commit is under way, or nobody knows what became of it.
    Committing,
    /// All of it is published.
    Published,
    /// It will publish nothing.
    GivenUp,
}

impl Lease {
    /// Takes the lock; `lost` is called with the reason where somebody else has taken it before the commit.
    ///
    /// # Errors
    /// Where another run has it: names it, and its age. Where the service takes no notice of conditions.
    pub fn take(bucket: &Bucket, say: &Say, lost: impl Fn(&str) + Send + 'static) -> Result<Lease> {
        Lease::take_for(bucket, TIMES, say, lost)
    }

    fn take_for(bucket: &Bucket, times: LeaseTimes, say: &Say, lost: impl Fn(&str) + Send + 'static) -> Result<Lease> {
        let owner = LockOwner::this();
        for _ in 0..ATTEMPTS {
            let when = match read(bucket)? {
                None => When::Absent,
                Some((lock, tag)) if lock.free => When::Is(tag),
                Some((lock, tag)) => {
                    await_end(bucket, times, &lock, &tag, say)?;
                    When::Is(tag)
                }
            };
            let (now, renewed) = (Timestamp::now(), Instant::now());
            let run = short_hash(format!("{owner:?} {now}").as_bytes());
            let lock = Lock { free: false, run, owner: owner.clone(), since: now, renewed: now };
            let bytes = lock.bytes()?;
            if let Put::Done(tag) = bucket.put_if(LOCK, &bytes, &when)? {
                let state = Mutex::new(HeldLock { lock, tag, renewed, lost: None });
                let standing = Mutex::new(LeasePhase::Held);
                let shared = Arc::new(SharedLease { bucket: bucket.clone(), times, state, standing });
                // From here on an error frees it.
                let mut lease = Lease { shared, stop: None, thread: None };
                bucket.check_conditions(LOCK, &bytes)?;
                lease.renew_always(say, lost)?;
                return Ok(lease);
            }
        }
        bail!("{} changes all the time: other runs try to write to this store", bucket.url(LOCK))
    }

    /// Begins to renew.
    fn renew_always(&mut self, say: &Say, lost: impl Fn(&str) + Send + 'static) -> Result<()> {
        let (stop, stopped) = channel::<()>();
        let (shared, say) = (self.shared.clone(), say.clone());
        let renew = move || {
            let mut told = false;
            while stopped.recv_timeout(shared.times.renewed) == Err(RecvTimeoutError::Timeout) {
                let Err(error) = shared.renew() else {
                    told = false;
                    continue;
                };
                let (reason, silence) = shared.silence();
                if reason.is_some() || shared.standing() == LeasePhase::GivenUp {
                    // A commit that is under way knows by itself how it ends.
                    let ends = reason.filter(|_| shared.give_up());
                    return ends.iter().for_each(|reason| lost(&format!("{reason}: nothing of this run is published")));
                }
                // A network that is down is no reason to give up: nobody takes over whom nobody can see either.
                if silence >= shared.times.stale && !told {
                    told = true;
                    let (lock, silence) = (shared.bucket.url(LOCK), age(silence.as_secs() as i64));
                    say(&format!(
                        "{lock} could not be renewed for {silence}: where that goes on another run may take the store \
                         over, and this one cannot publish ({error:#})"
                    ));
                }
            }
        };
        let thread = std::thread::Builder::new().name("lock".to_owned()).spawn(renew);
        self.thread = Some(thread.context("cannot start the thread that renews the store's lock")?);
        self.stop = Some(stop);
        Ok(())
    }

    /// What the run, and a handler of signals, need of it.
    pub fn shared(&self) -> Arc<SharedLease> {
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

impl SharedLease {
    fn state(&self) -> MutexGuard<'_, HeldLock> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far the run is.
    pub fn standing(&self) -> LeasePhase {
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how far the run is; what was given up stays so. Says whether it was not.
    pub fn stand(&self, now: LeasePhase) -> bool {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        if *standing != LeasePhase::GivenUp {
            *standing = now;
        }
        *standing == now
    }

    /// Why the lock is not ours any more, where it is not, and since when it was not renewed.
    fn silence(&self) -> (Option<String>, Duration) {
        let state = self.state();
        (state.lost.clone(), state.renewed.elapsed())
    }

    /// Has the run publish nothing, from now on; says whether it is so. It is not where the commit has begun, or the
    /// lock was given up already. The store is not asked: this takes no time.
    pub fn give_up(&self) -> bool {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let held = *standing == LeasePhase::Held;
        if held {
            *standing = LeasePhase::GivenUp;
        }
        held
    }

    /// Makes sure, now, that the lock is still ours.
    ///
    /// # Errors
    /// Where it is not, or was given up, or the store does not answer.
    pub fn renew(&self) -> Result<()> {
        let mut state = self.state();
        if state.lock.free || self.standing() == LeasePhase::GivenUp {
            bail!("the lock {} was given up: nothing more is published", self.bucket.url(LOCK));
        }
        let lock = Lock { renewed: Timestamp::now(), ..state.lock.clone() };
        self.put(&mut state, lock)
    }

    /// Puts a lock in the place of ours.
    fn put(&self, state: &mut HeldLock, lock: Lock) -> Result<()> {
        if let Some(lost) = &state.lost {
            bail!("{lost}");
        }
        for _ in 0..2 {
            // From before the put: its answer may be late.
            let begun = Instant::now();
            if let Put::Done(tag) = self.bucket.put_if(LOCK, &lock.bytes()?, &When::Is(state.tag.clone()))? {
                (state.lock, state.tag, state.renewed) = (lock, tag, begun);
                return Ok(());
            }
            match read(&self.bucket)? {
                // An earlier put of ours that was taken for lost: this one is to take its place.
                Some((found, tag)) if found.run == lock.run => state.tag = tag,
                now => {
                    let other = now.map_or("it is gone".to_owned(), |(lock, _)| lock.told(Timestamp::now()));
                    let lost = format!("{} is not this run's any more ({other})", self.bucket.url(LOCK));
                    state.lost = Some(lost.clone());
                    bail!("{lost}")
                }
            }
        }
        bail!("{} changes all the time", self.bucket.url(LOCK))
    }

    /// Commits by a put, if the lock is still ours and was not given up; while it is under way it cannot be.
    ///
    /// # Errors
    /// Where the lock is not ours any more, or the put fails: then nobody knows yet whether it was done.
    pub fn commit(&self, put: impl FnOnce() -> Result<Put>) -> Result<Put> {
        self.renew()?;
        if !self.stand(LeasePhase::Committing) {
            bail!("the lock {} was given up: nothing is published", self.bucket.url(LOCK));
        }
        let put = put()?;
        self.stand(match &put {
            Put::Done(_) => LeasePhase::Published,
            Put::Refused => LeasePhase::Held,
        });
        Ok(put)
    }

    /// Whether it was renewed so recently that nobody can have taken it over.
    pub fn is_fresh(&self) -> bool {
        let state = self.state();
        let ours = state.lost.is_none() && !state.lock.free && self.standing() != LeasePhase::GivenUp;
        ours && state.renewed.elapsed() < self.times.fresh
    }

    /// Says in the store that nobody writes any more; where that does not reach it, the lock grows old.
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

fn read(bucket: &Bucket) -> Result<Option<(Lock, Tag)>> {
    let Some((bytes, tag)) = bucket.get(LOCK)? else { return Ok(None) };
    let lock = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is no lock of this nigh: remove it, if no run writes", bucket.url(LOCK)))?;
    Ok(Some((lock, tag)))
}

/// Returns when the owner of a lock is known to be dead.
fn await_end(bucket: &Bucket, times: LeaseTimes, lock: &Lock, tag: &Tag, say: &Say) -> Result<()> {
    // Since the lock was read it is watched, by this clock alone.
    let begun = Instant::now();
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
    if !lock.is_stale(now, times) {
        bail!(refused(lock));
    }
    say(&format!("the run that writes to {store} may be dead ({whose}): watching it for {:?}", times.watched));
    while begun.elapsed() < times.watched {
        std::thread::sleep(times.looked_at);
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
        let this = LockOwner::this();
        assert!(!this.is_gone());
        // The parent runs as well, and so does the first process, whoever may signal it or see it; and nothing is known
        // of other machines.
        let parent = rustix::process::getppid().map_or(1, |id| id.as_raw_nonzero().get() as u32);
        assert!(!LockOwner { process: parent, ..this.clone() }.is_gone());
        assert!(!LockOwner { process: 1, ..this.clone() }.is_gone());
        assert!(!LockOwner { machine: Some("another".into()), process: u32::MAX, ..this.clone() }.is_gone());
        if this.machine.is_some() {
            assert!(LockOwner { process: u32::MAX, ..this.clone() }.is_gone());
            let mut child = std::process::Command::new("true").spawn().unwrap();
            child.wait().unwrap();
            assert!(LockOwner { process: child.id(), ..this }.is_gone());
        }
    }

    #[test]
    fn clocks_that_tell_nothing_are_not_believed() {
        let now = Timestamp::now();
        let lock = |ago: i64| {
            let renewed = now - jiff::SignedDuration::from_secs(ago);
            Lock { free: false, run: "one".into(), owner: LockOwner::this(), since: renewed, renewed }
        };
        assert!(!lock(0).is_stale(now, TIMES) && !lock(59).is_stale(now, TIMES) && !lock(-5).is_stale(now, TIMES));
        assert!(lock(60).is_stale(now, TIMES) && lock(-3600).is_stale(now, TIMES));
        assert!(lock(-3600).told(now).contains("its clock is ahead"), "{}", lock(-3600).told(now));
    }

    #[cfg(feature = "cloud")]
    mod in_a_bucket {
        use super::*;
        use crate::objects::faulty::{Fault, faulty};

        /// As [`TIMES`], a hundred times as fast.
        const QUICK: LeaseTimes = LeaseTimes {
            renewed: Duration::from_millis(100),
            stale: Duration::from_millis(600),
            watched: Duration::from_millis(1200),
            looked_at: Duration::from_millis(10),
            fresh: Duration::from_millis(300),
        };
        /// Renewals are asked for by the test alone.
        const BY_HAND: LeaseTimes =
            LeaseTimes { renewed: Duration::from_secs(3600), fresh: Duration::from_secs(2), ..QUICK };

        type Heard = Arc<Mutex<Vec<String>>>;

        fn listen() -> (Say, Heard) {
            let heard = Heard::default();
            let said = heard.clone();
            (Arc::new(move |text: &str| said.lock().unwrap().push(text.to_owned())), heard)
        }

        fn take(bucket: &Bucket, times: LeaseTimes, say: &Say) -> Result<Lease> {
            Lease::take_for(bucket, times, say, |_| {})
        }

        /// Puts the lock of a run of another machine, as it was renewed so long ago.
        fn put_other(bucket: &Bucket, ago: i64) -> Tag {
            let renewed = Timestamp::now() - jiff::SignedDuration::from_secs(ago);
            let owner = LockOwner { machine: None, host: "node-7".into(), ..LockOwner::this() };
            let lock = Lock { free: false, run: "other".into(), owner, since: renewed, renewed };
            bucket.put(LOCK, lock.bytes().unwrap()).unwrap();
            read(bucket).unwrap().unwrap().1
        }

        fn is_free(bucket: &Bucket) -> bool {
            read(bucket).unwrap().unwrap().0.free
        }

        #[test]
        fn a_lock_that_nobody_renews_is_taken_over_after_it_was_watched() {
            let (bucket, _) = faulty(PATIENCE);
            let (say, heard) = listen();
            put_other(&bucket, 0);
            let refused = take(&bucket, QUICK, &say).err().unwrap().to_string();
            assert!(refused.contains("another run writes to the store"), "{refused}");
            for ago in [600, -3600] {
                put_other(&bucket, ago);
                let begun = Instant::now();
                drop(take(&bucket, QUICK, &say).unwrap());
                assert!(begun.elapsed() >= QUICK.watched);
                assert!(is_free(&bucket));
                let heard = std::mem::take(&mut *heard.lock().unwrap()).join("\n");
                assert!(heard.contains("may be dead") && heard.contains("it is dead"), "{heard}");
            }
        }

        #[test]
        fn any_change_ends_the_watch() {
            let (bucket, _) = faulty(PATIENCE);
            let (say, _) = listen();
            put_other(&bucket, 600);
            let owner = bucket.clone();
            let renewing = std::thread::spawn(move || {
                std::thread::sleep(QUICK.watched / 2);
                // Its clock is wrong all the same.
                put_other(&owner, 599)
            });
            let refused = take(&bucket, QUICK, &say).err().unwrap().to_string();
            assert!(refused.contains("another run writes to the store"), "{refused}");
            let tag = renewing.join().unwrap();
            assert_eq!(read(&bucket).unwrap().unwrap().1, tag);
        }

        #[test]
        fn a_renewal_counts_from_its_beginning() {
            let (bucket, fault) = faulty(PATIENCE);
            let lease = take(&bucket, BY_HAND, &listen().0).unwrap();
            assert!(lease.shared.is_fresh());
            // The answer takes longer than a renewal is fresh.
            fault.set(Fault::SlowPuts(BY_HAND.fresh));
            lease.shared.renew().unwrap();
            assert!(!lease.shared.is_fresh());
            fault.set(Fault::None);
            lease.shared.renew().unwrap();
            assert!(lease.shared.is_fresh());
        }

        #[test]
        fn a_renewal_whose_answer_was_lost_is_ours() {
            let (bucket, fault) = faulty(Duration::from_millis(500));
            let lease = take(&bucket, BY_HAND, &listen().0).unwrap();
            // Done, but neither the answer nor a look at it comes back.
            fault.set(Fault::LostAnswers);
            lease.shared.renew().unwrap_err();
            fault.set(Fault::None);
            std::thread::sleep(BY_HAND.fresh);
            assert!(!lease.shared.is_fresh());
            lease.shared.renew().unwrap();
            assert!(lease.shared.is_fresh());
        }

        #[test]
        fn who_gave_up_commits_nothing() {
            let (bucket, _) = faulty(PATIENCE);
            let lease = take(&bucket, BY_HAND, &listen().0).unwrap();
            let shared = lease.shared();
            assert!(shared.give_up());
            assert!(!shared.is_fresh());
            let error = shared.renew().unwrap_err().to_string();
            assert!(error.contains("was given up"), "{error}");
            shared.commit(|| panic!("it was given up")).unwrap_err();
            assert!(!is_free(&bucket), "the store was not asked");
            shared.free();
            assert!(is_free(&bucket));
            shared.renew().unwrap_err();
            assert!(!shared.is_fresh() && is_free(&bucket));
        }

        #[test]
        fn who_commits_cannot_give_up() {
            let (bucket, _) = faulty(PATIENCE);
            let lease = take(&bucket, BY_HAND, &listen().0).unwrap();
            let shared = lease.shared();
            shared
                .commit(|| {
                    assert!(!shared.give_up());
                    bucket.put_if("manifest.json", b"{}", &When::Absent)
                })
                .unwrap();
            assert_eq!(shared.standing(), LeasePhase::Published);
            // One that was refused leaves all as it was, and can be given up.
            shared.stand(LeasePhase::Held);
            shared.commit(|| bucket.put_if("manifest.json", b"{ }", &When::Absent)).unwrap();
            assert_eq!(shared.standing(), LeasePhase::Held);
            // What became of one without an answer is not known.
            shared.commit(|| bail!("no answer")).unwrap_err();
            assert!(!shared.give_up());
        }

        #[test]
        fn renewals_that_fail_are_told_once() {
            let (bucket, fault) = faulty(Duration::from_millis(500));
            let (say, heard) = listen();
            let lease = take(&bucket, QUICK, &say).unwrap();
            fault.set(Fault::Silent);
            std::thread::sleep(3 * QUICK.stale);
            fault.set(Fault::None);
            drop(lease);
            let heard = heard.lock().unwrap();
            assert_eq!(heard.len(), 1, "{heard:?}");
            assert!(heard[0].contains("could not be renewed") && heard[0].contains("no answer"), "{heard:?}");
            assert!(is_free(&bucket));
        }

        #[test]
        fn whose_lock_was_taken_over_is_told_so() {
            let (bucket, _) = faulty(PATIENCE);
            let (sender, reasons) = channel();
            let lost = move |reason: &str| sender.send(reason.to_owned()).unwrap();
            let lease = Lease::take_for(&bucket, QUICK, &listen().0, lost).unwrap();
            put_other(&bucket, 0);
            let reason = reasons.recv_timeout(Duration::from_secs(60)).unwrap();
            assert!(reason.contains("not this run's any more") && reason.contains("node-7"), "{reason}");
            assert!(reason.contains("nothing of this run is published"), "{reason}");
            lease.shared.commit(|| panic!("it is another's")).unwrap_err();
            drop(lease);
            assert!(!is_free(&bucket), "another's lock stays");
            // Where the commit was done, the loss does not say that it was not.
            put_other(&bucket, 0);
            bucket.remove(LOCK).unwrap();
            let lease = take(&bucket, BY_HAND, &listen().0).unwrap();
            lease.shared.stand(LeasePhase::Published);
            put_other(&bucket, 0);
            let error = lease.shared.renew().unwrap_err().to_string();
            assert!(error.contains("not this run's any more") && !error.contains("published"), "{error}");
        }

        #[test]
        fn a_service_without_conditions_keeps_no_lock() {
            let (bucket, fault) = faulty(PATIENCE);
            fault.set(Fault::NoConditions);
            let error = take(&bucket, QUICK, &listen().0).err().unwrap().to_string();
            assert!(error.contains("takes no notice of conditional puts"), "{error}");
            assert!(is_free(&bucket));
        }
    }
}
