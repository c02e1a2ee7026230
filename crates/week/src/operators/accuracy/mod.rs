//! Samples of pairs of pages, and how similar these are exactly: the truth about the clusters of a
//! week.
//!
//! ```text
//! sample    the things with the smallest hashes: the same ones for any number of workers
//! probes    for some pages, all pages that their features say are similar
//! compare   the exact similarity of sampled pairs, from pages that are read again
//! ```

mod compare;
mod probes;
mod sample;

pub use self::compare::{compare_pairs, shared_elements};
pub use self::probes::{NearProbe, NearRule, Probe, near_probes, own_near_pages, representatives};
pub use self::sample::{Sample, sample_hash};
