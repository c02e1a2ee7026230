//! The export of a week: what the command asks for, and what the store has.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::card::card;
use super::choice::{DecidingColumns, kept};
use super::flags::{ExportArgs, ExportLevel};
use super::inputs::{EarlierFiles, earlier_files, earlier_inputs, older_inputs, own_inputs};
use super::printed::{ExportSummary, IndexSummary, ThresholdSummary};
use super::{committed_results, wrong_use};
use crate::cli::columns::{check_columns, check_renamed};
use crate::cli::errors::WrongUse;
use crate::config::{Absent, Canonical, Cluster, Method, Reading, Similarity, Verify};
use crate::export::{
    Deciding, DroppedPassages, ExportFolder, ExportFormat, ExportKey, Exported, IndexFiles, InputValues, JsonColumns,
    ListFile, MatchRules, MatchedDocuments, NewNames, Originals, ParagraphRules, ParagraphSearch, PassageRules,
    ThresholdClusters, ThresholdRule, Thresholds, Verdicts, What, Writing, WrittenDataset, check_shards,
    least_threshold, near_duplicates, write_dataset,
};
use crate::log::Log;
use crate::mirror::ReadStore;
use crate::readers::Input;
use crate::records::{Week, short_hash};
use crate::state::{CommittedWeek, Manifest, Results, Store, WeekTables, WholeWeek};
use crate::studies::Study;
use crate::studies::decontamination::Decontamination;
use crate::studies::passages::{Passages, PassagesSummary};
use crate::tables::studies::decontamination::ReferenceMatchRow;
use crate::tables::studies::passages::PassageRow;
use crate::tables::{Table as _, ValueRow};

/// Memory for sorting, in bytes.
const MEMORY: u64 = 256 << 20;

/// A week that is exported.
pub(super) struct WeekExport<'a> {
    args: &'a ExportArgs,
    log: &'a Log,
    store: &'a Store,
    week: &'a CommittedWeek,
    whole: &'a WholeWeek,
    tables: WeekTables,
    /// The job of the week.
    job: Cluster,
    /// Which records of a cluster stay, and by which columns.
    keep: Canonical,
    decided_by: DecidingColumns,
    /// The week, the name and the stamp of each input, in order; and the same without stamps.
    stamped: Vec<(Week, String, &'a String)>,
    names: Vec<(Week, String)>,
    /// The archives that revisits may refer to.
    earlier: EarlierFiles,
    paragraphs: Option<ParagraphRules>,
    /// How documents were compared.
    method: Method,
    passages: Option<(PassageRules, Results, PassagesSummary)>,
    matches: Option<(MatchRules, Results, <Decontamination as Study>::Summary)>,
    renamed: NewNames,
    threads: usize,
}

/// Inputs from which values of columns are read, and how.
type ReadForValues = Option<(Vec<Input>, Reading)>;

impl<'a> WeekExport<'a> {
    /// Reads what the store has of a week. Its records and tables are at hand.
    ///
    /// # Errors
    /// If flags do not fit the job of the week, or the store lacks what they ask for.
    pub(super) fn of(
        args: &'a ExportArgs,
        read_store: &'a ReadStore,
        manifest: &Manifest,
        (week, whole): (&'a CommittedWeek, &'a WholeWeek),
        log: &'a Log,
    ) -> Result<WeekExport<'a>> {
        let (store, root) = (read_store.store(), args.store.display());
        let job = crate::plan::job_of_week(store, week)?;
        let keep = kept(args, &job)?;
        let decided_by = DecidingColumns::of(args, &keep, &job)?;
        if let DecidingColumns::OfStore = decided_by {
            read_store.need(ValueRow::NAME, &[&format!("{}/", week.week.folder())])?;
        }
        let stamped = whole.journal.inputs(week.week);
        let stamped =
            stamped.flat_map(|(week, names)| names.iter().map(move |(name, stamp)| (week, name.clone(), stamp)));
        let stamped: Vec<(Week, String, &String)> = stamped.collect();
        let names: Vec<(Week, String)> = stamped.iter().map(|(week, name, _)| (*week, name.clone())).collect();
        let least = f64::from(least_threshold(&whole.method)) / 1e6;
        if let Some(ThresholdRule::AtSimilarity(similarity)) = args.threshold()
            && similarity < least
        {
            let given = format!("--at-similarity {similarity}: the least");
            bail!(WrongUse(match (whole.method.verify, Similarity::try_from(similarity)) {
                (Verify::Exact, Ok(_)) => format!(
                    "{given} of the run is {least}. A run with --similarity {similarity} finds pairs that are as similar"
                ),
                (Verify::Exact, Err(_)) => format!("{given} of the run is {least}, and that of any run is 0.5"),
                _ => format!("{given} that can be taken here is {least}"),
            }));
        }
        let passages = |which| -> Result<_> {
            let (results, summary) = committed_results::<Passages, PassageRow>(read_store, manifest, week, &root, "")?;
            Ok((PassageRules { which, cut: args.cut, commit: results.commit_number() }, results, summary))
        };
        let matches = |records| -> Result<_> {
            let flags = " --against FILES";
            let (results, summary) =
                committed_results::<Decontamination, ReferenceMatchRow>(read_store, manifest, week, &root, flags)?;
            Ok((MatchRules { records, commit: results.commit_number() }, results, summary))
        };
        let (passages, matches) =
            (args.drop_passages.map(passages).transpose()?, args.matched.map(matches).transpose()?);
        let earlier = if args.revisits && !args.alone && job.absent != Absent::Keep {
            earlier_files(read_store, manifest, week, &names, &job.read, (&keep, args.touched), log)?
        } else {
            EarlierFiles::default()
        };
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Ok(WeekExport {
            args,
            log,
            store,
            week,
            whole,
            tables: store.tables(week)?,
            job,
            keep,
            decided_by,
            stamped,
            names,
            earlier,
            paragraphs: args.paragraph_rules(),
            method: whole.method.clone(),
            passages,
            matches,
            renamed: args.new_names()?,
            threads: args.workers.map_or_else(cores, |count| count.0),
        })
    }

    /// What files of this export have in common.
    fn key(&self) -> ExportKey {
        let WeekExport { args, week, keep, renamed, .. } = self;
        ExportKey {
            week: week.week,
            identity: short_hash(week.identity().as_bytes()),
            keep: keep.clone(),
            level: args.level.of_documents(),
            threshold: args.threshold(),
            what: args.what(),
            revisits: args.revisits,
            near_duplicates: args.near_duplicates,
            others: args.others,
            earlier: self.earlier.identity.clone(),
            alone: args.alone,
            paragraphs: self.paragraphs,
            passages: self.passages.as_ref().map(|(rules, ..)| *rules),
            matched: self.matches.as_ref().map(|(rules, ..)| *rules),
            since: args.since,
            only_older: args.only_older,
            format: args.format,
            added: if args.what() == What::Annotated { Vec::new() } else { args.fields() },
            score: args.score.clone(),
            renamed: renamed.clone(),
            shards: args.shard_rule(),
        }
    }

    /// How it is decided what stays, with the values of columns in a folder and clusters at another
    /// threshold, if they were read.
    fn deciding<'d>(
        &'d self,
        values: Option<&'d Path>,
        clusters: Option<&'d ThresholdClusters>,
        scratch: PathBuf,
    ) -> Deciding<'d> {
        let args = self.args;
        Deciding {
            tables: &self.tables,
            segments: &self.whole.journal.segments,
            inputs: &self.names,
            since: args.since,
            level: args.level.of_documents(),
            canonical: &self.keep,
            older: false,
            only_older: args.only_older,
            score: args.score.as_deref(),
            values,
            clusters: clusters.map(|clusters| clusters.folder.as_path()),
            names: args.list.is_some() || args.touched,
            scratch,
            memory: MEMORY,
        }
    }

    /// The inputs from a week on, as they are now.
    fn inputs_since(&self, since: Option<Week>) -> Result<Vec<Input>> {
        let WeekExport { args, store, week, whole, job, stamped, .. } = self;
        let older = stamped.iter().filter(|(of, ..)| *of != week.week && since.is_none_or(|since| *of >= since));
        let mut inputs = earlier_inputs((store, whole), &older.collect::<Vec<_>>(), &job.read, args.touched)?;
        if since.is_none_or(|since| week.week >= since) {
            inputs.extend(own_inputs((store, whole), args, &job.input, &job.read)?);
        }
        Ok(inputs)
    }

    /// All inputs, and how they are read, if the store lacks values.
    fn read_for_values(&self) -> Result<ReadForValues> {
        let DecidingColumns::OfInputs(columns) = &self.decided_by else { return Ok(None) };
        let (inputs, mut reading) = (self.inputs_since(None)?, self.job.read.clone());
        reading.columns.values.clone_from(columns);
        check_columns(&inputs, &reading, "--keep, --each, --score or the job names")?;
        Ok(Some((inputs, reading)))
    }

    /// The folder with the values of columns, once they are read.
    fn values(&self, read: &ReadForValues, scratch: PathBuf) -> Result<Option<PathBuf>> {
        let Some((inputs, reading)) = read else { return Ok(None) };
        let values = InputValues { inputs, reading, scratch: scratch.clone(), memory: MEMORY, threads: self.threads };
        values.read(&self.deciding(None, None, scratch)).map(Some)
    }

    /// All inputs, if texts of clusters are read again.
    fn read_for_threshold(&self) -> Result<Option<Vec<Input>>> {
        self.args.threshold().map(|_| self.inputs_since(None)).transpose()
    }

    /// The clusters at the threshold that is asked for.
    fn clusters(
        &self,
        inputs: Option<&[Input]>,
        values: Option<&Path>,
        scratch: PathBuf,
    ) -> Result<Option<ThresholdClusters>> {
        let Some((rule, inputs)) = self.args.threshold().zip(inputs) else { return Ok(None) };
        let (reading, method, memory, threads) = (&self.job.read, &self.method, MEMORY, self.threads);
        let thresholds = Thresholds { rule, inputs, reading, method, scratch: scratch.clone(), memory, threads };
        thresholds.clusters(&self.deciding(values, None, scratch)).map(Some)
    }

    /// The weeks and names of the inputs whose documents are written.
    fn wanted(&self) -> impl Iterator<Item = (Week, &String)> {
        let wanted = self.stamped.iter().filter(|(week, ..)| self.args.since.is_none_or(|since| *week >= since));
        wanted.map(|(week, name, _)| (*week, name))
    }

    /// Their weeks.
    fn weeks(&self) -> Vec<Week> {
        self.wanted().map(|(week, _)| week).collect()
    }

    /// Whether copies of a document stay beside it.
    fn copies_stay(&self, args: &ExportArgs) -> bool {
        self.keep.most > 1 || self.keep.only_older.is_some() || args.only_older
    }

    /// The verdicts, with the matches of documents, if these are asked for.
    fn with_matches(&self, deciding: &Deciding<'_>) -> Result<Verdicts> {
        let Some((MatchRules { records, .. }, results, summary)) = &self.matches else { return deciding.verdicts() };
        let matched = MatchedDocuments {
            weeks: &self.weeks(),
            records: *records,
            files: results.committed_files(ReferenceMatchRow::NAME)?,
            compared: &summary.batches,
            scratch: deciding.scratch.clone(),
            memory: MEMORY,
        };
        matched.verdicts(deciding, || deciding.verdicts())
    }

    /// Writes the list of records.
    ///
    /// # Errors
    /// If there is something else in its place, or it cannot be written.
    pub(super) fn list(&self) -> Result<ExportSummary> {
        let read = self.read_for_values()?;
        let compared = self.read_for_threshold()?;
        let listed: Vec<String> = self.wanted().map(|(_, name)| name.clone()).collect();
        let list = ListFile::open(self.args.list.as_ref().context("there is a folder or a list")?, &self.key());
        let list = list.map_err(wrong_use)?;
        let values = self.values(&read, list.scratch())?;
        let clusters = self.clusters(compared.as_deref(), values.as_deref(), list.scratch())?;
        let deciding = self.deciding(values.as_deref(), clusters.as_ref(), list.scratch());
        let mut verdicts = self.with_matches(&deciding)?;
        let (documents, written) = list.write(&listed, self.method.documents, &mut verdicts, self.args.what())?;
        let counts = Exported { documents, written, ..Exported::default() };
        let threshold = clusters.as_ref().map(ThresholdSummary::of);
        Ok(ExportSummary { week: self.week.week, files: 1, counts, threshold, index: None })
    }

    /// Writes the files below a folder.
    ///
    /// # Errors
    /// If inputs or flags do not fit, an input cannot be read or has changed, or a file cannot be
    /// written.
    pub(super) fn files(&self, out: &Path) -> Result<ExportSummary> {
        let WeekExport { args, job, renamed, .. } = self;
        let read = self.read_for_values()?;
        let compared = self.read_for_threshold()?;
        let inputs = self.inputs_since(args.since)?;
        check_renamed(renamed, &args.fields(), &inputs, &job.read)?;
        if args.shard_rule().is_some() {
            check_shards(&inputs, args.format).map_err(wrong_use)?;
        }
        let folder = match args.bucket()? {
            Some(url) => ExportFolder::in_bucket(&url, &self.key()),
            None => ExportFolder::open(out, &self.key()),
        };
        let folder = folder.map_err(wrong_use)?;
        let values = self.values(&read, folder.scratch())?;
        let index = args.cdxj.as_ref().map(|path| IndexFiles::open(path, &folder, MEMORY)).transpose();
        let index = index.map_err(wrong_use)?;
        let clusters = self.clusters(compared.as_deref(), values.as_deref(), folder.scratch())?;
        let writing = self.writing(&inputs, clusters.as_ref())?;
        let deciding = self.deciding(values.as_deref(), clusters.as_ref(), folder.scratch());
        let verdicts = self.verdicts(&inputs, &deciding, &folder)?;
        let done = |files: usize, all: usize| {
            if all > 1 && !args.json {
                let what = if writing.shards.is_some() { "inputs are read" } else { "files are whole" };
                self.log.notice(&format!("{files} of {all} {what}"));
            }
        };
        let WrittenDataset { files, counts, index } =
            write_dataset(&inputs, verdicts, &writing, folder, index, self.threads, &done)?;
        let index = index.map(|[written, removed]| IndexSummary { written, removed });
        let threshold = clusters.as_ref().map(ThresholdSummary::of);
        Ok(ExportSummary { week: self.week.week, files, counts, threshold, index })
    }

    /// How the files are written.
    fn writing(&self, inputs: &[Input], clusters: Option<&ThresholdClusters>) -> Result<Writing<'_>> {
        let args = self.args;
        let has_lines = inputs.iter().any(|input| input.format.has_json_lines());
        let has_columns = args.format == ExportFormat::Parquet && has_lines;
        let columns = has_columns.then(|| JsonColumns::of(inputs, &self.job.read)).transpose()?;
        let least = self.passages.as_ref().map(|(.., summary)| summary.least);
        let card = args.card.then(|| card(args, self.store, self.week, &self.keep, (least, clusters))).transpose()?;
        Ok(Writing {
            reading: &self.job.read,
            method: &self.method,
            what: args.what(),
            fields: args.fields(),
            renamed: self.renamed.clone(),
            revisits: args.revisits,
            near_duplicates: args.near_duplicates,
            others: args.others,
            format: args.format,
            shards: args.shard_rule(),
            card,
            columns,
        })
    }

    /// The verdicts on the documents, with what goes from those that stay.
    fn verdicts(&self, inputs: &[Input], deciding: &Deciding<'_>, folder: &ExportFolder) -> Result<Verdicts> {
        let WeekExport { args, threads, .. } = *self;
        let (reading, scratch, memory) = (&self.job.read, folder.scratch(), MEMORY);
        let verdicts = if let Some(rules) = self.paragraphs {
            ParagraphSearch { inputs, reading, method: &self.method, rules, scratch, memory, threads }
                .verdicts(deciding)?
        } else if args.revisits {
            let older = older_inputs((self.store, self.whole), &self.stamped, args, reading, self.log)?;
            let all = [&self.earlier.inputs[..], &older, inputs].concat();
            let (earlier, older) = (&self.earlier.weeks, older.len());
            Originals { inputs: &all, older, earlier, reading, scratch, memory, threads }.verdicts(deciding)?
        } else if let Some((rules, results, PassagesSummary { batches: compared, .. })) = &self.passages {
            let (weeks, files) = (&self.weeks(), results.committed_files(PassageRow::NAME)?);
            DroppedPassages { inputs, weeks, rules: *rules, files, compared, scratch, memory }.verdicts(deciding)?
        } else {
            self.with_matches(deciding)?
        };
        if !args.near_duplicates {
            return Ok(verdicts);
        }
        // Where copies stay, or go with near-duplicates, they have a record, too.
        let of_copies = args.revisits || args.level != ExportLevel::Exact || self.copies_stay(args);
        verdicts.with_near_duplicates(near_duplicates(deciding, inputs, of_copies)?)
    }
}
