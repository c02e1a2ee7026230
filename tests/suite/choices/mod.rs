//! Which document of a cluster stays in a dataset.

/// Which documents stay by the user's columns, against a slow twin.
pub mod chosen;
/// Which documents stay by columns that the store does not have, against the same twin.
mod chosen_at_export;
/// Datasets of records with ids or without any.
pub mod datasets;
/// What matches a reference, with an order by columns of the inputs, and in source code.
mod matched_choices;
/// Batches of which only what duplicates an older one goes.
mod only_older;
/// Exports of clusters at another similarity, and of a number of records.
mod thresholds;
