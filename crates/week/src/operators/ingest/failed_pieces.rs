//! The pieces of tables with the failed downloads of an unfinished week: by shard and wave.

use anyhow::Result;

use crate::state::{Segment, Unfinished};
use crate::tables::{RowRange, Table};

/// The name of the piece with a shard's failures in a wave.
pub(super) fn piece(shard: u32, wave: usize) -> String {
    format!("shard{shard:05}-failed-wave{wave:05}.parquet")
}

/// A shard's failures in the first `waves` waves: those waves that have some, in order.
pub(super) fn pieces<T: Table>(unfinished: &Unfinished, shard: u32, waves: usize) -> Result<Vec<(usize, RowRange)>> {
    let of_shard = unfinished.find_all::<T>(&format!("shard{shard:05}-failed-wave"))?;
    let with_wave = of_shard.into_iter().filter_map(|(name, rows)| Some((Segment::wave_of(&name)?, rows)));
    Ok(with_wave.filter(|(wave, _)| *wave < waves).collect())
}
