//! The journal is read over the tables of the last week, when a process starts.
//!
//! Its batches are applied as they were taken, so changes and clusters have the numbers that they
//! had. Where that is not so, because the tables are others, changes go on with numbers that no
//! change had: a client that asks for those after one that it knows is told to read the clusters
//! again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::exact::{JournalReader, StoreTexts};
use super::journal::{Head, Journal, Makes};
use super::taken::Taken;
use super::{Pending, Service, answer};
use crate::live::batch::read_taken;
use crate::live::engine::{Engine, Given, Texts, Wanted};
use crate::live::follow::Place;
use crate::records::checksum;
use crate::state::Store;

/// What the journal has.
pub(super) struct Replayed {
    pub(super) engine: Engine,
    pub(super) journal: Journal,
    pub(super) taken: Taken,
    pub(super) pending: Pending,
    pub(super) followed: BTreeMap<String, Place>,
    /// The batches that were applied.
    pub(super) batches: u64,
    /// Bytes of a record that was not acknowledged.
    pub(super) cut: u64,
    pub(super) tables: Tables,
}

/// With which tables the journal belongs together.
pub(super) enum Tables {
    /// These, and it says so.
    These,
    /// These, and it does not say so: it is empty, or the commands of a commit were not all run.
    Unnamed,
    /// Those of a commit that was not finished: the journal is to begin again with these lines, and
    /// numbers that were given.
    Committed { rest: Vec<u8>, given: Given },
    /// Others: another program has changed them.
    Others,
}

/// The records so far.
struct Replay<'a> {
    store: &'a Store,
    engine: Engine,
    taken: Taken,
    pending: Pending,
    followed: BTreeMap<String, Place>,
    batches: u64,
    records: u64,
    /// The number of commits of the store; `None` if it has no table.
    of_store: Option<u64>,
    /// The commit that is in the tables, though the journal did not begin again: where its record
    /// is, and its lines that no table can have, once these were read.
    finished: Option<u64>,
    unfinished: Option<(Vec<u8>, Given)>,
    /// The number of commits of the store when its tables were those of the records before.
    commits: Option<u64>,
    /// What a commit makes that has begun since.
    makes: Option<Makes>,
    /// Whether lines that no table can have count, if they come next.
    takes_rest: bool,
}

/// Reads the journal at a path over an engine with the documents of the tables.
///
/// # Errors
/// If it cannot be read, or is damaged.
pub(super) fn read(store: &Store, path: &Path, engine: Engine) -> Result<Replayed> {
    let method = engine.method().clone();
    let mut reader = JournalReader::default();
    let mut texts = StoreTexts::new(store, &method, |at, bytes| reader.read_at(path, at, bytes));
    let finished = finished(store, path, &engine)?;
    let mut replay = Replay {
        store,
        engine,
        taken: Taken::default(),
        pending: Pending::default(),
        followed: BTreeMap::new(),
        batches: 0,
        records: 0,
        of_store: store.manifest()?.map(|manifest| manifest.commits),
        finished,
        unfinished: None,
        commits: None,
        makes: None,
        takes_rest: false,
    };
    let (journal, cut) = Journal::open(path, |head, body| replay.take(head, body, &mut texts))?;
    let tables = replay.tables();
    let Replay { engine, taken, pending, followed, batches, .. } = replay;
    Ok(Replayed { engine, journal, taken, pending, followed, batches, cut, tables })
}

impl Replay<'_> {
    fn take(&mut self, mut head: Head, body: &[u8], texts: &mut dyn Texts) -> Result<()> {
        self.records += 1;
        self.followed.extend(std::mem::take(&mut head.followed));
        let is_in_tables = self.finished.is_some_and(|at| head.body_at < at);
        if !head.rest {
            // What comes after a commit that is finished cannot be left out.
            self.unfinished = None;
        }
        if head.makes.as_ref().is_some_and(|makes| makes.from == self.of_store.unwrap_or_default()) {
            // No command has changed a table: all is as before.
            self.takes_rest = false;
            return Ok(());
        }
        if head.taken || head.answered {
            head.given.into_iter().for_each(|given| self.engine.go_on_from(given));
        }
        if head.taken {
            self.taken = Taken::read(body)?;
            let is_finished = self.finished == Some(head.body_at);
            self.takes_rest = is_finished || head.makes.is_none();
            if is_finished {
                self.commits = self.of_store;
                self.unfinished = Some((Vec::new(), head.given.unwrap_or_default()));
            } else {
                self.commits = head.commits.or(self.commits);
            }
            self.makes = head.makes.filter(|_| !is_finished);
        } else if head.answered {
            self.taken.answer_as(Taken::read(body)?);
            if head.commits.is_some() {
                (self.commits, self.makes) = (head.commits, None);
            }
        } else if is_in_tables {
            // Nothing: these documents are in the tables, or are not there any more.
        } else if head.rest {
            if self.takes_rest {
                apply_rest(&mut self.engine, body, self.store)?;
                self.unfinished.iter_mut().for_each(|(rest, _)| rest.extend_from_slice(body));
            }
        } else {
            self.batch(head, body, texts)?;
        }
        Ok(())
    }

    fn batch(&mut self, head: Head, body: &[u8], texts: &mut dyn Texts) -> Result<()> {
        let records = read_taken(body, self.engine.method())?;
        let features = self.engine.features_of(&records);
        self.batches += 1;
        self.pending.add(&records, &self.engine);
        match head.batch {
            Some(id) => {
                let answer = answer(&mut self.engine, &records, features, texts)?;
                self.taken.add(id, checksum(body), answer);
            }
            // Nothing keeps its answers.
            None => _ = self.engine.apply_with(&records, features, texts, Wanted::Changes)?,
        }
        self.engine.note_texts(&records, head.body_at);
        Ok(())
    }

    /// With which tables the journal belongs together.
    fn tables(&mut self) -> Tables {
        let Some(of_store) = self.of_store else { return Tables::These };
        if let Some((rest, given)) = self.unfinished.take() {
            return Tables::Committed { rest, given };
        }
        let is_of_commit = || self.makes.as_ref().is_some_and(|makes| (makes.from..=makes.to).contains(&of_store));
        match self.commits {
            Some(commits) if commits == of_store => Tables::These,
            _ if self.records == 0 || is_of_commit() => Tables::Unnamed,
            // A journal of an earlier version does not say it: that gave numbers twice.
            _ => Tables::Others,
        }
    }
}

/// Takes lines that no table can have. Those of documents that the tables have are left out: these
/// came to the tables since.
///
/// # Errors
/// As [`Engine::apply_with`].
pub(super) fn apply_rest(engine: &mut Engine, rest: &[u8], store: &Store) -> Result<()> {
    let method = engine.method().clone();
    let mut records = read_taken(rest, &method)?;
    records.retain(|record| !engine.has(record.key));
    if records.is_empty() {
        return Ok(());
    }
    let features = engine.features_of(&records);
    let mut texts =
        StoreTexts::new(store, &method, |_, _| anyhow::bail!("a text of the journal before this one is not wanted"));
    engine.apply_with(&records, features, &mut texts, Wanted::Nothing)?;
    Ok(())
}

/// Where the journal has what is kept of all batches before a commit that is in the tables, though
/// the journal did not begin again; `None` if there is no such commit. `engine` has the tables.
fn finished(store: &Store, path: &Path, engine: &Engine) -> Result<Option<u64>> {
    let mut last = None;
    if path.exists() {
        Journal::read(path, |head, _| {
            if head.taken {
                last = head.makes.map(|makes| (head.body_at, makes));
            }
            Ok(())
        })?;
    }
    let Some((at, makes)) = last else { return Ok(None) };
    Ok(is_made(store, path, engine, &makes)?.then_some(at))
}

/// Whether the tables have what the commands of a commit bring to them. Their number does not say
/// it: another program may have made as many commits, and a command that has nothing left to do
/// makes none.
fn is_made(store: &Store, journal: &Path, engine: &Engine, makes: &Makes) -> Result<bool> {
    if store.manifest()?.is_none_or(|manifest| manifest.commits <= makes.from) || !is_added(store, makes)? {
        return Ok(false);
    }
    let Some(deleted) = &makes.deleted else { return Ok(true) };
    let names = std::fs::read_to_string(journal.with_file_name(deleted));
    Ok(names.is_ok_and(|names| names.lines().all(|name| !engine.is_of_tables(name))))
}

/// Whether the last week has the documents that a commit adds.
pub(super) fn is_added(store: &Store, makes: &Makes) -> Result<bool> {
    let Some(added) = &makes.added else { return Ok(true) };
    let manifest = store.manifest()?;
    let Some(last) = manifest.as_ref().and_then(|manifest| manifest.weeks.last()) else { return Ok(false) };
    let week = store.whole(last).context("cannot read the last week")?;
    let mut names = week.journal.key.stamps.keys().map(|name| Path::new(name).file_name());
    Ok(names.any(|name| name == Some(OsStr::new(added))))
}

impl Service {
    /// Notes with which tables the journal belongs together, and finishes a commit.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(super) fn follow_tables(&mut self, tables: Tables) -> Result<()> {
        match tables {
            Tables::These => Ok(()),
            Tables::Unnamed => self.note(None),
            Tables::Committed { rest, given } => self.begin_journal(&rest, given),
            Tables::Others => {
                self.engine.begin_era();
                self.note(Some(self.engine.given()))
            }
        }
    }
}
