//! Which pages are near-duplicates, and how well that is known.

/// The sampled accuracy of clusters against a plain walk.
pub mod accuracy;
/// Clusters against brute force and sequential union-find.
mod brute_force;
/// What the docs say of lines with one hash.
mod collide;
/// The components operators against sequential union-find and differential dataflow's `propagate`.
mod components;
/// Pages by their main content, against their texts alone.
#[cfg(all(feature = "live", feature = "main-content"))]
mod main_content;
/// The set join against all pairs by brute force.
mod set_join;
/// Recall, estimates and chains against the exact similarity of real pages.
mod truth;
/// Clusters whose pages are checked, against brute force over pairs.
mod verify;
mod wordless;
/// Other words than letters and digits, and texts that are short.
mod words;
