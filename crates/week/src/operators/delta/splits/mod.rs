//! Whether a cluster that loses documents splits, and into what.
//!
//! In reading order: `remaining` (the smallest unchanged member of each touched cluster),
//! `certificate` (proves from a document's own keys that its cluster stays whole),
//! `wide_certificate` (proves it from all keys of the documents that share these),
//! `split_components` (the components of what remains, where there is no proof), `leaves`
//! (documents that only join a cluster).

mod certificate;
mod leaves;
mod remaining;
mod split_components;
mod wide_certificate;

pub use self::certificate::{RemainingHolder, is_certified};
pub(crate) use self::leaves::{label_leaves, take_leaves};
pub(crate) use self::remaining::{Remaining, remaining};
pub(crate) use self::split_components::SplitMember;
pub use self::split_components::{RemainingMembers, split_components};
pub(crate) use self::wide_certificate::{Uncertified, wide_certificates};
