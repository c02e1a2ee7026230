//! The `[evolution]` job: how the clusters of a store change from week to week (Fetterly 2004,
//! section 3).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::records::Week;

/// The `[evolution]` table: reads the weeks of a store, and writes tables about how their clusters
/// change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Evolution {
    /// The store with the weeks. Required, here or as `--store`.
    pub store: Option<PathBuf>,
    /// The first week to compare. Default: the store's first.
    pub first: Option<Week>,
    /// The last week to compare. Default: the store's last.
    pub last: Option<Week>,
}
