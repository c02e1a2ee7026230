//! Units: the pages of a week that have chunks, or the hosts of these pages, with what is needed to
//! describe groups of them.
//!
//! A unit is named by a [`DocId`]: that of the page, or one that `hosts` makes. So units have
//! owners and numbers as documents have.
//!
//! Memory: 28 bytes for every known URL of the worker's shards, or for every host, and 16 for each
//! of its addresses; for hosts also their names, and 8 bytes for every known URL.

use crate::records::{DocId, checksum};
use crate::structures::Ownership;

/// The own units of a worker.
#[derive(Debug)]
pub struct Units {
    /// Which worker owns which unit.
    pub owned: Ownership,
    /// By own number: its pages that have chunks; 0 if there is no such unit.
    pub pages: Vec<u32>,
    /// By own number: the smallest of these pages.
    pub first: Vec<DocId>,
    /// By own number: the bytes of these pages.
    pub bytes: Vec<u64>,
    /// By own number: a hash of the host; 0 for a page without one.
    pub host: Vec<u64>,
    /// Hashes of the addresses of each unit, by own number, ascending.
    pub machines: Vec<(u32, u64)>,
    /// The names of hosts, by own number; none if units are pages.
    pub names: Vec<String>,
    /// If units are hosts: the host of each own page, by the page's number.
    pub host_of: Vec<DocId>,
}

impl Units {
    /// Units without facts.
    pub(super) fn new(owned: Ownership) -> Units {
        let count = owned.len();
        Units {
            owned,
            pages: vec![0; count],
            first: vec![DocId::NONE; count],
            bytes: vec![0; count],
            host: vec![0; count],
            machines: Vec::new(),
            names: Vec::new(),
            host_of: Vec::new(),
        }
    }

    /// The addresses of a unit.
    pub fn machines_of(&self, unit: usize) -> impl Iterator<Item = u64> {
        let from = self.machines.partition_point(|(of, _)| (*of as usize) < unit);
        self.machines[from..].iter().take_while(move |(of, _)| *of as usize == unit).map(|(_, machine)| *machine)
    }

    /// The own units that exist, by number.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        self.pages.iter().enumerate().filter(|(_, pages)| **pages > 0).map(|(unit, _)| unit)
    }
}

/// A hash of a host or an address, which is never 0.
pub(super) fn hash_of(text: &str) -> u64 {
    (checksum(text.as_bytes()) as u64).max(1)
}
