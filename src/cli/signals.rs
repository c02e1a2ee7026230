//! What a signal does to a run, and the command that resumes it.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::launch::Pool;
use crate::log::Log;
use crate::mirror::PublishHandle;

/// Whether a signal ends the run in order, as [`stop_on_signals`] does.
pub(crate) static STOPS_IN_ORDER: AtomicBool = AtomicBool::new(false);

/// What is kept of a run that was stopped while it published.
const MADE_NOT_PUBLISHED: &str = "what was made is kept, and the store is as it was. The same command publishes it";

/// How long the end of a stopped run may take once all is said: freeing the lock in a bucket that does not answer.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Ends the run when a signal asks for it. What is committed stays, as `kept` says; other processes end with this one.
/// Where it says nothing all is committed already, and the run is not stopped any more; but what is not published yet can be
/// published by the next run. Nothing is published after it was said that it is not.
pub(crate) fn stop_on_signals(
    log: &Log,
    pool: &Pool,
    held: PublishHandle,
    kept: impl Fn() -> Option<String> + Send + 'static,
) {
    let signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]);
    // Without the handler a signal still ends the run, only without a word.
    let Ok(mut signals) = signals else { return };
    STOPS_IN_ORDER.store(true, Ordering::Release);
    let (agents, log) = (pool.agents.clone(), log.clone());
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let unpublished = || (!held.is_published()).then(|| MADE_NOT_PUBLISHED.to_owned());
            let Some(kept) = kept().or_else(unpublished) else { continue };
            let text = format!("stopped; {kept}: {}", command_text(std::env::args_os()));
            // A commit that has begun meanwhile is let end.
            if !held.give_up() {
                continue;
            }
            log.stopped(&text);
            agents.iter().for_each(|agents| agents.finish((128 + signal) as u8));
            held.free(LAST_WORDS);
            std::process::exit(128 + signal);
        }
    });
}

/// Waits for the end that a signal's handler has begun: a run that fails because of it has nothing to say.
pub(crate) fn leave_to_handler(log: &Log) {
    if log.is_stopped() {
        // The handler ends the process long before.
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// A command as a shell takes it; what is no UTF-8 in it is shown as such.
pub(crate) fn command_text(arguments: impl Iterator<Item = OsString>) -> String {
    let arguments: Vec<String> = arguments.map(|argument| quoted(&argument.to_string_lossy())).collect();
    arguments.join(" ")
}

/// An argument as a shell takes it.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn commands_are_shown_whatever_their_bytes() {
        let arguments =
            [&b"nigh"[..], b"run", b"caf\xe9.toml", b"it's"].map(|bytes| OsString::from_vec(bytes.to_vec()));
        assert_eq!(command_text(arguments.into_iter()), "nigh run 'caf\u{fffd}.toml' 'it'\\''s'");
    }
}
