//! `nigh export`: writes a week's inputs again without duplicates, or lists these.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr as _;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::columns::check_columns;
use super::errors::WrongUse;
use super::print::print_json;
use super::session::{check_not_inside, read_manifest};
use crate::config::{Absent, By, Bytes, Canonical, Cluster, Count, Key, Policy, Reading};
use crate::export::{
    AddedField, Card, CutAt, Deciding, DroppedPassages, EarlierWeeks, ExportFolder, ExportFormat, ExportKey, Exported,
    Finding, IndexFiles, InputValues, JsonColumns, ListFile, MatchRules, MatchedDocuments, MatchedRecords, Originals,
    ParagraphRules, PassageRules, Verdicts, What, WhichPassages, Writing, WrittenDataset, near_duplicates,
    write_dataset,
};
use crate::log::Log;
use crate::mirror::ReadStore;
use crate::objects::refuse_secrets;
use crate::plan::stamp_of;
use crate::readers::{Format, Input, Location, list};
use crate::records::{Level, Week, short_hash};
use crate::report::print;
use crate::sheet::grouped;
use crate::state::{CommittedWeek, Earlier, Journal, Manifest, Results, Store, removed_folder};
use crate::studies::decontamination::Decontamination;
use crate::studies::passages::{Passages, PassagesSummary};
use crate::studies::{Committed, Study};
use crate::summary::Summary;
use crate::tables::studies::{PassageRow, ReferenceMatchRow};
use crate::tables::{ClusterRow, DocumentRow, EvidenceRow, FeatureRow, Table as _, UrlRow, ValueRow};

/// Memory for sorting, in bytes.
const MEMORY: u64 = 256 << 20;

/// Examples at the end of `nigh help export`.
const EXAMPLES: &str = "\
Examples:
    nigh export corpus --out deduplicated
    nigh export corpus --out longest --keep longest --level identical
    nigh export corpus --out annotated --what annotated
    nigh export corpus --list removed.parquet
    nigh export corpus --out without-copies --drop-passages
    nigh export corpus --out clean --matched drop
    nigh export crawl --out kept --level exact --revisits --cdxj kept.cdxj

If it is interrupted, give the same command again: it goes on with the files that are not whole.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    store: PathBuf,
    /// The folder to write to; each input file gives a file of the same name.
    #[arg(long, value_name = "DIR", required_unless_present = "list", conflicts_with = "list")]
    out: Option<PathBuf>,
    /// Write a list of records instead, without reading the inputs: Parquet if the name ends in .parquet, else lines with an id or URL each.
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// The week [default: the last one].
    #[arg(long, value_name = "YYYY-MM-DD")]
    week: Option<Week>,
    /// Only documents of this week and later ones, and of these those that duplicate nothing older:
    /// with --most, --each or per-host, that are not beyond what stays of a cluster or group.
    #[arg(long, value_name = "YYYY-MM-DD")]
    since: Option<Week>,
    /// With --since: only documents that duplicate an older one go; those that duplicate only each
    /// other all stay.
    #[arg(long, requires = "since", conflicts_with_all = ["most", "each", "revisits"])]
    only_older: bool,
    /// The input files of the week, under the names that they had [default: those of its job].
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    input: Vec<String>,
    /// Read inputs whose time of change is another, because they were copied; their ids, URLs and texts are compared all the same.
    #[arg(long)]
    touched: bool,
    /// Which record of a cluster stays: first, longest, newest, shortest-url, per-host or root; or
    /// an order by columns, such as 'score desc, source in ["a", "b"]'; values that the store does
    /// not have are read from the inputs [default: what the job of the week has as `canonical`].
    #[arg(long, visible_alias = "keep-by", value_name = "POLICY_OR_COLUMNS", value_parser = By::from_str)]
    keep: Option<By>,
    /// How many records of a cluster stay, or of each group of --each; 0: none of a cluster of two
    /// or more [default: the job's, or 1].
    #[arg(long, value_name = "N")]
    most: Option<u64>,
    /// Keep --most records of each group of a cluster: of each value of a column, or of each `host`.
    #[arg(long, value_name = "COLUMN", value_parser = |name: &str| Key::try_from(name.to_owned()))]
    each: Option<Key>,
    /// The level of the clusters; `paragraph` takes from the documents that stay, at level similar, the paragraphs (lines) that others before had.
    #[arg(long, value_enum, default_value_t)]
    level: ExportLevel,
    /// With --level paragraph: how often a paragraph is there at least, if all but the first go.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..))]
    min_count: u64,
    /// With --level paragraph: the characters of a paragraph at least; shorter ones stay.
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_length: u64,
    /// Take out of the documents that stay what jobs/passages.toml found more than once: passages that
    /// are copies of one before, or with `--drop-passages=all` the first ones, too.
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "copies")]
    drop_passages: Option<WhichPassages>,
    /// With --drop-passages: cut texts between words, or take out whole lines of which each word goes.
    #[arg(long, value_enum, requires = "drop_passages", default_value_t)]
    cut: CutAt,
    /// What becomes of the records that match an item of the reference, as jobs/decontamination.toml
    /// found them.
    #[arg(long, value_enum, value_name = "WHAT")]
    matched: Option<MatchedRecords>,
    /// Add to each record that is written `nigh_size`, the records of its cluster, as a weight.
    #[arg(long)]
    weights: bool,
    /// Add to each record that is written `nigh_score`, the mean of the numbers that the records of
    /// its cluster have in a column.
    #[arg(long, value_name = "COLUMN")]
    score: Option<String>,
    /// Which records are written [default: kept; removed for a list].
    #[arg(long, value_enum)]
    what: Option<What>,
    /// The format of the files. Documents of WARC, HTML and text become rows of url, date, status, media_type, title and text.
    #[arg(long, value_enum, default_value_t)]
    format: ExportFormat,
    /// Replace records of WARC and ARC that go by revisit records, which refer to the ones that
    /// stay and have the same payload digest, or to those of earlier weeks whose files are there;
    /// others are kept whole. ARC becomes WARC. For --level exact.
    #[arg(long)]
    revisits: bool,
    /// With --revisits: refer only to records that are written, so that the files replay without
    /// those of earlier weeks and batches.
    #[arg(long, requires = "revisits")]
    alone: bool,
    /// Write a `metadata` record for each page of WARC and ARC that is a near-duplicate, whether it
    /// stays or goes: it names the page that comes first in its cluster, or in its group of --each
    /// or per-host, and how similar they are.
    /// ARC becomes WARC.
    #[arg(long, conflicts_with = "list")]
    near_duplicates: bool,
    /// Keep records of WARC and ARC that are no pages, too: other media types, failed downloads, revisits, metadata of their own. A deletion does
    /// not know of them.
    #[arg(long)]
    others: bool,
    /// Write indexes (CDXJ) of the captures in WARC, ARC and WACZ: FILE of those that are written,
    /// and a second file, with `-removed` in its name, of those that are not.
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    cdxj: Option<PathBuf>,
    /// Write a card of the dataset, too: README.md with counts, method and accuracy, and a head
    /// that the Hugging Face hub reads.
    #[arg(long, conflicts_with = "list")]
    card: bool,
    /// Files that are written at a time [default: one for each core].
    #[arg(long, value_name = "N")]
    workers: Option<Count>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ExportLevel {
    #[default]
    Similar,
    Identical,
    Exact,
    Paragraph,
}

impl ExportLevel {
    /// The level of clusters whose documents stay or go.
    fn of_documents(self) -> Level {
        match self {
            ExportLevel::Similar | ExportLevel::Paragraph => Level::Similar,
            ExportLevel::Identical => Level::Identical,
            ExportLevel::Exact => Level::Exact,
        }
    }
}

impl ExportArgs {
    /// The fields that records get.
    fn fields(&self) -> Vec<AddedField> {
        let mut fields = match (self.what(), self.weights) {
            (What::Annotated, _) => AddedField::ANNOTATED.to_vec(),
            (_, true) => vec![AddedField::Size],
            (_, false) => Vec::new(),
        };
        fields.extend(self.score.as_ref().map(|_| AddedField::Score));
        if self.matched == Some(MatchedRecords::Annotate) {
            fields.extend(AddedField::OF_MATCHES);
        }
        fields
    }

    fn what(&self) -> What {
        self.what.unwrap_or(if self.list.is_some() { What::Removed } else { What::Kept })
    }
}

/// The result of the command, as `--json` prints it.
#[derive(Debug, Serialize)]
struct ExportSummary {
    week: Week,
    files: u64,
    #[serde(flatten)]
    counts: Exported,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<IndexSummary>,
}

/// The lines of the indexes.
#[derive(Debug, Serialize)]
struct IndexSummary {
    written: u64,
    removed: u64,
}

/// Writes the files or the list, and prints how many records they have.
pub(crate) fn run(args: &ExportArgs, log: &Log) -> Result<ExitCode> {
    log.name("export".to_owned());
    if let Some(url) = args.store.to_str() {
        refuse_secrets(url).map_err(WrongUse::from_error)?;
    }
    if args.revisits && (args.what() != What::Kept || args.level != ExportLevel::Exact || args.list.is_some()) {
        bail!(WrongUse(
            "--revisits is for --what kept --level exact: a revisit record says that the payload is the same as another's".into()
        ));
    }
    if args.revisits && !matches!(args.format, ExportFormat::Same | ExportFormat::Warc) {
        bail!(WrongUse("--revisits writes WARC: leave out --format, or give --format warc".into()));
    }
    if args.near_duplicates && (args.what() != What::Kept || args.level == ExportLevel::Paragraph) {
        bail!(WrongUse(
            "--near-duplicates writes records of WARC beside pages: it goes with --what kept, and not with --level paragraph".into()
        ));
    }
    if args.near_duplicates && !matches!(args.format, ExportFormat::Same | ExportFormat::Warc) {
        bail!(WrongUse("--near-duplicates writes WARC: leave out --format, or give --format warc".into()));
    }
    if args.others && (args.what() != What::Kept || args.list.is_some()) {
        bail!(WrongUse("--others keeps records of WARC that are no pages: it goes with --what kept and --out".into()));
    }
    if args.list.is_some() && args.format != ExportFormat::Same {
        bail!(WrongUse("--format is for --out; a list is Parquet if its name ends in .parquet, else text".into()));
    }
    if args.level == ExportLevel::Paragraph && (args.what() != What::Kept || args.list.is_some()) {
        bail!(WrongUse("--level paragraph writes documents: it goes with --what kept and --out".into()));
    }
    if args.drop_passages.is_some() && (args.what() != What::Kept || args.list.is_some()) {
        bail!(WrongUse("--drop-passages writes documents: it goes with --what kept and --out".into()));
    }
    if args.drop_passages.is_some()
        && (args.level == ExportLevel::Paragraph
            || args.revisits
            || args.near_duplicates
            || args.weights
            || args.score.is_some())
    {
        bail!(WrongUse(
            "--drop-passages changes texts of documents that stay: it does not go with --level paragraph, --revisits, --near-duplicates, \
             --weights and --score"
                .into()
        ));
    }
    if (args.weights || args.score.is_some()) && (args.revisits || args.level == ExportLevel::Paragraph) {
        bail!(WrongUse(
            "--weights and --score add fields to records: --revisits and --level paragraph write records without further fields".into()
        ));
    }
    if args.matched.is_some()
        && (args.level == ExportLevel::Paragraph
            || args.revisits
            || args.near_duplicates
            || args.drop_passages.is_some())
    {
        bail!(WrongUse(
            "--matched chooses among documents as they are: it does not go with --level paragraph, --drop-passages, --revisits and \
             --near-duplicates"
                .into()
        ));
    }
    if args.matched == Some(MatchedRecords::Annotate) && args.list.is_some() {
        bail!(WrongUse("--matched annotate adds fields to records that are written: it goes with --out".into()));
    }
    check_not_inside(&args.store)?;
    let summary = ReadStore::at(&args.store, |store| export_week(args, store, log))?;
    if args.json {
        print_json(&summary)?;
        return Ok(ExitCode::SUCCESS);
    }
    let ExportSummary { week, files, counts, index } = summary;
    let of = match args.what() {
        What::Kept => "those that stay",
        What::Removed => "those that go",
        What::Annotated => "with their clusters",
    };
    let (written, documents) = (grouped(counts.written), grouped(counts.documents));
    let mut text = match (&args.out, &args.list) {
        (Some(out), _) => {
            let (files, s) = (grouped(files), if files == 1 { "" } else { "s" });
            format!(
                "Week {week}: wrote {written} of {documents} records ({of}) to {files} file{s} in {}\n",
                out.display()
            )
        }
        (None, Some(list)) => {
            format!("Week {week}: listed {written} of {documents} records ({of}) in {}\n", list.display())
        }
        (None, None) => String::new(),
    };
    if let Some(matched) = args.matched.filter(|_| args.out.is_some()) {
        let what = match matched {
            MatchedRecords::Drop => "they go",
            MatchedRecords::Only => "the others go",
            MatchedRecords::Annotate => "`nigh_matches` says so",
        };
        let count = grouped(counts.matched);
        text.push_str(&format!("        {count} of the documents match an item of the reference: {what}\n"));
    }
    if args.revisits {
        text.push_str(&format!(
            "        and {} revisits of records that stay\n",
            grouped(counts.revisits - counts.outside)
        ));
        if counts.outside > 0 {
            text.push_str(&format!(
                "        and {} revisits of records of earlier weeks: keep the archives of these (--alone refers to none of them)\n",
                grouped(counts.outside)
            ));
        }
        text.push_str(&format!(
            "        and {} records that go, kept whole: no record that stays has their payload\n",
            grouped(counts.kept_whole)
        ));
    }
    if args.near_duplicates {
        text.push_str(&format!(
            "        and {} metadata records of near-duplicates\n",
            grouped(counts.near_duplicates)
        ));
    }
    if counts.others > 0 {
        text.push_str(&format!("        and {} records that are no documents\n", grouped(counts.others)));
    }
    if args.level == ExportLevel::Paragraph {
        text.push_str(&format!(
            "        without {} repeated paragraphs ({}), and without {} records of which nothing was left\n",
            grouped(counts.paragraphs),
            Bytes(counts.paragraph_bytes),
            grouped(counts.emptied)
        ));
    }
    if let Some(which) = args.drop_passages {
        let which = if which == WhichPassages::All { "repeated passages" } else { "copies of passages" };
        let whole = if args.cut == CutAt::Lines { "whole lines of " } else { "" };
        text.push_str(&format!(
            "        without {whole}{} {which} ({}), and without {} records of which nothing was left\n",
            grouped(counts.passages),
            Bytes(counts.passage_bytes),
            grouped(counts.emptied)
        ));
    }
    if let (Some(IndexSummary { written, removed }), Some(path)) = (index, &args.cdxj) {
        text.push_str(&format!(
            "        indexed {} captures that are written in {}, and {} that are not beside it\n",
            grouped(written),
            path.display(),
            grouped(removed)
        ));
    }
    for (count, what) in counts.left_out.reasons().into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!("        left out: {} {what}\n", grouped(count)));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn export_week(args: &ExportArgs, read_store: &ReadStore, log: &Log) -> Result<ExportSummary> {
    let (store, root) = (read_store.store(), args.store.display());
    let manifest = read_manifest(store, &args.store)?;
    let found = match args.week {
        Some(week) => manifest.weeks.iter().find(|committed| committed.week == week),
        None => manifest.weeks.last(),
    };
    let week = found.with_context(|| match args.week {
        Some(week) => format!("{root} has no week {week}"),
        None => format!("{root} has no week yet"),
    })?;
    read_store.need_records(week)?;
    for table in [DocumentRow::NAME, ClusterRow::NAME] {
        read_store.need(table, &[&format!("{}/", week.week.folder())])?;
    }
    if args.near_duplicates {
        for table in [EvidenceRow::NAME, FeatureRow::NAME] {
            read_store.need(table, &[&format!("{}/", week.week.folder())])?;
        }
    }
    let whole = store.whole(week)?;
    let job = crate::plan::job_of_week(store, week)?;
    let keep = kept(args, &job)?;
    let decided_by = DecidingColumns::of(args, &keep, &job)?;
    if let DecidingColumns::OfStore = decided_by {
        read_store.need(ValueRow::NAME, &[&format!("{}/", week.week.folder())])?;
    }
    let reading = job.read;
    let stamped = whole.journal.inputs(week.week);
    let stamped = stamped.flat_map(|(week, names)| names.iter().map(move |(name, stamp)| (week, name.clone(), stamp)));
    let stamped: Vec<(Week, String, &String)> = stamped.collect();
    let names: Vec<(Week, String)> = stamped.iter().map(|(week, name, _)| (*week, name.clone())).collect();
    let rules = ParagraphRules { least_count: args.min_count, least_characters: args.min_length };
    let paragraphs = (args.level == ExportLevel::Paragraph).then_some(rules);
    let passages = args
        .drop_passages
        .map(|_| committed_results::<Passages, PassageRow>(read_store, &manifest, week, &root, ""))
        .transpose()?;
    let compared = args
        .matched
        .map(|_| {
            let flags = " --against FILES";
            committed_results::<Decontamination, ReferenceMatchRow>(read_store, &manifest, week, &root, flags)
        })
        .transpose()?;
    let match_rules = args.matched.zip(compared.as_ref()).map(|(records, (results, _))| {
        let commit = results.commit_number();
        MatchRules { records, commit }
    });
    let passage_rules = args.drop_passages.zip(passages.as_ref()).map(|(which, (results, _))| {
        let commit = results.commit_number();
        PassageRules { which, cut: args.cut, commit }
    });
    let earlier = if args.revisits && !args.alone && job.absent != Absent::Keep {
        earlier_files(read_store, &manifest, week, &names, &reading, (&keep, args.touched), log)?
    } else {
        EarlierFiles::default()
    };
    let key = ExportKey {
        week: week.week,
        identity: short_hash(week.identity().as_bytes()),
        keep: keep.clone(),
        level: args.level.of_documents(),
        what: args.what(),
        revisits: args.revisits,
        near_duplicates: args.near_duplicates,
        others: args.others,
        earlier: earlier.identity.clone(),
        alone: args.alone,
        paragraphs,
        passages: passage_rules,
        matched: match_rules,
        since: args.since,
        only_older: args.only_older,
        format: args.format,
        added: if args.what() == What::Annotated { Vec::new() } else { args.fields() },
        score: args.score.clone(),
    };
    let tables = store.tables(week)?;
    let threads =
        args.workers.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |count| count.0);
    let deciding = |scratch: PathBuf| Deciding {
        tables: &tables,
        segments: &whole.journal.segments,
        inputs: &names,
        since: args.since,
        level: args.level.of_documents(),
        canonical: &keep,
        older: false,
        only_older: args.only_older,
        score: args.score.as_deref(),
        values: None,
        names: args.list.is_some() || args.touched,
        scratch,
        memory: MEMORY,
    };
    // The inputs from a week on.
    let inputs_since = |since: Option<Week>| -> Result<Vec<Input>> {
        let older = stamped.iter().filter(|(of, ..)| *of != week.week && since.is_none_or(|since| *of >= since));
        let mut inputs = earlier_inputs(older, &reading, args.touched)?;
        if since.is_none_or(|since| week.week >= since) {
            inputs.extend(own_inputs(args, &job.input, &reading, week, &whole.journal)?);
        }
        Ok(inputs)
    };
    // All inputs, and how they are read, if the store lacks values.
    let read_for_values = match &decided_by {
        DecidingColumns::OfInputs(columns) => {
            let (inputs, mut reading) = (inputs_since(None)?, reading.clone());
            reading.columns.values.clone_from(columns);
            check_columns(&inputs, &reading, "--keep, --each, --score or the job names")?;
            Some((inputs, reading))
        }
        DecidingColumns::None | DecidingColumns::OfStore => None,
    };
    let values_of_inputs = |scratch: PathBuf| -> Result<Option<PathBuf>> {
        let Some((inputs, reading)) = &read_for_values else { return Ok(None) };
        let values = InputValues { inputs, reading, scratch: scratch.clone(), memory: MEMORY, threads };
        values.read(&deciding(scratch)).map(Some)
    };
    let wanted = stamped.iter().filter(|(week, ..)| args.since.is_none_or(|since| *week >= since));
    let weeks: Vec<Week> = wanted.clone().map(|(week, ..)| *week).collect();
    let with_matches =
        |deciding: &Deciding<'_>, make: &mut dyn FnMut() -> Result<Verdicts>| match (args.matched, &compared) {
            (Some(records), Some((results, summary))) => {
                let files = results.committed_files(ReferenceMatchRow::NAME)?;
                let compared = &summary.batches;
                let memory = MEMORY;
                let scratch = deciding.scratch.clone();
                let matched = MatchedDocuments { weeks: &weeks, records, files, compared, scratch, memory };
                matched.verdicts(deciding, make)
            }
            _ => make(),
        };
    let Some(out) = &args.out else {
        let listed: Vec<String> = wanted.map(|(_, name, _)| name.clone()).collect();
        let list = ListFile::open(args.list.as_ref().context("there is a folder or a list")?, &key);
        let list = list.map_err(not_free)?;
        let values = values_of_inputs(list.scratch())?;
        let deciding = Deciding { values: values.as_deref(), ..deciding(list.scratch()) };
        let mut verdicts = with_matches(&deciding, &mut || deciding.verdicts())?;
        let (documents, written) = list.write(&listed, &mut verdicts, args.what())?;
        let counts = Exported { documents, written, ..Exported::default() };
        return Ok(ExportSummary { week: week.week, files: 1, counts, index: None });
    };
    let inputs = inputs_since(args.since)?;
    let folder = ExportFolder::open(out, &key).map_err(not_free)?;
    let values = values_of_inputs(folder.scratch())?;
    let deciding = |scratch: PathBuf| Deciding { values: values.as_deref(), ..deciding(scratch) };
    let index = args.cdxj.as_ref().map(|path| IndexFiles::open(path, &folder, MEMORY)).transpose().map_err(not_free)?;
    let has_lines = inputs.iter().any(|input| input.format == Format::Jsonl);
    let columns = (args.format == ExportFormat::Parquet && has_lines).then(|| JsonColumns::of(&inputs)).transpose()?;
    let (what, revisits, others, format) = (args.what(), args.revisits, args.others, args.format);
    let near = args.near_duplicates;
    let least = passages.as_ref().map(|(_, summary)| summary.least);
    let card = args.card.then(|| card(args, store, week, &keep, least)).transpose()?;
    let fields = args.fields();
    let writing =
        Writing { reading: &reading, what, fields, revisits, near_duplicates: near, others, format, card, columns };
    let done = |files: usize, all: usize| {
        if all > 1 && !args.json {
            log.notice(&format!("{files} of {all} files are whole"));
        }
    };
    let verdicts = match paragraphs {
        None if args.revisits => {
            let older = older_inputs(&stamped, args, &reading, log)?;
            let (scratch, all) = (folder.scratch(), [&earlier.inputs[..], &older, &inputs].concat());
            let (earlier, older, reading) = (&earlier.weeks, older.len(), &reading);
            let originals = Originals { inputs: &all, older, earlier, reading, scratch, memory: MEMORY, threads };
            originals.verdicts(&deciding(folder.scratch()))?
        }
        Some(rules) => {
            let scratch = folder.scratch();
            let finding = Finding { inputs: &inputs, reading: &reading, rules, scratch, memory: MEMORY, threads };
            finding.verdicts(&deciding(folder.scratch()))?
        }
        None => match passage_rules.zip(passages.as_ref()) {
            Some((rules, (results, PassagesSummary { batches: compared, .. }))) => {
                let files = results.committed_files(PassageRow::NAME)?;
                let scratch = folder.scratch();
                let dropped =
                    DroppedPassages { inputs: &inputs, weeks: &weeks, rules, files, compared, scratch, memory: MEMORY };
                dropped.verdicts(&deciding(folder.scratch()))?
            }
            None => {
                let deciding = deciding(folder.scratch());
                with_matches(&deciding, &mut || deciding.verdicts())?
            }
        },
    };
    // Where copies stay, or go with near-duplicates, they have a record, too.
    let of_copies = revisits || args.level != ExportLevel::Exact || keep.most > 1;
    let verdicts = if near {
        verdicts.with_near_duplicates(near_duplicates(&deciding(folder.scratch()), &inputs, of_copies)?)?
    } else {
        verdicts
    };
    let WrittenDataset { files, counts, index } =
        write_dataset(&inputs, verdicts, &writing, folder, index, threads, &done)?;
    let index = index.map(|[written, removed]| IndexSummary { written, removed });
    Ok(ExportSummary { week: week.week, files, counts, index })
}

/// The card of the dataset.
///
/// # Errors
/// If the summary of the week cannot be read.
fn card(args: &ExportArgs, store: &Store, week: &CommittedWeek, keep: &Canonical, least: Option<u32>) -> Result<Card> {
    Ok(Card {
        summary: Summary::read(&store.records(week))?,
        level: args.level.of_documents(),
        keep: keep.to_string(),
        what: args.what(),
        fields: args.fields(),
        further: further(args, least),
    })
}

/// The tables of a study of a week, and its summary. Its table `T` is at hand.
///
/// # Errors
/// If there are none, or those of another week.
fn committed_results<S: Study, T: crate::tables::Table>(
    read_store: &ReadStore,
    manifest: &Manifest,
    week: &CommittedWeek,
    root: &std::path::Display<'_>,
    flags: &str,
) -> Result<(Results, S::Summary)> {
    let (week, name) = (week.week, S::NAME);
    let commit = manifest.results.get(name).copied().with_context(|| {
        format!(
            "{root} has no tables of {name}: `nigh run jobs/{name}.toml --store {root} --week {week}{flags}` makes them"
        )
    })?;
    read_store.need_own(&Results::of(read_store.store(), name, commit).own_folder())?;
    let Committed { results, summary, .. } = Committed::<S>::numbered(read_store.store(), commit)?;
    let of = S::last_week(&summary);
    ensure!(
        of == Some(week),
        "{root} has the {name} of week {}: `nigh run jobs/{name}.toml --store {root} --week {week}{flags}` finds those of {week}",
        of.map_or_else(String::new, |of| of.to_string())
    );
    read_store.need(name, &[&format!("{}/", T::NAME)])?;
    Ok((results, summary))
}

/// What a card says of flags that change which records there are. `least` are the words of a passage at least.
fn further(args: &ExportArgs, least: Option<u32>) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(since) = args.since {
        let which = if args.only_older { "that duplicate no older one; copies among them stay" } else { "" };
        rows.push(("only records since", format!("{since} {which}").trim_end().to_owned()));
    }
    if args.level == ExportLevel::Paragraph {
        rows.push(("paragraphs", "those that a record before has are left out of records that stay".to_owned()));
    }
    if let (Some(which), Some(least)) = (args.drop_passages, least) {
        let which = match which {
            WhichPassages::Copies => "are left out, except for the first",
            WhichPassages::All => "are left out",
        };
        let lines = if args.cut == CutAt::Lines { ", as whole lines" } else { "" };
        rows.push(("passages", format!("those of {least} words and more that stand more than once {which}{lines}")));
    }
    match args.matched {
        Some(MatchedRecords::Drop) => {
            rows.push(("matches", "records that match an item of the reference are left out".to_owned()));
        }
        Some(MatchedRecords::Only) => {
            rows.push(("matches", "only records that match an item of the reference".to_owned()));
        }
        Some(MatchedRecords::Annotate) | None => {}
    }
    if args.revisits {
        rows.push((
            "revisits",
            "records that go are revisit records, or stay whole where none can refer to another".to_owned(),
        ));
    }
    rows
}

/// Which records stay: as the flags say, and else as the job of the week.
///
/// # Errors
/// If the flags contradict each other.
fn kept(args: &ExportArgs, job: &Cluster) -> Result<Canonical> {
    let mut keep = job.canonical.clone();
    keep.by = args.keep.clone().unwrap_or(keep.by);
    keep.most = args.most.unwrap_or(keep.most);
    keep.each = args.each.clone().or(keep.each);
    let wrong = |text: &str| Err(WrongUse(text.to_owned()).into());
    if args.revisits && keep.most == 0 {
        return wrong("--revisits refers to records that stay, and none of a cluster stays: give --most 1 or more");
    }
    if args.near_duplicates && keep.most == 0 {
        return wrong(
            "--near-duplicates names the record that stays, and none of a cluster stays: give --most 1 or more",
        );
    }
    if args.list.is_some() && args.weights {
        return wrong("--weights adds to records that are written, and --list writes none: leave it out");
    }
    if keep.by == By::Policy(Policy::PerHost) && keep.each.as_ref().is_some_and(|key| *key != Key::Host) {
        return wrong("per-host keeps one record of each host, and --each names other groups: choose one of the two");
    }
    Ok(keep)
}

/// Where the values are that decide what stays, and of which scores are made.
enum DecidingColumns {
    /// No column decides.
    None,
    /// The store has the values of all of them.
    OfStore,
    /// The store lacks those of one, so that all are read from the inputs: these columns.
    OfInputs(Vec<String>),
}

impl DecidingColumns {
    /// # Errors
    /// If values would have to be read from archives that revisits refer to.
    fn of(args: &ExportArgs, keep: &Canonical, job: &Cluster) -> Result<DecidingColumns> {
        let (mut columns, known) = (keep.columns(), &job.read.columns.values);
        columns.extend(args.score.clone().filter(|score| !columns.contains(score)));
        let Some(lacking) = columns.iter().find(|column| !known.contains(column)) else {
            return Ok(if columns.is_empty() { DecidingColumns::None } else { DecidingColumns::OfStore });
        };
        if args.revisits {
            bail!(WrongUse(format!(
                "the week has no values of `{lacking}`, and --revisits is for archives, which have no columns: leave it out"
            )));
        }
        Ok(DecidingColumns::OfInputs(columns))
    }
}

/// The error of a place that is not free: one of wrong use, unless the disk or the system refused.
fn not_free(error: anyhow::Error) -> anyhow::Error {
    if error.chain().any(|cause| cause.is::<std::io::Error>()) { error } else { WrongUse::from_error(error).into() }
}

/// The inputs of the week as they are now, in the order that they had.
///
/// # Errors
/// If they cannot be found, or have changed since the week was made from them.
fn own_inputs(
    args: &ExportArgs,
    of_job: &[String],
    reading: &Reading,
    week: &CommittedWeek,
    journal: &Journal,
) -> Result<Vec<Input>> {
    let input = if args.input.is_empty() { of_job } else { &args.input };
    let inputs = list(input, reading)
        .with_context(|| format!("the inputs of week {} are read again: give them with --input", week.week))?;
    let known = |input: &Input| journal.key.stamps.contains_key(&input.name);
    let at_hand: BTreeSet<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    let missing: Vec<&str> =
        journal.key.stamps.keys().map(String::as_str).filter(|name| !at_hand.contains(name)).collect();
    if let Some(first) = missing.first() {
        let more = if missing.len() > 1 {
            format!(" and {} more files", grouped(missing.len() as u64 - 1))
        } else {
            String::new()
        };
        bail!(
            "week {} was made from {first}{more}, not among the inputs now: put it back under this name, or give the inputs with --input",
            week.week
        );
    }
    if let Some(new) = inputs.iter().find(|input| !known(input)) {
        bail!("{} was no input of week {}: take it away, or give the inputs with --input", new.name, week.week);
    }
    for input in &inputs {
        let stamp = journal.key.stamps.get(&input.name).map_or("", |stamp| stamp);
        check_stamp(input, stamp, week.week, args.touched)?;
    }
    Ok(inputs)
}

/// Checks that an input has the size and the time of change that it had.
fn check_stamp(input: &Input, stamp: &str, week: Week, touched: bool) -> Result<()> {
    ensure!(
        touched || stamp_of(input).1 == stamp,
        "{} has changed since week {week} was made: its size or its time of change is another. Restore the file, or make the week again; if it \
         is a copy with the same content, give --touched",
        input.name
    );
    Ok(())
}

/// The archives of the weeks before, whose records revisits may refer to.
#[derive(Default)]
struct EarlierFiles {
    inputs: Vec<Input>,
    weeks: EarlierWeeks,
    /// The hash of the weeks and of the names.
    identity: Option<String>,
}

/// The archives of the weeks before that are there as they were. Those that this week has documents
/// of are not among them: they are written again without what is not of the week. Nor are those in
/// a WACZ, which is replayed alone.
///
/// # Errors
/// If a file of the store cannot be read.
fn earlier_files(
    read_store: &ReadStore,
    manifest: &Manifest,
    week: &CommittedWeek,
    own: &[(Week, String)],
    reading: &Reading,
    (keep, touched): (&Canonical, bool),
    log: &Log,
) -> Result<EarlierFiles> {
    let (store, earlier) = (read_store.store(), Earlier::before(manifest, week.week));
    let own: BTreeSet<&str> = own.iter().map(|(_, name)| name.as_str()).collect();
    let mut stamped: BTreeMap<(Week, String), String> = BTreeMap::new();
    for before in &earlier.weeks {
        read_store.need_records(before)?;
        for (of, names) in store.whole(before)?.journal.inputs(before.week) {
            stamped.extend(names.iter().map(|(name, stamp)| ((of, name.clone()), stamp.clone())));
        }
    }
    let is_archive = |input: &Input| {
        matches!(input.format, Format::Warc | Format::Arc) && !matches!(input.place, Location::Entry { .. })
    };
    let (mut inputs, mut numbers, mut gone) = (Vec::new(), BTreeMap::new(), Vec::new());
    for ((of, name), stamp) in stamped.into_iter().filter(|((_, name), _)| !own.contains(name.as_str())) {
        match input_of(&name, reading) {
            Some(input) if !is_archive(&input) => {}
            Some(input) if touched || stamp_of(&input).1 == stamp => {
                numbers.insert((of, name), inputs.len() as u32);
                inputs.push(input);
            }
            _ => gone.push((of, name)),
        }
    }
    if let Some((of, first)) = gone.first() {
        let more = match gone.len() - 1 {
            0 => String::new(),
            more => format!(" and {} more files of earlier weeks", grouped(more as u64)),
        };
        log.notice(&format!("{first} of week {of}{more} is not there as it was: what is in it is not referred to"));
    }
    if inputs.is_empty() {
        return Ok(EarlierFiles::default());
    }
    for before in &earlier.weeks {
        let values = (!keep.columns().is_empty()).then_some(ValueRow::NAME);
        for table in [DocumentRow::NAME, UrlRow::NAME].into_iter().chain(values) {
            read_store.need(table, &[&format!("{}/", before.week.folder())])?;
        }
    }
    if let Some(removed) = &earlier.removed {
        read_store.need_own(&removed_folder(removed))?;
    }
    let weeks = EarlierWeeks::open(store, &earlier, manifest.method.shards, &numbers)?;
    let identities = earlier.weeks.iter().map(CommittedWeek::identity);
    let of_files = numbers.keys().map(|(of, name)| format!("{of} {name}"));
    let identity = short_hash(identities.chain(of_files).collect::<Vec<_>>().join("\n").as_bytes());
    Ok(EarlierFiles { inputs, weeks, identity: Some(identity) })
}

/// The inputs before `--since`, whose records revisits may refer to. One that is not there has the
/// format `Failed`, and is said: what its records have is not known.
///
/// # Errors
/// If one has changed.
fn older_inputs(
    stamped: &[(Week, String, &String)],
    args: &ExportArgs,
    reading: &Reading,
    log: &Log,
) -> Result<Vec<Input>> {
    let older = stamped.iter().filter(|(week, ..)| args.since.is_some_and(|since| *week < since));
    if args.alone {
        return Ok(older.map(|(_, name, _)| absent(name)).collect());
    }
    let input = |(week, name, stamp): &(Week, String, &String)| {
        let Some(input) = input_of(name, reading) else {
            log.notice(&format!("{name} of week {week} is not there: what is in it is not referred to"));
            return Ok(absent(name));
        };
        check_stamp(&input, stamp, *week, args.touched)?;
        Ok(input)
    };
    older.map(input).collect()
}

/// An input of which nothing is read.
fn absent(name: &str) -> Input {
    Input {
        name: name.to_owned(),
        bytes: 0,
        format: Format::Failed,
        place: Location::File(PathBuf::from(name)),
        page_url: None,
        stamp: String::new(),
    }
}

/// An input of an earlier week under the name that it had, if it is there.
fn input_of(name: &str, reading: &Reading) -> Option<Input> {
    // A WARC file of a WACZ is found with the others of it.
    let item = name.split_once(".wacz/").map_or_else(|| name.to_owned(), |(archive, _)| format!("{archive}.wacz"));
    list(&[item], reading).ok()?.into_iter().find(|input| input.name == *name)
}

/// The inputs of earlier weeks whose documents stay.
///
/// # Errors
/// If one is not there under the name that it had, or has changed.
fn earlier_inputs<'a>(
    names: impl Iterator<Item = &'a (Week, String, &'a String)>,
    reading: &Reading,
    touched: bool,
) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for (week, name, stamp) in names {
        let input = input_of(name, reading).with_context(|| {
            format!("documents of week {week} are in {name}, which is not there: put it back under this name")
        })?;
        check_stamp(&input, stamp, *week, touched)?;
        inputs.push(input);
    }
    Ok(inputs)
}
