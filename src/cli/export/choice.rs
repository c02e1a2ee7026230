//! Which records of a cluster stay, and where the values are that decide it.

use anyhow::{Result, bail};

use super::flags::ExportArgs;
use crate::cli::errors::WrongUse;
use crate::config::{Canonical, CanonicalOrder, Cluster, Policy, TermKey};

/// Which records stay: as the flags say, and else as the job of the week.
///
/// # Errors
/// If the flags contradict each other.
pub(super) fn kept(args: &ExportArgs, job: &Cluster) -> Result<Canonical> {
    let mut keep = job.canonical.clone();
    keep.by = args.keep.clone().unwrap_or(keep.by);
    keep.most = args.most.unwrap_or(keep.most);
    keep.each = args.each.clone().or(keep.each);
    // Flags that say how many stay take the place of what the job says of that.
    keep.only_older = keep.only_older.filter(|_| args.most.is_none() && keep.keeps_one());
    let wrong = |text: &str| Err(WrongUse(text.to_owned()).into());
    if args.revisits && keep.most == 0 {
        return wrong("--revisits refers to records that stay, and none of a cluster stays: give --most 1 or more");
    }
    if args.revisits && keep.only_older.is_some() {
        return wrong(
            "--revisits refers to one record of each cluster that stays, and the job of the week keeps copies within a batch: give --most 1",
        );
    }
    if args.near_duplicates && keep.most == 0 {
        return wrong(
            "--near-duplicates names the record that stays, and none of a cluster stays: give --most 1 or more",
        );
    }
    if args.list.is_some() && args.weights {
        return wrong("--weights adds to records that are written, and --list writes none: leave it out");
    }
    if args.keep_rows.is_some() && keep.only_older.is_some() {
        return wrong(
            "--keep-rows counts the records that stay of clusters, and the job of the week keeps copies within a batch: give --most 1",
        );
    }
    if keep.by == CanonicalOrder::Policy(Policy::PerHost) && keep.each.as_ref().is_some_and(|key| *key != TermKey::Host)
    {
        return wrong("per-host keeps one record of each host, and --each names other groups: choose one of the two");
    }
    Ok(keep)
}

/// Where the values are that decide what stays, and of which scores are made.
pub(super) enum DecidingColumns {
    /// No column decides.
    None,
    /// The store has the values of all of them.
    OfStore,
    /// The store lacks those of one, so that all are read from the inputs: these columns.
    OfInputs(Vec<String>),
}

impl DecidingColumns {
    /// # Errors
    /// If values would have to be read from archives that revisits refer to.
    pub(super) fn of(args: &ExportArgs, keep: &Canonical, job: &Cluster) -> Result<DecidingColumns> {
        let (mut columns, known) = (keep.columns(), &job.read.columns.values);
        columns.extend(args.score.clone().filter(|score| !columns.contains(score)));
        let Some(lacking) = columns.iter().find(|column| !known.contains(column)) else {
            return Ok(if columns.is_empty() { DecidingColumns::None } else { DecidingColumns::OfStore });
        };
        if args.revisits {
            bail!(WrongUse(format!(
                "the week has no values of `{lacking}`, and --revisits is for archives, which have no columns: leave it out"
            )));
        }
        Ok(DecidingColumns::OfInputs(columns))
    }
}
