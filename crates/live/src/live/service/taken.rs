//! The batches that were taken, with their answers, so that one that is sent again is not taken
//! twice.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::Lines;
use crate::live::refusal::Refusal;

/// The bytes of answers that are kept.
const KEPT_BYTES: usize = 64 << 20;
/// The ids of batches that are kept: an older batch that is sent again is taken as a new one.
const KEPT_IDS: usize = 1 << 20;

/// The batches that were taken, by id.
#[derive(Default)]
pub(super) struct Taken {
    by_id: BTreeMap<String, TakenBatch>,
    /// The ids in the order in which they came, and how many of the first ones have no answer any
    /// more.
    order: VecDeque<String>,
    without: usize,
    bytes: usize,
}

/// What a journal keeps of a batch before a commit.
#[derive(Serialize, Deserialize)]
struct KeptBatch<'a> {
    id: Cow<'a, str>,
    checksum: String,
    answer: Option<Cow<'a, str>>,
}

/// Adds the line of a batch that is kept.
pub(super) fn write_kept(lines: &mut Vec<u8>, id: &str, checksum: u128, answer: Option<&[u8]>) -> Result<()> {
    let answer = answer.map(String::from_utf8_lossy);
    let line = KeptBatch { id: id.into(), checksum: format!("{checksum:032x}"), answer };
    serde_json::to_writer(&mut *lines, &line).context("plain data has a JSON form")?;
    lines.push(b'\n');
    Ok(())
}

/// A batch that was taken.
struct TakenBatch {
    checksum: u128,
    /// The answers, if they are kept.
    answer: Option<Lines>,
}

impl Taken {
    /// The answers of a batch; `None` if its id is new.
    pub(super) fn answer(&self, id: &str, checksum: u128) -> Result<Option<Lines>, Refusal> {
        let Some(batch) = self.by_id.get(id) else { return Ok(None) };
        if batch.checksum != checksum {
            return Err(Refusal::conflict(format!(
                "batch {id} was taken with other lines: give each batch an id of its own"
            )));
        }
        let gone = || {
            Refusal::conflict(format!(
                "batch {id} was taken, and its answers are not kept any more: ask for its documents"
            ))
        };
        batch.answer.clone().map(Some).ok_or_else(gone)
    }

    /// A line for each batch that has answers, in their order.
    pub(super) fn lines(&self) -> Result<Vec<u8>> {
        let mut lines = Vec::new();
        for id in &self.order {
            let Some(batch) = self.by_id.get(id) else { continue };
            write_kept(&mut lines, id, batch.checksum, batch.answer.as_deref())?;
        }
        Ok(lines)
    }

    /// Reads such lines.
    pub(super) fn read(lines: &[u8]) -> Result<Taken> {
        let mut taken = Taken::default();
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let KeptBatch { id, checksum, answer } = serde_json::from_slice(line).context("what is kept of a batch")?;
            let checksum = u128::from_str_radix(&checksum, 16).context("the checksum of a batch")?;
            match answer {
                Some(answer) => taken.add(id.into_owned(), checksum, answer.as_bytes().into()),
                None => {
                    // Those without answers come first.
                    taken.without += 1;
                    taken.order.push_back(id.to_string());
                    taken.by_id.insert(id.into_owned(), TakenBatch { checksum, answer: None });
                }
            }
        }
        Ok(taken)
    }

    /// Puts the answers of other batches in the place of those that the same batches have here.
    pub(super) fn answer_as(&mut self, others: Taken) {
        for (id, other) in others.by_id {
            let own = self.by_id.get_mut(&id).and_then(|batch| batch.answer.as_mut());
            if let (Some(own), Some(answer)) = (own, other.answer) {
                self.bytes = self.bytes - own.len() + answer.len();
                *own = answer;
            }
        }
    }

    pub(super) fn add(&mut self, id: String, checksum: u128, answer: Lines) {
        self.bytes += answer.len();
        self.order.push_back(id.clone());
        self.by_id.insert(id, TakenBatch { checksum, answer: Some(answer) });
        while self.bytes > KEPT_BYTES && self.without < self.order.len() {
            if let Some(batch) = self.by_id.get_mut(&self.order[self.without]) {
                self.bytes -= batch.answer.take().map_or(0, |answer| answer.len());
            }
            self.without += 1;
        }
        while self.order.len() > KEPT_IDS {
            let answer = self.order.pop_front().and_then(|id| self.by_id.remove(&id)).and_then(|batch| batch.answer);
            self.bytes -= answer.map_or(0, |answer| answer.len());
            self.without = self.without.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_kept_within_a_bound() {
        let mut taken = Taken::default();
        let answer: Lines = vec![0; KEPT_BYTES / 4].into();
        (0..6).for_each(|id| taken.add(format!("{id}"), 7, answer.clone()));
        assert!(taken.answer("1", 7).unwrap_err().text.contains("not kept any more"));
        assert_eq!(taken.answer("2", 7).unwrap().map(|answer| answer.len()), Some(answer.len()));
        assert_eq!(taken.answer("9", 7).unwrap(), None);
    }

    #[test]
    fn an_id_is_forgotten_after_very_many() {
        let mut taken = Taken::default();
        let answer: Lines = Vec::new().into();
        (0..=KEPT_IDS).for_each(|id| taken.add(format!("{id}"), 7, answer.clone()));
        // The oldest one is taken as a new batch.
        assert_eq!(taken.answer("0", 8).unwrap(), None);
        assert_eq!(taken.answer("1", 8).unwrap_err().status, 409);
        assert_eq!(taken.answer("1", 7).unwrap(), Some(answer));
    }
}
