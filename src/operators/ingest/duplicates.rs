//! Records with the URL or id of another one: counted, or bad records.

use std::collections::BTreeMap;

use super::crawl::Capture;
use super::notes::BadRecord;
use crate::config::SameId;
use crate::plan::Plan;
use crate::records::DocumentKey;
use crate::state::Counts;

/// The records with a URL or id of another one, of one shard and wave, that are rows of `rejects`; further ones are only counted.
const MOST_LISTED: usize = 10_000;

/// The records of a shard and wave whose URL or id another record had before.
pub(super) struct Duplicates<'a> {
    plan: &'a Plan,
    count: u64,
    /// The first of them, if they are bad records.
    rejected: Vec<BadRecord>,
    /// The number of the others, by input.
    unlisted: BTreeMap<u32, u64>,
}

impl Duplicates<'_> {
    /// There are none yet.
    pub(super) fn new(plan: &Plan) -> Duplicates<'_> {
        Duplicates { plan, count: 0, rejected: Vec::new(), unlisted: BTreeMap::new() }
    }

    fn are_bad(&self) -> bool {
        self.plan.reading.same_id == SameId::Reject
    }

    /// Adds a record.
    pub(super) fn add(&mut self, Capture { file, ordinal, offset, given_url, url, .. }: Capture) {
        self.count += 1;
        if !self.are_bad() {
            return;
        }
        if self.rejected.len() == MOST_LISTED {
            *self.unlisted.entry(file).or_default() += 1;
            return;
        }
        let (url, reason) = (given_url.or(url), self.reason().to_owned());
        self.rejected.push(BadRecord { file, ordinal, offset, url, reason, is_duplicate: true });
    }

    fn reason(&self) -> &'static str {
        match self.plan.method.documents {
            DocumentKey::Url => "duplicate of a URL",
            DocumentKey::Id => "duplicate of an id",
            DocumentKey::Row => "duplicate of a row",
        }
    }

    /// Counts them, and returns those that are rows of `rejects`.
    pub(super) fn count(self, counts: &mut Counts) -> Vec<BadRecord> {
        if self.count > 0 {
            let of_kind = if self.are_bad() { &mut counts.rejects } else { &mut counts.skipped };
            *of_kind.entry(self.reason().to_owned()).or_default() += self.count;
        }
        for (file, count) in self.unlisted {
            *counts.unlisted.entry(self.plan.inputs[file as usize].name.clone()).or_default() += count;
        }
        self.rejected
    }
}
