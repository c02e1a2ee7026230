//! `nigh roll-up`: ranked lists of URLs in, the same lists out with each set of replicas and each
//! replicated collection once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, IsTerminal as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::value::RawValue;

use super::errors::WrongUse;
use super::session::{check_not_inside, read_manifest};
use crate::mirror::ReadStore;
use crate::objects::refuse_secrets;
use crate::roll_up::{Hit, RollUp, WhyBelow};
use crate::state::Results;
use crate::studies::CommittedTables;
use crate::studies::collections::{Collections, CollectionsSummary};
use crate::tables::studies::collections::CollectionPageRow;
use crate::tables::studies::overlap::ComponentRow;
use crate::tables::{ClusterRow, Table as _};

/// A longer line is refused: it is not a list of URLs.
const MOST_BYTES: u64 = 1 << 26;

#[derive(Args)]
#[command(after_help = "\
Lists are lines of URLs, the best first, with an empty line between two lists. A URL that is below another one follows it on a line of \
its own: a tab, `replica` or `collection`, a tab, and the URL.

Or they are JSON Lines: an array of URLs, or an object with the array `urls`. Each gives one line: the object with `hits` in the place of \
`urls`, its fields in the order of their names. A hit is {\"url\": URL, \"folded\": [{\"url\": URL, \"why\": \"replica\"}]}.

  nigh roll-up --store crawls results.txt
  search 'manual' | nigh roll-up --store crawls")]
pub(crate) struct RollUpArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX. Its table `collections` says what is rolled up.
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    /// The file with the lists, or `-` for stdin.
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Write JSON Lines, whatever the lists are.
    #[arg(long)]
    json: bool,
}

/// Reads lists to the end, and writes each as soon as it is read.
pub(crate) fn run(args: &RollUpArgs) -> Result<ExitCode> {
    if let Some(url) = args.store.to_str() {
        refuse_secrets(url).map_err(WrongUse::from_error)?;
    }
    check_not_inside(&args.store)?;
    let name = if args.file.as_os_str() == "-" { "stdin".to_owned() } else { args.file.display().to_string() };
    let file: Box<dyn BufRead> = if args.file.as_os_str() == "-" {
        Box::new(BufReader::with_capacity(1 << 16, std::io::stdin()))
    } else {
        let file = std::fs::File::open(&args.file).with_context(|| format!("cannot open {name}"))?;
        Box::new(BufReader::with_capacity(1 << 16, file))
    };
    let roll_up = ReadStore::at(&args.store, |store| read(args, store))?;
    if std::io::stdin().is_terminal() && name == "stdin" {
        let _ = writeln!(std::io::stderr(), "nigh: reads lists of URLs from the terminal: an empty line ends a list");
    }
    let mut out = std::io::stdout().lock();
    match lists(NumberedLines { file, name, number: 0, line: String::new() }, &roll_up, args.json, &mut out) {
        // A reader that wants no more, as `head`.
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        done => done.map(|()| ExitCode::SUCCESS),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Reads what the collections job found.
fn read(args: &RollUpArgs, read_store: &ReadStore) -> Result<RollUp> {
    let (store, root) = (read_store.store(), args.store.display());
    let manifest = read_manifest(store, &args.store)?;
    let Some(commit) = manifest.results.get("collections") else {
        bail!("{root} has no tables of collections: `nigh run jobs/collections.toml --store {root}` makes them");
    };
    let results = Results::of(store, "collections", *commit);
    read_store.need_own(&results.own_folder())?;
    let CommittedTables { results, summary } = CommittedTables::<Collections>::numbered(store, *commit)?;
    let CollectionsSummary { last, week_commit, overlap_commit, .. } = &summary;
    let week = manifest.weeks.iter().find(|week| (week.week, week.made()) == (*last, *week_commit));
    let week = week.with_context(|| {
        format!(
            "week {last} of {root}, of which its collections are, was removed or made again: `nigh run jobs/collections.toml --store {root}` \
             makes new ones"
        )
    })?;
    ensure!(
        overlap_commit.is_none() || manifest.results.get("overlap") == overlap_commit.as_ref(),
        "the overlap tables of {root} are not those that its collections were made of: run jobs/overlap.toml and jobs/collections.toml for \
         week {last} again"
    );
    read_store.need_records(week)?;
    read_store.need(ClusterRow::NAME, &[&format!("{}/", last.folder())])?;
    read_store.need("collections", &[&format!("{}/", CollectionPageRow::NAME)])?;
    if overlap_commit.is_some() {
        read_store.need("overlap", &[&format!("{}/", ComponentRow::NAME)])?;
    }
    RollUp::read(store, week, &results, &summary)
}

/// Lines of a file, with their numbers.
struct NumberedLines {
    file: Box<dyn BufRead>,
    name: String,
    number: u64,
    line: String,
}

impl NumberedLines {
    /// Reads the next line, without its end; `false` at the end of the file.
    fn next(&mut self) -> Result<bool> {
        self.line.clear();
        self.number += 1;
        let place = |number: u64, name: &str| format!("{name}, line {number}");
        let read = std::io::Read::take(&mut self.file, MOST_BYTES).read_line(&mut self.line);
        let read = read.with_context(|| format!("cannot read {}", place(self.number, &self.name)))?;
        ensure!((read as u64) < MOST_BYTES, "{}: the line is longer than 64 MiB", place(self.number, &self.name));
        let length = self.line.trim_end_matches(['\n', '\r']).len();
        self.line.truncate(length);
        Ok(read > 0)
    }
}

/// Rolls up all lists of a file.
fn lists(mut lines: NumberedLines, roll_up: &RollUp, json: bool, out: &mut impl Write) -> Result<()> {
    let mut text = Vec::new();
    let mut list: Vec<String> = Vec::new();
    let mut is_first = true;
    loop {
        let is_more = lines.next()?;
        let line = lines.line.trim();
        text.clear();
        if line.starts_with(['[', '{']) {
            ensure!(list.is_empty(), "{}, line {}: JSON in a list of URLs", lines.name, lines.number);
            let place = || format!("{}, line {}", lines.name, lines.number);
            json_list(line, roll_up, &mut text).with_context(place)?;
        } else if !line.is_empty() {
            list.push(line.to_owned());
        } else if !list.is_empty() {
            let urls: Vec<&str> = list.iter().map(String::as_str).collect();
            let hits = roll_up.fold(&urls);
            if json {
                write_json(&serde_json::json!({ "hits": hits }), &mut text)?;
            } else {
                // Between two lists.
                text.extend(if is_first { &b""[..] } else { b"\n" });
                hits.iter().for_each(|hit| write_text(hit, &mut text));
            }
            is_first = false;
            list.clear();
        }
        if !text.is_empty() {
            out.write_all(&text)?;
        }
        if !is_more {
            return Ok(out.flush()?);
        }
    }
}

fn write_text(hit: &Hit, text: &mut Vec<u8>) {
    text.extend_from_slice(hit.url.as_bytes());
    text.push(b'\n');
    for folded in &hit.folded {
        let why = match folded.why {
            WhyBelow::Replica => "\treplica\t",
            WhyBelow::Collection => "\tcollection\t",
        };
        text.extend_from_slice(why.as_bytes());
        text.extend_from_slice(folded.url.as_bytes());
        text.push(b'\n');
    }
}

/// Rolls up the list of a line of JSON.
fn json_list(line: &str, roll_up: &RollUp, text: &mut Vec<u8>) -> Result<()> {
    // Other fields stay as they are, numbers of any length included.
    let mut object: BTreeMap<String, Box<RawValue>> = BTreeMap::new();
    let urls: Vec<Cow<'_, str>> = if line.starts_with('[') {
        serde_json::from_str(line).context("it is not a JSON array of URLs")?
    } else {
        object = serde_json::from_str(line).context("it is not a JSON object")?;
        ensure!(!object.contains_key("hits"), "the object has a field `hits` already");
        let urls = object.remove("urls").context("the object has no array `urls`")?;
        serde_json::from_str::<Vec<String>>(urls.get())
            .context("`urls` is not an array of URLs")?
            .into_iter()
            .map(Cow::Owned)
            .collect()
    };
    let urls: Vec<&str> = urls.iter().map(Cow::as_ref).collect();
    object.insert("hits".to_owned(), serde_json::value::to_raw_value(&roll_up.fold(&urls))?);
    write_json(&object, text)
}

fn write_json(value: &impl serde::Serialize, text: &mut Vec<u8>) -> Result<()> {
    serde_json::to_writer(&mut *text, value)?;
    text.push(b'\n');
    Ok(())
}
