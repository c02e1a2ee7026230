//! Commits: what came since the tables were made becomes a batch of the store, by the commands for
//! that.
//!
//! ```text
//! documents that the tables have and that are gone    `nigh delete`
//! documents that came or changed                      `nigh add`, of a file of their last lines
//! ```
//!
//! A document of ready features has no text, and no table has it: it stays in the journal. If the
//! tables have it with an earlier text, it is deleted there.
//!
//! So the tables are those of `nigh add` with that file. It stays in the folder of the journal: the
//! tables name it, and an export reads it. The journal says before the commands what these make. So
//! after a kill before the journal began again, the next process knows whether its documents are in
//! the tables.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use serde::Serialize;

use super::journal::{Journal, Makes};
use crate::config::{Cluster, Columns, Content, Method, Reading, Share};
use crate::live::batch::{LineContent, Record, read_taken};
use crate::live::engine::Engine;
use crate::readers::Body;
use crate::records::{DocumentKey, KeyHash, Week};
use crate::state::{replace, replace_with};

/// What a commit made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Committed {
    /// The last week of the tables; `None` if there are none.
    pub week: Option<Week>,
    /// Documents that were added, or changed.
    pub documents: u64,
    /// Documents of the tables that were deleted.
    pub deleted: u64,
}

/// What the commands of a commit read.
#[derive(Clone, Debug)]
pub struct Commitment {
    /// What documents are known by.
    pub by: DocumentKey,
    /// The names of documents to delete, one on each line; `None` if there are none.
    pub deleted: Option<PathBuf>,
    /// The job and the documents to add; `None` if there are none.
    pub added: Option<(PathBuf, PathBuf)>,
    /// How many documents are added, and deleted.
    pub(super) documents: u64,
    pub(super) gone: u64,
    /// The lines of documents that no table can have.
    pub(super) rest: Vec<u8>,
}

impl Commitment {
    /// Writes what a commit reads, into the folder of the journal. `commit` is the number of the
    /// commit; `last` is the job of the last week.
    ///
    /// # Errors
    /// If the journal cannot be read, or a file cannot be written.
    pub(super) fn write(journal: &Path, engine: &Engine, last: &Cluster, commit: u64) -> Result<Commitment> {
        let method = engine.method();
        let by = method.documents;
        let mut read = reading(&last.read, by);
        let mut last_lines: BTreeMap<KeyHash, LastLine> = BTreeMap::new();
        let mut takes_rest = true;
        Journal::read(journal, |head, body| {
            if head.taken {
                // Else the batches before it have these lines, too.
                takes_rest = head.makes.is_none();
            }
            let is_taken = head.is_batch() || head.rest && takes_rest;
            if !is_taken {
                return Ok(());
            }
            for record in read_taken(body, method)? {
                // Such a document came to the tables since.
                if head.rest && engine.is_of_tables(&record.name) {
                    continue;
                }
                match LastLine::of(&record, head.body_at) {
                    Some(line) => _ = last_lines.insert(record.key, line),
                    None => _ = last_lines.remove(&record.key),
                }
            }
            Ok(())
        })?;
        let has_line = |key: &KeyHash| last_lines.get(key).is_some_and(|line| !line.is_ready);
        let of_tables = engine.gone().iter().filter(|(key, _)| !has_line(key));
        let mut gone: Vec<String> = of_tables.map(|(_, name)| name.clone()).collect();
        let mut lines = Journal::at(journal)?.0;
        let mut line_of = |line: &LastLine| -> Result<(Record, Vec<u8>)> {
            let bytes = lines.read_at(line.at, line.bytes)?;
            let record = read_taken(&bytes, method)?.pop().context("a line of the journal has a record")?;
            Ok((record, bytes))
        };
        let mut rest = Vec::new();
        for line in last_lines.values().filter(|line| line.is_ready) {
            let (record, bytes) = line_of(line)?;
            if engine.is_of_tables(&record.name) {
                gone.push(record.name);
            }
            rest.extend_from_slice(&bytes);
            rest.push(b'\n');
        }
        let beside = |name: &str| journal.with_file_name(format!("{name}-{commit:05}"));
        let documents = last_lines.values().filter(|line| !line.is_ready).count() as u64;
        let mut commitment = Commitment { by, deleted: None, added: None, documents, gone: gone.len() as u64, rest };
        if !gone.is_empty() {
            let path = beside("deleted").with_extension("txt");
            replace(&path, (gone.join("\n") + "\n").as_bytes())?;
            commitment.deleted = Some(path);
        }
        if documents > 0 {
            let (job, input) = (beside("job").with_extension("toml"), beside("documents").with_extension("jsonl"));
            // In the order of the hashes of their keys, as documents are numbered in a shard.
            replace_with(&input, |file| {
                for line in last_lines.values().filter(|line| !line.is_ready) {
                    let (record, bytes) = line_of(line)?;
                    let Some(LineContent::Page(body)) = record.body else { continue };
                    file.write_all(&line_of_object(bytes, &record.name, &body, by)?)?;
                    file.write_all(b"\n")?;
                }
                Ok(())
            })?;
            // What of a page is its text is an option for reading.
            read.content = (method.content != Content::Page).then_some(method.content);
            let method = Some(Method { content: Content::Page, ..method.clone() }.into());
            // Each line was taken once: none may be left out.
            let max_reject_share = Share(0.0);
            let canonical = last.canonical.clone();
            let text = Cluster { canonical, read, method, max_reject_share, ..Cluster::default() }.to_text();
            replace(&job, text.as_bytes())?;
            commitment.added = Some((job, input));
        }
        Ok(commitment)
    }

    /// What the commands make of a store with so many commits.
    pub(super) fn makes(&self, from: u64) -> Makes {
        let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let deleted = self.deleted.as_ref().and_then(name);
        let added = self.added.as_ref().and_then(|(_, input)| name(input));
        Makes { from, to: from + u64::from(deleted.is_some()) + u64::from(added.is_some()), deleted, added }
    }

    /// Runs `nigh delete` and `nigh add` on a store. `program` makes a command without arguments,
    /// whose standard input is the lock of the store, if this process has it. Its environment gives
    /// no flags: a commit has its own.
    ///
    /// # Errors
    /// If a command fails: the error has what it said.
    pub fn run(&self, store: &Path, program: impl Fn() -> Result<Command>) -> Result<()> {
        let run = |arguments: &[&OsStr]| -> Result<()> {
            let mut command = program()?;
            let output = command.args(arguments).output();
            let output = output.with_context(|| format!("cannot start {}", command.get_program().display()))?;
            let name = arguments[0].to_string_lossy();
            ensure!(output.status.success(), "nigh {name}: {}", String::from_utf8_lossy(&output.stderr).trim());
            Ok(())
        };
        if let Some(deleted) = &self.deleted {
            let names = if self.by == DocumentKey::Url { "--urls" } else { "--ids" };
            let [delete, of, quiet, names] = ["delete", "--store", "--quiet", names].map(OsStr::new);
            run(&[delete, of, store.as_ref(), names, deleted.as_ref(), quiet])?;
        }
        if let Some((job, input)) = &self.added {
            let [add, flag, quiet] = ["add", "--input", "--quiet"].map(OsStr::new);
            // `@FILE` would be a list of inputs.
            let input = if input.to_string_lossy().starts_with('@') { &Path::new(".").join(input) } else { input };
            run(&[add, store.as_ref(), job.as_ref(), flag, input.as_ref(), quiet])?;
        }
        Ok(())
    }
}

/// Where the last line of a document is in the journal.
struct LastLine {
    at: u64,
    bytes: usize,
    /// Whether it has ready features, so that no table can have the document.
    is_ready: bool,
}

impl LastLine {
    /// The line of a record, whose batch begins at a place; `None` if the document is deleted.
    fn of(record: &Record, batch: u64) -> Option<LastLine> {
        let is_ready = matches!(record.body.as_ref()?, LineContent::Ready(_));
        let (at, bytes) = record.line;
        Some(LastLine { at: batch + at as u64, bytes, is_ready })
    }
}

/// How the documents of a commit are read: as requests have them, with the values that documents of
/// the store are chosen by.
fn reading(last: &Reading, documents: DocumentKey) -> Reading {
    let id = (documents == DocumentKey::Id).then(|| "id".to_owned());
    let values = last.columns.values.clone();
    let columns = Columns { id, html: Some("html".to_owned()), values, ..Columns::default() };
    Reading { columns, ..Reading::default() }
}

/// A line of a batch as an object. An earlier version took arrays, too.
fn line_of_object(line: Vec<u8>, name: &str, body: &Body, by: DocumentKey) -> Result<Vec<u8>> {
    if line.starts_with(b"{") {
        return Ok(line);
    }
    let of_name = if by == DocumentKey::Url { "url" } else { "id" };
    let of_body = if matches!(body, Body::Html(_)) { "html" } else { "text" };
    let text = std::str::from_utf8(body.as_bytes()).context("a string of JSON is UTF-8")?;
    Ok(serde_json::json!({of_name: name, of_body: text}).to_string().into_bytes())
}
