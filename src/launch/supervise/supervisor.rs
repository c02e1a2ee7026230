//! The supervisor: runs the processes of a job, generation after generation, until one ends well.
//!
//! Timely is fail-stop: no single process recovers. When one ends badly, falls silent, or all of them wait for each
//! other, the generation is ended as a whole, the cause is told, and the next one goes on from what is committed. What
//! would only fail again (a bad job, too many rejects, a full disk) is final: a process that can still say what is wrong is
//! believed.

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

/// How long is waited before each restart when a host could not be reached: it may be starting, too.
const HOST_PAUSES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(15), Duration::from_secs(60)];

/// What each generation of processes is to do.
pub type Plans<'a> = dyn FnMut(u64) -> Result<Option<String>> + 'a;

/// Runs the pool's processes until a generation ends well, fails for good, or the restarts are used up.
///
/// `plans` gives what the processes of a generation are told, by its number from 0: it is made anew for each, when no
/// process of the one before runs any more, so that it knows what is committed; also after the last one, for which no
/// restart is left. Where it gives nothing, all is done already. `progresses` is kept up to date with every process'
/// counters.
///
/// # Errors
/// Where processes cannot be started at all, or no plan can be made.
pub fn supervise(
    pool: &Pool,
    plans: &mut Plans<'_>,
    progresses: &Arc<Mutex<Vec<Progress>>>,
    voice: &EventSink,
) -> Result<Outcome> {
    let mut epoch = 0;
    loop {
        let Some(plan) = plans(epoch)? else { return Ok(told(Outcome::Done(None), epoch, voice)) };
        let identity = match &pool.keys {
            Some(folder) => Identity::Keys(folder.clone()),
            None => Identity::Secrets(Secrets::generate()?),
        };
        let pool = &pool.gathered(epoch, voice)?;
        let generation = Generation { pool, plan: &plan, identity, epoch, voice };
        let broken = match generation.run(progresses)? {
            GenerationEnd::Told(outcome) => return Ok(told(outcome, epoch, voice)),
            GenerationEnd::Broken(broken) => broken,
        };
        if pool.agents.as_ref().is_some_and(Agents::is_finished) {
            // A signal has ended the run: whoever heard it told the tasks, and ends this process in a moment.
            std::thread::sleep(Duration::MAX);
        }
        if epoch >= u64::from(pool.restarts) {
            // It may have died between its commit and its last word: only the plans know.
            let Some(_) = plans(epoch + 1).with_context(|| broken.cause.clone())? else {
                let text = format!("{}; all that it had to do was committed by then", broken.cause);
                voice(ProcessEvent { kind: "committed", text: &text, epoch, process: broken.process });
                return Ok(told(Outcome::Done(None), epoch, voice));
            };
            let restarts = match pool.restarts {
                0 => String::new(),
                1 => "; it was started anew once already, as `restarts` allows".to_owned(),
                times => format!("; it was started anew {times} times already, as `restarts` allows"),
            };
            let message = format!("{}{restarts}; the same command goes on from what is committed", broken.cause);
            return Ok(Outcome::Failed { message, code: 1, passes: true });
        }
        epoch += 1;
        let mut text = format!(
            "{}: all processes are ended and started anew from what is committed (restart {epoch} of {})",
            broken.cause, pool.restarts
        );
        let away = broken.process.is_some_and(|process| matches!(pool.hosts[process].place, HostReach::Ssh(_)));
        let pause = match broken.began || !away {
            true => Duration::ZERO,
            false => HOST_PAUSES[(epoch as usize - 1).min(HOST_PAUSES.len() - 1)],
        };
        if !pause.is_zero() {
            text.push_str(&format!(", in {} s", pause.as_secs()));
        }
        voice(ProcessEvent { kind: "restart", text: &text, epoch, process: broken.process });
        std::thread::sleep(pause);
    }
}

/// Says how many restarts there were, if any.
fn told(outcome: Outcome, restarts: u64, voice: &EventSink) -> Outcome {
    if restarts > 0 && matches!(outcome, Outcome::Done(_)) {
        let times = if restarts == 1 { "once".to_owned() } else { format!("{restarts} times") };
        let text = format!("done; the processes were started anew {times}");
        voice(ProcessEvent { kind: "restarts", text: &text, epoch: restarts, process: None });
    }
    outcome
}

#[cfg(all(test, feature = "pool"))]
mod tests {
    use super::*;
    use crate::launch::events::{EventSink, ProcessEvent};
    use crate::launch::pool::ssh::tests::local;

    /// Kind and text of what is said.
    type Said = Vec<(String, String)>;

    fn voice() -> (EventSink, Arc<Mutex<Said>>) {
        let said: Arc<Mutex<Said>> = Arc::default();
        let kept = said.clone();
        let voice =
            move |event: ProcessEvent<'_>| kept.lock().unwrap().push((event.kind.to_owned(), event.text.to_owned()));
        (Arc::new(voice), said)
    }

    /// Supervises a process that always dies, without a restart; all is committed once so many plans were made.
    fn supervised(plans_until_done: u64) -> (Outcome, Vec<u64>, Said) {
        let config = "workers = 1\nrestarts = 0\nssh = [\"false\"]\n[[hosts]]\nname = \"me@localhost\"\n";
        let pool = Pool::new(&toml::from_str(config).unwrap()).unwrap();
        let (voice, said) = voice();
        let mut asked = Vec::new();
        let mut plans = |epoch| {
            asked.push(epoch);
            Ok((epoch < plans_until_done).then(|| "{}".to_owned()))
        };
        let outcome = supervise(&pool, &mut plans, &Arc::default(), &voice).unwrap();
        let said = said.lock().unwrap().clone();
        (outcome, asked, said)
    }

    #[test]
    fn processes_that_die_after_their_commit_are_done_though_no_restart_is_left() {
        let (outcome, asked, said) = supervised(1);
        assert_eq!((outcome, asked), (Outcome::Done(None), vec![0, 1]));
        let committed = said.iter().find(|(kind, _)| kind == "committed").unwrap_or_else(|| panic!("{said:?}"));
        assert!(committed.1.contains("process 0 on me@localhost died with exit code 1"), "{said:?}");
    }

    #[test]
    fn processes_that_die_before_their_commit_have_failed_when_no_restart_is_left() {
        let (outcome, asked, _) = supervised(2);
        let Outcome::Failed { message, code: 1, .. } = outcome else { panic!("{outcome:?}") };
        assert!(message.contains("died with exit code 1; the same command goes on"), "{message}");
        assert_eq!(asked, [0, 1]);
    }

    #[test]
    fn a_process_has_the_variables_of_its_host_and_is_told_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        // What `sh worker` runs.
        let worker = r#"read -r start; printf '%s\n%s' "$PLAIN" "$start" > heard; exit 7"#;
        std::fs::write(folder.path().join("worker"), worker).unwrap();
        let pool = local("sh", &format!("cd '{}'", folder.path().display()));
        let outcome = supervise(&pool, &mut |_| Ok(Some("{}".into())), &Arc::default(), &voice().0).unwrap();
        let Outcome::Failed { message, .. } = outcome else { panic!("{outcome:?}") };
        assert!(message.contains("died with exit code 7"), "{message}");
        let heard = std::fs::read_to_string(folder.path().join("heard")).unwrap();
        assert!(heard.starts_with("secret-7\n{\"me\":0,"), "{heard}");
    }
}
