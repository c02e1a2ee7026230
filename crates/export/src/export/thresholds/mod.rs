//! Clusters at another similarity than that of the run: at a threshold that is given, or at the one
//! that leaves a number of records.
//!
//! ```text
//! documents, clusters      ─▶ members of clusters, by cluster; the first of equal ones, by file and place
//! these, read again        ─▶ their shingles, by cluster
//! each cluster             ─▶ a maximum spanning forest (`joins`); how many records go at each similarity (`threshold_rows`)
//! the threshold, forests   ─▶ the cluster of each member ─▶ a file of roots and sizes for each segment
//! ```
//!
//! Two documents are in one cluster if a chain of pairs of documents of one cluster of the week
//! joins them, each of which is as similar as the threshold: by their shingles, exactly, up to
//! collisions of 64-bit fingerprints. Clusters only fall apart: what the run did not link is not
//! compared.
//!
//! Memory: all sorts are external, and one cluster is in memory at a time, if its texts have not
//! too many words.

mod joins;
mod rule;
mod threshold_rows;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context as _, Result, bail, ensure};
use arrow_array::Int64Array;
use serde::{Deserialize, Serialize};

pub use self::rule::ThresholdRule;
pub use self::threshold_rows::{ChosenRows, RowsAt};

use self::joins::{Join, joins};
use self::rule::LEAST;
use self::threshold_rows::{CountedDocument, Least, choose, going};
use super::dataset::{changed, each_file, locked};
use super::verdicts::{Deciding, SegmentPage, Verdict, Verdicts, write_cluster};
use crate::config::{Method, Reading, Verify};
use crate::features::Fingerprinter;
use crate::operators::ingest::page_shingles;
use crate::operators::set_join::ExactShare;
use crate::operators::verify::CandidateSet;
use crate::readers::{Input, Item, open};
use crate::records::{DocId, Week};
use crate::structures::{ExternalSort, OwnUnionFind, Sortable, Sorted};
use crate::tables::{ClusterRow, Scan, Table, field};

/// Words of sets that a thread collects before it hands them on.
const HANDED: usize = 1 << 16;

/// Words of the texts of a cluster that are compared, at most: some 30 GB.
const MOST_WORDS: u64 = 500_000_000;
/// Documents of a cluster whose words are counted before the texts are read.
const MANY: u64 = 1000;

/// What clusters at a threshold are found with.
pub struct Thresholds<'a> {
    /// Which threshold.
    pub rule: ThresholdRule,
    /// All inputs of the week, in order.
    pub inputs: &'a [Input],
    /// How they were read.
    pub reading: &'a Reading,
    /// What a word is, and how similar documents of a cluster are at least.
    pub method: &'a Method,
    /// A folder for runs of the sorts, and for the clusters.
    pub scratch: PathBuf,
    /// Memory for the sorts, in bytes.
    pub memory: u64,
    /// Threads that read.
    pub threads: usize,
}

/// The clusters at a threshold.
pub struct ThresholdClusters {
    /// The folder that has them: see `Deciding::clusters`.
    pub folder: PathBuf,
    /// The threshold: the similarity of pairs at least. None if each document is alone.
    pub similarity: Option<f64>,
    /// How it was found, if a number of records was asked for.
    pub chosen: Option<ChosenRows>,
    /// Clusters of two and more documents.
    pub clusters: u64,
    /// Their documents.
    pub clustered: u64,
}

/// The smallest threshold of the clusters of a run with this method, in millionths: the similarity
/// of the run if it compared texts exactly. In other clusters there may be pairs that are less
/// similar.
pub fn least_threshold(method: &Method) -> u32 {
    match method.similarity {
        Some(similarity) if method.verify == Verify::Exact => similarity.millionths(),
        _ => LEAST,
    }
}

/// Refuses a cluster whose texts have too many words for the memory.
fn check_words(documents: u64, words: u64) -> Result<()> {
    ensure!(
        words <= MOST_WORDS,
        "a cluster of {documents} documents has texts of {words} words and more: they are compared in memory, those of at most {MOST_WORDS} \
         words. Leave out --at-similarity and --keep-rows, or make smaller clusters: by a run with --verify exact, or a larger --similarity"
    );
    Ok(())
}

/// A member of a cluster of the week.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Member {
    cluster: i64,
    doc: i64,
    /// The first document with the same bytes.
    first: i64,
    /// The number of the segment, and of the row there.
    segment: u32,
    row: u32,
    group: u64,
    is_written: bool,
}

impl Sortable for Member {
    type Key = (i64, i64);

    fn key(&self) -> Self::Key {
        (self.cluster, self.doc)
    }

    fn weight(&self) -> usize {
        size_of::<Member>()
    }
}

/// The members of a cluster by document, and the pairs that hold it together, the most similar
/// first.
#[derive(Debug, Serialize, Deserialize)]
struct ClusterForest {
    cluster: i64,
    members: Vec<Member>,
    joins: Vec<Join>,
}

impl Sortable for ClusterForest {
    type Key = i64;

    fn key(&self) -> i64 {
        self.cluster
    }

    fn weight(&self) -> usize {
        size_of::<ClusterForest>() + self.members.len() * size_of::<Member>() + self.joins.len() * size_of::<Join>()
    }
}

/// The cluster of a document at the threshold.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Placed {
    segment: u32,
    row: u32,
    root: i64,
    size: i64,
}

impl Sortable for Placed {
    type Key = (u32, u32);

    fn key(&self) -> Self::Key {
        (self.segment, self.row)
    }

    fn weight(&self) -> usize {
        size_of::<Placed>()
    }
}

/// The documents of a week.
struct WeekDocuments {
    /// How many are written if all stay.
    written: u64,
    /// Those of clusters.
    members: Sorted<Member>,
    /// The first of equal ones, in clusters with others, by file and place.
    firsts: Verdicts,
}

impl Thresholds<'_> {
    /// Finds the clusters. `deciding` says of which documents how many stay.
    ///
    /// # Errors
    /// If an input cannot be read or has changed, a file cannot be read or written, or more records
    /// than are wanted stay at every threshold.
    pub fn clusters(&self, deciding: &Deciding<'_>) -> Result<ThresholdClusters> {
        let WeekDocuments { written, members, firsts } = self.documents(deciding)?;
        let sets = self.sets(firsts)?;
        let mut gone = ExternalSort::new(&self.scratch.join("going"), self.memory / 4);
        let mut forests = ExternalSort::new(&self.scratch.join("forests"), self.memory / 4);
        let most = deciding.canonical.most;
        self.forests(members, sets, &mut |forest| {
            if let ThresholdRule::KeepRows(_) = self.rule {
                let count = |of: &Member| CountedDocument { group: of.group, is_written: of.is_written };
                let counted: Vec<CountedDocument> = forest.members.iter().map(count).collect();
                going(&counted, &forest.joins, most, &mut |of_join| gone.push(of_join))?;
            }
            forests.push(forest)
        })?;
        let (similarity, chosen) = match self.rule {
            ThresholdRule::AtSimilarity(similarity) => (Some(similarity), None),
            ThresholdRule::KeepRows(wanted) => {
                let least = Least { millionths: least_threshold(self.method), verify: self.method.verify };
                let chosen = choose(written, wanted, gone.sorted()?, least)?;
                (chosen.at.similarity, Some(chosen))
            }
        };
        let mut placed = ExternalSort::new(&self.scratch.join("placed"), self.memory / 2);
        let (mut clusters, mut clustered) = (0, 0);
        let mut forests = forests.sorted()?;
        while let Some(ClusterForest { members, joins, .. }) = forests.record()? {
            let mut parts = OwnUnionFind::new(members.len());
            for join in joins.iter().filter(|join| similarity.is_some_and(|least| join.similarity >= least)) {
                parts.join(join.places);
            }
            let roots = parts.into_root_of_each();
            let mut sizes = vec![0; members.len()];
            roots.iter().for_each(|root| sizes[*root as usize] += 1);
            clusters += sizes.iter().filter(|size| **size > 1).count() as u64;
            for (Member { segment, row, .. }, root) in members.iter().zip(&roots) {
                let size = sizes[*root as usize];
                clustered += u64::from(size > 1);
                let root = members[*root as usize].doc;
                placed.push(Placed { segment: *segment, row: *row, root, size })?;
            }
        }
        let folder = self.scratch.join("clusters");
        write_clusters(&folder, deciding, placed.sorted()?)?;
        Ok(ThresholdClusters { folder, similarity, chosen, clusters, clustered })
    }

    /// The documents of the week.
    fn documents(&self, deciding: &Deciding<'_>) -> Result<WeekDocuments> {
        let all = Deciding { since: None, score: None, names: false, ..deciding.clone() };
        let files = all.files();
        let mut members = ExternalSort::new(&self.scratch.join("threshold-members"), self.memory / 4);
        let mut firsts = ExternalSort::new(&self.scratch.join("threshold-places"), self.memory / 4);
        // The words of the texts of large clusters.
        let mut words: BTreeMap<i64, u64> = BTreeMap::new();
        let mut written = 0;
        for (number, segment) in (0..).zip(all.segments).filter(|(_, segment)| segment.documents > 0) {
            let mut exact: Vec<[i64; 2]> = Vec::new();
            Scan::open(all.tables.rows(ClusterRow::NAME, &segment.file())?, &["exact_root", "exact_size"])?.for_each(
                |batch| {
                    let longs = |name| field::<Int64Array>(batch, name);
                    let (roots, sizes) = (longs("exact_root")?, longs("exact_size")?);
                    exact.extend(roots.values().iter().zip(sizes.values()).map(|(root, size)| [*root, *size]));
                    Ok(())
                },
            )?;
            let mut row = 0;
            all.segment(
                &segment.file(),
                &files,
                &[],
                &mut |SegmentPage { verdict, order, batch, row: of_batch, .. }| {
                    let (week, of_row) = (all.inputs[verdict.file as usize].0, row);
                    let is_written = deciding.since.is_none_or(|since: Week| week >= since);
                    written += u64::from(is_written);
                    row += 1;
                    if order.is_none() {
                        return Ok(());
                    }
                    let [first, equal] = exact[of_row];
                    let Verdict { doc, cluster, group, size, .. } = verdict;
                    let member = Member { cluster, doc, first, segment: number, row: of_row as u32, group, is_written };
                    members.push(member)?;
                    // If all documents of a cluster have the same bytes, nothing is to compare.
                    if doc != first || equal as u64 >= size {
                        return Ok(());
                    }
                    if size >= MANY {
                        let of_cluster = words.entry(cluster).or_default();
                        *of_cluster += field::<Int64Array>(batch, "words")?.value(of_batch) as u64;
                        check_words(size, *of_cluster)?;
                    }
                    firsts.push(verdict)
                },
            )?;
        }
        Ok(WeekDocuments { written, members: members.sorted()?, firsts: Verdicts::of_places(firsts.sorted()?)? })
    }

    /// The shingles of these documents, by cluster and document.
    fn sets(&self, firsts: Verdicts) -> Result<Sorted<CandidateSet>> {
        let mut sets = ExternalSort::new(&self.scratch.join("threshold-sets"), self.memory / 2);
        let (sender, receiver) = std::sync::mpsc::sync_channel::<Vec<CandidateSet>>(self.threads);
        let read = {
            let (sender, idle) = (Mutex::new(sender), Mutex::new(Vec::new()));
            move |number: usize, verdicts: &[Verdict]| {
                if verdicts.is_empty() {
                    return Ok(());
                }
                let sender = locked(&sender).clone();
                // To make one takes as long as a small file.
                let known = locked(&idle).pop();
                let mut fingerprinter = known.map_or_else(|| Fingerprinter::of_method(self.method), Ok)?;
                self.read_file(number, verdicts, &mut fingerprinter, &mut |sets| sender.send(sets).is_ok())?;
                locked(&idle).push(fingerprinter);
                Ok(())
            }
        };
        std::thread::scope(|scope| -> Result<()> {
            let reading = scope.spawn(move || each_file("read", self.inputs, firsts, self.threads, &read));
            for of_file in receiver {
                of_file.into_iter().try_for_each(|set| sets.push(set))?;
            }
            reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        sets.sorted()
    }

    /// Hands on the shingles of a file's documents.
    fn read_file(
        &self,
        number: usize,
        verdicts: &[Verdict],
        fingerprinter: &mut Fingerprinter,
        send: &mut dyn FnMut(Vec<CandidateSet>) -> bool,
    ) -> Result<()> {
        let input = &self.inputs[number];
        let mut reader = open(input, self.reading)?;
        let mut verdicts = verdicts.iter().peekable();
        let (mut sets, mut words) = (Vec::new(), 0);
        while let Some(verdict) = verdicts.peek() {
            let Some(item) = reader.next()? else { return Err(changed(input, verdict.offset)) };
            let Item::Page(page) = item else { continue };
            let Some(verdict) = verdicts.next_if(|verdict| verdict.offset == page.offset) else { continue };
            if !verdict.is_of(&page, input.format) {
                return Err(changed(input, page.offset));
            }
            let elements = page_shingles(fingerprinter, &page.body, page.charset.as_deref());
            words += elements.len();
            let [doc, root] = [verdict.doc, verdict.cluster].map(DocId::from_table);
            sets.push(CandidateSet { doc, root, elements });
            if words > HANDED {
                words = 0;
                if !send(std::mem::take(&mut sets)) {
                    return Ok(());
                }
            }
        }
        send(sets);
        Ok(())
    }

    /// Hands on the forest of each cluster.
    fn forests(
        &self,
        mut members: Sorted<Member>,
        mut sets: Sorted<CandidateSet>,
        each: &mut dyn FnMut(ClusterForest) -> Result<()>,
    ) -> Result<()> {
        let mut least = least_threshold(self.method);
        if let ThresholdRule::AtSimilarity(similarity) = self.rule {
            // Pairs that are less similar join nothing.
            least = least.max((similarity * 1e6) as u32);
        }
        let least =
            ExactShare::of_millionths(least).with_context(|| format!("{least} millionths are no similarity"))?;
        let (mut next, mut next_set) = (members.record()?, sets.record()?);
        while let Some(Member { cluster, .. }) = next {
            let mut of_cluster: Vec<Member> = Vec::new();
            while let Some(member) = next.take_if(|next| next.cluster == cluster) {
                of_cluster.push(member);
                next = members.record()?;
            }
            let root = DocId::from_table(cluster);
            let mut with_sets: Vec<CandidateSet> = Vec::new();
            let mut words = 0;
            while let Some(set) = next_set.take_if(|next| next.root == root) {
                words += set.elements.len() as u64;
                check_words(of_cluster.len() as u64, words)?;
                with_sets.push(set);
                next_set = sets.record()?;
            }
            each(ClusterForest { cluster, joins: forest(&of_cluster, &with_sets, least)?, members: of_cluster })?;
        }
        ensure!(next_set.is_none(), "a document is of a cluster without members: the store is damaged");
        Ok(())
    }
}

/// The pairs that hold a cluster together, by the numbers of its members.
fn forest(members: &[Member], sets: &[CandidateSet], least: ExactShare) -> Result<Vec<Join>> {
    let number = |doc: i64| members.binary_search_by_key(&doc, |member| member.doc).map(|number| number as u32);
    let mut pairs: Vec<Join> = Vec::with_capacity(members.len());
    let mut firsts = 0;
    for (place, member) in (0..).zip(members) {
        match number(member.first) {
            Ok(first) if first == place => firsts += 1,
            // The same bytes.
            Ok(first) => pairs.push(Join { places: [first, place], similarity: 1.0 }),
            Err(_) => {
                bail!("the first of equal documents is of another cluster than {}: the store is damaged", member.doc)
            }
        }
    }
    ensure!(
        sets.len() == firsts || firsts == 1 && sets.is_empty(),
        "of {firsts} documents of a cluster {} have a text: the store is damaged",
        sets.len()
    );
    let places: Result<Vec<u32>, usize> = sets.iter().map(|set| number(set.doc.to_table())).collect();
    let Ok(places) = places else { bail!("a text is of no document of its cluster: the store is damaged") };
    let elements: Vec<&[u64]> = sets.iter().map(|set| set.elements.as_slice()).collect();
    let of_members = |join: Join| Join { places: join.places.map(|set| places[set as usize]), ..join };
    pairs.extend(joins(&elements, least).into_iter().map(of_members));
    Ok(pairs)
}

/// Writes the root and the size of the cluster of each document of the week, a file for each
/// segment.
fn write_clusters(folder: &Path, deciding: &Deciding<'_>, mut placed: Sorted<Placed>) -> Result<()> {
    let mut next = placed.record()?;
    for (number, segment) in (0..).zip(deciding.segments).filter(|(_, segment)| segment.documents > 0) {
        let path = folder.join(segment.file());
        let failed = || format!("cannot write {}", path.display());
        path.parent().map_or(Ok(()), std::fs::create_dir_all).with_context(failed)?;
        let mut file = BufWriter::new(File::create(&path).with_context(failed)?);
        let mut row = 0;
        Scan::open(deciding.tables.rows(ClusterRow::NAME, &segment.file())?, &["similar_root"])?.for_each(|batch| {
            for root in field::<Int64Array>(batch, "similar_root")?.values() {
                // A document without a place is alone.
                let of_row = next.take_if(|next| (next.segment, next.row) == (number, row));
                let numbers = of_row.map_or([*root, 1], |placed| [placed.root, placed.size]);
                write_cluster(&mut file, numbers).with_context(failed)?;
                if of_row.is_some() {
                    next = placed.record()?;
                }
                row += 1;
            }
            Ok(())
        })?;
        file.flush().with_context(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Similarity;

    #[test]
    fn only_exact_runs_have_no_pairs_below_their_similarity() {
        let similarity = Some(Similarity::try_from(0.8).unwrap());
        let least = |verify| least_threshold(&Method { similarity, verify, ..Method::default() });
        assert_eq!([Verify::Exact, Verify::Estimate, Verify::None].map(least), [800_000, 500_000, 500_000]);
        assert_eq!(least_threshold(&Method::default()), 500_000);
    }

    #[test]
    fn a_cluster_with_too_many_words_is_refused() {
        check_words(2_000_000, 500_000_000).unwrap();
        let error = check_words(2_000_000, 500_000_001).unwrap_err().to_string();
        assert!(error.starts_with("a cluster of 2000000 documents has texts of 500000001 words"), "{error}");
    }

    #[test]
    fn a_threshold_is_read_as_it_was_written() {
        for number in [0.930_875_576_036_866_3, 0.1 + 0.2, 1.0, 0.8, 1.0 / 3.0] {
            let rule = ThresholdRule::AtSimilarity(number);
            assert_eq!(serde_json::from_str::<ThresholdRule>(&serde_json::to_string(&rule).unwrap()).unwrap(), rule);
        }
        // As it was written before.
        let before: ThresholdRule = serde_json::from_str(r#"{"at-similarity":0.75}"#).unwrap();
        assert_eq!(before, ThresholdRule::AtSimilarity(0.75));
        assert!(serde_json::from_str::<ThresholdRule>(r#"{"at-similarity":"x"}"#).is_err());
    }
}
