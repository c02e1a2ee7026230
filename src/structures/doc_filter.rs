//! A quick look whether a document may be one of a few.

use crate::kernels::{BitSet, Kernels};
use crate::records::DocId;

/// Some documents, for a quick look whether one may be among them: most are not.
pub struct DocFilter {
    places: BitSet,
    kernels: &'static Kernels,
}

/// Documents that are looked up in one go.
const SOME: usize = 1 << 12;

impl DocFilter {
    /// A sieve for these documents.
    pub fn new<'a>(docs: impl Iterator<Item = &'a DocId> + Clone, kernels: &'static Kernels) -> DocFilter {
        // A word for each.
        let mut places = BitSet::new(vec![0; docs.clone().count().next_power_of_two()], &[0]);
        docs.for_each(|doc| places.put(doc.to_table() as u64));
        DocFilter { places, kernels }
    }

    /// Whether a document may be one of them; one of some sixty others may seem so.
    #[inline]
    pub fn may_have(&self, doc: DocId) -> bool {
        self.places.has(doc.to_table() as u64)
    }

    /// Calls `each` with the numbers of those of `docs` that may be among them, ascending.
    pub fn each(&self, docs: &[DocId], mut each: impl FnMut(usize)) {
        let mut held = Vec::new();
        for (some, first) in docs.chunks(SOME).zip((0..).step_by(SOME)) {
            self.kernels.held(&self.places, bytemuck::cast_slice(some), &mut held);
            numbers(&held).for_each(|number| each(first + number));
        }
    }

    /// Calls `change` with those of `docs` that may be among them.
    pub fn change(&self, docs: &mut [DocId], mut change: impl FnMut(&mut DocId)) {
        let mut held = Vec::new();
        for some in docs.chunks_mut(SOME) {
            self.kernels.held(&self.places, bytemuck::cast_slice(some), &mut held);
            numbers(&held).for_each(|number| change(&mut some[number]));
        }
    }
}

/// The numbers of the bits that are set.
fn numbers(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().zip((0..).step_by(64)).flat_map(|(word, first)| {
        let rest = |word: &u64| Some(word & (word - 1)).filter(|rest| *rest != 0);
        let rests = std::iter::successors(Some(*word).filter(|word| *word != 0), rest);
        rests.map(move |rest| first + rest.trailing_zeros() as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::chosen;

    #[test]
    fn all_that_are_in_it_and_few_others_pass() {
        let doc = |row: u64| DocId::new((row % 7) as u32, row);
        let some: Vec<DocId> = (0..1000).map(|row| doc(3 * row)).collect();
        let sieve = DocFilter::new(some.iter(), chosen().unwrap());
        assert!(some.iter().all(|doc| sieve.may_have(*doc)));
        let others = (0..10_000).filter(|row| row % 3 != 0).filter(|row| sieve.may_have(doc(*row))).count();
        assert!(others < 200, "{others} of 6,667 pass");
        assert!(!DocFilter::new([].iter(), chosen().unwrap()).may_have(doc(1)));
    }

    #[test]
    fn many_are_looked_up_as_each_is() {
        let doc = |row: u64| DocId::new((row % 5) as u32, row);
        let some: Vec<DocId> = (0..300).map(|row| doc(29 * row)).collect();
        for sieve in [&some[..], &[]].map(|some| DocFilter::new(some.iter(), chosen().unwrap())) {
            for count in [0, 1, 63, 64, 65, SOME as u64, 9000] {
                let mut docs: Vec<DocId> = (0..count).map(doc).collect();
                let wanted: Vec<usize> = (0..docs.len()).filter(|at| sieve.may_have(docs[*at])).collect();
                let mut found = Vec::new();
                sieve.each(&docs, |at| found.push(at));
                assert_eq!(found, wanted, "of {count}");
                sieve.change(&mut docs, |doc| *doc = DocId::NONE);
                let changed: Vec<usize> = (0..docs.len()).filter(|at| docs[*at] == DocId::NONE).collect();
                assert_eq!(changed, wanted, "of {count}");
            }
        }
    }
}
