//! How far the estimates of samplers are from the truth, by band of resemblance.
//!
//! Sums are of floats, at one worker, in the order of the pairs: they do not depend on the number
//! of workers.

use super::chosen_pairs::{FIRST_BAND, LAST_BAND};
use super::measure::{Estimates, MeasuredPair};
use crate::config::Shape;
use crate::features::Sampler;
use crate::stats::{BANDS, band};
use crate::tables::studies::samplers::SamplerErrorRow;

/// The pairs of a band of exact resemblance.
pub(super) struct Band<'a> {
    number: usize,
    pairs: Vec<&'a MeasuredPair>,
}

/// Puts pairs into the bands of their exact resemblance, at most `most` into each; bands without a
/// pair are left out.
pub(super) fn bands(pairs: &[MeasuredPair], most: usize) -> Vec<Band<'_>> {
    let of_band = |number: usize| {
        let pairs = pairs.iter().filter(|pair| band(pair.exact().similarity) == number);
        Band { number, pairs: pairs.take(most).collect() }
    };
    (FIRST_BAND..=LAST_BAND).map(of_band).filter(|band| !band.pairs.is_empty()).collect()
}

/// The mean of values; none of nothing.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// The standard error of the mean of values: none of fewer than two.
fn standard_error(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let middle = mean(values.iter().copied()).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    Some((squares / (count - 1.0) / count).sqrt())
}

impl Band<'_> {
    /// How many pairs the band has.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// The row of sampler number `number`, with `functions` functions. `shape` says which pairs
    /// supershingles join.
    pub fn row(&self, number: usize, sampler: Sampler, functions: usize, shape: Option<Shape>) -> SamplerErrorRow {
        let truths: Vec<f64> = self.pairs.iter().map(|pair| pair.exact().similarity).collect();
        let estimates: Vec<&Estimates> = self.pairs.iter().map(|pair| &pair.samplers[number]).collect();
        let draws = estimates.first().map_or(0, |of_pair| of_pair.by_draw.len());
        let error = |pair: usize, draw: usize| estimates[pair].by_draw[draw].map(|estimate| estimate - truths[pair]);
        let by_draw = |draw: usize| (0..truths.len()).filter_map(move |pair| error(pair, draw));
        let all: Vec<f64> = (0..draws).flat_map(by_draw).collect();
        let of_draws: Vec<f64> = (0..draws).filter_map(|draw| mean(by_draw(draw))).collect();
        // Pairs of one draw have its functions in common; and a few draws alone could be near each
        // other by chance.
        let bias_error = [standard_error(&of_draws), standard_error(&all)];
        let variance = mean(self.pairs.iter().map(|pair| sampler.variance(&pair.exact(), functions)));
        let is_joined = matches!(sampler, Sampler::Functions { bits: 64 });
        let joined = self.pairs.iter().map(|pair| pair.joined as f64 / draws.max(1) as f64);
        SamplerErrorRow {
            sampler: sampler.name(),
            low: BANDS[self.number],
            high: BANDS[self.number + 1],
            pairs: self.pairs.len() as i64,
            similarity: mean(truths.iter().copied()).unwrap_or_default(),
            bias: mean(all.iter().copied()),
            bias_error: bias_error.into_iter().flatten().max_by(f64::total_cmp),
            error: mean(all.iter().map(|error| error * error)).map(f64::sqrt),
            theory: variance.unwrap_or_default().sqrt(),
            without: 1.0 - all.len() as f64 / (draws * truths.len()).max(1) as f64,
            joined: shape.filter(|_| is_joined).and_then(|_| mean(joined)),
            expected: shape
                .filter(|_| is_joined)
                .and_then(|shape| mean(truths.iter().map(|truth| shape.chance(*truth)))),
        }
    }

    /// The values that sampler number `number` kept of the pages of the pairs, and the number of
    /// pages and draws.
    pub fn values(&self, number: usize) -> (usize, usize) {
        let of_pairs = self.pairs.iter().map(|pair| &pair.samplers[number]);
        of_pairs.fold((0, 0), |(values, sets), of| (values + of.values, sets + 2 * of.by_draw.len()))
    }
}
