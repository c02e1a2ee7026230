//! The columns of the tables of the samplers job: how well samples estimate resemblance (Broder
//! 1997; Fetterly 2004, section 2).
//!
//! They lie in `samplers/TABLE` of the store. A `sampler` is `functions` (84 min-wise functions, or
//! as many as the job says), `functions, B bits` (of which B bits of each minimum are compared),
//! `min`, `mod 2^i` or `mod M`; it joins both tables. No column joins them with those of weeks.

use nigh_derive::Table;

use crate::tables::store_table::{ResultTables, StoreTable};

/// The tables, in the order of their names.
pub(super) const TABLES: ResultTables = ResultTables {
    folder: "samplers",
    name_pages: false,
    read_chunks: false,
    tables: &[StoreTable::of::<SamplerErrorRow>(), StoreTable::of::<SamplerRow>()],
};

/// The size of the samples of pages: one row for each sampler.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "samplers")]
pub struct SamplerRow {
    /// `functions` (also with the number of bits that are compared), `min`, `mod 2^i` or `mod M`.
    pub sampler: String,
    /// Mean values of a sample.
    ///
    /// Over the pages of the compared pairs; null without pairs.
    pub values: Option<f64>,
    /// Mean bytes of a sample.
    pub bytes: Option<f64>,
    /// Expected share of the week's pages with words that have no sample.
    ///
    /// By their numbers of words.
    pub empty: f64,
}

/// How far the estimates of samplers are from the exact resemblance: one row for each sampler and
/// band.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "sampler-errors")]
pub struct SamplerErrorRow {
    /// As in `samplers`.
    pub sampler: String,
    /// Lower end of the band of exact resemblance.
    ///
    /// It belongs to the band.
    pub low: f64,
    /// Upper end, not in the band.
    pub high: f64,
    /// Pairs of pages, each compared with every seed.
    pub pairs: i64,
    /// Mean exact resemblance.
    pub similarity: f64,
    /// Mean of estimate minus exact.
    ///
    /// Null if there is no estimate.
    pub bias: Option<f64>,
    /// Standard error of the bias.
    ///
    /// The larger of that by pair and seed, and that by seed.
    pub bias_error: Option<f64>,
    /// Root of the mean square of estimate minus exact.
    pub error: Option<f64>,
    /// What theory says of the error.
    ///
    /// From the exact sets.
    pub theory: f64,
    /// Share of pairs and seeds of which neither page has a sample.
    pub without: f64,
    /// For `functions`: share of pairs and seeds that supershingles join.
    ///
    /// Null if they cannot be made of the functions.
    pub joined: Option<f64>,
    /// What the S-curve says of `joined`.
    pub expected: Option<f64>,
}
