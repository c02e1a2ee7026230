//! A followed folder: files of JSON Lines and WARC files that grow, whose new records become
//! batches.
//!
//! ```text
//! *.jsonl *.ndjson       lines, as of a batch; a line counts when its end is there
//! *.warc *.warc.gz       pages, by their URLs; a record counts when 16 others follow it: its request may be one of them
//! ```
//!
//! The last line or the last records of a file that has not changed for some seconds count, too.
//! How far a file was read is written with the batch, in the same record of the journal: so
//! a record is taken once, whenever the process is killed.
//!
//! Files may only grow. A file that becomes shorter, or whose beginning changes, is not read any
//! more: where its new records begin is not known.
//!
//! In reading order: `place` (how far a file is read), `parts` (batches), `tail` (what a file has
//! from a place on).

mod parts;
mod place;
mod tail;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};

pub use self::parts::{Part, TakePart};
pub use self::place::Place;
use self::place::Seen;
use self::tail::Tail;
use super::batch::Limits;
use crate::config::Method;

/// A file that has not changed for this long is not being written to.
const QUIET: Duration = Duration::from_secs(10);

/// Follows the files of a folder.
pub struct Follower {
    folder: PathBuf,
    method: Method,
    limits: Limits,
    quiet: Duration,
    /// Where the next part of each file begins.
    places: BTreeMap<String, Place>,
    /// How each file was when it was read to its end.
    state_at_last_look: BTreeMap<String, State>,
}

/// How a file is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    size: u64,
    changed: Option<SystemTime>,
    /// Whether it is not being written to.
    is_quiet: bool,
}

impl Follower {
    /// Follows a folder from the places that a journal has.
    ///
    /// # Errors
    /// If it is not a folder.
    pub fn new(folder: &Path, method: Method, limits: Limits, places: BTreeMap<String, Place>) -> Result<Follower> {
        ensure!(folder.is_dir(), "--follow {}: there is no such folder", folder.display());
        let (folder, state_at_last_look) = (folder.to_owned(), BTreeMap::new());
        Ok(Follower { folder, method, limits, quiet: QUIET, places, state_at_last_look })
    }

    /// Reads what came to the files since the last look, in the order of their names, and gives it
    /// to `take` in parts.
    ///
    /// Returns what went wrong, a text for each file: one that cannot be read, has become shorter
    /// or was replaced, or a part that is not taken. Other files are read all the same; the next
    /// look tries these again.
    pub fn look(&mut self, take: &mut TakePart<'_>) -> Vec<String> {
        let mut faults = Vec::new();
        for name in self.names(&mut faults) {
            if let Some(ending) = ending(&name)
                && let Err(error) = self.look_at(&name, ending, take)
            {
                faults.push(format!("--follow: {}: {error:#}", self.folder.join(&name).display()));
            }
        }
        faults
    }

    /// The names of the files, in order, without hidden ones.
    fn names(&self, faults: &mut Vec<String>) -> Vec<String> {
        let mut names = Vec::new();
        let folder = self.folder.display();
        match std::fs::read_dir(&self.folder) {
            Err(error) => faults.push(format!("--follow: cannot list {folder}: {error}")),
            Ok(entries) => {
                for entry in entries {
                    match entry.map(|entry| entry.file_name().into_string()) {
                        Ok(Ok(name)) if !name.starts_with('.') => names.push(name),
                        Ok(Ok(_)) => {}
                        Ok(Err(name)) => faults.push(format!(
                            "--follow: {}: the name is not UTF-8: rename the file",
                            self.folder.join(name).display()
                        )),
                        Err(error) => faults.push(format!("--follow: cannot list {folder}: {error}")),
                    }
                }
            }
        }
        names.sort();
        names
    }

    fn look_at(&mut self, name: &str, ending: Ending, take: &mut TakePart<'_>) -> Result<()> {
        let path = self.folder.join(name);
        match path.metadata() {
            Ok(metadata) if metadata.is_file() => {}
            // It was removed since the folder was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => return Ok(other.map(drop)?),
        }
        let file = File::open(&path)?;
        let metadata = file.metadata()?;
        let (size, changed) = (metadata.len(), metadata.modified().ok());
        let age = changed.and_then(|time| SystemTime::now().duration_since(time).ok());
        let state = State { size, changed, is_quiet: age.is_some_and(|age| age >= self.quiet) };
        let last_state = self.state_at_last_look.get(name).copied();
        if last_state == Some(state) || last_state == Some(State { is_quiet: true, ..state }) {
            return Ok(());
        }
        let mut place = self.places.get(name).copied().unwrap_or_default();
        place.check(&file, size)?;
        let seen = Seen::of(&file, size)?;
        let tail = Tail { name: name.to_owned(), path, file, place, size, is_quiet: state.is_quiet, seen };
        // What was taken stays taken if a later part fails.
        let take = &mut |part: &Part| {
            take(part)?;
            place = part.next;
            Ok(())
        };
        let result = match ending {
            Ending::Lines => tail.lines(self, take),
            Ending::Warc => tail.pages(self, take),
        };
        self.places.insert(name.to_owned(), place);
        result?;
        self.state_at_last_look.insert(name.to_owned(), state);
        Ok(())
    }
}

/// What a file holds, by its name.
#[derive(Clone, Copy)]
enum Ending {
    Lines,
    Warc,
}

fn ending(name: &str) -> Option<Ending> {
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    match name {
        _ if ends(&[".jsonl", ".ndjson"]) => Some(Ending::Lines),
        _ if ends(&[".warc", ".warc.gz"]) => Some(Ending::Warc),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
