//! An engine with its journal: what a process that stays up does with batches.
//!
//! If another process has a part of the keys and is gone, what is done then is refused with 503,
//! and a batch is taken out of the journal again. When the processes run again, the engine is read
//! from the store and the journal as at a start: so it has what was acknowledged, once.
//!
//! In reading order: `start` (the last week of a store), `journal` (batches on the disk), `taken`
//! (batches that are sent again), `replay` (the journal is read at a start), `commit` (it becomes a
//! batch of the store), `schedule` (when it commits by itself), `faults` (other processes that are
//! gone), `exact` (similarities by texts).

mod commit;
mod exact;
mod faults;
mod journal;
mod replay;
mod schedule;
mod start;
mod taken;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use self::exact::StoreTexts;
use self::faults::EngineState;
use self::journal::{Head, Journal};
use self::start::load_last_week;
use self::taken::Taken;
use super::batch::{Features, Limits, LineContent, Record, read_batch, read_body};
use super::engine::{Counts, Engine, Given, KeyProcesses, SharedProcesses, Texts, Wanted};
use super::follow::{Part, Place};
use super::refusal::Refusal;
use crate::config::{Cluster, Method};
use crate::kernels::memory::return_freed;
use crate::plan::job_of_week;
use crate::records::{DocumentKey, checksum};
use crate::state::Store;

pub use self::commit::{Commitment, Committed};
pub use self::schedule::{CommitEvery, CommitNotice, Commits, Committer};

/// How often other processes are looked at while nothing is asked.
const LOOK: Duration = Duration::from_secs(1);
/// The longest id of a batch.
const ID_BYTES: usize = 128;

/// An engine with its journal.
pub struct Service {
    engine: Engine,
    journal: Journal,
    limits: Limits,
    taken: Taken,
    /// Whether a commit has changed tables, and failed: the documents in memory are not those of
    /// the tables and the journal.
    tables_changed: bool,
    /// Why nothing more is taken.
    broken: Option<String>,
    pending: Pending,
    /// How far files of a followed folder are read.
    followed: BTreeMap<String, Place>,
    /// Commits since the start.
    commits: u64,
    store: Store,
    workers: usize,
    /// The processes that have the other parts of the keys.
    others: SharedProcesses,
    /// How often they were started again.
    restarts: u64,
    engine_state: EngineState,
}

/// What was taken since the tables were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Batches of the journal.
    pub batches: u64,
    /// Lines of batches that make a commit due.
    pub lines: u64,
    /// When the first of these batches came, or was read from the journal; `None` if there is none.
    pub since: Option<Instant>,
}

impl Pending {
    /// Counts a batch that is not applied yet. Its lines count if a commit can bring them to the
    /// tables, or take them out of the journal: ready features do if they take the place of a
    /// document.
    fn add(&mut self, records: &[Record], engine: &Engine) {
        self.batches += u64::from(!records.is_empty());
        let counts = |record: &&Record| !matches!(record.body, Some(LineContent::Ready(_))) || engine.has(record.key);
        let lines = records.iter().filter(counts).count();
        if lines == 0 {
            return;
        }
        self.lines += lines as u64;
        self.since = self.since.or_else(|| Some(Instant::now()));
    }
}

/// What was found at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Started {
    /// Documents of the last week of the store.
    pub documents: u64,
    /// Batches of the journal.
    pub batches: u64,
    /// Bytes of a batch that was not acknowledged, at the end of the journal: these are removed.
    pub cut: u64,
}

/// Lines of JSON.
pub type Lines = Arc<[u8]>;

impl Service {
    /// Reads the last week of a store, then the journal. A store that has neither is one of
    /// `documents`. The caller holds the lock.
    ///
    /// # Errors
    /// If the store or the journal cannot be read, or a week was made in a way that an engine
    /// cannot go on from.
    pub fn open(
        store: &Store,
        documents: Option<DocumentKey>,
        workers: usize,
        limits: Limits,
    ) -> Result<(Service, Started)> {
        Service::open_with(store, documents, workers, limits, KeyProcesses::none())
    }

    /// As [`Service::open`], with other processes that have a part of the keys.
    ///
    /// # Errors
    /// As [`Service::open`], or if one of these is gone.
    pub fn open_with(
        store: &Store,
        documents: Option<DocumentKey>,
        workers: usize,
        limits: Limits,
        others: KeyProcesses,
    ) -> Result<(Service, Started)> {
        Service::read(store, documents, workers, limits, &SharedProcesses::of(others))
    }

    fn read(
        store: &Store,
        documents: Option<DocumentKey>,
        workers: usize,
        limits: Limits,
        others: &SharedProcesses,
    ) -> Result<(Service, Started)> {
        let manifest = store.manifest()?;
        let path = Service::journal_path(store.root());
        let of_journal = Journal::by(&path)?;
        let method = match &manifest {
            Some(manifest) => manifest.method.clone(),
            None => Method { documents: of_journal.or(documents).unwrap_or_default(), ..Method::default() },
        };
        if let Some(documents) = documents.filter(|documents| *documents != method.documents) {
            anyhow::bail!(
                "the store {} knows documents by {}, not by {documents}",
                store.root().display(),
                method.documents
            );
        }
        let mut engine = Engine::with_processes(&method, workers, others)?;
        let documents = manifest.map_or(Ok(0), |manifest| load_last_week(store, &manifest, &mut engine));
        let documents = documents.with_context(|| format!("cannot go on from {}", store.root().display()))?;
        return_freed();
        let mut started = Started { documents, ..Started::default() };
        let folder = store.live();
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let replayed = replay::read(store, &path, engine)?;
        (started.batches, started.cut) = (replayed.batches, replayed.cut);
        let tables = replayed.tables;
        let mut service = Service {
            engine: replayed.engine,
            journal: replayed.journal,
            limits,
            taken: replayed.taken,
            tables_changed: false,
            broken: None,
            pending: replayed.pending,
            followed: replayed.followed,
            commits: 0,
            store: store.clone(),
            workers,
            others: others.clone(),
            restarts: 0,
            engine_state: EngineState::Whole,
        };
        service.follow_tables(tables)?;
        Ok((service, started))
    }

    /// The journal of the store at `root`.
    pub fn journal_path(root: &Path) -> std::path::PathBuf {
        Store::at(root).live().join("journal")
    }

    /// How many batches the journal of the store at `root` has that may be in no table. Documents
    /// that no table can have are not counted once a commit has left them there.
    ///
    /// # Errors
    /// If the journal cannot be read, or is damaged.
    pub fn uncommitted(root: &Path) -> Result<u64> {
        let (path, mut batches) = (Service::journal_path(root), 0);
        if path.exists() {
            Journal::read(&path, |head, body| {
                // One without records says how far a followed file is read.
                batches += u64::from(head.is_batch() && !body.trim_ascii().is_empty());
                Ok(())
            })?;
        }
        Ok(batches)
    }

    /// What documents are known by.
    pub fn documents(&self) -> DocumentKey {
        self.engine.documents()
    }

    /// The parameters.
    pub fn method(&self) -> &Method {
        self.engine.method()
    }

    /// What is in memory, and the bytes of the journal.
    pub fn counts(&self) -> (Counts, u64) {
        (self.engine.counts(), self.journal.bytes())
    }

    /// What no table has yet.
    pub fn pending(&self) -> Pending {
        self.pending
    }

    /// Why nothing more is taken until the process starts again; `None` if all is well.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Commits since the start.
    pub fn commits(&self) -> u64 {
        self.commits
    }

    /// Takes a batch: writes it to the journal, applies it, and returns an answer for each record.
    /// A batch with an id that was taken before gets the answers that it got then. One without
    /// records is not in the journal.
    ///
    /// # Errors
    /// If the batch is malformed or too large, its id was that of other lines, the journal cannot
    /// be written, or another process is gone: then it is not taken.
    pub fn add(&mut self, id: Option<&str>, body: &[u8]) -> Result<Lines, Refusal> {
        self.ready()?;
        let sum = checksum(body);
        if let Some(id) = id {
            check_id(id)?;
            if let Some(answer) = self.taken.answer(id, sum)? {
                return Ok(answer);
            }
        }
        let records = read_batch(body, self.engine.method(), &self.limits)?;
        if records.is_empty() {
            return Ok(Lines::default());
        }
        let head = Head { batch: id.map(str::to_owned), by: self.engine.documents(), ..Head::default() };
        let answer = self.take(&head, body, &records)?;
        if let Some(id) = id {
            self.taken.add(id.to_owned(), sum, answer.clone());
        }
        Ok(answer)
    }

    /// Takes a part of a file of a followed folder. How far the file is read is in the journal with
    /// it.
    ///
    /// # Errors
    /// If the journal cannot be written: then it is not taken.
    pub fn add_followed(&mut self, part: &Part) -> Result<Lines, Refusal> {
        self.ready()?;
        let by = self.engine.documents();
        let records = read_batch(&part.lines, self.engine.method(), &Limits::none())?;
        let followed = BTreeMap::from([(part.file.clone(), part.next)]);
        let answer = self.take(&Head { by, followed, ..Head::default() }, &part.lines, &records)?;
        self.followed.insert(part.file.clone(), part.next);
        Ok(answer)
    }

    /// How far files of a followed folder are read.
    pub fn followed(&self) -> &BTreeMap<String, Place> {
        &self.followed
    }

    /// Writes a batch to the journal, and applies it.
    fn take(&mut self, head: &Head, body: &[u8], records: &[Record]) -> Result<Lines, Refusal> {
        // Before it is in the journal: a fault of a parser ends the process, and would at each
        // start.
        let features = self.engine.features_of(records);
        let before = self.journal.bytes();
        self.journal.add(head, body).map_err(|error| Refusal::unable(format!("{error:#}: the batch is not taken")))?;
        self.pending.add(records, &self.engine);
        let Service { engine, journal, store, .. } = self;
        let method = engine.method().clone();
        let mut texts = StoreTexts::new(store, &method, |at, bytes| journal.read_at(at, bytes));
        let answer = match answer(engine, records, features, &mut texts) {
            Ok(answer) => answer,
            Err(error) if self.fault().is_some() => return Err(self.take_back(before, error)),
            Err(error) => return Err(self.unable(error)),
        };
        self.engine.note_texts(records, self.journal.bytes() - body.len() as u64);
        Ok(answer)
    }

    /// Writes to the journal with which tables its next records belong together, and which numbers
    /// were given.
    fn note(&mut self, given: Option<Given>) -> Result<()> {
        let (by, commits) = (self.engine.documents(), self.store.manifest()?.map(|manifest| manifest.commits));
        self.journal.add(&Head { by, answered: true, given, commits, ..Head::default() }, b"")
    }

    /// Deletes a document, as a batch of its own.
    ///
    /// # Errors
    /// If it is not there, or the journal cannot be written.
    pub fn delete(&mut self, name: &str) -> Result<Lines, Refusal> {
        self.ready()?;
        self.engine.document(name)?;
        let field = if self.engine.documents() == DocumentKey::Url { "url" } else { "id" };
        let line = serde_json::json!({ field: name, "delete": true }).to_string();
        self.add(None, line.as_bytes())
    }

    /// Makes a batch of the store of what came since its tables were made. `run` runs the commands,
    /// and returns when the tables are there. The clusters then have the ids of the tables; changes
    /// say which these are. If no batch came, nothing is done.
    ///
    /// # Errors
    /// If a file cannot be written, or a command failed: then the journal stays, and the next
    /// commit tries all of it again. If tables have changed nevertheless, they and the journal are
    /// read as at a start: a command can fail after its tables are there, and then the journal
    /// begins again.
    pub fn commit(&mut self, run: &mut dyn FnMut(&Commitment) -> Result<()>) -> Result<Committed, Refusal> {
        self.ready()?;
        let unable = |error: anyhow::Error| Refusal::unable(format!("not committed: {error:#}"));
        if self.pending.batches == 0 {
            return self.committed(0, 0);
        }
        let (documents, deleted, rest) = match self.make_tables(run) {
            Ok(made) => made,
            Err(error) => {
                if self.tables_changed && self.fault().is_none() {
                    self.begin_as_read(self.restarts)?;
                    if self.pending.batches == 0 {
                        self.commits += 1;
                        return Err(Refusal::unable(format!("committed, but a command failed at its end: {error:#}")));
                    }
                }
                return Err(unable(error));
            }
        };
        self.begin_journal(&rest, self.engine.given_with_renames()).map_err(|error| {
            let text = format!("committed, but the journal cannot begin again: {error:#}: start nigh again");
            self.broken = Some(text.clone());
            Refusal::unable(text)
        })?;
        self.commits += 1;
        match self.load_tables(&rest) {
            Ok(()) => {
                self.pending = Pending::default();
                self.tables_changed = false;
            }
            // The tables and the journal are as they should be, and are read again.
            Err(_) if self.fault().is_some() => {
                self.tables_changed = true;
                self.ready().map_err(|refusal| Refusal::unable(format!("committed, but {refusal}")))?;
            }
            Err(error) => {
                let text = format!("committed, but the tables cannot be read: {error:#}");
                self.broken = Some(text.clone());
                return Err(Refusal::unable(text));
            }
        }
        self.committed(documents, deleted)
    }

    /// What a commit made, after which the tables are those of now.
    fn committed(&self, documents: u64, deleted: u64) -> Result<Committed, Refusal> {
        let manifest = self.store.manifest().map_err(|error| Refusal::unable(format!("committed, but {error:#}")))?;
        let week = manifest.and_then(|manifest| manifest.weeks.last().map(|week| week.week));
        Ok(Committed { week, documents, deleted })
    }

    /// The job of the last week; one with the defaults if there is none.
    fn last_job(&self) -> Result<Cluster> {
        let last = self.store.manifest()?.and_then(|manifest| manifest.weeks.last().cloned());
        last.map_or_else(|| Ok(Cluster::default()), |last| job_of_week(&self.store, &last))
    }

    /// Runs the commands of a commit. Returns how many documents were added and deleted, and the
    /// lines of those that no table can have.
    fn make_tables(&mut self, run: &mut dyn FnMut(&Commitment) -> Result<()>) -> Result<(u64, u64, Vec<u8>)> {
        let next = self.store.manifest()?.map_or(0, |manifest| manifest.commits) + 1;
        let path = Service::journal_path(self.store.root());
        let last = self.last_job()?;
        let commitment = Commitment::write(&path, &self.engine, &last, next)?;
        if commitment.deleted.is_some() || commitment.added.is_some() {
            self.run_commands(&commitment, next, run)?;
        }
        Ok((commitment.documents, commitment.gone, commitment.rest))
    }

    /// Runs the commands, with the answers of all batches in the journal, and what these make.
    fn run_commands(
        &mut self,
        commitment: &Commitment,
        next: u64,
        run: &mut dyn FnMut(&Commitment) -> Result<()>,
    ) -> Result<()> {
        let (length, from) = (self.journal.bytes(), next - 1);
        let makes = commitment.makes(from);
        let kept = Head { makes: Some(makes.clone()), ..self.kept_head(self.engine.given_with_renames()) };
        self.journal.add(&kept, &self.taken.lines()?)?;
        let ran = self.add_rest(&commitment.rest).and_then(|()| run(commitment));
        // The journal has the only copy of what is not in the tables.
        let ran = ran.and_then(|()| {
            ensure!(replay::is_added(&self.store, &makes)?, "the last week does not have the documents of the journal");
            Ok(())
        });
        let commits = || {
            // A command that was killed may have left a commit that is whole.
            self.store.recover()?;
            anyhow::Ok(self.store.manifest()?.map_or(0, |manifest| manifest.commits))
        };
        if ran.is_err() {
            if commits().is_ok_and(|commits| commits == from) {
                // No table has changed by this commit, so the journal gives these answers. If this
                // fails, they are there twice.
                let _ = self.journal.cut_to(length);
            } else {
                self.tables_changed = true;
            }
        }
        ran
    }

    /// Adds the lines that no table can have.
    fn add_rest(&mut self, rest: &[u8]) -> Result<()> {
        let head = Head { by: self.engine.documents(), rest: true, ..Head::default() };
        if rest.is_empty() { Ok(()) } else { self.journal.add(&head, rest) }
    }

    /// The head of what is kept of all batches, with the numbers that were given.
    fn kept_head(&self, given: Given) -> Head {
        let (by, followed) = (self.engine.documents(), self.followed.clone());
        Head { by, taken: true, given: Some(given), followed, ..Head::default() }
    }

    /// Begins the journal again, with what is kept of the batches that are in the tables, and with
    /// lines that are in none. The next changes and clusters get other numbers than these.
    fn begin_journal(&mut self, rest: &[u8], given: Given) -> Result<()> {
        let commits = self.store.manifest()?.map(|manifest| manifest.commits);
        let (head, kept) = (Head { commits, ..self.kept_head(given) }, self.taken.lines()?);
        let of_rest = Head { by: self.engine.documents(), rest: true, ..Head::default() };
        let records: [(&Head, &[u8]); 2] = [(&head, &kept), (&of_rest, rest)];
        self.journal.begin_again(if rest.is_empty() { &records[..1] } else { &records })
    }

    /// Reads the tables of the last week, and takes the lines that are in no table.
    fn load_tables(&mut self, rest: &[u8]) -> Result<()> {
        let manifest = self.store.manifest()?;
        let method = manifest.as_ref().map_or_else(|| self.engine.method(), |manifest| &manifest.method).clone();
        let mut engine = Engine::with_processes(&method, self.workers, &self.others)?;
        if let Some(manifest) = manifest {
            load_last_week(&self.store, &manifest, &mut engine)?;
        }
        // As a start does, which reads these lines from the journal.
        engine.go_on_from(self.engine.given_with_renames());
        replay::apply_rest(&mut engine, rest, &self.store)?;
        engine.continue_from(&mut self.engine);
        self.engine = engine;
        return_freed();
        Ok(())
    }

    /// What is known of a document; with exact similarities, if `exact`.
    ///
    /// # Errors
    /// If it is not there, or a text cannot be read.
    pub fn document(&mut self, name: &str, exact: bool) -> Result<Lines, Refusal> {
        self.ready()?;
        let mut answer = self.engine.document(name)?;
        if exact {
            exact::compare_document(self, name, &mut answer.nearest)?;
        }
        line(&answer)
    }

    /// A cluster with at most `most` of its documents.
    ///
    /// # Errors
    /// If it is not there.
    pub fn cluster(&mut self, id: i64, most: usize) -> Result<Lines, Refusal> {
        self.ready()?;
        line(&self.engine.cluster(id, most)?)
    }

    /// The documents that are most like a text or a page, given as a record without a name; it is
    /// not added. With exact similarities, if `exact`.
    ///
    /// # Errors
    /// If the record is malformed, or has no word; or a text cannot be read.
    pub fn similar(&mut self, body: &[u8], most: usize, exact: bool) -> Result<Lines, Refusal> {
        self.ready()?;
        let body = read_body(body, &self.limits)?;
        let mut near = self.engine.similar(&body, most)?;
        if exact {
            exact::compare_body(self, &body, &mut near)?;
        }
        lines(near)
    }

    /// Changes of clusters after the one with this number.
    ///
    /// # Errors
    /// If they are not kept any more.
    pub fn changes(&mut self, since: u64, most: usize) -> Result<Lines, Refusal> {
        self.ready()?;
        lines(self.engine.changes_since(since, most)?)
    }

    fn check(&self) -> Result<(), Refusal> {
        self.broken.as_ref().map_or(Ok(()), |reason| Err(Refusal::unable(reason.clone())))
    }
}

fn check_id(id: &str) -> Result<(), Refusal> {
    let is_good = (1..=ID_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    let text = || format!("the id of a batch is 1 to {ID_BYTES} printable characters of ASCII without blanks");
    is_good.then_some(()).ok_or_else(|| Refusal::bad(text()))
}

/// Applies a batch with these features, and returns the answers as lines.
fn answer(
    engine: &mut Engine,
    records: &[Record],
    features: Vec<Option<Features>>,
    texts: &mut dyn Texts,
) -> Result<Lines> {
    Ok(lines(engine.apply_with(records, features, texts, Wanted::Answers)?)?)
}

/// A value as a line of JSON.
pub(super) fn line(value: &impl Serialize) -> Result<Lines, Refusal> {
    lines([value])
}

fn lines(values: impl IntoIterator<Item: Serialize>) -> Result<Lines, Refusal> {
    let mut text = Vec::new();
    for value in values {
        serde_json::to_writer(&mut text, &value).map_err(|error| Refusal::unable(format!("no JSON: {error}")))?;
        text.push(b'\n');
    }
    Ok(text.into())
}
