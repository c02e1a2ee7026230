//! The mode of a job: from what changed, or from all documents.

use serde::{Deserialize, Serialize};

/// How a later week is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The way that is predicted to be faster.
    #[default]
    Auto,
    /// From the week before and what changed since.
    Delta,
    /// From all documents.
    Full,
}
