//! Verdicts in the order of files and places, each with what goes from its text and what is said of
//! its record: these come in the same order.

use anyhow::Result;

use super::verdict::Verdict;
use crate::export::matched::{MatchedPlace, MatchedRecords};
use crate::export::near_duplicates::NearDuplicate;
use crate::export::revisits::Reference;
use crate::export::texts::{CutAt, ParagraphPlace, PassagePlace};
use crate::structures::Sorted;

/// Verdicts in the order of files and places, with the paragraphs that go, or with what records
/// that go refer to.
pub struct Verdicts {
    verdicts: Sorted<Verdict>,
    next: Option<Verdict>,
    gone: Option<Sorted<ParagraphPlace>>,
    next_gone: Option<ParagraphPlace>,
    passages: Option<(Sorted<PassagePlace>, CutAt)>,
    next_passage: Option<PassagePlace>,
    references: Option<Sorted<Reference>>,
    next_reference: Option<Reference>,
    near: Option<Sorted<NearDuplicate>>,
    next_near: Option<NearDuplicate>,
    matched: Option<(Sorted<MatchedPlace>, MatchedRecords)>,
    next_matched: Option<MatchedPlace>,
}

impl Verdicts {
    /// Verdicts, and the paragraphs that go or the references, in the same order.
    ///
    /// # Errors
    /// If these cannot be read.
    pub(super) fn new(
        mut verdicts: Sorted<Verdict>,
        mut gone: Option<Sorted<ParagraphPlace>>,
        mut references: Option<Sorted<Reference>>,
    ) -> Result<Verdicts> {
        let next_gone = gone.as_mut().map(Sorted::record).transpose()?.flatten();
        let next_reference = references.as_mut().map(Sorted::record).transpose()?.flatten();
        let next = verdicts.record()?;
        Ok(Verdicts {
            verdicts,
            next,
            gone,
            next_gone,
            passages: None,
            next_passage: None,
            references,
            next_reference,
            near: None,
            next_near: None,
            matched: None,
            next_matched: None,
        })
    }

    /// These verdicts, without passages, in the order of their places.
    ///
    /// # Errors
    /// If these cannot be read.
    pub(in crate::export) fn without_passages(
        mut self,
        mut passages: Sorted<PassagePlace>,
        cut: CutAt,
    ) -> Result<Verdicts> {
        self.next_passage = passages.record()?;
        self.passages = Some((passages, cut));
        Ok(self)
    }

    /// These verdicts, with what is said of near-duplicates, in the order of their places.
    ///
    /// # Errors
    /// If that cannot be read.
    pub fn with_near_duplicates(mut self, mut near: Sorted<NearDuplicate>) -> Result<Verdicts> {
        self.next_near = near.record()?;
        self.near = Some(near);
        Ok(self)
    }

    /// These verdicts, with what records match, in the order of their places; those that match go,
    /// or stay alone, or as they would.
    ///
    /// # Errors
    /// If that cannot be read.
    pub(in crate::export) fn with_matched(
        mut self,
        mut matched: Sorted<MatchedPlace>,
        which: MatchedRecords,
    ) -> Result<Verdicts> {
        self.next_matched = matched.record()?;
        self.matched = Some((matched, which));
        Ok(self)
    }

    /// Verdicts on records in the order of files and places, as they are.
    ///
    /// # Errors
    /// If these cannot be read.
    pub(in crate::export) fn of_places(verdicts: Sorted<Verdict>) -> Result<Verdicts> {
        Verdicts::new(verdicts, None, None)
    }

    /// The next one, by itself: of several documents that are one record each.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(in crate::export) fn document(&mut self) -> Result<Option<Verdict>> {
        let verdict = self.next.take();
        self.next = self.verdicts.record()?;
        Ok(verdict)
    }

    /// The next one. A record may be the page of several documents, if revisits of other URLs name
    /// it: it stays if one of them does. The verdict is that of the document with the URL of the
    /// record, or else of one that stays.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(in crate::export) fn record(&mut self) -> Result<Option<Verdict>> {
        let Some(mut verdict) = self.next.take() else { return Ok(None) };
        self.next = self.verdicts.record()?;
        while let Some(mut other) = self.next.take_if(|other| verdict.is_of_same_record(other)) {
            let precedence = |of: &Verdict| (of.revisiting.is_none(), of.stays);
            if precedence(&other) > precedence(&verdict) {
                std::mem::swap(&mut verdict, &mut other);
            }
            verdict.stays |= other.stays;
            self.next = self.verdicts.record()?;
        }
        while let Some(gone) = self.next_gone.take_if(|gone| (gone.file, gone.offset) == (verdict.file, verdict.offset))
        {
            verdict.gone.add_paragraph(gone.line);
            self.next_gone = self.gone.as_mut().map(Sorted::record).transpose()?.flatten();
        }
        let place = (verdict.file, verdict.offset);
        if let Some((passages, cut)) = &mut self.passages {
            while let Some(passage) = self.next_passage.take_if(|next| (next.file, next.offset) == place) {
                verdict.gone.add_passage(passage.bytes, *cut);
                self.next_passage = passages.record()?;
            }
        }
        if let Some((places, which)) = &mut self.matched {
            while let Some(next) = self.next_matched.take_if(|next| (next.file, next.offset) <= place) {
                if (next.file, next.offset) == place {
                    verdict.matched = Some(next.matched);
                }
                self.next_matched = places.record()?;
            }
            verdict.stays &= match which {
                MatchedRecords::Drop => verdict.matched.is_none(),
                MatchedRecords::Only => verdict.matched.is_some(),
                MatchedRecords::Annotate => true,
            };
        }
        if let Some(reference) = self.next_reference.take_if(|next| (next.file, next.offset) == place) {
            // It can be the first of this week, if a week before has it.
            verdict.stays = false;
            verdict.original = Some(Box::new(reference.original));
            self.next_reference = self.references.as_mut().map(Sorted::record).transpose()?.flatten();
        }
        while let Some(near) = self.next_near.take_if(|near| (near.file, near.offset) <= place) {
            verdict.near = Some(Box::new(near)).filter(|near| (near.file, near.offset) == place);
            self.next_near = self.near.as_mut().map(Sorted::record).transpose()?.flatten();
        }
        Ok(Some(verdict))
    }
}
