//! Dense numbers for things that shards hold: the order of numbers is the order of ids.

use crate::records::DocId;

/// Numbers the rows of all shards, shard by shard.
#[derive(Clone, Debug)]
pub struct Numbering {
    /// Where each shard's numbers begin; and at last, how many there are.
    starts: Vec<u64>,
    /// Shards for each number, in the mean.
    per_number: f64,
}

impl Numbering {
    /// The numbering of shards with so many rows.
    pub fn new(rows: &[u64]) -> Numbering {
        let mut starts = vec![0];
        rows.iter().for_each(|rows| starts.push(starts[starts.len() - 1] + rows));
        let per_number = rows.len() as f64 / starts[rows.len()].max(1) as f64;
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
        let mut shard = ((number as f64 * self.per_number) as usize).min(self.starts.len() - 2);
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
