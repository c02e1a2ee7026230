//! The flags of `nigh export`, and which of them go together.

use std::path::PathBuf;
use std::str::FromStr as _;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::cli::errors::WrongUse;
use crate::config::{Bytes, CanonicalOrder, Count, Share, TermKey};
use crate::export::{
    AddedField, CutAt, ExportFormat, MOST_SHARDS, MatchedRecords, NewName, NewNames, OverlapRule, ParagraphRules,
    ShardRule, ThresholdRule, What, WhichPassages,
};
use crate::mirror::url_of;
use crate::objects::{refuse_secrets, without_secrets};
use crate::records::{Level, Week};

/// Examples at the end of `nigh help export`.
const EXAMPLES: &str = "\
Examples:
    nigh export corpus --out deduplicated
    nigh export corpus --out longest --keep longest --level identical
    nigh export corpus --out annotated --what annotated
    nigh export corpus --list removed.parquet
    nigh export corpus --out without-copies --drop-passages
    nigh export corpus --out own-paragraphs --level paragraph --overlap 0.8
    nigh export corpus --out clean --matched drop
    nigh export corpus --out smaller --keep-rows 1000000
    nigh export corpus --out even --shards 16 --rename body=text
    nigh export crawl --out kept --level exact --revisits --cdxj kept.cdxj

If it is interrupted, give the same command again: it goes on with the files that are not whole.
Shards are all written again, unless all of them are whole.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    pub(super) store: PathBuf,
    /// The folder to write to, or s3://BUCKET/PREFIX; each input file gives a file of the same
    /// name.
    #[arg(long, value_name = "DIR_OR_URL", required_unless_present = "list", conflicts_with = "list")]
    pub(super) out: Option<PathBuf>,
    /// Write a list of records instead: Parquet if the name ends in .parquet, else lines with an id
    /// or URL each. Inputs are not read, except for --at-similarity, --keep-rows and columns that
    /// the store does not have.
    #[arg(long, value_name = "FILE")]
    pub(super) list: Option<PathBuf>,
    /// The week [default: the last one].
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(super) week: Option<Week>,
    /// Only documents of this week and later ones, and of these those that duplicate nothing older:
    /// with --most, --each or per-host, that are not beyond what stays of a cluster or group.
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(super) since: Option<Week>,
    /// With --since: only documents that duplicate an older one go; those that duplicate only each
    /// other all stay.
    #[arg(long, requires = "since", conflicts_with_all = ["most", "each", "revisits"])]
    pub(super) only_older: bool,
    /// The input files of the week, under the names that they had [default: those of its job].
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    pub(super) input: Vec<String>,
    /// Read inputs whose time of change is another, because they were copied; their ids, URLs and
    /// texts are compared all the same.
    #[arg(long)]
    pub(super) touched: bool,
    /// Which record of a cluster stays: first, longest, newest, shortest-url, per-host or root; or
    /// an order by columns, such as 'score desc, source in ["a", "b"]'; values that the store does
    /// not have are read from the inputs [default: what the job of the week has as `canonical`].
    #[arg(long, visible_alias = "keep-by", value_name = "POLICY_OR_COLUMNS", value_parser = CanonicalOrder::from_str)]
    pub(super) keep: Option<CanonicalOrder>,
    /// How many records of a cluster stay, or of each group of --each; 0: none of a cluster of two
    /// or more [default: the job's, or 1].
    #[arg(long, value_name = "N")]
    pub(super) most: Option<u64>,
    /// Keep --most records of each group of a cluster: of each value of a column, or of each
    /// `host`.
    #[arg(long, value_name = "COLUMN", value_parser = |name: &str| TermKey::try_from(name.to_owned()))]
    pub(super) each: Option<TermKey>,
    /// Take the clusters of pairs that are at least so similar: the texts of clusters are read
    /// again and compared. The least is the similarity of a run with --verify exact, and 0.5 for
    /// other runs.
    #[arg(long, value_name = "SIMILARITY", value_parser = share)]
    pub(super) at_similarity: Option<Share>,
    /// Keep so many records, or the next fewer: finds the similarity of pairs at which as many
    /// stay, and takes the clusters that such pairs make.
    #[arg(long, value_name = "N", conflicts_with_all = ["at_similarity", "only_older"])]
    pub(super) keep_rows: Option<u64>,
    /// The level of the clusters; `paragraph` takes from the documents that stay, at level similar,
    /// the paragraphs (lines) that others before had.
    #[arg(long, value_enum, default_value_t)]
    pub(super) level: ExportLevel,
    /// With --level paragraph: how often a paragraph is there at least, if all but the first go.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..))]
    pub(super) min_count: u64,
    /// With --level paragraph: the characters of a paragraph at least; shorter ones stay.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) min_length: u64,
    /// With --level paragraph: paragraphs go of whose n-grams more than this share stand before,
    /// and documents of which more than this share of all n-grams stand in documents before.
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "min_count")]
    pub(super) overlap: Option<Share>,
    /// With --overlap: the words of an n-gram.
    #[arg(long, value_name = "WORDS", requires = "overlap", default_value_t = 13, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) ngram: u32,
    /// Take out of the documents that stay what jobs/passages.toml found more than once: passages
    /// that are copies of one before, or with `--drop-passages=all` the first ones, too.
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "copies")]
    pub(super) drop_passages: Option<WhichPassages>,
    /// With --drop-passages: cut texts between words, or take out whole lines of which each word
    /// goes.
    #[arg(long, value_enum, requires = "drop_passages", default_value_t)]
    pub(super) cut: CutAt,
    /// What becomes of the records that match an item of the reference, as
    /// jobs/decontamination.toml found them.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(super) matched: Option<MatchedRecords>,
    /// Add to each record that is written `nigh_size`, the records of its cluster, as a weight.
    #[arg(long)]
    pub(super) weights: bool,
    /// Add to each record that is written `nigh_score`, the mean of the numbers that the records of
    /// its cluster have in a column.
    #[arg(long, value_name = "COLUMN")]
    pub(super) score: Option<String>,
    /// Which records are written [default: kept; removed for a list].
    #[arg(long, value_enum)]
    pub(super) what: Option<What>,
    /// The format of the files. Documents of WARC, HTML and text become rows of url, date, status,
    /// media_type, title and text.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: ExportFormat,
    /// Write a column of the records under another name. Give it once for each column.
    #[arg(long, value_name = "OLD=NEW", conflicts_with = "list")]
    pub(super) rename: Vec<NewName>,
    /// Write all records into N files of JSON Lines or Parquet, in the order of the inputs:
    /// data-00000-of-0000N.
    #[arg(long, value_name = "N", conflicts_with_all = ["list", "shard_bytes", "cdxj"], value_parser = clap::value_parser!(u64).range(1..=MOST_SHARDS))]
    pub(super) shards: Option<u64>,
    /// As --shards, with files of at most so many bytes (100MB, 1GiB): lines without their
    /// compression, rows of Parquet about as they are stored.
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["list", "cdxj"])]
    pub(super) shard_bytes: Option<Bytes>,
    /// Replace records of WARC and ARC that go by revisit records, which refer to the ones that
    /// stay and have the same payload digest, or to those of earlier weeks whose files are there;
    /// others are kept whole. ARC becomes WARC. For --level exact.
    #[arg(long)]
    pub(super) revisits: bool,
    /// With --revisits: refer only to records that are written, so that the files replay without
    /// those of earlier weeks and batches.
    #[arg(long, requires = "revisits")]
    pub(super) alone: bool,
    /// Write a `metadata` record for each page of WARC and ARC that is a near-duplicate, whether it
    /// stays or goes: it names the page that comes first in its cluster, or in its group of --each
    /// or per-host, and how similar they are.
    /// ARC becomes WARC.
    #[arg(long, conflicts_with = "list")]
    pub(super) near_duplicates: bool,
    /// Keep records of WARC and ARC that are no pages, too: other media types, failed downloads,
    /// revisits, metadata of their own. A deletion does not know of them.
    #[arg(long)]
    pub(super) others: bool,
    /// Write indexes (CDXJ) of the captures in WARC, ARC and WACZ: FILE of those that are written,
    /// and a second file, with `-removed` in its name, of those that are not.
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub(super) cdxj: Option<PathBuf>,
    /// Write a card of the dataset, too: README.md with counts, method and accuracy, and a head
    /// that the Hugging Face hub reads.
    #[arg(long, conflicts_with = "list")]
    pub(super) card: bool,
    /// Files that are written at a time [default: one for each core].
    #[arg(long, value_name = "N")]
    pub(super) workers: Option<Count>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

fn share(text: &str) -> Result<Share, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number: allowed is 0.0 to 1.0"))?;
    Share::try_from(number)
}

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportLevel {
    #[default]
    Similar,
    Identical,
    Exact,
    Paragraph,
}

impl ExportLevel {
    /// The level of clusters whose documents stay or go.
    pub(super) fn of_documents(self) -> Level {
        match self {
            ExportLevel::Similar | ExportLevel::Paragraph => Level::Similar,
            ExportLevel::Identical => Level::Identical,
            ExportLevel::Exact => Level::Exact,
        }
    }
}

impl ExportArgs {
    /// The fields that records get.
    pub(super) fn fields(&self) -> Vec<AddedField> {
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

    pub(super) fn what(&self) -> What {
        self.what.unwrap_or(if self.list.is_some() { What::Removed } else { What::Kept })
    }

    /// The URL of the bucket to write to, if that is no folder.
    ///
    /// # Errors
    /// If it is another URL, or has a secret in it.
    pub(super) fn bucket(&self) -> Result<Option<String>> {
        let Some(out) = &self.out else { return Ok(None) };
        let wrong = |_| {
            WrongUse(format!("--out {}: give a folder, or s3://BUCKET/PREFIX", without_secrets(&out.to_string_lossy())))
        };
        let url = url_of(out).map_err(wrong)?;
        url.as_deref().map_or(Ok(()), refuse_secrets).map_err(WrongUse::from_error)?;
        Ok(url)
    }

    /// Checks what flags say together.
    ///
    /// # Errors
    /// If two contradict each other.
    pub(super) fn check(&self) -> Result<()> {
        if self.bucket()?.is_some() && self.cdxj.is_some() {
            bail!(WrongUse(
                "--cdxj reads the archives that were written, which must be in a folder: give --out DIR, and copy it to the bucket".into()
            ));
        }
        if let Some(list) = self.list.as_ref().filter(|list| list.to_str().is_some_and(|list| list.contains("://"))) {
            let list = without_secrets(&list.to_string_lossy()).into_owned();
            bail!(WrongUse(format!("--list {list}: a list is a file on this machine")));
        }
        if self.revisits && (self.what() != What::Kept || self.level != ExportLevel::Exact || self.list.is_some()) {
            bail!(WrongUse(
            "--revisits is for --what kept --level exact: a revisit record says that the payload is the same as another's".into()
        ));
        }
        if self.revisits && !matches!(self.format, ExportFormat::Same | ExportFormat::Warc) {
            bail!(WrongUse("--revisits writes WARC: leave out --format, or give --format warc".into()));
        }
        if self.near_duplicates && (self.what() != What::Kept || self.level == ExportLevel::Paragraph) {
            bail!(WrongUse(
            "--near-duplicates writes records of WARC beside pages: it goes with --what kept, and not with --level paragraph".into()
        ));
        }
        if self.near_duplicates && !matches!(self.format, ExportFormat::Same | ExportFormat::Warc) {
            bail!(WrongUse("--near-duplicates writes WARC: leave out --format, or give --format warc".into()));
        }
        if self.threshold().is_some()
            && (matches!(self.level, ExportLevel::Identical | ExportLevel::Exact) || self.near_duplicates)
        {
            bail!(WrongUse(
                "--at-similarity and --keep-rows change very similar clusters: they do not go with --level identical, --level exact and \
                 --near-duplicates"
                    .into()
            ));
        }
        if self.threshold().is_some() && self.drop_passages.is_some() {
            bail!(WrongUse(
                "--at-similarity and --keep-rows change which records stay, and the passages are those of others: they do not go with \
                 --drop-passages. Export twice: first with the threshold, then from a store of what was written"
                    .into()
            ));
        }
        if self.keep_rows.is_some()
            && (self.level == ExportLevel::Paragraph
                || matches!(self.matched, Some(MatchedRecords::Drop | MatchedRecords::Only)))
        {
            bail!(WrongUse(
                "--keep-rows counts the records that stay of clusters: it does not go with --level paragraph, --matched drop and --matched \
                 only, by which others go. Give the similarity that it finds to --at-similarity, which does"
                    .into()
            ));
        }
        if self.others && (self.what() != What::Kept || self.list.is_some()) {
            bail!(WrongUse(
                "--others keeps records of WARC that are no pages: it goes with --what kept and --out".into()
            ));
        }
        if self.list.is_some() && self.format != ExportFormat::Same {
            bail!(WrongUse("--format is for --out; a list is Parquet if its name ends in .parquet, else text".into()));
        }
        if self.level == ExportLevel::Paragraph && (self.what() != What::Kept || self.list.is_some()) {
            bail!(WrongUse("--level paragraph writes documents: it goes with --what kept and --out".into()));
        }
        if (self.min_count != 2 || self.min_length != 1) && self.level != ExportLevel::Paragraph {
            bail!(WrongUse("--min-count and --min-length are for paragraphs: they go with --level paragraph".into()));
        }
        if self.overlap.is_some() && self.level != ExportLevel::Paragraph {
            bail!(WrongUse("--overlap is for paragraphs: it goes with --level paragraph".into()));
        }
        if self.drop_passages.is_some() && (self.what() != What::Kept || self.list.is_some()) {
            bail!(WrongUse("--drop-passages writes documents: it goes with --what kept and --out".into()));
        }
        if self.drop_passages.is_some()
            && (self.level == ExportLevel::Paragraph
                || self.revisits
                || self.near_duplicates
                || self.weights
                || self.score.is_some())
        {
            bail!(WrongUse(
            "--drop-passages changes texts of documents that stay: it does not go with --level paragraph, --revisits, --near-duplicates, \
             --weights and --score"
                .into()
        ));
        }
        if (self.weights || self.score.is_some()) && (self.revisits || self.level == ExportLevel::Paragraph) {
            bail!(WrongUse(
            "--weights and --score add fields to records: --revisits and --level paragraph write records without further fields".into()
        ));
        }
        if self.matched.is_some()
            && (self.level == ExportLevel::Paragraph
                || self.revisits
                || self.near_duplicates
                || self.drop_passages.is_some())
        {
            bail!(WrongUse(
            "--matched chooses among documents as they are: it does not go with --level paragraph, --drop-passages, --revisits and \
             --near-duplicates"
                .into()
        ));
        }
        if self.matched == Some(MatchedRecords::Annotate) && self.list.is_some() {
            bail!(WrongUse("--matched annotate adds fields to records that are written: it goes with --out".into()));
        }
        if self.shard_rule().is_some() && (self.revisits || self.near_duplicates || self.others) {
            bail!(WrongUse(
                "--shards and --shard-bytes write rows: they do not go with --revisits, --near-duplicates and --others"
                    .into()
            ));
        }
        if self.shard_bytes == Some(Bytes(0)) {
            bail!(WrongUse("--shard-bytes 0: a shard has one byte or more".into()));
        }
        if !self.rename.is_empty() && (self.revisits || self.near_duplicates || self.others || self.cdxj.is_some()) {
            bail!(WrongUse(
                "--rename is for rows: it does not go with --revisits, --near-duplicates, --others and --cdxj".into()
            ));
        }
        self.new_names()?;
        Ok(())
    }

    /// The columns that are written under other names.
    ///
    /// # Errors
    /// If they contradict each other.
    pub(super) fn new_names(&self) -> Result<NewNames> {
        NewNames::new(self.rename.clone()).map_err(|cause| WrongUse(format!("--rename: {cause}")).into())
    }

    /// Which paragraphs go, with --level paragraph.
    pub(super) fn paragraph_rules(&self) -> Option<ParagraphRules> {
        (self.level == ExportLevel::Paragraph).then(|| ParagraphRules {
            least_count: self.min_count,
            least_characters: self.min_length,
            overlap: self.overlap.map(|share| OverlapRule { words: self.ngram, share }),
        })
    }

    /// The threshold of clusters, if they are not those of the week.
    pub(super) fn threshold(&self) -> Option<ThresholdRule> {
        let at = self.at_similarity.map(|share| ThresholdRule::AtSimilarity(share.0));
        at.or(self.keep_rows.map(ThresholdRule::KeepRows))
    }

    /// How records are cut into shards, if they are.
    pub(super) fn shard_rule(&self) -> Option<ShardRule> {
        ShardRule::of_flags(self.shards, self.shard_bytes)
    }
}
