//! A quick look whether a document may be one of a few.

use crate::records::{DocId, spread};

/// Some documents, for a quick look whether one may be among them: most are not.
pub struct Sieve {
    bits: Vec<u64>,
    shift: u32,
}

impl Sieve {
    /// A sieve for these documents.
    pub fn new<'a>(docs: impl Iterator<Item = &'a DocId> + Clone) -> Sieve {
        let bits = (docs.clone().count() as u64 * 16).next_power_of_two().max(64);
        let mut sieve = Sieve { bits: vec![0; bits as usize / 64], shift: 64 - bits.trailing_zeros() };
        for doc in docs {
            let place = sieve.place(*doc);
            sieve.bits[place / 64] |= 1 << (place % 64);
        }
        sieve
    }

    fn place(&self, doc: DocId) -> usize {
        (spread(doc.to_table() as u64) >> self.shift) as usize
    }

    /// Whether a document may be one of them; one of fifteen others may seem so.
    #[inline]
    pub fn may_have(&self, doc: DocId) -> bool {
        let place = self.place(doc);
        self.bits[place / 64] >> (place % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_are_in_it_and_few_others_pass() {
        let doc = |row: u64| DocId::new((row % 7) as u32, row);
        let some: Vec<DocId> = (0..1000).map(|row| doc(3 * row)).collect();
        let sieve = Sieve::new(some.iter());
        assert!(some.iter().all(|doc| sieve.may_have(*doc)));
        let others = (0..10_000).filter(|row| row % 3 != 0).filter(|row| sieve.may_have(doc(*row))).count();
        assert!(others < 700, "{others} of 6,667 pass");
        assert!(!Sieve::new([].iter()).may_have(doc(1)));
    }
}
