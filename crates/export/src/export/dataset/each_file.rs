//! Works on inputs in several threads, each with the verdicts on its documents.

use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};
use nigh_text::contained::contained;

use crate::export::verdicts::{Verdict, Verdicts};
use crate::readers::Input;

/// Calls `work` with each input that has documents, and the verdicts on these, in several threads.
/// After an error no other input is begun. `verb` says what is done with an input, for messages.
///
/// # Errors
/// If the verdicts cannot be read; or the first error of `work`.
pub(in crate::export) fn each_file(
    verb: &str,
    inputs: &[Input],
    mut verdicts: Verdicts,
    threads: usize,
    work: &(dyn Fn(usize, &[Verdict]) -> Result<()> + Sync),
) -> Result<()> {
    let failure = Mutex::new(None);
    let (sender, receiver) = sync_channel::<(usize, Vec<Verdict>)>(1);
    let receiver = Mutex::new(receiver);
    // After a failure what was sent is taken and not worked on, so that the sender does not wait.
    let take = || {
        while let Ok((number, verdicts)) = { locked(&receiver).recv() } {
            if locked(&failure).is_none() {
                let done = contained(|| work(number, &verdicts));
                if let Err(error) = done.unwrap_or_else(|cause| bail!("a fault of nigh: {cause}")) {
                    locked(&failure).get_or_insert(error.context(format!("cannot {verb} {}", inputs[number].name)));
                }
            }
        }
    };
    std::thread::scope(|scope| -> Result<()> {
        for _ in 0..threads {
            scope.spawn(take);
        }
        // The threads end when the sender is dropped, also after an error here.
        let sender = sender;
        let mut next = verdicts.record()?;
        for (number, input) in inputs.iter().enumerate() {
            let mut of_file = Vec::new();
            while let Some(verdict) = next.take_if(|verdict| verdict.file as usize == number) {
                of_file.push(verdict);
                next = verdicts.record()?;
            }
            let is_stopped = locked(&failure).is_some();
            if is_stopped || has_documents(input) && sender.send((number, of_file)).is_err() {
                break;
            }
        }
        Ok(())
    })?;
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Whether an input may have documents.
pub(in crate::export) fn has_documents(input: &Input) -> bool {
    input.format.has_documents()
}

/// The value of a mutex, also after a fault of a thread that had it.
pub(in crate::export) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
