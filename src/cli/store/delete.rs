//! `nigh delete`: computes the last week of a store again without some pages, and forgets their
//! URLs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::key_file::keys_of_file;
use super::remake::{Opened, RemakeArgs};
use crate::cli::errors::WrongUse;
use crate::cli::print::print_json;
use crate::cli::session::refuse_pending;
use crate::cli::session::workers::warn_above_cores;
use crate::jobs::deletion::{self, MatchingDocs};
use crate::log::Log;
use crate::records::{DocumentKey, Week};
use crate::report::print;
use crate::sheet::{grouped, plural};
use crate::state::{Earlier, Manifest, Store};
use crate::tables::name_pages;
use crate::text::{InvalidPattern, UrlPatterns, canonical};

/// Examples at the end of `nigh help delete`.
const DELETE_EXAMPLES: &str = "\
Examples:
    nigh delete --store crawls --host private.example --dry-run
    nigh delete --store crawls --prefix https://example.org/~someone/

Tables of earlier weeks keep the pages until `nigh vacuum` removes those weeks.";

#[derive(Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub(crate) struct DeleteArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    #[arg(long, value_name = "DIR_OR_URL")]
    store: PathBuf,
    #[command(flatten)]
    selection: PageSelection,
    /// Print how many URLs would be deleted, and stop.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(crate) remake: RemakeArgs,
}

/// The pages to delete.
#[derive(Args)]
#[group(required = true, multiple = true)]
struct PageSelection {
    /// Delete the pages of these URLs.
    #[arg(long, num_args = 1.., value_name = "URL")]
    url: Vec<String>,
    /// Delete the pages of the URLs in this file: one on each line, or the column `url` of a file
    /// that ends in .parquet.
    #[arg(long, value_name = "FILE")]
    urls: Option<PathBuf>,
    /// Delete all pages of these hosts, but not of their subdomains.
    #[arg(long, num_args = 1.., value_name = "HOST")]
    host: Vec<String>,
    /// Delete all pages whose URL starts with one of these.
    #[arg(long, num_args = 1.., value_name = "URL")]
    prefix: Vec<String>,
    /// Delete the documents with these ids, in a store that knows documents by their ids.
    #[arg(long, num_args = 1.., value_name = "ID", conflicts_with_all = ["url", "urls", "host", "prefix"])]
    id: Vec<String>,
    /// Delete the documents with the ids in this file: one on each line, or the column `id` of a
    /// file that ends in .parquet.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "urls", "host", "prefix"])]
    ids: Option<PathBuf>,
}

/// The result of the command, as `--json` prints it.
#[derive(serde::Serialize)]
struct DeletionSummary {
    /// The week that is computed again.
    week: Week,
    /// Selected URLs that the store has, from any of its weeks.
    urls: u64,
    /// Whether links, redirects or rejects of the week mention selected URLs, although the store
    /// has no page of them.
    #[serde(rename = "named")]
    is_mentioned: bool,
    /// Deleted pages of the week; `None` before it is computed again.
    documents: Option<u64>,
    /// Folders of the results of jobs that name pages or hosts, which are removed, too.
    results: Vec<String>,
    /// How many of the URLs, hosts, prefixes and ids match nothing that the store has.
    not_found: u64,
    /// The first of these.
    first_not_found: Vec<String>,
}

/// The URLs and ids that are named of those that were not found.
const MOST_NAMED: usize = 10;

/// Deletes the selected pages, and prints how many there were.
pub(crate) fn run(args: &DeleteArgs, log: &Log) -> Result<ExitCode> {
    let patterns = args.selection.patterns()?;
    let mut opened = Opened::new(&args.store, &args.remake, args.dry_run, log)?;
    if !args.dry_run {
        refuse_pending(&opened.store)?;
    }
    args.selection.check(opened.manifest.method.documents)?;
    let plan = opened.plan(&args.remake, &patterns)?;
    let Opened { pool, store, manifest, .. } = &opened;
    log.name(format!("delete {}", plan.week));
    warn_above_cores(plan.workers, pool, log);
    let has_earlier_weeks = manifest.weeks.len() > 1;
    let MatchingDocs { docs, not_found } = matching_docs(store, manifest, &patterns)?;
    // Pages of other URLs may link to a selected URL of which the store has no page.
    let is_mentioned = docs.is_empty() && deletion::is_mentioned(store, &store.committed(plan.week)?, &patterns)?;
    let is_any = !docs.is_empty() || is_mentioned;
    let results = manifest.results.keys().filter(|folder| is_any && name_pages(folder)).cloned().collect();
    let mut summary = DeletionSummary {
        week: plan.week,
        urls: docs.len() as u64,
        is_mentioned,
        documents: None,
        results,
        not_found: not_found.len() as u64,
        first_not_found: not_found.into_iter().take(MOST_NAMED).collect(),
    };
    if !args.dry_run && is_any {
        let (before, after) = opened.remake(plan, &docs, log)?;
        summary.documents = Some(before.counts.documents - after.counts.documents);
    }
    print_result(args, &summary, &patterns)?;
    if summary.urls > 0 && summary.documents.is_some() && has_earlier_weeks {
        log.notice("tables of earlier weeks may still have these pages: `nigh vacuum` removes old weeks");
    }
    Ok(ExitCode::SUCCESS)
}

impl PageSelection {
    fn is_of_ids(&self) -> bool {
        !self.id.is_empty() || self.ids.is_some()
    }

    /// Checks that the flags fit what the documents of the store are known by.
    fn check(&self, documents: DocumentKey) -> Result<()> {
        let has_urls = !self.url.is_empty() || self.urls.is_some() || !self.host.is_empty() || !self.prefix.is_empty();
        let text = match documents {
            DocumentKey::Url if self.is_of_ids() => {
                "this store knows documents by their URLs: give --url, --urls, --host or --prefix"
            }
            DocumentKey::Id if has_urls => "this store knows documents by their ids: give --id or --ids",
            DocumentKey::Row => {
                "this store knows documents by file and place only, and none can be named: make the store with the column of ids, and without same-id = \"row\""
            }
            _ => return Ok(()),
        };
        Err(WrongUse(text.into()).into())
    }

    /// The patterns of the flags.
    ///
    /// # Errors
    /// Names the flag, or the line of the file, that is not a URL or a host.
    fn patterns(&self) -> Result<UrlPatterns> {
        if self.is_of_ids() {
            let mut ids = self.id.clone();
            if let Some(path) = &self.ids {
                ids.extend(keys_of_file("--ids", path, "id")?.into_iter().map(|(id, _)| id));
            }
            let patterns = UrlPatterns::of_ids(ids);
            return if patterns.is_empty() {
                Err(WrongUse("--ids: the file has no id".into()).into())
            } else {
                Ok(patterns)
            };
        }
        let mut urls = self.url.clone();
        if let Some(path) = &self.urls {
            for (url, place) in keys_of_file("--urls", path, "url")? {
                let url = url.trim();
                if url.is_empty() {
                    continue;
                }
                if canonical(url).is_none() {
                    return Err(WrongUse(format!("{place}: `{url}` is not an http or https URL")).into());
                }
                urls.push(url.to_owned());
            }
        }
        let invalid = |InvalidPattern(text): InvalidPattern| {
            let (flag, wanted) = if self.host.contains(&text) {
                ("--host", "a host such as example.com or example.com:8080")
            } else if self.prefix.contains(&text) {
                ("--prefix", "the start of an http or https URL in its canonical form (as tables have URLs)")
            } else {
                ("--url", "an http or https URL")
            };
            WrongUse(format!("{flag}: `{text}` is not {wanted}"))
        };
        let patterns = UrlPatterns::new(&urls, &self.host, &self.prefix).map_err(invalid)?;
        if patterns.is_empty() {
            return Err(WrongUse("--urls: the file has no URL".into()).into());
        }
        Ok(patterns)
    }
}

/// The ids of all selected URLs that the store has, and what matches none of them.
fn matching_docs(store: &Store, manifest: &Manifest, patterns: &UrlPatterns) -> Result<MatchingDocs> {
    let weeks = Earlier { removed: manifest.removed.clone(), weeks: manifest.weeks.clone() };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    deletion::matching_docs(store, &weeks, patterns, manifest.method.shards, threads)
}

fn print_result(args: &DeleteArgs, summary: &DeletionSummary, patterns: &UrlPatterns) -> Result<()> {
    if args.remake.json {
        return print_json(summary);
    }
    let DeletionSummary { week, urls, is_mentioned, documents, results, not_found, first_not_found } = summary;
    let what = if args.selection.is_of_ids() { "id" } else { "URL" };
    let store = args.store.display();
    let text = match documents {
        None if *is_mentioned => {
            format!("Would remove links, redirects and rejects of week {week} that mention these URLs ({patterns})\n")
        }
        None if *urls == 0 => format!("{store} has no such {what} ({patterns}): nothing to delete\n"),
        None => format!("Would delete {} from {store}, week {week} ({patterns})\n", plural(*urls, what)),
        Some(_) if *is_mentioned => {
            format!(
                "Removed links, redirects and rejects of week {week} that mention these URLs ({patterns}); the week has no page of them\n"
            )
        }
        Some(documents) => format!(
            "Deleted {} from week {week} of {store}; {} {} forgotten ({patterns})\n",
            plural(*documents, "page"),
            plural(*urls, what),
            if *urls == 1 { "is" } else { "are" }
        ),
    };
    print(&text)?;
    if *not_found > 0 {
        let mut names: Vec<String> = first_not_found.iter().map(|name| format!("{name:?}")).collect();
        let more = not_found - names.len() as u64;
        names.extend((more > 0).then(|| format!("{} more", grouped(more))));
        print(&format!("{store} has no page of {} of these: {}\n", grouped(*not_found), names.join(", ")))?;
    }
    if !results.is_empty() {
        let verb = if documents.is_some() { "Removed" } else { "Would remove" };
        let name = results.join(" and ");
        print(&format!("{verb} the tables of {name}, which name pages: run the job again\n"))?;
    }
    Ok(())
}
