//! How records are cut into shards.

use serde::{Deserialize, Serialize};

use crate::config::Bytes;

/// How records are cut into shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShardRule {
    /// So many shards, whose numbers of records differ by one at most.
    Count(u64),
    /// A shard ends before the record with which it would have more bytes: lines without their
    /// compression; rows of Parquet by the mean of their row group, as it is stored.
    MostBytes(u64),
}

impl ShardRule {
    /// The rule of the flags; `None` if neither is given.
    pub fn of_flags(count: Option<u64>, bytes: Option<Bytes>) -> Option<ShardRule> {
        count.map(ShardRule::Count).or(bytes.map(|bytes| ShardRule::MostBytes(bytes.0)))
    }
}
