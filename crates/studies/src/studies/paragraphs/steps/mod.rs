//! Shingle paragraphs: where duplicates are and how they grow (Pereira, Baeza-Yates and Ziviani
//! 2006).
//!
//! A *paragraph* is three sentences of a page: see [`features`](crate::features). The study looks
//! at pages above 450 characters.
//!
//! ```text
//! source       the paragraphs of the pages, read from the table `chunks` in every pass
//! duplicates   pages with equal numbers of paragraphs, each of one found in the other: clusters
//!              (`classes`, `false_matches`: pages that repeat a paragraph; `growth`: how many are found part by part)
//! near         pages that share 90, 70, 50% of their paragraphs: clusters
//! regions      clusters and duplicates in the part of the web that links lead to (`reach`), and in the rest
//! one_site     whether the pages of a cluster lie on one host, and on one site
//! boilerplate  paragraphs that many pages have
//! ```
//!
//! In reading order: `stage` (the parameters), `source`, `week_pages` (hosts and times),
//! `page_parts` (what growth is measured over), then the steps as above. `page_sets`,
//! `page_records` and `compare_sets` serve several.
//!
//! Nothing depends on the number of workers.
//!
//! Memory: for every known URL of a worker's shards 8 bytes for the host, 40 for duplicates, 8 for
//! each threshold of near-duplicates. Records in flight go to disk beyond `memory`.

mod boilerplate;
mod compare_sets;
mod duplicates;
mod near;
mod one_site;
mod page_parts;
mod page_records;
mod page_sets;
mod regions;
mod source;
mod stage;
#[cfg(test)]
pub(super) mod tests;
mod week_pages;

pub use self::boilerplate::{Boilerplate, RepeatedParagraph, boilerplate};
pub use self::compare_sets::{ComparedPair, PagePair, compare_sets};
pub use self::duplicates::classes::FalseMatch;
pub use self::duplicates::growth::{Growth, GrowthStep};
pub use self::duplicates::{WeekDuplicates, duplicates};
pub use self::near::near_duplicates;
pub use self::one_site::{SiteCounts, site_counts};
pub use self::page_parts::PageParts;
pub use self::page_sets::PageSets;
pub use self::regions::{RegionCounts, region_counts};
pub use self::source::{FilesPass, MemoryPass, ParagraphFiles, ParagraphPass, ParagraphSource, ParagraphsInMemory};
pub use self::stage::ParagraphStage;
pub use self::week_pages::{WeekPages, without_host};
