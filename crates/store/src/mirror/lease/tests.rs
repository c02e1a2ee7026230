//! Leases: which lock is of a process that runs, and who has it while several runs want it.

use super::*;

#[test]
fn a_process_that_runs_is_not_gone() {
    let this = LockOwner::this();
    assert!(!this.is_gone());
    // The parent runs as well, and so does the first process, even if this user may not signal
    // or see it. Of another machine's processes nothing is known.
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
fn a_lock_is_stale_after_a_minute_by_clocks_that_differ_either_way() {
    let now = Timestamp::now();
    let lock = |ago: i64| {
        let renewed = now - jiff::SignedDuration::from_secs(ago);
        Lock { free: false, run: "one".into(), owner: LockOwner::this(), since: renewed, renewed }
    };
    assert!(!lock(0).is_stale(now, TIMES) && !lock(59).is_stale(now, TIMES) && !lock(-5).is_stale(now, TIMES));
    assert!(lock(60).is_stale(now, TIMES) && lock(-3600).is_stale(now, TIMES));
    assert!(lock(-3600).describe(now).contains("its clock is ahead"), "{}", lock(-3600).describe(now));
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
    /// For tests that renew the lock themselves: the thread does not.
    const BY_HAND: LeaseTimes =
        LeaseTimes { renewed: Duration::from_secs(3600), fresh: Duration::from_secs(2), ..QUICK };

    type Messages = Arc<Mutex<Vec<String>>>;

    /// A receiver of messages, and what it has received.
    fn listen() -> (Notify, Messages) {
        let messages = Messages::default();
        let say: Notify = {
            let messages = messages.clone();
            Arc::new(move |text: &str| messages.lock().unwrap().push(text.to_owned()))
        };
        (say, messages)
    }

    fn take(bucket: &Bucket, times: LeaseTimes, say: &Notify) -> Result<Lease> {
        Lease::take_for(bucket, times, say, |_| {})
    }

    /// Puts the lock of a run of another machine, renewed `ago` seconds ago.
    fn put_other(bucket: &Bucket, ago: i64) -> ObjectVersion {
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
    fn a_stale_lock_is_taken_over_after_it_was_watched() {
        let (bucket, _) = faulty(PATIENCE);
        let (say, messages) = listen();
        put_other(&bucket, 0);
        let refused = take(&bucket, QUICK, &say).err().unwrap().to_string();
        assert!(refused.contains("another run writes to the store"), "{refused}");
        for ago in [600, -3600] {
            put_other(&bucket, ago);
            let begun = Instant::now();
            drop(take(&bucket, QUICK, &say).unwrap());
            assert!(begun.elapsed() >= QUICK.watched);
            assert!(is_free(&bucket));
            let said = std::mem::take(&mut *messages.lock().unwrap()).join("\n");
            assert!(said.contains("may be dead") && said.contains("is dead: taking over its lock"), "{said}");
        }
    }

    #[test]
    fn a_lock_that_changes_during_the_watch_is_not_taken_over() {
        let (bucket, _) = faulty(PATIENCE);
        let (say, _) = listen();
        put_other(&bucket, 600);
        let owner = bucket.clone();
        let renewing = std::thread::spawn(move || {
            std::thread::sleep(QUICK.watched / 2);
            // By its wrong clock the renewal is old: only the change counts.
            put_other(&owner, 599)
        });
        let refused = take(&bucket, QUICK, &say).err().unwrap().to_string();
        assert!(refused.contains("another run writes to the store"), "{refused}");
        let tag = renewing.join().unwrap();
        assert_eq!(read(&bucket).unwrap().unwrap().1, tag);
    }

    #[test]
    fn a_renewal_counts_from_before_its_put() {
        let (bucket, fault) = faulty(PATIENCE);
        let lease = take(&bucket, BY_HAND, &listen().0).unwrap();
        assert!(lease.shared.is_fresh());
        // The response takes longer than a renewal is fresh.
        fault.set(Fault::SlowPuts(BY_HAND.fresh));
        lease.shared.renew().unwrap();
        assert!(!lease.shared.is_fresh());
        fault.set(Fault::None);
        lease.shared.renew().unwrap();
        assert!(lease.shared.is_fresh());
    }

    #[test]
    fn a_renewal_whose_response_was_lost_does_not_lose_the_lock() {
        let (bucket, fault) = faulty(Duration::from_millis(500));
        let lease = take(&bucket, BY_HAND, &listen().0).unwrap();
        // The put is done, but neither it nor the read after it gets a response.
        fault.set(Fault::LostAnswers);
        lease.shared.renew().unwrap_err();
        fault.set(Fault::None);
        std::thread::sleep(BY_HAND.fresh);
        assert!(!lease.shared.is_fresh());
        lease.shared.renew().unwrap();
        assert!(lease.shared.is_fresh());
    }

    #[test]
    fn a_run_that_gave_up_commits_nothing() {
        let (bucket, _) = faulty(PATIENCE);
        let lease = take(&bucket, BY_HAND, &listen().0).unwrap();
        let shared = lease.shared();
        assert!(shared.give_up());
        assert!(!shared.is_fresh());
        let error = shared.renew().unwrap_err().to_string();
        assert!(error.contains("was given up"), "{error}");
        shared.commit(|| panic!("it was given up")).unwrap_err();
        assert!(!is_free(&bucket), "giving up sends no request");
        shared.free();
        assert!(is_free(&bucket));
        shared.renew().unwrap_err();
        assert!(!shared.is_fresh() && is_free(&bucket));
    }

    #[test]
    fn a_run_that_commits_cannot_give_up() {
        let (bucket, _) = faulty(PATIENCE);
        let lease = take(&bucket, BY_HAND, &listen().0).unwrap();
        let shared = lease.shared();
        shared
            .commit(|| {
                assert!(!shared.give_up());
                bucket.put_if("manifest.json", b"{}", &PutCondition::Absent)
            })
            .unwrap();
        assert_eq!(shared.phase(), LeasePhase::Published);
        // A refused commit changes nothing, and the lease can be given up after it.
        shared.enter(LeasePhase::Held);
        shared.commit(|| bucket.put_if("manifest.json", b"{ }", &PutCondition::Absent)).unwrap();
        assert_eq!(shared.phase(), LeasePhase::Held);
        // The outcome of a commit without a response is unknown: the lease cannot be given up.
        shared.commit(|| bail!("no response")).unwrap_err();
        assert!(!shared.give_up());
    }

    #[test]
    fn failing_renewals_are_reported_once() {
        let (bucket, fault) = faulty(Duration::from_millis(500));
        let (say, messages) = listen();
        let lease = take(&bucket, QUICK, &say).unwrap();
        fault.set(Fault::Silent);
        std::thread::sleep(3 * QUICK.stale);
        fault.set(Fault::None);
        drop(lease);
        let messages = messages.lock().unwrap();
        assert_eq!(messages.len(), 1, "{messages:?}");
        let said = &messages[0];
        assert!(said.contains("could not be renewed") && said.contains("no response"), "{said}");
        assert!(is_free(&bucket));
    }

    #[test]
    fn a_run_whose_lock_was_taken_over_learns_the_reason() {
        let (bucket, _) = faulty(PATIENCE);
        let (sender, reasons) = channel();
        let lost = move |reason: &str| sender.send(reason.to_owned()).unwrap();
        let lease = Lease::take_for(&bucket, QUICK, &listen().0, lost).unwrap();
        put_other(&bucket, 0);
        let reason = reasons.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(reason.contains("this run no longer has the lock") && reason.contains("node-7"), "{reason}");
        assert!(reason.contains("nothing of this run is published"), "{reason}");
        lease.shared.commit(|| panic!("another run has the lock")).unwrap_err();
        drop(lease);
        assert!(!is_free(&bucket), "the other run's lock stays");
        // After a commit the message does not say that nothing was published.
        put_other(&bucket, 0);
        bucket.remove(LOCK).unwrap();
        let lease = take(&bucket, BY_HAND, &listen().0).unwrap();
        lease.shared.enter(LeasePhase::Published);
        put_other(&bucket, 0);
        let error = lease.shared.renew().unwrap_err().to_string();
        assert!(error.contains("this run no longer has the lock") && !error.contains("published"), "{error}");
    }

    #[test]
    fn a_lock_is_refused_by_a_service_that_ignores_conditions() {
        let (bucket, fault) = faulty(PATIENCE);
        fault.set(Fault::NoConditions);
        let error = take(&bucket, QUICK, &listen().0).err().unwrap().to_string();
        assert!(error.contains("ignores the condition of a put"), "{error}");
        assert!(is_free(&bucket));
    }
}
