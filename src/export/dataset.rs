//! All inputs, written again by several threads.

use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};

use super::exported::Exported;
use super::file::Writing;
use super::place::{ExportFolder, WrittenFile, output_paths};
use super::verdicts::{Verdict, Verdicts};
use crate::readers::{Format, Input, contained};

/// Writes the file of each input that has documents. `done` is called after each file, with the number of whole files and of all. Returns the
/// number of files, and what they have.
///
/// Memory: the verdicts of one file for each thread, and of one more.
///
/// # Errors
/// If an input cannot be read, has changed, or has a format that is not written; or a file cannot be written. Files that are whole stay.
pub fn write_dataset(
    inputs: &[Input],
    verdicts: Verdicts,
    writing: &Writing<'_>,
    folder: ExportFolder,
    threads: usize,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<(u64, Exported)> {
    let paths = output_paths(inputs, writing.format)?;
    let root = folder.path().to_owned();
    let state = Mutex::new(State { folder, files: 0, counts: Exported::default() });
    let all = inputs.iter().filter(|input| has_documents(input)).count();
    let write = |number: usize, verdicts: &[Verdict]| -> Result<()> {
        let path = &paths[number];
        let (listed, unfinished) = {
            let folder = &locked(&state).folder;
            (folder.listed(path), folder.unfinished(number))
        };
        let counts = match listed {
            Some(file) if file.is_in(&root)? => file.counts,
            _ => {
                let (counts, written) = writing.write(&inputs[number], verdicts, Path::new(path), &unfinished)?;
                locked(&state).folder.add(&unfinished, WrittenFile::new(path.clone(), written, counts))?;
                counts
            }
        };
        let mut state = locked(&state);
        state.files += 1;
        state.counts.merge(counts);
        done(state.files, all);
        Ok(())
    };
    each_file(inputs, verdicts, threads, &write)?;
    let State { folder, files, counts } = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    folder.finish()?;
    Ok((files as u64, counts))
}

/// Calls `work` with each input that has documents, and the verdicts on these, in several threads. After an error no other input is begun.
///
/// # Errors
/// If the verdicts cannot be read; or the first error of `work`.
pub(super) fn each_file(
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
                    locked(&failure).get_or_insert(error.context(format!("cannot write {}", inputs[number].name)));
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

fn has_documents(input: &Input) -> bool {
    !matches!(input.format, Format::Failed | Format::Wacz)
}

/// What the threads share.
struct State {
    folder: ExportFolder,
    /// Files that are whole.
    files: usize,
    counts: Exported,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
