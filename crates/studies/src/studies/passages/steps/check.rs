//! Compares words with those of the texts in which they must stand, word by word.

use anyhow::Result;

use super::found::{ClaimedWords, WORD_END};
use super::text_source::{CorpusPlace, OpenText, ReadTexts, TextSource, number_of};
use crate::records::DocId;
use crate::structures::Sorted;

/// Whether a text has other words than are claimed of it.
///
/// # Errors
/// If a text cannot be read.
pub fn differs(texts: &mut dyn TextSource, mut claims: Sorted<ClaimedWords>) -> Result<bool> {
    let next = claims.record()?;
    let mut checking = Checking { claims, next, differs: false };
    texts.read(&mut checking)?;
    Ok(checking.differs)
}

struct Checking {
    claims: Sorted<ClaimedWords>,
    next: Option<ClaimedWords>,
    differs: bool,
}

impl ReadTexts for Checking {
    fn next(&mut self, documents: &[(CorpusPlace, DocId)]) -> Result<Option<usize>> {
        Ok(self.next.as_ref().map(|claim| number_of(documents, claim.place)))
    }

    fn take(&mut self, (place, _): (CorpusPlace, DocId), text: &mut OpenText<'_>) -> Result<()> {
        let words = text.words();
        while let Some(claim) = self.next.take_if(|claim| claim.place == place) {
            let claimed = claim.text.split(|byte| *byte == WORD_END);
            let found = words.iter().skip(claim.word as usize);
            let count = claimed.clone().count();
            self.differs |= claim.word as usize + count > words.len() || !claimed.eq(found.take(count));
            self.next = self.claims.record()?;
        }
        Ok(())
    }
}
