//! The jobs over the tables of a store, each against a slow twin.

/// What a crawler need not fetch, against a twin and against the pages.
pub mod avoid;
/// Replicated collections against sets and maps over pages and links.
mod collections;
/// Documents against a reference, and planted leaks.
mod decontamination;
/// The evolution of clusters against brute force over URLs, on stores with random histories.
pub mod evolution;
/// The files of the tables of studies, those of older versions too.
mod files;
/// Which of several hosts stays, by brute force.
mod host_order;
/// Mirrors by content against pairs of hosts, one by one.
mod mirrors;
/// Mirrors by URL against a twin of dictionaries.
mod mirrors_by_url;
/// Pages and hosts that share chunks, against brute force over all pairs.
mod overlap;
mod paragraphs;
/// Repeated passages, against all windows of the texts.
mod passages;
/// Samplers of shingles against sets of images.
mod samplers;
