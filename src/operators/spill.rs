//! Answers in the order of their URLs, whatever their number: sorted runs on disk, merged.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::crawl::Answer;

/// Collects answers, and gives them back sorted by (hash, file, ordinal).
pub struct Sorter {
    /// The name of a run, up to its number.
    prefix: PathBuf,
    budget: usize,
    answers: Vec<Answer>,
    bytes: usize,
    runs: Vec<PathBuf>,
}

impl Sorter {
    /// A sorter that holds about `budget` bytes in memory, and puts the rest into files named `prefix` and a number.
    pub fn new(prefix: &Path, budget: u64) -> Sorter {
        Sorter { prefix: prefix.to_owned(), budget: budget as usize, answers: Vec::new(), bytes: 0, runs: Vec::new() }
    }

    /// Adds an answer.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn push(&mut self, answer: Answer) -> Result<()> {
        self.bytes += weight(&answer);
        self.answers.push(answer);
        if self.bytes > self.budget { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> Result<()> {
        let path = self.prefix.with_extension(format!("{}.run", self.runs.len()));
        let failed = || format!("cannot write {}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(failed)?;
        }
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&path).with_context(failed)?);
        self.sort();
        let mut buffer = Vec::new();
        for answer in self.answers.drain(..) {
            buffer = postcard::to_extend(&answer, buffer).context("an answer is plain data")?;
            file.write_all(&(buffer.len() as u32).to_le_bytes())
                .and_then(|()| file.write_all(&buffer))
                .with_context(failed)?;
            buffer.clear();
        }
        file.flush().with_context(failed)?;
        self.runs.push(path);
        self.bytes = 0;
        Ok(())
    }

    fn sort(&mut self) {
        self.answers.sort_unstable_by_key(|answer| (answer.hash, answer.file, answer.ordinal));
    }

    /// All answers in order. The runs are removed as the iterator is dropped.
    ///
    /// # Errors
    /// Names the run that cannot be read.
    pub fn sorted(mut self) -> Result<Sorted> {
        self.sort();
        let mut sources = vec![Source::Memory(std::mem::take(&mut self.answers).into_iter())];
        for path in &self.runs {
            let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            sources.push(Source::Run(BufReader::with_capacity(1 << 18, file), path.clone()));
        }
        let mut sorted = Sorted { heads: Vec::new(), sources, runs: std::mem::take(&mut self.runs) };
        for at in 0..sorted.sources.len() {
            let head = sorted.sources[at].next()?;
            sorted.heads.push(head);
        }
        Ok(sorted)
    }
}

/// About how many bytes an answer takes in memory.
fn weight(answer: &Answer) -> usize {
    size_of::<Answer>()
        + answer.url.len()
        + answer.host.len()
        + answer.title.len()
        + answer.media_type.len()
        + 8 * answer.sketch.supershingles.len()
        + 4 * answer.sketch.features.len()
        + answer.links.iter().map(|link| size_of::<String>() + link.len()).sum::<usize>()
}

/// Answers in order: see [`Sorter::sorted`].
pub struct Sorted {
    heads: Vec<Option<Answer>>,
    sources: Vec<Source>,
    runs: Vec<PathBuf>,
}

enum Source {
    Memory(std::vec::IntoIter<Answer>),
    Run(BufReader<File>, PathBuf),
}

impl Source {
    fn next(&mut self) -> Result<Option<Answer>> {
        match self {
            Source::Memory(answers) => Ok(answers.next()),
            Source::Run(file, path) => {
                let mut length = [0; 4];
                match file.read_exact(&mut length) {
                    Ok(()) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
                    Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
                }
                let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
                file.read_exact(&mut bytes).with_context(|| format!("{} is cut short", path.display()))?;
                postcard::from_bytes(&bytes).map(Some).with_context(|| format!("{} is damaged", path.display()))
            }
        }
    }
}

impl Sorted {
    /// The next answer.
    ///
    /// # Errors
    /// Names the run that cannot be read.
    pub fn next(&mut self) -> Result<Option<Answer>> {
        // Few runs: a linear search for the smallest head beats keeping a heap.
        let key = |answer: &Answer| (answer.hash, answer.file, answer.ordinal);
        let heads = self.heads.iter().enumerate();
        let smallest = heads.filter_map(|(at, head)| Some((key(head.as_ref()?), at))).min();
        let Some((_, at)) = smallest else { return Ok(None) };
        let next = self.sources[at].next()?;
        Ok(std::mem::replace(&mut self.heads[at], next))
    }
}

impl Drop for Sorted {
    fn drop(&mut self) {
        for run in &self.runs {
            // A run that stays is removed when the week is begun again, or with the week's folder.
            let _ = std::fs::remove_file(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Sketch;
    use crate::records::{UrlHash, mix};

    fn answer(i: u64) -> Answer {
        let url = format!("http://h/{}", mix(i) % 500);
        Answer {
            hash: UrlHash::of(&url),
            file: (i % 3) as u32,
            ordinal: i,
            host: "h".into(),
            url,
            ip: None,
            fetched: Some(-1),
            status: 200,
            media_type: "text/html".into(),
            bytes: 1,
            checksum: i.into(),
            words: 1,
            title: String::new(),
            offset: 0,
            cut: false,
            sketch: Sketch { supershingles: vec![i; 6], features: vec![i as u32; 84] },
            links: vec!["http://h/".into(); (i % 5) as usize],
        }
    }

    fn sorted(budget: u64) -> (Vec<String>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(&folder.path().join("spill/wave"), budget);
        (0..1000).for_each(|i| sorter.push(answer(i)).unwrap());
        let runs = sorter.runs.len();
        let mut sorted = sorter.sorted().unwrap();
        let mut all = Vec::new();
        while let Some(answer) = sorted.next().unwrap() {
            all.push(format!("{answer:?}"));
        }
        drop(sorted);
        let left = std::fs::read_dir(folder.path().join("spill")).map_or(0, |files| files.count());
        assert_eq!(left, 0, "runs are removed");
        (all, runs)
    }

    #[test]
    fn the_order_does_not_depend_on_memory() {
        let (in_memory, runs) = sorted(u64::MAX);
        assert_eq!((runs, in_memory.len()), (0, 1000));
        let (spilled, runs) = sorted(50_000);
        assert!(runs > 5, "{runs}");
        assert_eq!(spilled, in_memory);
    }
}
