//! Datasets that are written again without duplicates.

/// Exports in another format than that of the inputs.
pub mod conversions;
/// What exports of archives leave out.
mod left_out;
/// What an export says of near-duplicates, against the tables.
mod near_duplicates;
/// Exports without paragraphs most of whose n-grams stand before.
mod paragraph_overlap;
/// Parquet of other programs keeps what it is.
mod parquet_kept;
/// Exports with columns under other names, against those without.
mod renamed;
/// Exports of archives: revisits, WACZ and indexes; pywb replays them.
mod replay;
/// Exports that refer to pages of the weeks before.
mod replay_weeks;
/// Exports in shards, against those without.
mod shards;
/// Exports are whole, and touch nothing of others.
mod transactions;
/// Datasets that are written again without duplicates.
mod whole;
