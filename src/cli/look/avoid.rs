//! `nigh avoid`: what a crawler need not fetch, by what all studies of a store found.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;

use super::destination::Destination;
use super::{LookArgs, committed_week};
use crate::avoid::{Settings, TABLES, avoid_list, prefix_file, sheet};
use crate::cli::errors::WrongUse;
use crate::cli::session::read_manifest;
use crate::mirror::ReadStore;
use crate::state::{Results, removed_folder};
use crate::tables::{ClusterRow, DocumentRow, LinkRow, MissingRow, RedirectRow, Table as _, UrlRow};

/// Examples at the end of `nigh help avoid`.
const EXAMPLES: &str = "\
It reads what these jobs found, as far as the store has their tables: jobs/collections.toml, jobs/mirrors.toml, jobs/mirrors-by-url.toml and \
jobs/overlap.toml; and the redirects of the week.

Examples:
  The prefixes for a crawler, and the pages to fetch again:
    nigh avoid crawls --out avoid.txt --sample sample.txt
  Only prefixes that lose nothing:
    nigh avoid crawls --purity 1";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct AvoidArgs {
    #[command(flatten)]
    look: LookArgs,
    /// Write the prefixes to a file, one on each line; one that is there is replaced.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the pages below prefixes that a crawl should fetch all the same, to see whether they
    /// are copies still; one URL on each line.
    #[arg(long, value_name = "FILE")]
    sample: Option<PathBuf>,
    /// Pages to fetch again of each prefix.
    #[arg(long, value_name = "N", default_value_t = Settings::default().sample)]
    sample_size: usize,
    /// The share of what is known below a prefix that are copies, at least: above 0, up to 1.
    #[arg(long, value_name = "SHARE", default_value_t = Settings::default().purity)]
    purity: f64,
    /// Copies below a prefix, at least.
    #[arg(long, value_name = "N", default_value_t = Settings::default().least)]
    least: u64,
}

/// Prints the list, and writes the files.
pub(in crate::cli) fn avoid(args: &AvoidArgs) -> Result<ExitCode> {
    let AvoidArgs { look, purity, least, .. } = args;
    ensure!(*purity > 0.0 && *purity <= 1.0, WrongUse(format!("--purity {purity}: allowed is more than 0, up to 1")));
    ensure!(*least > 0, WrongUse("--least 0: allowed is 1 or more".to_owned()));
    let files = [args.out.as_deref(), args.sample.as_deref()];
    let [out, sample] = files.map(|path| path.map(Destination::at).transpose());
    let (out, sample) = (out?, sample?);
    let is_same = out.as_ref().zip(sample.as_ref()).is_some_and(|(out, sample)| out.is_same_file(sample));
    ensure!(!is_same, WrongUse("--out and --sample are one file: give two".to_owned()));
    let settings = Settings { purity: *purity, least: *least, sample: args.sample_size };
    let list = look.of_store(|read_store| {
        need_tables(look, read_store)?;
        avoid_list(read_store.store(), &look.store, look.week, &settings)
    })?;
    if let Some(out) = out {
        out.write(prefix_file(&list).as_bytes())?;
    }
    if let Some(sample) = sample {
        let urls = list.prefixes.iter().flat_map(|row| &row.sample);
        sample.write(urls.map(|url| format!("{url}\n")).collect::<String>().as_bytes())?;
    }
    look.print(&list, sheet)
}

/// Fetches what the list is made from, of a store in a bucket.
fn need_tables(look: &LookArgs, read_store: &ReadStore) -> Result<()> {
    let manifest = read_manifest(read_store.store(), &look.store)?;
    let committed = committed_week(&manifest, &look.store, look.week)?;
    let weeks: Vec<_> = manifest.weeks.iter().filter(|week| week.week <= committed.week).collect();
    for week in &weeks {
        read_store.need_records(week)?;
        // Links of pages that stayed are in the files of the week that crawled them, and some lead
        // to URLs that came later.
        for table in [LinkRow::NAME, UrlRow::NAME] {
            read_store.need(table, &[&format!("{}/", week.week.folder())])?;
        }
    }
    if let Some(removed) = &manifest.removed {
        read_store.need_own(&removed_folder(removed))?;
    }
    for table in [ClusterRow::NAME, DocumentRow::NAME, RedirectRow::NAME, MissingRow::NAME] {
        read_store.need(table, &[&format!("{}/", committed.week.folder())])?;
    }
    for (study, table) in TABLES {
        if let Some(commit) = manifest.results.get(study) {
            read_store.need_own(&Results::of(read_store.store(), study, *commit).own_folder())?;
            read_store.need(study, &[&format!("{table}/")])?;
        }
    }
    Ok(())
}
