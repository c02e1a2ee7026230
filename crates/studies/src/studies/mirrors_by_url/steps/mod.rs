//! Mirrors by URL: pairs of hosts that have features of their names and paths in common, and tests
//! of these pairs by some pages (Bharat and Broder 1999).
//!
//! ```text
//! urls        the URLs of a week and of lists, and how they are named
//! hosts       distinct URLs by host; a sample of the paths of each host with enough of them
//! terms       the terms of names and paths, and the features that they make
//! features    the features of sampled hosts
//! candidates  pairs of hosts with features in common, and their scores
//! listed      the best candidates: names and samples of their hosts, at every worker
//! test_pages  the pages that tests compare: those of the week, and those fetched for the tests
//! failures    the hosts that do not answer
//! path_tests  the tests of each pair
//! outcomes    what a test finds, and the level of a pair                                   Table 1
//! ```
//!
//! A host and a path are known by the high halves of the 128-bit hashes of their texts; two hosts
//! with the same hash in the list are an error.
//!
//! Memory: a worker has the sampled paths of which it read the URLs, about 120 bytes each; every
//! worker has the listed candidates and the samples of their hosts, about 4 kB for each candidate
//! with the default `paths` and URLs of 60 bytes. Other records go to disk beyond the memory for
//! them; those of one feature, and of one host, are sorted in the memory of one worker.

mod candidates;
mod failures;
mod features;
mod hosts;
mod listed;
mod outcomes;
mod path_tests;
mod stage;
mod terms;
mod test_pages;
mod urls;

pub use self::candidates::{Candidate, candidates};
pub use self::failures::HostFailure;
pub use self::features::{HostFeature, SampledTexts, host_features};
pub use self::hosts::{SampledPath, UrlCounts, sampled_hosts};
pub use self::listed::{CandidateHost, ListedPair, ListedPairs, WantedUrls};
pub use self::outcomes::{MirrorLevel, OutcomeCounts, PathOutcome};
pub use self::path_tests::{PathTest, TestRules, TestedPair, compare};
pub use self::stage::UrlStage;
pub use self::test_pages::TestPages;
pub use self::urls::{UrlSource, UrlState, WeekUrls, text_hash};
