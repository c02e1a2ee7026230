//! Dense numbers for things that shards hold: the order of numbers is the order of ids.

use crate::records::DocId;

/// Numbers the rows of all shards, shard by shard.
#[derive(Clone, Debug)]
pub struct Numbering {
    /// Where each shard's numbers begin; and at last, how many there are.
    starts: Vec<u64>,
    /// Shards for each number, in the mean, in parts of 2^64.
    per_number: u64,
}

impl Numbering {
    /// The numbering of shards with so many rows.
    pub fn new(rows: &[u64]) -> Numbering {
        let mut starts = vec![0];
        rows.iter().for_each(|rows| starts.push(starts[starts.len() - 1] + rows));
        let per_number = ((rows.len() as u128) << 64) / u128::from(starts[rows.len()].max(1));
        let per_number = u64::try_from(per_number).unwrap_or(u64::MAX);
        Numbering { starts, per_number }
    }

    /// The rows of every shard.
    pub fn rows(&self) -> Vec<u64> {
        self.starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many numbers there are.
    pub fn len(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first number of a shard, or how many numbers there are for the shard behind the last.
    #[inline]
    pub fn first(&self, shard: u32) -> u64 {
        self.starts[shard as usize]
    }

    /// The id of a number.
    #[inline]
    pub fn id(&self, number: u64) -> DocId {
        // Shards are cut by hashes, and so nearly equal: the guess is right, or off by one, which decides no branch, as
        // numbers often are loads that others should not wait for.
        let guess = (u128::from(number) * u128::from(self.per_number)) >> 64;
        let mut shard = (guess as usize).min(self.starts.len() - 2);
        shard -= usize::from(self.starts[shard] > number);
        shard += usize::from(self.starts[shard + 1] <= number);
        // However unequal shards are.
        while self.starts[shard] > number {
            shard -= 1;
        }
        while self.starts[shard + 1] <= number {
            shard += 1;
        }
        DocId::new(shard as u32, number - self.starts[shard])
    }

    /// The number of an id.
    #[inline]
    pub fn number(&self, id: DocId) -> u64 {
        self.starts[id.shard() as usize] + id.row()
    }
}

/// The numbers of every worker's rows. A worker counts its own rows from 0, shard by shard, so that they ascend as their
/// numbers do.
pub struct OwnNumbers {
    /// For each worker and each of its shards that has rows: the end of these among its own rows, and what the number
    /// of each is ahead of its place there.
    runs: Vec<Vec<(u64, u64)>>,
}

/// The numbers of some own rows of a worker, which ascend.
pub struct Walk<'a> {
    runs: &'a [(u64, u64)],
}

impl OwnNumbers {
    /// What so many workers own of the rows of all shards.
    pub fn new(numbering: &Numbering, peers: usize) -> OwnNumbers {
        let mut runs = vec![Vec::new(); peers];
        let mut ends = vec![0; peers];
        for shard in 0..numbering.shards() {
            let (first, next) = (numbering.starts[shard], numbering.starts[shard + 1]);
            let (runs, end): (&mut Vec<_>, &mut u64) = (&mut runs[shard % peers], &mut ends[shard % peers]);
            if first < next {
                let ahead = first - *end;
                *end += next - first;
                runs.push((*end, ahead));
            }
        }
        OwnNumbers { runs }
    }

    /// Goes over own rows of a worker, from one of them on.
    pub fn walk(&self, worker: usize, from: u64) -> Walk<'_> {
        let runs = &self.runs[worker];
        Walk { runs: &runs[runs.partition_point(|(end, _)| *end <= from)..] }
    }
}

impl Walk<'_> {
    /// The number of an own row, one of those from which the walk began on, and not before the last that was asked for.
    #[inline]
    pub fn number(&mut self, own: u64) -> u64 {
        while self.runs[0].0 <= own {
            self.runs = &self.runs[1..];
        }
        own + self.runs[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structures::ownership::Ownership;

    #[test]
    fn numbers_are_dense_and_in_order() {
        let numbering = Numbering::new(&[0, 3, 0, 0, 2, 1, 0]);
        assert_eq!(numbering.len(), 6);
        let ids: Vec<DocId> = (0..6).map(|number| numbering.id(number)).collect();
        assert!(ids.is_sorted());
        assert_eq!(ids[3], DocId::new(4, 0));
        assert!(ids.iter().map(|id| numbering.number(*id)).eq(0..6));
        assert!(Numbering::new(&[]).is_empty());
        // However unequal shards are.
        let rows = [1000, 0, 1, 0, 0, 5, 1];
        let numbering = Numbering::new(&rows);
        assert!((0..1007).all(|number| numbering.number(numbering.id(number)) == number));
        assert_eq!(numbering.rows(), rows);
    }

    #[test]
    fn own_rows_have_the_numbers_of_their_ids() {
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
                        let found = (from..wanted.len()).step_by(step).map(|own| walk.number(own as u64));
                        assert!(found.eq(wanted[from..].iter().copied().step_by(step)), "{worker} of {peers}, {from}");
                    }
                }
            }
        }
    }
}
