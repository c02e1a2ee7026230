//! The candidates of the set join: pairs of sets that have one of their rarest elements in common.
//!
//! In reading order: `prefixes` (the rarest elements of a set, and how many pairs they propose),
//! `meet` (the sets with an element in their prefixes meet).

pub(super) mod meet;
pub(super) mod prefixes;
