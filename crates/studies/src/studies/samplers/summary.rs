//! The summary of the samplers job: how well samples estimate resemblance (Broder 1997; Fetterly
//! 2004, section 2).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::records::Week;
use crate::tables::studies::samplers::{SamplerErrorRow, SamplerRow};

/// The summary of a samplers job: kept as `summary.json` beside its tables, printed by `run` and
/// `show`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplersSummary {
    /// The store, as the run named it.
    pub store: PathBuf,
    /// The parameters of the store, on one line.
    pub method: String,
    /// The week.
    pub first: Week,
    /// The week, again: a study has a first and a last one.
    pub last: Week,
    /// The pages of the week with words.
    pub pages: u64,
    /// The min-wise functions.
    pub functions: u64,
    /// How often each sampler was made again.
    pub seeds: u64,
    /// The pairs of pages that were compared.
    pub pairs: u64,
    /// The samplers.
    pub samplers: Vec<SamplerSummary>,
}

/// What a sampler is worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplerSummary {
    /// The sampler, as in the table `samplers`.
    pub sampler: String,
    /// Mean bytes of a sample; none without pairs.
    pub bytes: Option<f64>,
    /// The expected share of pages without a sample.
    pub empty: f64,
    /// By band of exact resemblance.
    pub bands: Vec<SamplerBand>,
}

/// What a sampler is worth for pairs of some resemblance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplerBand {
    /// The lower end of the band.
    pub low: f64,
    /// The pairs.
    pub pairs: u64,
    /// Mean of estimate minus exact resemblance.
    pub bias: Option<f64>,
    /// Its standard error.
    pub bias_error: Option<f64>,
    /// Root of the mean square of estimate minus exact resemblance.
    pub error: Option<f64>,
    /// What theory says of it.
    pub theory: f64,
}

impl SamplerSummary {
    /// The summary of a sampler, from its rows.
    pub fn new(size: &SamplerRow, errors: &[SamplerErrorRow]) -> SamplerSummary {
        let band = |row: &SamplerErrorRow| SamplerBand {
            low: row.low,
            pairs: row.pairs as u64,
            bias: row.bias,
            bias_error: row.bias_error,
            error: row.error,
            theory: row.theory,
        };
        SamplerSummary {
            sampler: size.sampler.clone(),
            bytes: size.bytes,
            empty: size.empty,
            bands: errors.iter().map(band).collect(),
        }
    }
}

impl SamplerBand {
    /// Whether the error is within a tenth of what theory says of it.
    pub fn is_as_in_theory(&self) -> bool {
        self.error.is_some_and(|error| (error - self.theory).abs() <= 0.1 * self.theory)
    }

    /// Whether the bias is more than three times its standard error.
    pub fn is_biased(&self) -> bool {
        matches!((self.bias, self.bias_error), (Some(bias), Some(error)) if bias.abs() > 3.0 * error)
    }
}
