//! The supervisor: runs generations of processes until one succeeds.
//!
//! Timely is fail-stop: no single process recovers. When a process fails or is silent, or all processes wait for each other, the supervisor
//! ends the whole generation, reports the cause, and starts the next one, which continues from what is committed. An error that would only
//! repeat (a bad job, too many rejects, a full disk) is final: the process that has it reports it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};

use super::generation::{Generation, GenerationEnd};
use super::process::Outcome;
use crate::launch::Agents;
use crate::launch::events::{EventSink, ProcessEvent};
use crate::launch::handshake::{Identity, Secrets};
use crate::launch::hosts::{HostReach, Pool};
use crate::watch::Progress;

/// The pauses before restarts when a host could not be reached: it may be starting.
const HOST_PAUSES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(15), Duration::from_secs(60)];

/// Returns the work of a generation by its number; `None` if everything is committed.
pub type Plans<'a> = dyn FnMut(u64) -> Result<Option<String>> + 'a;

/// Runs the pool's processes until a generation succeeds, a failure is final, or no restart is left.
///
/// `plans` returns the work of a generation by its number, from 0. It is called when no process of the generation before runs any more, so
/// that it sees what is committed; also after the last generation, for which no restart is left. `None` means that everything is committed.
/// `progresses` receives the counters of every process.
///
/// # Errors
/// Processes cannot be started on this machine, or `plans` fails.
pub fn supervise(
    pool: &Pool,
    plans: &mut Plans<'_>,
    progresses: &Arc<Mutex<Vec<Progress>>>,
    events: &EventSink,
) -> Result<Outcome> {
    let mut epoch = 0;
    loop {
        let Some(plan) = plans(epoch)? else { return Ok(report_restarts(Outcome::Done(None), epoch, events)) };
        let identity = match &pool.keys {
            Some(folder) => Identity::Keys(folder.clone()),
            None => Identity::Secrets(Secrets::generate()?),
        };
        let pool = &pool.with_addresses(epoch, events)?;
        let generation = Generation { pool, plan: &plan, identity, epoch, events };
        let failure = match generation.run(progresses)? {
            GenerationEnd::Final(outcome) => return Ok(report_restarts(outcome, epoch, events)),
            GenerationEnd::Retry(failure) => failure,
        };
        if pool.agents.as_ref().is_some_and(Agents::is_finished) {
            // A signal has ended the run: its handler has informed the tasks and ends this process in a moment.
            std::thread::sleep(Duration::MAX);
        }
        if epoch >= u64::from(pool.restarts) {
            // The process may have failed after its commit and before its last report: only `plans` knows.
            let Some(_) = plans(epoch + 1).with_context(|| failure.cause.clone())? else {
                let text = format!("{}; all of its work was committed by then", failure.cause);
                events(ProcessEvent { kind: "committed", text: &text, epoch, process: failure.process });
                return Ok(report_restarts(Outcome::Done(None), epoch, events));
            };
            let restarts = match pool.restarts {
                0 => String::new(),
                1 => "; it was restarted once already, as `restarts` allows".to_owned(),
                times => format!("; it was restarted {times} times already, as `restarts` allows"),
            };
            let message = format!("{}{restarts}; the same command continues from what is committed", failure.cause);
            return Ok(Outcome::Failed { message, code: 1, passes: true });
        }
        epoch += 1;
        let mut text = format!(
            "{}: all processes are ended and restarted from what is committed (restart {epoch} of {})",
            failure.cause, pool.restarts
        );
        let by_ssh = failure.process.is_some_and(|process| matches!(pool.hosts[process].reach, HostReach::Ssh(_)));
        let pause = if failure.began || !by_ssh {
            Duration::ZERO
        } else {
            HOST_PAUSES[(epoch as usize - 1).min(HOST_PAUSES.len() - 1)]
        };
        if !pause.is_zero() {
            text.push_str(&format!(", in {} s", pause.as_secs()));
        }
        events(ProcessEvent { kind: "restart", text: &text, epoch, process: failure.process });
        std::thread::sleep(pause);
    }
}

/// Reports the number of restarts of a successful run, if any.
fn report_restarts(outcome: Outcome, restarts: u64, events: &EventSink) -> Outcome {
    if restarts > 0 && matches!(outcome, Outcome::Done(_)) {
        let times = if restarts == 1 { "once".to_owned() } else { format!("{restarts} times") };
        let text = format!("done; the processes were restarted {times}");
        events(ProcessEvent { kind: "restarts", text: &text, epoch: restarts, process: None });
    }
    outcome
}

#[cfg(all(test, feature = "pool"))]
mod tests {
    use super::*;
    use crate::launch::events::{EventSink, ProcessEvent};
    use crate::launch::pool::ssh::tests::local;

    /// Kind and text of events.
    type Received = Vec<(String, String)>;

    fn recorder() -> (EventSink, Arc<Mutex<Received>>) {
        let received: Arc<Mutex<Received>> = Arc::default();
        let events = {
            let received = received.clone();
            move |event: ProcessEvent<'_>| received.lock().unwrap().push((event.kind.to_owned(), event.text.to_owned()))
        };
        (Arc::new(events), received)
    }

    /// Supervises a process that always fails, without a restart. Everything is committed after `plans_until_done` plans.
    fn supervised(plans_until_done: u64) -> (Outcome, Vec<u64>, Received) {
        let config = "workers = 1\nrestarts = 0\nssh = [\"false\"]\n[[hosts]]\nname = \"me@localhost\"\n";
        let pool = Pool::new(&toml::from_str(config).unwrap()).unwrap();
        let (events, received) = recorder();
        let mut epochs = Vec::new();
        let mut plans = |epoch| {
            epochs.push(epoch);
            Ok((epoch < plans_until_done).then(|| "{}".to_owned()))
        };
        let outcome = supervise(&pool, &mut plans, &Arc::default(), &events).unwrap();
        let received = received.lock().unwrap().clone();
        (outcome, epochs, received)
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
        let outcome = supervise(&pool, &mut |_| Ok(Some("{}".into())), &Arc::default(), &recorder().0).unwrap();
        let Outcome::Failed { message, .. } = outcome else { panic!("{outcome:?}") };
        assert!(message.contains("failed with exit code 7"), "{message}");
        let received = std::fs::read_to_string(folder.path().join("received")).unwrap();
        assert!(received.starts_with("secret-7\n{\"me\":0,"), "{received}");
    }
}
