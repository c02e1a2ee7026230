//! Sets of elements of own documents: in memory up to a budget, and beyond it in a file.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};

use crate::operators::set_join::{Element, SetPass, SetSource};
use crate::records::{DocId, mix};

/// The sets of elements of some own documents, each with the root of its cluster of candidates.
///
/// Elements of two clusters are never equal: so only pairs of one cluster meet.
#[derive(Clone)]
pub struct ElementSets(Arc<StoredSets>);

/// What is stored: the words of all sets, one after the other.
struct StoredSets {
    docs: Vec<DocId>,
    roots: Vec<DocId>,
    /// The number of elements of each.
    lengths: Vec<u32>,
    path: PathBuf,
    /// The words of the file, which come first.
    in_file: u64,
    in_memory: Vec<u64>,
}

/// Sets of elements as they come.
pub struct ElementSetsWriter {
    stored: StoredSets,
    file: Option<BufWriter<File>>,
    /// The most words in memory.
    budget: usize,
}

impl ElementSetsWriter {
    /// No sets yet. Beyond `budget` bytes of memory they go to the file at `path`, which is made
    /// when it is needed.
    pub fn new(path: PathBuf, budget: u64) -> ElementSetsWriter {
        let (docs, roots, lengths) = (Vec::new(), Vec::new(), Vec::new());
        let stored = StoredSets { docs, roots, lengths, path, in_file: 0, in_memory: Vec::new() };
        ElementSetsWriter { stored, file: None, budget: (budget / 8) as usize }
    }

    /// Adds the set of a document: its distinct elements.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn push(&mut self, doc: DocId, root: DocId, elements: &[u64]) -> Result<()> {
        self.stored.docs.push(doc);
        self.stored.roots.push(root);
        self.stored.lengths.push(u32::try_from(elements.len()).context("a page has fewer than 2^32 elements")?);
        self.stored.in_memory.extend_from_slice(elements);
        if self.stored.in_memory.len() > self.budget { self.spill() } else { Ok(()) }
    }

    /// Moves what is in memory to the file.
    fn spill(&mut self) -> Result<()> {
        let StoredSets { path, in_memory, in_file, .. } = &mut self.stored;
        let failed = || format!("cannot write {}", path.display());
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                path.parent().map_or(Ok(()), std::fs::create_dir_all).with_context(failed)?;
                self.file.insert(BufWriter::new(File::create(&*path).with_context(failed)?))
            }
        };
        file.write_all(bytemuck::cast_slice(in_memory)).with_context(failed)?;
        *in_file += in_memory.len() as u64;
        in_memory.clear();
        Ok(())
    }

    /// The sets, to be read.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn finish(mut self) -> Result<ElementSets> {
        let path = self.stored.path.clone();
        if let Some(file) = &mut self.file {
            file.flush().with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(ElementSets(Arc::new(self.stored)))
    }
}

impl Drop for StoredSets {
    fn drop(&mut self) {
        if self.in_file > 0 {
            // If this fails, the file stays among the scratch files, which the run removes.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl SetSource for ElementSets {
    type Pass = ElementPass;

    fn len(&self) -> usize {
        self.0.docs.len()
    }

    fn name(&self, set: usize) -> u64 {
        self.0.docs[set].to_table() as u64
    }

    fn pass(&self) -> Result<ElementPass> {
        let path = &self.0.path;
        let open = || File::open(path).with_context(|| format!("cannot read {}", path.display()));
        let file = if self.0.in_file > 0 { Some(BufReader::with_capacity(1 << 20, open()?)) } else { None };
        Ok(ElementPass { sets: self.0.clone(), file, next: 0, at: 0, words: Vec::new() })
    }
}

/// A pass over sets of elements.
pub struct ElementPass {
    sets: Arc<StoredSets>,
    file: Option<BufReader<File>>,
    /// The number of the next set.
    next: usize,
    /// Where its words begin, among those of all sets.
    at: u64,
    words: Vec<u64>,
}

impl SetPass for ElementPass {
    fn next(&mut self, set: &mut Vec<Element>) -> Result<bool> {
        set.clear();
        let StoredSets { roots, lengths, path, in_file, in_memory, .. } = &*self.sets;
        let Some(length) = lengths.get(self.next) else { return Ok(false) };
        let length = *length as usize;
        // A set is in the file, or in memory: a spill moves whole sets.
        let elements = match &mut self.file {
            Some(file) if self.at < *in_file => {
                self.words.resize(length, 0);
                file.read_exact(bytemuck::cast_slice_mut(&mut self.words))
                    .with_context(|| format!("cannot read {}", path.display()))?;
                &self.words[..]
            }
            _ => &in_memory[(self.at - in_file) as usize..][..length],
        };
        let salt = mix(roots[self.next].to_table() as u64);
        set.extend(elements.iter().map(|element| Element { hash: mix(element ^ salt), weight: 1 }));
        self.next += 1;
        self.at += length as u64;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_as_they_came_from_memory_and_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let doc = |row| DocId::new(0, row);
        for budget in [0, 100, 1000, 1 << 20] {
            let path = folder.path().join("of-a-worker").join("sets");
            let mut writer = ElementSetsWriter::new(path.clone(), budget);
            let elements = |row: u64| -> Vec<u64> { (0..row % 17).map(|word| row << 8 | word).collect() };
            (0..100).for_each(|row| writer.push(doc(row), doc(row % 3), &elements(row)).unwrap());
            let sets = writer.finish().unwrap();
            assert_eq!((sets.len(), sets.name(7), path.exists()), (100, 7, budget < 1 << 20), "{budget}");
            for _ in 0..2 {
                let (mut pass, mut set) = (sets.pass().unwrap(), Vec::new());
                for row in 0..100 {
                    assert!(pass.next(&mut set).unwrap());
                    let salt = mix(row % 3);
                    let wanted = elements(row).into_iter().map(|word| Element { hash: mix(word ^ salt), weight: 1 });
                    assert!(set.iter().copied().eq(wanted), "{row}");
                }
                assert!(!pass.next(&mut set).unwrap());
            }
            drop(sets);
            assert!(!path.exists());
        }
    }
}
