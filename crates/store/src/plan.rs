//! The plan of a run: its inputs, the waves they form, and the memory of each worker.
//!
//! One process makes the plan and sends it to all others. So no result depends on when a process
//! listed the inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::config::{Absent, Canonical, Cluster, Keep, Method, Mode, Reading, Verify};
use crate::readers::{Input, InputPiece, Location, pieces};
use crate::records::{Week, short_hash};
use crate::state::{CommittedWeek, Earlier, InputKey, Store, WeekJournal, WholeWeek};
use crate::text::UrlPatterns;

/// A piece of the input with this number in the plan.
pub type PieceOfInput = (usize, InputPiece);

/// Everything that all processes of a run must agree on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The week that the run makes.
    pub week: Week,
    /// The store of the week.
    pub store: PathBuf,
    /// The name of the store's folder of unfinished work.
    pub work: String,
    /// The earlier weeks of the store; none for its first week.
    pub earlier: Earlier,
    /// The [identity](CommittedWeek::identity) of the store's last week before the run; empty if it
    /// has none.
    pub stands_on: String,
    /// The number of the commit that makes the week.
    pub commit: u64,
    /// The deletion from an existing week, if the run is one; then it reads no crawl. One without
    /// patterns computes the clusters of the week again with the method of this plan.
    pub deletion: Option<Deletion>,
    /// The week with fewer shards that this one is made from, if the run gives a store more shards;
    /// then it reads no crawl.
    pub resharding: Option<Resharding>,
    /// How the clusters of a later week are computed: full, delta or auto.
    pub mode: Mode,
    /// The study's parameters.
    pub method: Method,
    /// The options for reading pages.
    pub reading: Reading,
    /// What is kept of pages besides their features.
    pub keep: Keep,
    /// The input files, sorted by name.
    pub inputs: Vec<Input>,
    /// The working directories of the runs that read inputs with relative names, by week, up to
    /// this one.
    pub folders: BTreeMap<Week, PathBuf>,
    /// How the inputs of earlier weeks with pages that stay were read, by week, of those that were
    /// read in another way than these.
    pub readings: BTreeMap<Week, Reading>,
    /// What becomes of the pages of the week before that the crawl does not have.
    pub absent: Absent,
    /// The inputs of earlier weeks with pages that stay, for reading these again; those that are at
    /// hand.
    pub earlier_inputs: Vec<Input>,
    /// Which documents of a cluster are canonical.
    pub canonical: Canonical,
    /// Whether the accuracy of the clusters is measured by samples.
    pub accuracy: bool,
    /// The inputs of each wave, as ranges `first..end` of `inputs`, in order.
    pub waves: Vec<(usize, usize)>,
    /// The largest share of bad records, 0 to 1, that the job accepts.
    pub max_reject_share: f64,
    /// The largest share of revisits whose page is not known, 0 to 1, that the job accepts.
    pub max_unknown_share: f64,
    /// Whether the week may have no page.
    pub allow_empty: bool,
    /// The job file with all flags applied, as it is kept with the week.
    pub job: String,
    /// The number of processes.
    pub processes: usize,
    /// The number of workers in each process.
    pub workers: usize,
    /// Memory for the buffers of one worker, in bytes.
    pub worker_memory: u64,
    /// Whether several workers read one large file.
    pub split_files: bool,
    /// Whether what is read of a wave is kept until the wave is committed.
    pub keep_read: bool,
}

/// A deletion from a committed week.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Deletion {
    /// The URLs to delete.
    pub patterns: UrlPatterns,
    /// The week before the deletion.
    pub of: CommittedWeek,
    /// The key of the inputs that this week was made from.
    pub key: InputKey,
}

/// A week that is made again with more shards.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Resharding {
    /// The store that has it.
    pub store: PathBuf,
    /// All weeks of that store.
    pub weeks: Vec<CommittedWeek>,
    /// The week.
    pub of: CommittedWeek,
    /// The key of the inputs that it was made from.
    pub key: InputKey,
    /// How many shards each of its shards becomes.
    pub factor: u32,
    /// The number of document ids that it assigns in each new shard.
    pub urls: Vec<u64>,
    /// Whether its pages that stayed are not what the week before has of them: pages were deleted
    /// from it, or its chunks were made later.
    pub is_remade: bool,
}

/// Groups inputs into waves: a wave takes files, in order, until their sizes reach `wave_bytes`.
/// Returns ranges `first..end` of `inputs`.
///
/// The waves depend on the sorted list alone, not on the number of workers, because rows get their
/// ids wave by wave.
pub fn cut_waves(inputs: &[Input], wave_bytes: u64) -> Vec<(usize, usize)> {
    let mut waves = Vec::new();
    let (mut first, mut bytes) = (0, 0);
    for (place, input) in inputs.iter().enumerate() {
        bytes += input.bytes;
        if bytes >= wave_bytes.max(1) {
            waves.push((first, place + 1));
            (first, bytes) = (place + 1, 0);
        }
    }
    if first < inputs.len() {
        waves.push((first, inputs.len()));
    }
    waves
}

impl Plan {
    /// A key of everything that the week is made from. A rerun of the same command has the same
    /// key.
    pub fn key(&self) -> InputKey {
        if let Some(Deletion { patterns, of, key }) = &self.deletion {
            let made_from = if patterns.is_empty() {
                format!("{} with {}", of.identity(), self.method)
            } else {
                format!("{} without {}", of.identity(), serde_json::to_string(patterns).unwrap_or_default())
            };
            let hash = short_hash(made_from.as_bytes());
            return InputKey { hash, ..key.clone() };
        }
        if let Some(Resharding { of, key, .. }) = &self.resharding {
            return InputKey { hash: of.key_with_shards(self.method.shards), ..key.clone() };
        }
        let mut text = format!("{}; {}", self.method, serde_json::to_string(&self.reading).unwrap_or_default());
        for input in &self.inputs {
            text.push_str(&format!("; {} {} {}", input.name, input.bytes, input.stamp));
        }
        text.push_str(&format!("; {:?}", self.waves));
        // Only what differs from the default: a week of a version without this option stays the one
        // that its command makes.
        if !self.keep.chunks {
            text.push_str("; without chunks");
        }
        if self.absent == Absent::Keep {
            text.push_str("; absent pages stay");
        }
        text.push_str(&format!("; on {}", self.stands_on));
        InputKey {
            hash: short_hash(text.as_bytes()),
            waves: self.waves.len(),
            files: self.inputs.len(),
            bytes: self.inputs.iter().map(|input| input.bytes).sum(),
            stamps: self.inputs.iter().map(stamp_of).collect(),
        }
    }

    /// The inputs that changed since something was made from inputs with the key `before`: those of
    /// the same name, with another size or stamp.
    pub fn changed_since(&self, before: &InputKey) -> Vec<&Input> {
        let has_changed = |input: &&Input| {
            let (name, stamp) = stamp_of(input);
            before.stamps.get(&name).is_some_and(|before| *before != stamp)
        };
        self.inputs.iter().filter(has_changed).collect()
    }

    /// The inputs in which pages of the week can be read again: its own, and those of earlier weeks
    /// that have other names.
    pub fn inputs_again(&self) -> Vec<Input> {
        let own: BTreeSet<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
        let earlier = self.earlier_inputs.iter().filter(|input| !own.contains(input.name.as_str()));
        self.inputs.iter().chain(earlier).cloned().collect()
    }

    /// Opens the store of the week, with the plan's folder of unfinished work.
    pub fn open_store(&self) -> Store {
        Store::at(&self.store).working_in(&self.work)
    }

    /// Whether the week is made from a crawl.
    pub fn reads_crawl(&self) -> bool {
        self.deletion.is_none() && self.resharding.is_none()
    }

    /// The store that the week will be in.
    pub fn final_store(&self) -> &Path {
        self.resharding.as_ref().map_or(&self.store, |resharding| &resharding.store)
    }

    /// The number of document ids assigned in each shard in this week.
    pub fn new_urls(&self, journal: &WeekJournal) -> Vec<u64> {
        // After a deletion the ids of deleted URLs still count: they are not assigned again.
        match (&self.deletion, &self.resharding) {
            (Some(deletion), _) => deletion.of.urls.clone(),
            (None, Some(resharding)) => resharding.urls.clone(),
            (None, None) => journal.urls(self.method.shards),
        }
    }

    /// The number of document ids assigned in each shard up to and including this week.
    pub fn urls(&self, journal: &WeekJournal) -> Vec<u64> {
        let (earlier, new) = (self.earlier.urls(self.method.shards), self.new_urls(journal));
        earlier.iter().zip(&new).map(|(earlier, new)| earlier + new).collect()
    }

    /// The number of cluster ids assigned in each shard before this run.
    pub fn named(&self) -> Vec<u64> {
        let mut named = self.earlier.named(self.method.shards);
        if let Some(Deletion { of, .. }) = &self.deletion {
            named.iter_mut().zip(&of.named).for_each(|(sum, named)| *sum += named);
        }
        named
    }

    /// The size of the inputs of the first `waves` waves, as stored; 0 for a deletion.
    pub fn bytes_of_waves(&self, waves: usize) -> u64 {
        let end = self.waves[..waves.min(self.waves.len())].last().map_or(0, |wave| wave.1);
        self.inputs[..end].iter().map(|input| input.bytes).sum()
    }

    /// The number of workers of all processes.
    pub fn peers(&self) -> usize {
        self.processes * self.workers
    }

    /// The pieces in which an input is read.
    pub fn pieces(&self, input: &Input) -> Vec<InputPiece> {
        if self.split_files { pieces(input).collect() } else { vec![InputPiece::WHOLE] }
    }

    /// The pieces of the inputs of a wave, each with its bytes, about.
    pub fn pieces_of_wave(&self, wave: usize) -> Vec<(u64, PieceOfInput)> {
        let (first, end) = self.waves[wave];
        let of_file = |file: usize| {
            let input = &self.inputs[file];
            self.pieces(input).into_iter().map(move |piece| (input.bytes / piece.of, (file, piece)))
        };
        (first..end).flat_map(of_file).collect()
    }
}

/// The hash of an input's name, and that of its size and stamp.
pub fn stamp_of(input: &Input) -> (String, String) {
    let stamp = format!("{} {}", input.bytes, input.stamp);
    (input.name.clone(), short_hash(stamp.as_bytes()))
}

/// The job of a committed week. Inputs with relative names are looked for where its run was
/// started, then in the working directory.
///
/// # Errors
/// Names the file that is missing or damaged.
pub fn job_of_week(store: &Store, week: &CommittedWeek) -> Result<Cluster> {
    let mut job = kept_job(store, week)?;
    job.read.folders = folders_of(&store.whole(week)?, week.week);
    Ok(job)
}

/// The job of a committed week as it is kept, without the folders of its inputs.
fn kept_job(store: &Store, week: &CommittedWeek) -> Result<Cluster> {
    let path = store.records(week).join("job.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let job = Cluster::of_text(&text);
    job.with_context(|| format!("{} is damaged: it is not the job of a week", path.display()))
}

/// How the inputs of all weeks that `before` has pages of are read, by week: of those that are not
/// read as `now` says.
///
/// # Errors
/// If the job of the week `before` cannot be read.
pub fn other_readings(store: &Store, before: &WholeWeek, now: &Reading) -> Result<BTreeMap<Week, Reading>> {
    kept_job(store, &before.committed)?;
    let committed = store.manifest()?.map_or_else(Vec::new, |manifest| manifest.weeks);
    let weeks = before.journal.inputs(before.committed.week).map(|(week, _)| week);
    let readings = weeks.map(|week| (week, reading_of((store, before), &committed, week, now)));
    Ok(readings.filter(|(_, reading)| reading != now).collect())
}

/// How the inputs of a week are read, for a caller who reads as `given` says: by its own job; if
/// the week was removed, as `whole`, the last week, knows it.
fn reading_of(
    (store, whole): (&Store, &WholeWeek),
    committed: &[CommittedWeek],
    week: Week,
    given: &Reading,
) -> Reading {
    let of_job = |committed: &CommittedWeek| kept_job(store, committed).ok().map(|job| job.read);
    let own = committed.iter().find(|committed| committed.week == week).and_then(of_job);
    let own = own.or_else(|| whole.readings.get(&week).cloned()).or_else(|| of_job(&whole.committed));
    own.map_or_else(|| given.clone(), |own| own.of_pages(given))
}

/// These inputs, which a user names, each to be read as the job of its batch says; `whole` is the
/// last week, and knows which batch has an input of this name.
pub fn named_inputs((store, whole): (&Store, &WholeWeek), inputs: Vec<Input>, reading: &Reading) -> Vec<Input> {
    let committed = store.manifest().ok().flatten().map_or_else(Vec::new, |manifest| manifest.weeks);
    let names = whole.journal.input_names(whole.committed.week);
    let week_of: BTreeMap<&str, Week> = names.map(|(week, name)| (name, week)).collect();
    let mut readings: BTreeMap<Week, Option<Box<Reading>>> = BTreeMap::new();
    let read_as = |input: Input| match week_of.get(input.name.as_str()) {
        None => input,
        Some(week) => {
            let of_week = readings.entry(*week).or_insert_with(|| {
                let own = reading_of((store, whole), &committed, *week, reading);
                (own != *reading).then(|| Box::new(own))
            });
            Input { reading: of_week.clone(), ..input }
        }
    };
    inputs.into_iter().map(read_as).collect()
}

/// The folders in which relative names of the inputs of a week are looked for, in this order: where
/// the run of the week was started, and those of the other weeks that `whole` knows, the last one
/// first. The working directory is an empty path.
pub fn folders_of(whole: &WholeWeek, week: Week) -> Vec<PathBuf> {
    let here = std::env::current_dir().ok();
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in whole.folders.get(&week).into_iter().chain(whole.folders.values().rev()) {
        let folder = if here.as_ref() == Some(folder) { PathBuf::new() } else { folder.clone() };
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// The working directory, if some of the inputs have names that are relative to it.
///
/// # Errors
/// If it cannot be found.
pub fn folder_of(inputs: &[Input]) -> Result<Option<PathBuf>> {
    let is_relative = |input: &Input| match &input.place {
        Location::File(path) | Location::Entry { archive: path, .. } => path.is_relative(),
        Location::Object { .. } => false,
    };
    if !inputs.iter().any(is_relative) {
        return Ok(None);
    }
    let folder = std::env::current_dir().context("cannot find the working directory")?;
    // JSON has no other names.
    Ok(folder.to_str().is_some().then_some(folder))
}

/// The inputs with these names, and the weeks whose crawls they are of, as far as they are at hand
/// and can be wanted. `whole` is the last of the weeks. An input that is not at hand is missed only
/// if a page of it must be read; for samples no server is asked. Of two inputs with one name the
/// last one is meant.
pub fn inputs_at_hand<'a>(
    (store, whole): (&Store, &WholeWeek),
    names: impl Iterator<Item = (Week, &'a str)>,
    reading: &Reading,
    verify: Verify,
    accuracy: bool,
) -> Vec<Input> {
    let is_wanted = |name: &str| verify == Verify::Exact || accuracy && !name.contains("://");
    let names = names.filter(|(_, name)| is_wanted(name));
    let by_week = inputs_by_week((store, whole), names, reading, verify == Verify::Exact);
    let by_name: BTreeMap<String, Input> = by_week.into_iter().map(|((_, name), input)| (name, input)).collect();
    by_name.into_values().collect()
}

/// The inputs with these names that are at hand, by week and name. They are looked for as the run
/// of their week found them, by the items of its job, and are read as it says. `whole` is the last
/// of the weeks, and `reading` says how the caller reads.
pub fn inputs_by_week<'a>(
    (store, whole): (&Store, &WholeWeek),
    names: impl Iterator<Item = (Week, &'a str)>,
    reading: &Reading,
    asks_servers: bool,
) -> BTreeMap<(Week, String), Input> {
    let mut wanted: BTreeMap<Week, BTreeSet<&str>> = BTreeMap::new();
    names.for_each(|(week, name)| {
        wanted.entry(week).or_default().insert(name);
    });
    // What cannot be read here is missed where it is needed.
    let weeks = store.manifest().ok().flatten().map_or_else(Vec::new, |manifest| manifest.weeks);
    let mut found = BTreeMap::new();
    for (week, mut names) in wanted {
        let committed = weeks.iter().find(|committed| committed.week == week);
        let job = committed.and_then(|committed| kept_job(store, committed).ok());
        let items = job.map_or_else(Vec::new, |job| job.input);
        let of_week = reading_of((store, whole), &weeks, week, reading);
        let searched = Reading { folders: folders_of(whole, week), ..of_week.clone() };
        let mut inputs = crate::readers::list_again(&items, &searched, &names, asks_servers);
        for input in &inputs {
            names.remove(input.name.as_str());
        }
        inputs.extend(names.into_iter().filter_map(|name| in_moved_store(store, name, &searched)));
        let other = (of_week != *reading).then(|| Box::new(of_week));
        let inputs = inputs.into_iter().map(|input| Input { reading: other.clone(), ..input });
        found.extend(inputs.map(|input| ((week, input.name.clone()), input)));
    }
    found
}

/// The input of this name, if it is a file of documents that `nigh live` committed, and lies in the
/// store although that has another path now.
fn in_moved_store(store: &Store, name: &str, reading: &Reading) -> Option<Input> {
    let live = store.live();
    let path = live.join(Path::new(name).file_name()?);
    let folder = live.strip_prefix(store.root()).ok()?;
    if !Path::new(name).parent()?.ends_with(folder) {
        return None;
    }
    let found = crate::readers::list_again(&[], reading, &BTreeSet::from([path.to_str()?]), false);
    found.into_iter().next().map(|input| Input { name: name.to_owned(), ..input })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::{Format, Location};

    fn inputs(bytes: &[u64]) -> Vec<Input> {
        let input = |(i, bytes): (usize, &u64)| Input {
            name: format!("{i:03}.warc"),
            bytes: *bytes,
            format: Format::Warc,
            place: Location::File("file".into()),
            page_url: None,
            stamp: String::new(),
            reading: None,
        };
        bytes.iter().enumerate().map(input).collect()
    }

    /// A plan with files of these bytes, for one worker.
    fn plan(bytes: &[u64], wave_bytes: u64) -> Plan {
        let inputs = inputs(bytes);
        let job = Cluster::default();
        Plan {
            week: "2024-01-08".parse().unwrap(),
            store: "store".into(),
            work: "work".into(),
            earlier: Earlier::default(),
            stands_on: String::new(),
            commit: 1,
            deletion: None,
            resharding: None,
            absent: Absent::Missing,
            earlier_inputs: Vec::new(),
            canonical: Canonical::default(),
            accuracy: true,
            mode: Mode::Full,
            method: Method::default(),
            reading: job.read.clone(),
            keep: job.keep,
            waves: cut_waves(&inputs, wave_bytes),
            inputs,
            folders: BTreeMap::new(),
            readings: BTreeMap::new(),
            max_reject_share: 0.1,
            max_unknown_share: 0.1,
            allow_empty: false,
            job: job.to_text(),
            processes: 1,
            workers: 1,
            worker_memory: 1,
            split_files: true,
            keep_read: false,
        }
    }

    #[test]
    fn every_file_is_in_one_wave_and_in_order() {
        assert_eq!(cut_waves(&inputs(&[5, 5, 5, 20, 1]), 10), [(0, 2), (2, 4), (4, 5)]);
        assert_eq!(cut_waves(&inputs(&[1, 1]), 0), [(0, 1), (1, 2)]);
        assert_eq!(cut_waves(&[], 10), []);
    }

    #[test]
    fn a_wave_has_all_pieces_of_its_files() {
        let mut plan = plan(&[1 << 30, 5, 0], 1 << 40);
        plan.inputs[0].format = Format::Jsonl;
        let of_first = pieces(&plan.inputs[0]).map(|piece| ((1 << 30) / piece.of, (0, piece)));
        let all: Vec<_> = of_first.chain([(5, (1, InputPiece::WHOLE)), (0, (2, InputPiece::WHOLE))]).collect();
        assert_eq!(plan.pieces_of_wave(0), all);
        assert_eq!(all.len(), 18);
        plan.split_files = false;
        assert_eq!(plan.pieces_of_wave(0)[..2], [(1 << 30, (0, InputPiece::WHOLE)), (5, (1, InputPiece::WHOLE))]);
    }

    #[test]
    fn other_inputs_or_methods_have_another_key() {
        let key = plan(&[1, 2], 10).key();
        assert_eq!(plan(&[1, 2], 10).key(), key);
        assert_ne!(plan(&[1, 3], 10).key().hash, key.hash);
        let mut other = plan(&[1, 2], 10);
        other.inputs[1].stamp = "modified later".into();
        assert_ne!(other.key().hash, key.hash);
        assert_eq!(other.changed_since(&key), [&other.inputs[1]]);
        assert!(plan(&[1, 2, 3], 10).changed_since(&key).is_empty());
        let mut other = plan(&[1, 2], 10);
        other.method.agreements = 3;
        assert_ne!(other.key().hash, key.hash);
        let mut other = plan(&[1, 2], 10);
        other.stands_on = "a store from which pages were deleted".into();
        assert_ne!(other.key().hash, key.hash);
    }

    #[test]
    fn the_kept_job_can_be_run_again() {
        let text = plan(&[1], 1).job;
        assert_eq!(Cluster::of_text(&text).unwrap().to_text(), text);
    }
}
