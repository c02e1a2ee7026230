//! The supervisor: runs generations of processes until one succeeds.
//!
//! Timely is fail-stop: no single process recovers. When a process fails or is silent, or all
//! processes wait for each other, the supervisor ends the whole generation, reports the cause, and
//! starts the next one, which continues from what is committed. An error that would only repeat (a
//! bad job, too many rejects, a full disk) is final: the process that has it reports it.
//!
//! Generations need not have the same processes: hosts that are missing for long are left out, and
//! those that are back are taken in after a wave, or after a failure ([`PoolHosts`]). What a
//! process does depends on its rank in the generation; its name, key and messages have the number
//! of its host.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::generation::{Generation, GenerationEnd, GenerationFailure};
use super::lookout::Lookout;
use super::pool_hosts::{Missing, PoolHosts};
use super::process::Outcome;
use super::restart_limit::RestartLimit;
use crate::launch::Agents;
use crate::launch::events::{EventSink, ProcessEvent};
use crate::launch::handshake::{Identity, Secrets};
use crate::launch::process_hosts::{HostReach, Pool};
use crate::watch::Progress;

/// The pauses before the next attempt when a host could not be reached: it may be starting.
const HOST_PAUSES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(15), Duration::from_secs(60)];
/// How long a run that has too few hosts looks whether another one is back, before it fails.
const LAST_LOOK: Duration = Duration::from_secs(10);

/// The work of a generation.
pub struct GenerationWork {
    /// Returns it as JSON, for so many processes.
    text: Box<dyn Fn(usize) -> Result<String>>,
    /// How much is committed: more than at another time means that the run got further.
    committed: u64,
}

impl GenerationWork {
    /// Work whose text depends on the number of processes.
    pub fn new(committed: u64, text: impl Fn(usize) -> Result<String> + 'static) -> GenerationWork {
        GenerationWork { text: Box::new(text), committed }
    }

    /// Work that is the same for any number of processes.
    pub fn fixed(text: String) -> GenerationWork {
        GenerationWork::new(0, move |_| Ok(text.clone()))
    }
}

/// Returns the work of a generation by its number; `None` if everything is committed.
pub type Plans<'a> = dyn FnMut(u64) -> Result<Option<GenerationWork>> + 'a;

/// Runs the pool's processes until a generation succeeds, a failure is final, or no restart is
/// left.
///
/// `plans` returns the work of a generation by its number, from 0. It is called when no process of
/// the generation before runs any more, so that it sees what is committed; also after the last
/// generation, for which no restart is left. `None` means that everything is committed.
/// `progresses` receives the counters of every process.
///
/// A generation has the hosts that can be used: see `pool_hosts.rs`.
///
/// # Errors
/// Processes cannot be started on this machine, or `plans` fails. The address of a host is not
/// known, and the run needs all of its hosts.
pub fn supervise(
    pool: &Pool,
    plans: &mut Plans<'_>,
    progresses: &Arc<Mutex<Vec<Progress>>>,
    events: &EventSink,
) -> Result<Outcome> {
    let mut run = Supervised {
        pool,
        hosts: PoolHosts::new(pool.processes(), pool.min_processes, pool.grace),
        lookout: Lookout::new(Vec::new(), pool.rejoin),
        limit: RestartLimit::new(pool.restarts),
        events,
        epoch: 0,
        restarts: 0,
        attempts: 0,
        taken_back: 0,
    };
    if !run.hosts.may_shrink() {
        // Trying again would only delay the message about a mistake in the config.
        for host in &pool.hosts {
            host.addresses()?;
        }
    }
    let mut next = plans(0)?;
    loop {
        let Some(work) = next else { return Ok(run.report_restarts(Outcome::Done(None))) };
        let end = run.generation(&work, progresses)?;
        let is_final = matches!(end, GenerationEnd::Final(_));
        if !is_final && pool.agents.as_ref().is_some_and(Agents::is_finished) {
            // A signal has ended the run: its handler has informed the tasks and ends this process
            // in a moment.
            std::thread::sleep(Duration::MAX);
        }
        let epoch = run.epoch + 1;
        let failure = match end {
            GenerationEnd::Final(outcome) => return Ok(run.report_restarts(outcome)),
            GenerationEnd::Border { leaving, back } => {
                run.regroup(&leaving, &back);
                next = plans(epoch)?;
                continue;
            }
            GenerationEnd::Retry(failure) => failure,
        };
        // The process may have failed after its commit and before its last report: only `plans`
        // knows.
        next = plans(epoch).with_context(|| failure.cause.clone())?;
        let Some(work) = &next else {
            let text = format!("{}; all of its work was committed by then", failure.cause);
            run.report("committed", &text, failure.process);
            return Ok(run.report_restarts(Outcome::Done(None)));
        };
        if let Some(message) = run.after_failure(&failure, work.committed) {
            return Ok(Outcome::Failed { message, code: 1, passes: true });
        }
    }
}

/// A run of the supervisor.
struct Supervised<'a> {
    /// All of its hosts.
    pool: &'a Pool,
    /// Which of them it has now.
    hosts: PoolHosts,
    /// Looks for the hosts that the current generation, or the last one, does not have.
    lookout: Lookout,
    limit: RestartLimit,
    events: &'a EventSink,
    /// The number of the generation.
    epoch: u64,
    /// How often the processes were started again after a failure.
    restarts: u64,
    /// The attempts in a row to start a generation whose processes did not join each other.
    attempts: usize,
    /// How often hosts were taken back after a failure since the processes of a generation joined.
    taken_back: usize,
}

impl Supervised<'_> {
    fn report(&self, kind: &str, text: &str, process: Option<usize>) {
        (self.events)(ProcessEvent { kind, text, epoch: self.epoch, process });
    }

    /// Runs one generation on the hosts that can be used.
    fn generation(&mut self, work: &GenerationWork, progresses: &Arc<Mutex<Vec<Progress>>>) -> Result<GenerationEnd> {
        let identity = match &self.pool.keys {
            Some(folder) => Identity::Keys(folder.clone()),
            None => Identity::Secrets(Secrets::generate()?),
        };
        let wanted = self.hosts.present();
        let pool = self.pool.of_numbers(&wanted, &self.hosts.looked_for(), self.epoch, self.events)?;
        let are_there: Vec<usize> = pool.hosts.iter().map(|host| host.number).collect();
        let back: Vec<usize> = are_there.iter().copied().filter(|number| !wanted.contains(number)).collect();
        back.iter().for_each(|number| self.hosts.is_back(*number));
        let late: Vec<usize> = wanted.into_iter().filter(|number| !are_there.contains(number)).collect();
        if !late.is_empty() {
            late.iter().for_each(|number| self.hosts.leave_out(*number));
            let instead =
                if back.is_empty() { String::new() } else { format!(", and {} can be used again", self.names(&back)) };
            let text = format!("{} did not join in time{instead}: {}", self.names(&late), self.goes_on());
            self.report("without", &text, late.first().copied());
        }
        let away = self.hosts.looked_for();
        let away = away.into_iter().map(|(number, from)| (self.pool.hosts[number].clone(), from)).collect();
        self.lookout = Lookout::new(away, self.pool.rejoin);
        let plan = (work.text)(pool.processes())?;
        let (epoch, events, lookout, may_shrink) = (self.epoch, self.events, &self.lookout, self.hosts.may_shrink());
        let generation = Generation { pool: &pool, plan: &plan, identity, epoch, may_shrink, events, lookout };
        let end = generation.run(progresses)?;
        let has_joined = !matches!(&end, GenerationEnd::Retry(failure) if !failure.joined);
        if has_joined {
            (self.attempts, self.taken_back) = (0, 0);
            are_there.into_iter().for_each(|number| self.hosts.has_started(number));
        }
        Ok(end)
    }

    /// The names of the processes of hosts in messages.
    fn names(&self, numbers: &[usize]) -> String {
        numbers.iter().map(|number| self.pool.hosts[*number].name()).collect::<Vec<_>>().join(", ")
    }

    /// How many processes the run goes on with.
    fn goes_on(&self) -> String {
        format!("the run goes on with {} of {} processes", self.hosts.present().len(), self.pool.processes())
    }

    /// Prepares the generation after one that ended after a wave, as it was asked to.
    fn regroup(&mut self, leaving: &[usize], back: &[usize]) {
        let now = Instant::now();
        back.iter().for_each(|number| self.hosts.is_back(*number));
        // Others that were found since: all begin again anyway.
        let back = [back, &self.take_back(Duration::ZERO)].concat();
        let gone: Vec<usize> = leaving.iter().copied().filter(|number| self.hosts.leaves(*number, now)).collect();
        let mut causes = Vec::new();
        if !leaving.is_empty() {
            causes.push(format!("{} {} told to end", self.names(leaving), was(leaving)));
        }
        if !back.is_empty() {
            causes.push(format!("{} can be used again", self.names(&back)));
        }
        self.epoch += 1;
        let text = format!("a wave is committed, and {}: {}", causes.join(", and "), self.goes_on());
        self.report("regroup", &text, gone.first().or(back.first()).or(leaving.first()).copied());
    }

    /// Takes hosts that are back into the next generation, if it was seen that they are. Waits at
    /// most so long until one is found or all were looked for. Returns their numbers.
    fn take_back(&mut self, patience: Duration) -> Vec<usize> {
        let left_out = self.hosts.left_out();
        let mut back = self.lookout.found_within(patience);
        back.retain(|number| left_out.contains(number));
        back.iter().for_each(|number| self.hosts.is_back(*number));
        back
    }

    /// As [`Supervised::take_back`], after a failure: all processes begin again anyway. Returns
    /// whether there are any.
    fn take_back_after_failure(&mut self, patience: Duration) -> bool {
        // Hosts that can be reached, and on which no process starts, would take turns without end.
        if self.taken_back >= self.pool.processes() {
            return false;
        }
        let back = self.take_back(patience);
        self.taken_back += usize::from(!back.is_empty());
        if let Some(first) = back.first() {
            let text = format!("{} can be used again: {}", self.names(&back), self.goes_on());
            self.report("back", &text, Some(*first));
        }
        !back.is_empty()
    }

    /// The numbers of the hosts that were missing in a generation that failed: no process started
    /// there; or they were taken in again, the processes did not join with them, and enough are
    /// left.
    fn missing(&self, failure: &GenerationFailure) -> Vec<usize> {
        let back = self.hosts.back();
        let is_without_back = failure.began && !failure.joined && self.hosts.are_enough_without(back.len());
        if is_without_back { back } else { failure.missing.clone() }
    }

    /// Prepares the next attempt after a failure, and waits before it. Returns the message of the
    /// run if it has failed.
    fn after_failure(&mut self, failure: &GenerationFailure, committed: u64) -> Option<String> {
        let now = Instant::now();
        let missing = self.missing(failure);
        self.take_back_after_failure(Duration::ZERO);
        // A host that said that it ends has ended: that is no failure of the run.
        let left: Vec<usize> =
            failure.leaving.iter().copied().filter(|number| self.hosts.leaves(*number, now)).collect();
        if !left.is_empty() {
            let text = format!("{} {} told to end: {}", self.names(&left), was(&left), self.goes_on());
            return self.again(failure, &text);
        }
        if let Some(number) = failure.process.filter(|number| failure.began && self.is_elsewhere(*number)) {
            self.hosts.was_lost(number, now);
        }
        if self.hosts.may_shrink() && !missing.is_empty() {
            let grace = crate::config::Time(self.pool.grace);
            let mut follows = self.hosts.could_not_start(&missing, now);
            if follows == Missing::TooFew && self.take_back_after_failure(LAST_LOOK + self.hosts.rest(now)) {
                follows = self.hosts.could_not_start(&missing, now);
            }
            match follows {
                Missing::Again(left) => {
                    let pause = self.pause().min(left.max(Duration::from_millis(100)));
                    let it = if missing.len() == 1 { "it" } else { "them" };
                    let (pause_s, left_s) = (pause.as_secs_f64(), left.as_secs_f64());
                    let rest = if self.hosts.are_enough_without(missing.len()) {
                        format!("trying again in {pause_s:.0} s, and without {it} after {left_s:.0} s more (`grace`)")
                    } else {
                        format!(
                            "trying again in {pause_s:.0} s, for {left_s:.0} s more (`grace`): without {it} fewer than {} \
                             processes would be left (`min-processes`)",
                            self.pool.min_processes
                        )
                    };
                    let message = self.again(failure, &rest);
                    std::thread::sleep(pause);
                    self.take_back_after_failure(Duration::ZERO);
                    return message;
                }
                Missing::Without(numbers) => {
                    let lost = self.names(&numbers);
                    let verb = if numbers.len() == 1 { "is" } else { "are" };
                    return self.again(failure, &format!("{lost} {verb} lost: {}", self.goes_on()));
                }
                Missing::TooFew => {
                    let mut all = [self.hosts.left_out(), missing].concat();
                    all.sort_unstable();
                    return Some(format!(
                        "{}: {} missing for {grace} (`grace`), and fewer than {} processes would be left (`min-processes`); the same \
                         command continues from what is committed",
                        failure.cause,
                        self.names(&all),
                        self.pool.min_processes
                    ));
                }
            }
        }
        let Some(counted) = self.limit.add(committed, now) else {
            let used_up = self.limit.used_up();
            return Some(format!("{}{used_up}; the same command continues from what is committed", failure.cause));
        };
        let mut text = format!(
            "{}: all processes are ended and restarted from what is committed (restart {counted} of {})",
            failure.cause, self.pool.restarts
        );
        let by_ssh = failure.process.is_some_and(|number| matches!(self.pool.hosts[number].reach, HostReach::Ssh(_)));
        let pause = if failure.began || !by_ssh { Duration::ZERO } else { self.pause() };
        if !pause.is_zero() {
            text.push_str(&format!(", in {} s", pause.as_secs()));
        }
        self.epoch += 1;
        self.restarts += 1;
        self.report("restart", &text, failure.process);
        std::thread::sleep(pause);
        None
    }

    /// Begins another attempt that is not counted as a restart.
    fn again(&mut self, failure: &GenerationFailure, rest: &str) -> Option<String> {
        self.epoch += 1;
        self.report("regroup", &format!("{}: {rest}", failure.cause), failure.process);
        None
    }

    /// The pause before the next attempt to reach a host.
    fn pause(&mut self) -> Duration {
        let pause = HOST_PAUSES[self.attempts.min(HOST_PAUSES.len() - 1)];
        self.attempts += 1;
        pause
    }

    /// Whether a host may be lost for good: a process of this machine can be started again.
    fn is_elsewhere(&self, number: usize) -> bool {
        !matches!(self.pool.hosts[number].reach, HostReach::Local)
    }

    /// Reports the number of restarts of a successful run, if any.
    fn report_restarts(&self, outcome: Outcome) -> Outcome {
        if self.restarts > 0 && matches!(outcome, Outcome::Done(_)) {
            let times = if self.restarts == 1 { "once".to_owned() } else { format!("{} times", self.restarts) };
            self.report("restarts", &format!("done; the processes were restarted {times}"), None);
        }
        outcome
    }
}

/// The verb for these processes.
fn was(numbers: &[usize]) -> &'static str {
    if numbers.len() == 1 { "was" } else { "were" }
}

#[cfg(all(test, feature = "pool"))]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::launch::events::{EventSink, ProcessEvent};
    use crate::launch::pool::ssh::tests::local;

    /// Kind and text of events.
    type KindsAndTexts = Vec<(String, String)>;

    fn recorder() -> (EventSink, Arc<Mutex<KindsAndTexts>>) {
        let received: Arc<Mutex<KindsAndTexts>> = Arc::default();
        let events = {
            let received = received.clone();
            move |event: ProcessEvent<'_>| received.lock().unwrap().push((event.kind.to_owned(), event.text.to_owned()))
        };
        (Arc::new(events), received)
    }

    /// Supervises a process that always fails, without a restart. Everything is committed after
    /// `plans_until_done` plans.
    fn supervised(plans_until_done: u64) -> (Outcome, Vec<u64>, KindsAndTexts) {
        let config = "workers = 1\nrestarts = 0\nssh = [\"false\"]\n[[hosts]]\nname = \"me@localhost\"\n";
        let pool = Pool::new(&toml::from_str(config).unwrap()).unwrap();
        let (events, received) = recorder();
        let mut epochs = Vec::new();
        let mut plans = |epoch| {
            epochs.push(epoch);
            Ok((epoch < plans_until_done).then(|| GenerationWork::fixed("{}".to_owned())))
        };
        let outcome = supervise(&pool, &mut plans, &Arc::default(), &events).unwrap();
        let received = received.lock().unwrap().clone();
        (outcome, epochs, received)
    }

    /// A pool of these addresses of this machine. Each host says that it has this version, and a
    /// shell runs `worker` there in the place of the program, with the number of the host in
    /// `NODE`.
    fn shells(folder: &Path, worker: &str, more: &str, addresses: &[&str]) -> Pool {
        std::fs::write(folder.join("worker"), worker).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let ssh = r#"while [ "$1" != -- ]; do shift; done; shift
                     case "$*" in *--version*) echo "nigh $version"; exit;; esac; exec sh -c "$*""#;
        let ssh = format!("cd '{}'; version={version}; {ssh}", folder.display());
        let ssh = ["sh", "-c", &ssh, "ssh"];
        let host = |(node, address): (usize, &&str)| {
            format!(
                "[[hosts]]\nname = \"node-{node}\"\naddress = \"{address}\"\nbinary = \"sh\"\n\
                 environment = {{ NODE = \"{node}\" }}\n"
            )
        };
        let hosts: String = addresses.iter().enumerate().map(host).collect();
        Pool::new(&toml::from_str(&format!("workers = 1\nssh = {ssh:?}\n{more}\n{hosts}")).unwrap()).unwrap()
    }

    /// Supervises a pool whose work is never committed. Returns the outcome, and the texts of the
    /// events.
    fn outcome_and_texts(pool: &Pool) -> (Outcome, Vec<String>) {
        let (events, received) = recorder();
        let outcome =
            supervise(pool, &mut |_| Ok(Some(GenerationWork::fixed("{}".into()))), &Arc::default(), &events).unwrap();
        let texts = received.lock().unwrap().iter().map(|(_, text)| text.clone()).collect();
        (outcome, texts)
    }

    #[test]
    fn a_run_that_cannot_go_on_without_missing_hosts_says_so_while_it_waits_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let more = "min-processes = 2\ngrace = \"100ms\"";
        let (outcome, texts) = outcome_and_texts(&shells(folder.path(), "exit 1", more, &["127.0.0.1"; 3]));
        let Outcome::Failed { message, .. } = outcome else { panic!("{outcome:?}") };
        assert!(message.contains("fewer than 2 processes would be left"), "{message}");
        let waits =
            texts.iter().find(|text| text.contains("trying again in 0 s")).unwrap_or_else(|| panic!("{texts:?}"));
        assert!(waits.contains("for 0 s more (`grace`): without them fewer than 2 processes"), "{waits}");
    }

    /// The report of a process that listens.
    fn ready(version: &str) -> String {
        format!("{{\"ready\":{{\"address\":\"127.0.0.1:7\",\"id\":0,\"version\":\"{version}\"}}}}")
    }

    /// A process that works, except on host 1, where it reports this and waits.
    fn worker_with(report_of_1: &str) -> String {
        format!(
            "read -r start\n\
             if [ $NODE = 1 ]; then echo '{report_of_1}'; read -r rest; exit 1; fi\n\
             echo '{}'\n\
             read -r roster || exit 1\n\
             echo '{{\"ended\":{{\"done\":null}}}}'",
            ready(env!("CARGO_PKG_VERSION"))
        )
    }

    /// A run with one host goes on after this time.
    const ONE_IS_ENOUGH: &str = "min-processes = 1\ngrace = \"100ms\"";

    #[test]
    fn a_run_goes_on_without_a_host_on_which_no_process_can_begin() {
        let failed = r#"{"ended":{"failed":{"message":"cannot go to /shared","code":1,"passes":false}}}"#;
        for (report, cause) in [(failed.to_owned(), ": cannot go to /shared"), (ready("0.0.0"), " is nigh 0.0.0, and")]
        {
            let folder = tempfile::tempdir().unwrap();
            let pool = shells(folder.path(), &worker_with(&report), ONE_IS_ENOUGH, &["127.0.0.1"; 2]);
            let (outcome, texts) = outcome_and_texts(&pool);
            assert_eq!(outcome, Outcome::Done(None), "{texts:?}");
            for wanted in [cause, " is lost: the run goes on with 1 of 2 processes"] {
                let wanted = format!("process 1 on node-1{wanted}");
                assert!(texts.iter().any(|text| text.contains(&wanted)), "{wanted}: {texts:?}");
            }
        }
    }

    #[test]
    fn a_host_whose_name_has_no_address_is_missing_and_ends_a_run_that_needs_all_hosts() {
        let folder = tempfile::tempdir().unwrap();
        let pool = |more: &str| shells(folder.path(), &worker_with(""), more, &["127.0.0.1", "no host"]);
        let (outcome, texts) = outcome_and_texts(&pool(ONE_IS_ENOUGH));
        assert_eq!(outcome, Outcome::Done(None), "{texts:?}");
        let unknown = "process 1 on node-1: cannot find the address of the host no host";
        assert!(texts.iter().any(|text| text.contains(unknown)), "{texts:?}");
        let mut plans = |_: u64| -> Result<Option<GenerationWork>> { panic!("nothing starts") };
        let error = supervise(&pool(""), &mut plans, &Arc::default(), &recorder().0).unwrap_err();
        assert!(error.to_string().contains("the host no host"), "{error}");
    }

    #[test]
    fn a_host_that_is_back_and_with_which_the_processes_do_not_join_is_left_out_again() {
        let folder = tempfile::tempdir().unwrap();
        // Process 0 is alone, with process 1, and alone again.
        let worker = format!(
            r#"
            read -r start
            if [ $NODE = 1 ] && ! [ -e is-up ]; then exit 1; fi
            echo '{}'
            read -r roster || exit 1
            if [ $NODE = 1 ]; then
                touch was-tried
                echo '{{"ended":{{"failed":{{"message":"no way to process 0","code":1,"passes":true}}}}}}'
                exit 1
            fi
            if ! [ -e is-up ]; then
                touch is-up
                echo '"joined"'
                read -r request
                echo '{{"ended":"at-border"}}'
            elif ! [ -e was-tried ]; then
                read -r request
            else
                echo '"joined"'
                echo '{{"ended":{{"done":null}}}}'
            fi"#,
            ready(env!("CARGO_PKG_VERSION"))
        );
        let more = format!("{ONE_IS_ENOUGH}\nrejoin = \"50ms\"");
        let (outcome, texts) = outcome_and_texts(&shells(folder.path(), &worker, &more, &["127.0.0.1"; 2]));
        assert_eq!(outcome, Outcome::Done(None), "{texts:?}");
        let wanted = "no way to process 0: process 1 on node-1 is lost: the run goes on with 1 of 2 processes";
        assert!(texts.iter().any(|text| text.contains(wanted)), "{texts:?}");
    }

    #[test]
    fn processes_that_fail_after_their_commit_are_done_though_no_restart_is_left() {
        let (outcome, epochs, received) = supervised(1);
        assert_eq!((outcome, epochs), (Outcome::Done(None), vec![0, 1]));
        let committed = received.iter().find(|(kind, _)| kind == "committed").unwrap_or_else(|| panic!("{received:?}"));
        assert!(committed.1.contains("process 0 on me@localhost failed with exit code 1"), "{received:?}");
    }

    #[test]
    fn processes_that_fail_before_their_commit_have_failed_when_no_restart_is_left() {
        let (outcome, epochs, _) = supervised(2);
        let Outcome::Failed { message, code: 1, .. } = outcome else { panic!("{outcome:?}") };
        assert!(message.contains("failed with exit code 1; the same command continues"), "{message}");
        assert_eq!(epochs, [0, 1]);
    }

    #[test]
    fn a_process_receives_the_variables_of_its_host_and_its_work() {
        let folder = tempfile::tempdir().unwrap();
        // `sh worker` runs this.
        let worker = r#"read -r start; printf '%s\n%s' "$PLAIN" "$start" > received; exit 7"#;
        std::fs::write(folder.path().join("worker"), worker).unwrap();
        let pool = local("sh", &format!("cd '{}'", folder.path().display()));
        let outcome =
            supervise(&pool, &mut |_| Ok(Some(GenerationWork::fixed("{}".into()))), &Arc::default(), &recorder().0)
                .unwrap();
        let Outcome::Failed { message, .. } = outcome else { panic!("{outcome:?}") };
        assert!(message.contains("failed with exit code 7"), "{message}");
        let received = std::fs::read_to_string(folder.path().join("received")).unwrap();
        assert!(received.starts_with("secret-7\n{\"me\":0,"), "{received}");
    }
}
