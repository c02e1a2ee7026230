//! Samples that do not depend on workers: the things with the smallest hashes.

use std::collections::BTreeSet;

use anyhow::Result;
use nigh_exchange::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::records::{DocId, mix};

/// The hash by which a document is sampled, for one of several samples of a seed.
pub fn sample_hash(seed: u64, sample: u64, doc: DocId) -> u64 {
    mix(mix(seed ^ sample << 56) ^ doc.to_table() as u64)
}

/// The things with the smallest hashes so far, and how many there were in all.
#[derive(Clone, Debug)]
pub struct Sample<T> {
    most: usize,
    /// How many were added.
    pub population: u64,
    chosen: BTreeSet<(u64, T)>,
}

impl<T: Ord + Clone> Sample<T> {
    /// An empty sample of at most so many things.
    pub fn new(most: usize) -> Sample<T> {
        Sample { most, population: 0, chosen: BTreeSet::new() }
    }

    /// Adds a thing with its hash.
    ///
    /// ```
    /// use nigh_week::operators::accuracy::Sample;
    /// let mut sample = Sample::new(2);
    /// [(9, "a"), (3, "b"), (5, "c")].into_iter().for_each(|(hash, thing)| sample.add(hash, thing));
    /// assert_eq!((sample.population, sample.into_things()), (3, vec!["b", "c"]));
    /// ```
    #[inline]
    pub fn add(&mut self, hash: u64, thing: T) {
        self.add_with(hash, || thing);
    }

    /// Adds a thing with its hash, which is made only if it is kept.
    #[inline]
    pub fn add_with(&mut self, hash: u64, thing: impl FnOnce() -> T) {
        self.population += 1;
        self.keep(hash, thing);
    }

    fn keep(&mut self, hash: u64, thing: impl FnOnce() -> T) {
        if self.chosen.len() < self.most || self.chosen.last().is_some_and(|(largest, _)| hash < *largest) {
            self.chosen.insert((hash, thing()));
            if self.chosen.len() > self.most {
                self.chosen.pop_last();
            }
        }
    }

    /// The things, in the order of their hashes.
    pub fn into_things(self) -> Vec<T> {
        self.chosen.into_iter().map(|(_, thing)| thing).collect()
    }
}

impl<T: Ord + Clone + Serialize + DeserializeOwned + Send + Sync + 'static> Sample<T> {
    /// The samples of all workers as one, for each of several samples; the same at every worker.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn gather(cx: &mut Context, own: Vec<Sample<T>>) -> Result<Vec<Sample<T>>> {
        let mut all: Vec<Sample<T>> = own.iter().map(|sample| Sample::new(sample.most)).collect();
        let populations = own.iter().map(|sample| sample.population).enumerate();
        for (number, population) in cx.concat(populations.collect())? {
            all[number].population += population;
        }
        let things = (0u64..)
            .zip(own)
            .flat_map(|(number, sample)| sample.chosen.into_iter().map(move |(hash, thing)| (number, hash, thing)));
        for (number, hash, thing) in cx.sorted(things.collect())? {
            all[number as usize].keep(hash, || thing);
        }
        Ok(all)
    }
}
