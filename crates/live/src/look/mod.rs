//! Looks into a committed week: its clusters and pages, why two pages are in one cluster or not,
//! and which pages are most like a text.
//!
//! In reading order: `week` (pages and clusters of a week, found by URL or id), `lists` (the
//! largest clusters, the pages of a cluster or a host), `sketches` (what two sketches have in
//! common), `nearest` (the documents most like a text), `chain` (the shortest chain of links
//! between two pages of a cluster), `passages` (the words that two texts do not share), `compare`
//! (all of it, for two pages), `overview` (what a report shows).
//!
//! Everything is read when it is asked for. To find a page, one shard's URLs are read; to find the
//! pages of a cluster, a column of the week.

mod chain;
mod compare;
mod lists;
mod nearest;
mod overview;
mod passages;
mod sketches;
mod week;

pub use self::compare::shingles;
pub use self::compare::{
    ChainLink, Comparison, JoiningLink, Passage, TextComparison, compare, compare_texts, joining_links, sketches,
    words_of_pages,
};
pub use self::lists::{
    KnownPage, ListedPage, LookedCluster, LookedEvidence, PageList, evidence, known_page, largest, pages_of_cluster,
    pages_of_host,
};
pub use self::nearest::{NearPage, Nearest, Query, Way, nearest};
pub use self::overview::{
    Overview, RecallBand, ShownCluster, SizesOfLevel, StoreFindings, StudyPicture, Why, overview,
};
pub use self::sketches::SketchComparison;
pub use self::week::{LookedPage, LookedWeek, Pages};
