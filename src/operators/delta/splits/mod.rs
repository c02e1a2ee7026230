//! Whether a cluster that loses documents falls apart, and into what.
//!
//! In reading order: `remaining` (the smallest unchanged member of each touched cluster), `certificate` (proves from a
//! document's own keys that its cluster stays whole), `wide_certificate` (proves it from the keys of the holders),
//! `split_components` (components of what remains where there is no proof), `leaves` (documents that only join a cluster).

mod certificate;
mod leaves;
mod remaining;
mod split_components;
mod wide_certificate;

pub use self::certificate::{RemainingHolder, holds};
pub(crate) use self::leaves::{leaves, with_leaves};
pub(crate) use self::remaining::{Remaining, remaining};
pub use self::split_components::{RemainingMembers, split_components};
pub(crate) use self::wide_certificate::{Unproven, bridged};
