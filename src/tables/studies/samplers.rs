//! The columns of the tables of the samplers job: how well samples estimate resemblance (Broder 1997; Fetterly 2004, section 2).
//!
//! They lie in `samplers/TABLE` of the store. A `sampler` is `functions` (84 min-wise functions, or as many as the job says), `functions, B bits`
//! (of which B bits of each minimum are compared), `min`, `mod 2^i` or `mod M`; it joins both tables. No column joins them with those of weeks.

use crate::tables::columns::{Column, Table, doubles, longs, maybe_doubles, nullable, required, texts};

/// `samplers`: the size of samples: one row for each sampler.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplerRow {
    /// The sampler.
    pub sampler: String,
    /// Mean number of values of a sample, over the pages of the compared pairs; null without pairs.
    pub values: Option<f64>,
    /// Mean bytes of a sample, likewise.
    pub bytes: Option<f64>,
    /// The expected share of the pages of the week that have no sample, of those with words: by their numbers of words.
    pub empty: f64,
}

impl Table for SamplerRow {
    const NAME: &'static str = "samplers";
    const DESCRIPTION: &'static str = "The size of the samples of pages: one row for each sampler.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "sampler",
                "`functions` (also with the number of bits that are compared), `min`, `mod 2^i` or `mod M`",
                texts(rows.iter().map(|r| r.sampler.as_str())),
            ),
            nullable("values", "mean values of a sample", maybe_doubles(rows.iter().map(|r| r.values))),
            nullable("bytes", "mean bytes of a sample", maybe_doubles(rows.iter().map(|r| r.bytes))),
            required(
                "empty",
                "expected share of the week's pages with words that have no sample",
                doubles(rows.iter().map(|r| r.empty)),
            ),
        ]
    }
}

/// `sampler-errors`: how far estimates are from the exact resemblance: one row for each sampler and each band that has pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplerErrorRow {
    /// The sampler.
    pub sampler: String,
    /// The lower end of the band of exact resemblance, which belongs to it.
    pub low: f64,
    /// The upper end, which does not.
    pub high: f64,
    /// The pairs of pages that were compared, each with every seed.
    pub pairs: i64,
    /// Their mean exact resemblance.
    pub similarity: f64,
    /// Mean of estimate minus exact resemblance; null if there is no estimate.
    pub bias: Option<f64>,
    /// The standard error of `bias`: the larger of that by pair and seed, and that by seed.
    pub bias_error: Option<f64>,
    /// Root of the mean square of estimate minus exact resemblance.
    pub error: Option<f64>,
    /// What theory says of `error`, from the exact sets.
    pub theory: f64,
    /// The share of pairs and seeds without an estimate, as neither page has a sample.
    pub without: f64,
    /// For `functions`: the share of pairs and seeds that supershingles join; null if they cannot be made of the functions.
    pub joined: Option<f64>,
    /// What the S-curve says of `joined`.
    pub expected: Option<f64>,
}

impl Table for SamplerErrorRow {
    const NAME: &'static str = "sampler-errors";
    const DESCRIPTION: &'static str =
        "How far the estimates of samplers are from the exact resemblance: one row for each sampler and band.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("sampler", "as in `samplers`", texts(rows.iter().map(|r| r.sampler.as_str()))),
            required("low", "lower end of the band of exact resemblance", doubles(rows.iter().map(|r| r.low))),
            required("high", "upper end, not in the band", doubles(rows.iter().map(|r| r.high))),
            required("pairs", "pairs of pages, each compared with every seed", longs(rows.iter().map(|r| r.pairs))),
            required("similarity", "mean exact resemblance", doubles(rows.iter().map(|r| r.similarity))),
            nullable("bias", "mean of estimate minus exact", maybe_doubles(rows.iter().map(|r| r.bias))),
            nullable("bias_error", "standard error of the bias", maybe_doubles(rows.iter().map(|r| r.bias_error))),
            nullable(
                "error",
                "root of the mean square of estimate minus exact",
                maybe_doubles(rows.iter().map(|r| r.error)),
            ),
            required("theory", "what theory says of the error", doubles(rows.iter().map(|r| r.theory))),
            required(
                "without",
                "share of pairs and seeds of which neither page has a sample",
                doubles(rows.iter().map(|r| r.without)),
            ),
            nullable(
                "joined",
                "for `functions`: share of pairs and seeds that supershingles join",
                maybe_doubles(rows.iter().map(|r| r.joined)),
            ),
            nullable("expected", "what the S-curve says of `joined`", maybe_doubles(rows.iter().map(|r| r.expected))),
        ]
    }
}
