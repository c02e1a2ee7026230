//! Dense numbering: the rows of all shards are numbered from 0, in the order of their document ids.
//!
//! A document id has gaps between shards; arrays and union-finds need the numbers `0..n`. Morally
//! it does this:
//!
//! ```text
//! starts = prefix sums of the rows of the shards
//! number(id)  = starts[id.shard] + id.row
//! id(number)  = (shard, number - starts[shard]), for the last shard with starts[shard] <= number
//! ```
//!
//! [`Numbering`] holds the starts. [`OwnNumbers`] converts the position of a row among the rows of
//! its worker to its number among all rows.

use crate::records::DocId;

/// Numbers the rows of all shards, shard by shard.
///
/// ```
/// use nigh_kernels::records::DocId;
/// use nigh_kernels::structures::Numbering;
///
/// // Three shards of 10, 0 and 5 rows.
/// let numbering = Numbering::new(&[10, 0, 5]);
/// assert_eq!(numbering.number(DocId::new(2, 3)), 13);
/// assert_eq!(numbering.id(13), DocId::new(2, 3));
/// assert_eq!(numbering.len(), 15);
/// ```
#[derive(Clone, Debug)]
pub struct Numbering {
    /// The first number of each shard, then the count of all numbers.
    starts: Vec<u64>,
    /// Shards divided by numbers, as a fixed-point fraction of 2^64.
    shards_per_number: u64,
}

impl Numbering {
    /// The numbering of shards with these numbers of rows.
    pub fn new(rows: &[u64]) -> Numbering {
        let mut starts = vec![0];
        rows.iter().for_each(|rows| starts.push(starts[starts.len() - 1] + rows));
        let shards_per_number = ((rows.len() as u128) << 64) / u128::from(starts[rows.len()].max(1));
        let shards_per_number = u64::try_from(shards_per_number).unwrap_or(u64::MAX);
        Numbering { starts, shards_per_number }
    }

    /// The number of rows of every shard.
    pub fn rows(&self) -> Vec<u64> {
        self.starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of rows of all shards.
    pub fn len(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// Whether the shards have no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first number of a shard; for `shard == shards()`, the count of all numbers.
    #[inline]
    pub fn first(&self, shard: u32) -> u64 {
        self.starts[shard as usize]
    }

    /// The document id of a number.
    #[inline]
    pub fn id(&self, number: u64) -> DocId {
        // Shards are cut by hashes and nearly equal, so the guess is right or off by one. That is
        // corrected without a branch: the number is often still being loaded, and a wrong
        // prediction would stall the loads after it.
        let guess = (u128::from(number) * u128::from(self.shards_per_number)) >> 64;
        let mut shard = (guess as usize).min(self.starts.len() - 2);
        shard -= usize::from(self.starts[shard] > number);
        shard += usize::from(self.starts[shard + 1] <= number);
        // Unequal shards are searched.
        while self.starts[shard] > number {
            shard -= 1;
        }
        while self.starts[shard + 1] <= number {
            shard += 1;
        }
        DocId::new(shard as u32, number - self.starts[shard])
    }

    /// The number of a document id.
    #[inline]
    pub fn number(&self, id: DocId) -> u64 {
        self.starts[id.shard() as usize] + id.row()
    }
}

/// The numbers of the rows that each worker owns.
///
/// A worker counts its rows from 0, shard by shard: the *position* of a row. Positions and numbers
/// ascend together.
pub struct OwnNumbers {
    /// For each worker, the shards that have rows.
    shards: Vec<Vec<PositionRange>>,
}

/// The rows of one shard, by their positions at the owner.
#[derive(Clone, Copy)]
struct PositionRange {
    /// The position after its last row.
    end: u64,
    /// The number of a row minus its position.
    offset: u64,
}

/// Converts ascending positions of one worker to numbers.
pub struct NumberWalk<'a> {
    shards: &'a [PositionRange],
}

impl OwnNumbers {
    /// The rows that each of `peers` workers owns.
    pub fn new(numbering: &Numbering, peers: usize) -> OwnNumbers {
        let mut shards = vec![Vec::new(); peers];
        let mut ends = vec![0; peers];
        for shard in 0..numbering.shards() {
            let (first, next) = (numbering.starts[shard], numbering.starts[shard + 1]);
            let end: &mut u64 = &mut ends[shard % peers];
            if first < next {
                let offset = first - *end;
                *end += next - first;
                shards[shard % peers].push(PositionRange { end: *end, offset });
            }
        }
        OwnNumbers { shards }
    }

    /// Starts at position `from` of a worker's rows.
    pub fn walk(&self, worker: usize, from: u64) -> NumberWalk<'_> {
        let shards = &self.shards[worker];
        NumberWalk { shards: &shards[shards.partition_point(|shard| shard.end <= from)..] }
    }
}

impl NumberWalk<'_> {
    /// The number of the row at `position`: not before the start of the walk, nor before the
    /// position of the last call.
    #[inline]
    pub fn number(&mut self, position: u64) -> u64 {
        while self.shards[0].end <= position {
            self.shards = &self.shards[1..];
        }
        position + self.shards[0].offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structures::documents::ownership::Ownership;

    #[test]
    fn numbers_are_dense_and_in_order() {
        let numbering = Numbering::new(&[0, 3, 0, 0, 2, 1, 0]);
        assert_eq!(numbering.len(), 6);
        let ids: Vec<DocId> = (0..6).map(|number| numbering.id(number)).collect();
        assert!(ids.is_sorted());
        assert_eq!(ids[3], DocId::new(4, 0));
        assert!(ids.iter().map(|id| numbering.number(*id)).eq(0..6));
        assert!(Numbering::new(&[]).is_empty());
        // Very unequal shards.
        let rows = [1000, 0, 1, 0, 0, 5, 1];
        let numbering = Numbering::new(&rows);
        assert!((0..1007).all(|number| numbering.number(numbering.id(number)) == number));
        assert_eq!(numbering.rows(), rows);
    }

    #[test]
    fn positions_have_the_numbers_of_their_ids() {
        let rows = [3, 0, 5, 1, 2, 0, 0, 4];
        let numbering = Numbering::new(&rows);
        for peers in [1, 2, 3, 4, 11] {
            let numbers = OwnNumbers::new(&numbering, peers);
            for worker in 0..peers {
                let owned = Ownership::new(worker, peers, &rows);
                let wanted: Vec<u64> = owned.docs().map(|id| numbering.number(id)).collect();
                for from in 0..wanted.len() {
                    for step in 1..4 {
                        let mut walk = numbers.walk(worker, from as u64);
                        let found = (from..wanted.len()).step_by(step).map(|position| walk.number(position as u64));
                        assert!(found.eq(wanted[from..].iter().copied().step_by(step)), "{worker} of {peers}, {from}");
                    }
                }
            }
        }
    }
}
