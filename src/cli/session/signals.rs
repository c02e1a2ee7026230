//! What SIGINT (Ctrl-C) and SIGTERM do to a run: it stops, reports what is kept, and prints the
//! command that continues it.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::launch::Pool;
use crate::log::Log;
use crate::mirror::PublishHandle;

/// Whether [`stop_on_signals`] has installed its handler.
pub(crate) static HAS_STOP_HANDLER: AtomicBool = AtomicBool::new(false);

/// The message of a run that is stopped while it publishes.
const MADE_NOT_PUBLISHED: &str = "the tables are made, but the bucket is unchanged. The same command publishes them";

/// How long a stopped run waits for a bucket to free its lock.
const FREE_LOCK_WITHIN: Duration = Duration::from_secs(5);

/// Ends the run on SIGINT or SIGTERM, with its other processes; what is committed stays.
///
/// `status` returns what the user reads: what is kept, and what the same command would do. It
/// returns `None` once the run is committed; then the signal is ignored, unless the run is still to
/// be published. After the message is printed, nothing is published.
pub(crate) fn stop_on_signals(
    log: &Log,
    pool: &Pool,
    publishing: PublishHandle,
    status: impl Fn() -> Option<String> + Send + 'static,
) {
    let signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]);
    // Without a handler the signal ends the run all the same, but without a message.
    let Ok(mut signals) = signals else { return };
    HAS_STOP_HANDLER.store(true, Ordering::Release);
    let (agents, log) = (pool.agents.clone(), log.clone());
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let unpublished = || (!publishing.is_published()).then(|| MADE_NOT_PUBLISHED.to_owned());
            let Some(status) = status().or_else(unpublished) else { continue };
            let text = format!("stopped; {status}: {}", command_text(std::env::args_os()));
            // If publishing has begun its commit meanwhile, let the run end by itself.
            if !publishing.give_up() {
                continue;
            }
            log.stopped(&text);
            agents.iter().for_each(|agents| agents.finish((128 + signal) as u8));
            publishing.free(FREE_LOCK_WITHIN);
            std::process::exit(128 + signal);
        }
    });
}

/// Waits until a signal's handler ends the process, if it has begun to: an error of a stopped run
/// is only a consequence, and is not printed.
pub(crate) fn leave_to_handler(log: &Log) {
    if log.is_stopped() {
        // The handler ends the process long before.
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// A command as it can be pasted into a shell. Bytes that are not UTF-8 are shown as U+FFFD.
pub(crate) fn command_text(arguments: impl Iterator<Item = OsString>) -> String {
    let arguments: Vec<String> = arguments.map(|argument| quoted(&argument.to_string_lossy())).collect();
    arguments.join(" ")
}

/// One argument, quoted if the shell would change it.
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
    fn commands_are_quoted_and_any_bytes_are_shown() {
        let arguments =
            [&b"nigh"[..], b"run", b"caf\xe9.toml", b"it's"].map(|bytes| OsString::from_vec(bytes.to_vec()));
        assert_eq!(command_text(arguments.into_iter()), "nigh run 'caf\u{fffd}.toml' 'it'\\''s'");
    }
}
