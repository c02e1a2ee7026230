//! `nigh verify`: checks the clusters of the last week of a store, and computes it again with those
//! that are left.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::remake::{Opened, RemakeArgs};
use crate::cli::errors::WrongUse;
use crate::cli::job::advice::few_candidates;
use crate::cli::job::week::read_summary;
use crate::cli::print::{print_json, result_text};
use crate::cli::session::workers::warn_above_cores;
use crate::config::{Method, Similarity, Verify};
use crate::log::Log;
use crate::plan::named_inputs;
use crate::readers;
use crate::report;
use crate::report::print;
use crate::text::UrlPatterns;

/// Examples at the end of `nigh help verify`.
const VERIFY_EXAMPLES: &str = "\
Examples:
    nigh verify crawls --similarity 0.8
    nigh verify crawls --similarity 0.9 --by estimate

The crawl files of the week are read again where they were. Later weeks of the store are verified in the same way.";

#[derive(Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    store: PathBuf,
    /// The least similarity of two pages that are linked, 0.5 to 0.99 [default: that of the store,
    /// if it has one].
    #[arg(long, value_name = "SHARE")]
    similarity: Option<f64>,
    /// How pages are compared [default: as the store has it, or exact].
    #[arg(long, value_enum)]
    by: Option<VerifyBy>,
    /// The crawl files that the week was made from, under the names that they had [default: those
    /// that its job names].
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    input: Vec<String>,
    /// Print what would be verified, and stop.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(crate) remake: RemakeArgs,
}

/// A value of `--by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VerifyBy {
    /// By the shingles of pages, which are read again.
    Exact,
    /// By features: an estimate.
    Estimate,
}

/// Verifies the last week, and prints its summary.
pub(crate) fn run(args: &VerifyArgs, log: &Log) -> Result<ExitCode> {
    let similarity = args.similarity.map(Similarity::try_from).transpose();
    let similarity = similarity.map_err(|error| WrongUse(format!("--similarity: {error}")))?;
    let mut opened = Opened::new(&args.store, &args.remake, args.dry_run, log)?;
    let before = &opened.manifest.method;
    let similarity = similarity.or(before.similarity);
    let similarity = similarity.ok_or_else(|| WrongUse("no similarity: give --similarity, for example 0.8".into()))?;
    let verify = match (args.by, before.verify) {
        (Some(VerifyBy::Exact), _) | (None, Verify::None) => Verify::Exact,
        (Some(VerifyBy::Estimate), _) => Verify::Estimate,
        (None, verify) => verify,
    };
    let method = Method { similarity: Some(similarity), verify, ..before.clone() };
    let store = args.store.display();
    if method == *before {
        if args.remake.json {
            let mut summary = read_summary(&opened.store, opened.last_week()?)?;
            summary.store = args.store.clone();
            return print_json(&summary).map(|()| ExitCode::SUCCESS);
        }
        let text = format!("The last week of {store} is verified already, with similarity {}\n", f64::from(similarity));
        return print(&text).map(|()| ExitCode::SUCCESS);
    }
    if let Some(text) = few_candidates(&method) {
        log.notice(&text);
    }
    opened.manifest.method = method;
    let mut plan = opened.plan(&args.remake, &UrlPatterns::default())?;
    if !args.input.is_empty() {
        let whole = opened.store.whole(&opened.store.committed(plan.week)?)?;
        let inputs = readers::list(&args.input, &plan.reading.here())?;
        plan.inputs = named_inputs((&opened.store, &whole), inputs, &plan.reading);
    }
    log.name(format!("verify {}", plan.week));
    warn_above_cores(plan.workers, &opened.pool, log);
    if args.dry_run {
        if args.remake.json {
            print_json(&serde_json::json!({ "plan": plan }))?;
        } else {
            let by = if verify == Verify::Exact { "shingles" } else { "features" };
            print(&format!(
                "Would verify week {} of {store} with similarity {}, by {by}; {} of its crawl files are at hand\n",
                plan.week,
                f64::from(similarity),
                plan.inputs.len()
            ))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (_, mut after) = opened.remake(plan, &[], log)?;
    after.store = args.store.clone();
    print(result_text(&after, args.remake.json, report::summary)?)?;
    Ok(ExitCode::SUCCESS)
}
