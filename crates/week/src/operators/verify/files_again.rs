//! The crawl files that one worker reads again, page by page.
//!
//! ```text
//! for each file with wanted pages, in the order of their offsets:
//!     read at the offset of the next wanted page: on from the page before, or from there if it is far behind
//!     if it is not there: read the file from its beginning, up to the last wanted page
//!     if it is not there either: the file has changed
//! ```
//!
//! Some files cannot be read at an offset: those that are compressed as a whole, tables, and
//! objects. These are read from their beginning; rows of Parquet that are not wanted are passed
//! over. If the shingles of the file were kept, they are read instead; pages that are not among
//! them are looked for in the file.

use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use bytemuck::{Pod, Zeroable};

use super::candidate_sets::{CandidateSet, CandidateSource, SetStep};
use crate::config::Reading;
use crate::features::{Fingerprinter, distinct};
use crate::operators::ingest::{PageKey, ShingleReader, page_shingles};
use crate::readers::{self, Input, Item, Location, Page, Reader};
use crate::records::{DocId, DocumentKey, checksum};
use crate::structures::WordSet;

/// Inputs that have no more bytes together are read from their beginning even for a sample.
const SMALL: u64 = 64 << 20;
/// Up to so many bytes to the next wanted page are read rather than left out: to begin at another
/// place costs as much.
const GAP: u64 = 128 << 10;

/// Where the page of a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct PagePlace {
    /// The number of the input among those that are read again.
    pub file: u64,
    /// Its place there: see [`Page::offset`].
    pub offset: u64,
    /// The document.
    pub doc: DocId,
    /// The root of its cluster of candidates.
    pub root: DocId,
    /// The hash of the key of its record: see [`KeyHash::halves`](crate::records::KeyHash::halves).
    pub key: [u64; 2],
    /// The high and the low half of its checksum.
    pub checksum: [u64; 2],
}

/// The hash of a page's key and its checksum, as a place has them; `None` for a page without a key.
fn identity(documents: DocumentKey, page: &Page, file: &str) -> Option<([u64; 2], [u64; 2])> {
    let sum = checksum(page.body.as_bytes());
    Some((PageKey::of(documents, page, file).ok()?.hash.halves(), [(sum >> 64) as u64, sum as u64]))
}

/// What becomes of pages whose file cannot be read, or that are not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    /// They are an error that names the file.
    Fail {
        /// What the user can do instead of putting the file back: the end of the message.
        otherwise: &'static str,
    },
    /// They are left out; and so are those of large files that can be read from their beginning
    /// only: for samples, which must be cheap.
    LeaveOut,
}

/// The files that one worker reads again, and the progress in them.
pub struct FilesAgain {
    documents: DocumentKey,
    inputs: Vec<Input>,
    reading: Reading,
    fingerprinter: Fingerprinter,
    /// The wanted pages, by file and offset.
    wanted: Vec<PagePlace>,
    /// Which of them were found.
    found: Vec<bool>,
    /// By input: the files with its kept shingles, one for each piece, which need not exist.
    kept: Vec<Vec<PathBuf>>,
    if_missing: IfMissing,
    /// The words of a page, for finding the distinct ones.
    distinct: WordSet,
    /// The first wanted page of the next file.
    next: usize,
    open: Option<OpenFile>,
    /// Further documents whose page is the one that was read last: what another URL has.
    others: Vec<CandidateSet>,
}

/// The file that is read.
struct OpenFile {
    way: FileReading,
    /// Its wanted pages.
    wanted: Range<usize>,
    /// The first of them that is not found yet.
    next: usize,
}

/// How a file is read.
enum FileReading {
    /// By the shingles that were kept of it.
    Kept(ShingleReader),
    /// At the offsets of wanted pages. The last place that was read is this one.
    AtOffsets(Box<dyn Reader>, u64),
    /// From its beginning.
    Whole(Box<dyn Reader>),
}

impl FilesAgain {
    /// Nothing is read yet. `wanted` are the pages, by file and offset; `kept` the files with kept
    /// shingles, by input.
    pub(super) fn new(
        documents: DocumentKey,
        inputs: Vec<Input>,
        reading: Reading,
        fingerprinter: Fingerprinter,
        wanted: Vec<PagePlace>,
        kept: Vec<Vec<PathBuf>>,
        if_missing: IfMissing,
    ) -> FilesAgain {
        let (found, distinct) = (vec![false; wanted.len()], WordSet::default());
        FilesAgain {
            documents,
            inputs,
            reading,
            fingerprinter,
            wanted,
            found,
            kept,
            if_missing,
            distinct,
            next: 0,
            open: None,
            others: Vec::new(),
        }
    }

    /// Begins to read the crawl file at a wanted offset, or from its beginning.
    fn begin_at(&self, file: u64, offset: u64) -> Result<FileReading> {
        let input = &self.inputs[file as usize];
        Ok(match readers::open_at(input, &self.reading, offset)? {
            Some(mut reader) => {
                reader.without_waiting();
                FileReading::AtOffsets(reader, offset)
            }
            None => self.whole(file)?,
        })
    }

    /// Begins to read the crawl file from its beginning.
    fn whole(&self, file: u64) -> Result<FileReading> {
        let input = &self.inputs[file as usize];
        let is_cheap = input.format.can_skip() && matches!(input.place, Location::File(_))
            || self.inputs.iter().map(|input| input.bytes).sum::<u64>() <= SMALL;
        ensure!(
            is_cheap || self.if_missing != IfMissing::LeaveOut,
            "{} is not read from its beginning for a sample",
            input.name
        );
        Ok(FileReading::Whole(readers::open(input, &self.reading)?))
    }

    /// The numbers of the wanted pages at an offset with this identity that were not found before.
    /// The identity is computed only if some page is wanted there.
    fn find(
        &self,
        wanted: &Range<usize>,
        offset: u64,
        identity: impl FnOnce() -> Option<([u64; 2], [u64; 2])>,
    ) -> Vec<usize> {
        let of_file = &self.wanted[wanted.clone()];
        let [first, end] =
            [offset, offset.saturating_add(1)].map(|offset| of_file.partition_point(|place| place.offset < offset));
        let here = wanted.start + first..wanted.start + end;
        let mut here: Vec<usize> = here.filter(|number| !self.found[*number]).collect();
        if !here.is_empty() {
            let identity = identity();
            here.retain(|number| Some((self.wanted[*number].key, self.wanted[*number].checksum)) == identity);
        }
        here
    }

    /// The set of wanted pages, which are found now.
    fn found(&mut self, numbers: Vec<usize>, elements: Vec<u64>) -> SetStep {
        for number in numbers {
            self.found[number] = true;
            let PagePlace { doc, root, .. } = self.wanted[number];
            self.others.push(CandidateSet { doc, root, elements: elements.clone() });
        }
        self.others.pop().map_or(SetStep::Passed, SetStep::Set)
    }

    /// Reads the next record of kept shingles.
    fn step_kept(&mut self, open: &mut OpenFile) -> Result<SetStep> {
        let FileReading::Kept(reader) = &mut open.way else { return Ok(SetStep::Passed) };
        if let Some(page) = reader.page() {
            let numbers = self.find(&open.wanted, page.offset, || Some((page.key, page.checksum)));
            if numbers.is_empty() {
                return Ok(SetStep::Passed);
            }
            if let Some(shingles) = reader.shingles() {
                let elements = distinct(shingles, &mut self.distinct);
                return Ok(self.found(numbers, elements));
            }
        }
        // The end, or a damaged record: the crawl file has the other pages.
        let PagePlace { file, offset, .. } = self.wanted[open.next];
        open.way = self.begin_at(file, offset)?;
        Ok(SetStep::Passed)
    }

    /// Reads the next item of a crawl file.
    fn step_file(&mut self, open: &mut OpenFile) -> Result<SetStep> {
        let PagePlace { file, offset: target, doc, .. } = self.wanted[open.next];
        let name = self.inputs[file as usize].name.clone();
        if matches!(open.way, FileReading::AtOffsets(_, last) if target > last + GAP) {
            open.way = self.begin_at(file, target)?;
        }
        let (FileReading::AtOffsets(reader, _) | FileReading::Whole(reader)) = &mut open.way else {
            return Ok(SetStep::Passed);
        };
        let failed = || format!("cannot read {name}");
        reader.skip_to(target).with_context(failed)?;
        let item = reader.next().with_context(failed)?;
        let offset = match &item {
            None => None,
            Some(Item::Page(page)) => Some(page.offset),
            Some(Item::Failed(failure)) => Some(failure.offset),
            Some(Item::Reject(reject)) => Some(reject.offset),
            Some(Item::Revisit(_) | Item::Skip(_)) => return Ok(SetStep::Passed),
        };
        match (&mut open.way, offset) {
            (FileReading::AtOffsets(_, last), Some(offset)) if offset <= target => *last = offset,
            (FileReading::AtOffsets(..), _) => {
                open.way = self.whole(file)?;
                return Ok(SetStep::Passed);
            }
            (FileReading::Whole(_), None) => {
                let otherwise = match self.if_missing {
                    IfMissing::Fail { otherwise } => otherwise,
                    IfMissing::LeaveOut => "",
                };
                bail!(
                    "{name} does not have the page of document {doc} at {target} any more: the file has changed since it was read. Put it \
                     back and run again; or {otherwise}"
                )
            }
            _ => {}
        }
        let Some(Item::Page(page)) = item else { return Ok(SetStep::Passed) };
        let numbers = self.find(&open.wanted, page.offset, || identity(self.documents, &page, &name));
        if numbers.is_empty() {
            return Ok(SetStep::Passed);
        }
        let elements = page_shingles(&mut self.fingerprinter, &page.body, page.charset.as_deref());
        Ok(self.found(numbers, elements))
    }
}

impl FilesAgain {
    /// Begins to read the file of the next wanted page.
    fn begin(&mut self, PagePlace { file, offset, .. }: PagePlace) -> Result<()> {
        let of_file = self.wanted[self.next..].iter().take_while(|place| place.file == file).count();
        let wanted = self.next..self.next + of_file;
        self.next += of_file;
        let way = match ShingleReader::open(&self.kept[file as usize]) {
            Some(kept) => FileReading::Kept(kept),
            None => self.begin_at(file, offset)?,
        };
        self.open = Some(OpenFile { way, next: wanted.start, wanted });
        Ok(())
    }

    /// Reads the next item of the open file; closes the file if all of its wanted pages are found.
    fn step_open(&mut self, mut open: OpenFile) -> Result<SetStep> {
        while open.next < open.wanted.end && self.found[open.next] {
            open.next += 1;
        }
        if open.next == open.wanted.end {
            return Ok(SetStep::Passed);
        }
        let step = match open.way {
            FileReading::Kept(_) => self.step_kept(&mut open)?,
            FileReading::AtOffsets(..) | FileReading::Whole(_) => self.step_file(&mut open)?,
        };
        self.open = Some(open);
        Ok(step)
    }
}

impl CandidateSource for FilesAgain {
    /// Reads the next item of a file. An error names a file that cannot be read, or that does not
    /// have a wanted page.
    fn step(&mut self) -> Result<SetStep> {
        if let Some(set) = self.others.pop() {
            return Ok(SetStep::Set(set));
        }
        let step = match (self.open.take(), self.wanted.get(self.next).copied()) {
            (Some(open), _) => self.step_open(open),
            (None, Some(first)) => self.begin(first).map(|()| SetStep::Passed),
            (None, None) => Ok(SetStep::End),
        };
        match self.if_missing {
            IfMissing::Fail { .. } => step,
            // The file is not open any more.
            IfMissing::LeaveOut => Ok(step.unwrap_or(SetStep::Passed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Method;
    use crate::operators::ingest::{KeptPage, ShingleWriter};
    use crate::readers::{Format, Location};

    const FAIL: IfMissing = IfMissing::Fail { otherwise: "do something else" };

    #[test]
    fn kept_shingles_are_read_instead_of_the_crawl_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crawl.jsonl");
        let kept = ["piece0.shingles", "piece1.shingles"].map(|name| folder.path().join(name)).to_vec();
        let input = Input {
            name: "crawl.jsonl".into(),
            bytes: 0,
            format: Format::Jsonl,
            place: Location::File(path),
            page_url: None,
            stamp: String::new(),
            reading: None,
        };
        let page = |n: u64| KeptPage { offset: 100 * n, key: [n, 1], checksum: [n, 2] };
        for (path, numbers) in kept.iter().zip([0..3, 3..9]) {
            let mut writer = ShingleWriter::create(path.clone()).unwrap();
            numbers.for_each(|n| writer.push(page(n), &[n, n, 7 + n]).unwrap());
            writer.finish().unwrap();
        }
        let place = |n: u64| {
            let KeptPage { offset, key, checksum } = page(n);
            PagePlace { file: 0, offset, doc: DocId::new(0, n), root: DocId::new(0, 1), key, checksum }
        };
        let again = |wanted: &[u64], if_missing| {
            let fingerprinter = Fingerprinter::of_method(&Method::default()).unwrap();
            let wanted = wanted.iter().map(|n| place(*n)).collect();
            let mut files = FilesAgain::new(
                DocumentKey::Url,
                vec![input.clone()],
                Reading::default(),
                fingerprinter,
                wanted,
                vec![kept.clone()],
                if_missing,
            );
            let mut sets = Vec::new();
            loop {
                match files.step()? {
                    SetStep::Set(set) => sets.push((set.doc.row(), set.elements)),
                    SetStep::Passed => {}
                    SetStep::End => return anyhow::Ok(sets),
                }
            }
        };
        // The crawl file is not there.
        assert_eq!(again(&[2, 3, 8], FAIL).unwrap(), [(2, vec![2, 9]), (3, vec![3, 10]), (8, vec![8, 15])]);
        let error = format!("{:#}", again(&[2, 11], FAIL).unwrap_err());
        assert!(error.contains("crawl.jsonl"), "a page that was not kept is looked for in the file: {error}");
        assert_eq!(again(&[2, 11], IfMissing::LeaveOut).unwrap(), [(2, vec![2, 9])]);
    }
}
