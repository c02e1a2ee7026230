//! `nigh export`: writes a week's inputs again without duplicates, or lists these.
//!
//! In reading order: `flags` (what a user says), this file (the run), `choice` (which records
//! stay), `inputs` (what is read again), `card`, `printed`.

mod card;
mod choice;
mod flags;
mod inputs;
mod printed;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};

use self::card::card;
use self::choice::{DecidingColumns, kept};
pub(crate) use self::flags::ExportArgs;
use self::flags::ExportLevel;
use self::inputs::{EarlierFiles, earlier_files, earlier_inputs, older_inputs, own_inputs};
use self::printed::{ExportSummary, IndexSummary};
use super::columns::{check_columns, check_renamed};
use super::errors::WrongUse;
use super::print::print_json;
use super::session::{check_not_inside, read_manifest};
use crate::config::Absent;
use crate::export::{
    Deciding, DroppedPassages, ExportFolder, ExportFormat, ExportKey, Exported, Finding, IndexFiles, InputValues,
    JsonColumns, ListFile, MatchRules, MatchedDocuments, Originals, ParagraphRules, PassageRules, Verdicts, What,
    Writing, WrittenDataset, near_duplicates, write_dataset,
};
use crate::log::Log;
use crate::mirror::ReadStore;
use crate::objects::refuse_secrets;
use crate::readers::{Format, Input};
use crate::records::{Week, short_hash};
use crate::report::print;
use crate::state::{CommittedWeek, Manifest, Results};
use crate::studies::decontamination::Decontamination;
use crate::studies::passages::{Passages, PassagesSummary};
use crate::studies::{Committed, Study};
use crate::tables::studies::{PassageRow, ReferenceMatchRow};
use crate::tables::{ClusterRow, DocumentRow, EvidenceRow, FeatureRow, Table as _, ValueRow};

/// Memory for sorting, in bytes.
const MEMORY: u64 = 256 << 20;

/// Writes the files or the list, and prints how many records they have.
pub(crate) fn run(args: &ExportArgs, log: &Log) -> Result<ExitCode> {
    log.name("export".to_owned());
    if let Some(url) = args.store.to_str() {
        refuse_secrets(url).map_err(WrongUse::from_error)?;
    }
    args.check()?;
    check_not_inside(&args.store)?;
    let summary = ReadStore::at(&args.store, |store| export_week(args, store, log))?;
    if args.json {
        print_json(&summary)?;
    } else {
        print(&printed::text(args, summary))?;
    }
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
    let renamed = args.new_names()?;
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
        renamed: renamed.clone(),
        shards: args.shard_rule(),
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
    check_renamed(&renamed, &args.fields(), &inputs, &reading)?;
    let folder = ExportFolder::open(out, &key).map_err(not_free)?;
    let values = values_of_inputs(folder.scratch())?;
    let deciding = |scratch: PathBuf| Deciding { values: values.as_deref(), ..deciding(scratch) };
    let index = args.cdxj.as_ref().map(|path| IndexFiles::open(path, &folder, MEMORY)).transpose().map_err(not_free)?;
    let has_lines = inputs.iter().any(|input| input.format == Format::Jsonl);
    let columns = (args.format == ExportFormat::Parquet && has_lines).then(|| JsonColumns::of(&inputs)).transpose()?;
    let (what, revisits, others, format) = (args.what(), args.revisits, args.others, args.format);
    let (near, shards) = (args.near_duplicates, args.shard_rule());
    let least = passages.as_ref().map(|(_, summary)| summary.least);
    let card = args.card.then(|| card(args, store, week, &keep, least)).transpose()?;
    let fields = args.fields();
    let writing = Writing {
        reading: &reading,
        what,
        fields,
        renamed,
        revisits,
        near_duplicates: near,
        others,
        format,
        shards,
        card,
        columns,
    };
    let done = |files: usize, all: usize| {
        if all > 1 && !args.json {
            let what = if shards.is_some() { "inputs are read" } else { "files are whole" };
            log.notice(&format!("{files} of {all} {what}"));
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

/// The error of a place that is not free: one of wrong use, unless the disk or the system refused.
fn not_free(error: anyhow::Error) -> anyhow::Error {
    if error.chain().any(|cause| cause.is::<std::io::Error>()) { error } else { WrongUse::from_error(error).into() }
}
