//! A Bloom-style filter for a set of documents.
//!
//! Its kernels test many documents at once, so that callers search their exact set only for the few
//! that pass. It never rejects a member; it accepts about one in sixty other documents. It takes 8
//! to 16 bytes for each member.

use crate::kernels::{BitSet, Kernels};
use crate::records::DocId;

/// A set of documents with false positives, for quick tests of documents that are mostly not
/// members.
///
/// ```
/// use nigh_kernels::{kernels, records::DocId, structures::DocFilter};
///
/// let filter = DocFilter::new([DocId::new(0, 7)].iter(), kernels::chosen()?);
/// assert!(filter.may_have(DocId::new(0, 7)));
/// let mut passed = Vec::new();
/// filter.each(&[DocId::new(0, 7); 3], |position| passed.push(position));
/// assert_eq!(passed, [0, 1, 2]);
/// # Ok::<(), anyhow::Error>(())
/// ```
pub struct DocFilter {
    members: BitSet,
    kernels: &'static Kernels,
}

/// Documents that a kernel tests in one call.
const BATCH: usize = 1 << 12;

impl DocFilter {
    /// A filter for these documents, which it goes over twice.
    pub fn new<'a>(docs: impl Iterator<Item = &'a DocId> + Clone, kernels: &'static Kernels) -> DocFilter {
        // A word for each document.
        let mut members = BitSet::new(vec![0; docs.clone().count().next_power_of_two()], &[0]);
        docs.for_each(|doc| members.put(doc.to_table() as u64));
        DocFilter { members, kernels }
    }

    /// Whether a document may be a member; about one in sixty other documents passes, too.
    #[inline]
    pub fn may_have(&self, doc: DocId) -> bool {
        self.members.has(doc.to_table() as u64)
    }

    /// Calls `each` with the positions in `docs` of documents that may be members, ascending.
    pub fn each(&self, docs: &[DocId], mut each: impl FnMut(usize)) {
        let mut bits = Vec::new();
        for (batch, first) in docs.chunks(BATCH).zip((0..).step_by(BATCH)) {
            self.kernels.held(&self.members, bytemuck::cast_slice(batch), &mut bits);
            ones(&bits).for_each(|position| each(first + position));
        }
    }

    /// Calls `change` with the documents of `docs` that may be members.
    pub fn change(&self, docs: &mut [DocId], mut change: impl FnMut(&mut DocId)) {
        let mut bits = Vec::new();
        for batch in docs.chunks_mut(BATCH) {
            self.kernels.held(&self.members, bytemuck::cast_slice(batch), &mut bits);
            ones(&bits).for_each(|position| change(&mut batch[position]));
        }
    }
}

/// The positions of the bits that are set.
fn ones(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().zip((0..).step_by(64)).flat_map(|(word, first)| {
        let without_lowest = |word: &u64| Some(word & (word - 1)).filter(|rest| *rest != 0);
        let rests = std::iter::successors(Some(*word).filter(|word| *word != 0), without_lowest);
        rests.map(move |rest| first + rest.trailing_zeros() as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::chosen;

    #[test]
    fn every_member_and_few_others_pass() {
        let doc = |row: u64| DocId::new((row % 7) as u32, row);
        let members: Vec<DocId> = (0..1000).map(|row| doc(3 * row)).collect();
        let filter = DocFilter::new(members.iter(), chosen().unwrap());
        assert!(members.iter().all(|doc| filter.may_have(*doc)));
        let others = (0..10_000).filter(|row| row % 3 != 0).filter(|row| filter.may_have(doc(*row))).count();
        assert!(others < 200, "{others} of 6,667 pass");
        assert!(!DocFilter::new([].iter(), chosen().unwrap()).may_have(doc(1)));
    }

    #[test]
    fn a_batch_passes_as_its_documents_do_one_by_one() {
        let doc = |row: u64| DocId::new((row % 5) as u32, row);
        let members: Vec<DocId> = (0..300).map(|row| doc(29 * row)).collect();
        for filter in [&members[..], &[]].map(|members| DocFilter::new(members.iter(), chosen().unwrap())) {
            for count in [0, 1, 63, 64, 65, BATCH as u64, 9000] {
                let mut docs: Vec<DocId> = (0..count).map(doc).collect();
                let wanted: Vec<usize> = (0..docs.len()).filter(|position| filter.may_have(docs[*position])).collect();
                let mut found = Vec::new();
                filter.each(&docs, |position| found.push(position));
                assert_eq!(found, wanted, "of {count}");
                filter.change(&mut docs, |doc| *doc = DocId::NONE);
                let changed: Vec<usize> = (0..docs.len()).filter(|position| docs[*position] == DocId::NONE).collect();
                assert_eq!(changed, wanted, "of {count}");
            }
        }
    }
}
