//! The timing of a pass, and the figures as rows of a table or as JSON.

use std::fmt;
use std::time::Instant;

use serde::Serialize;

use crate::kernels::Kernels;

/// The number of passes, after one that is not counted. The median is reported.
const PASSES: usize = 15;

/// The work of one pass.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkDone {
    pub documents: u64,
    pub words: u64,
    /// Input bytes, of texts or of page bodies.
    pub bytes: u64,
}

/// The figures of one stage over documents of one length.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StageRow {
    /// The name of the stage.
    pub stage: &'static str,
    /// The level of the kernels.
    pub kernel: &'static str,
    /// The mean number of words of a document.
    pub words_per_document: f64,
    /// Documents of one pass.
    pub documents: u64,
    /// Words of one pass. Each word starts a shingle.
    pub words: u64,
    /// Input bytes of one pass, of texts or of page bodies.
    pub bytes: u64,
    /// CPU seconds of a pass; wall-clock seconds in rows "by the clock".
    pub seconds: f64,
    /// Nanoseconds per word.
    pub ns_per_word: f64,
    /// Nanoseconds per shingle: the same, since every word starts one.
    pub ns_per_shingle: f64,
    /// Megabytes (10^6 bytes) per second.
    pub mb_per_s: f64,
    /// Documents per second.
    pub documents_per_s: f64,
    /// The lowest possible time over the measured time, if a lower bound is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_limit: Option<f64>,
}

impl StageRow {
    /// The row of a stage that did `work` in `seconds`.
    pub(crate) fn new(stage: &'static str, kernels: &Kernels, work: WorkDone, seconds: f64) -> StageRow {
        let (documents, words) = (work.documents as f64, work.words as f64);
        let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        StageRow {
            stage,
            kernel: kernels.name(),
            words_per_document: ratio(words, documents),
            documents: work.documents,
            words: work.words,
            bytes: work.bytes,
            seconds,
            ns_per_word: ratio(seconds * 1e9, words),
            ns_per_shingle: ratio(seconds * 1e9, words),
            mb_per_s: ratio(work.bytes as f64 / 1e6, seconds),
            documents_per_s: ratio(documents, seconds),
            share_of_limit: None,
        }
    }
}

/// The figures of one benchmark.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StageReport {
    /// The row that stands for the benchmark as a whole.
    #[serde(flatten)]
    pub sum: StageRow,
    /// All rows.
    pub rows: Vec<StageRow>,
}

impl StageReport {
    /// A report of these rows, at least one. Row number `sum` stands for the benchmark as a whole.
    pub(crate) fn new(rows: Vec<StageRow>, sum: usize) -> StageReport {
        StageReport { sum: rows[sum].clone(), rows }
    }
}

impl fmt::Display for StageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernels {}; CPU time of one core, median of {PASSES} passes", self.sum.kernel)?;
        writeln!(
            f,
            "{:<22} {:>10} {:>10} {:>8} {:>9} {:>10} {:>12}  of limit",
            "stage", "words/doc", "documents", "ns/word", "MB/s", "MB", "documents/s"
        )?;
        for row in &self.rows {
            write!(
                f,
                "{:<22} {:>10.0} {:>10} {:>8.2} {:>9.1} {:>10.1} {:>12.0}",
                row.stage,
                row.words_per_document,
                row.documents,
                row.ns_per_word,
                row.mb_per_s,
                row.bytes as f64 / 1e6,
                row.documents_per_s
            )?;
            match row.share_of_limit {
                Some(share) => writeln!(f, "  {:>7.0}%", share * 100.0)?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

/// CPU seconds of this thread since it started.
pub(crate) fn thread_cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// CPU seconds of this thread for one pass: the median of [`PASSES`].
pub(crate) fn cpu_seconds(mut pass: impl FnMut()) -> f64 {
    median(|| {
        let start = thread_cpu();
        pass();
        thread_cpu() - start
    })
}

/// Wall-clock seconds for one pass: the median of [`PASSES`].
pub(crate) fn wall_seconds(mut pass: impl FnMut()) -> f64 {
    median(|| {
        let start = Instant::now();
        pass();
        start.elapsed().as_secs_f64()
    })
}

fn median(mut seconds: impl FnMut() -> f64) -> f64 {
    // One pass without measurement: then files are in the page cache, and buffers have their final
    // size.
    seconds();
    let mut all: Vec<f64> = (0..PASSES).map(|_| seconds()).collect();
    all.sort_by(f64::total_cmp);
    all[PASSES / 2]
}

/// Clock cycles per nanosecond, measured by a chain of additions and rotations in which each waits
/// for the one before.
pub(crate) fn clock_rate() -> f64 {
    const STEPS: u64 = 1_000_000;
    let seconds = cpu_seconds(|| {
        let chained = (0..std::hint::black_box(STEPS)).fold(1u64, |x, _| x.wrapping_add(0x9E37_79B9).rotate_left(7));
        std::hint::black_box(chained);
    });
    2.0 * STEPS as f64 / (seconds * 1e9)
}
