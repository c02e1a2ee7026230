//! `nigh why`: why two pages are in one cluster, or not.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::chunks::job_of_week;
use super::errors::WrongUse;
use super::print::json_text;
use super::session::{check_not_inside, inputs_at_hand, read_manifest};
use crate::config::Verify;
use crate::look::{ChainLink, Comparison, LookedPage, LookedWeek, Passage, SketchComparison, TextComparison, compare};
use crate::mirror::ReadStore;
use crate::objects::refuse_secrets;
use crate::records::{Level, Week};
use crate::report::{grouped, print};
use crate::tables::{ClusterRow, DocumentRow, FeatureRow, Table as _, UrlRow};
use crate::text::printable;

/// Passages that are printed of each page, and words of each.
const PASSAGES: usize = 10;
const WORDS: usize = 30;

#[derive(Args)]
#[command(after_help = "Example:\n    nigh why crawls http://one.example/ http://two.example/")]
pub(crate) struct WhyArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// A page: its URL, or its id in a store that knows documents by ids.
    #[arg(value_name = "A")]
    first: String,
    /// Another page.
    #[arg(value_name = "B")]
    second: String,
    /// Week to look into [default: the last one].
    #[arg(long, value_name = "YYYY-MM-DD")]
    week: Option<Week>,
    /// The crawl files, for the words that differ [default: those of the week, if they are at hand].
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    input: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Prints what two pages have in common.
pub(crate) fn run(args: &WhyArgs) -> Result<ExitCode> {
    if let Some(url) = args.store.to_str() {
        refuse_secrets(url).map_err(WrongUse::from_error)?;
    }
    check_not_inside(&args.store)?;
    let (week, comparison) = ReadStore::at(&args.store, |store| look(args, store))?;
    if args.json {
        print(&format!("{}\n", json_text(&comparison)?))?;
    } else {
        print(&text(args, week, &comparison))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn look(args: &WhyArgs, read_store: &ReadStore) -> Result<(Week, Comparison)> {
    let store = read_store.store();
    let root = args.store.display();
    let manifest = read_manifest(store, &args.store)?;
    let committed = match args.week {
        Some(week) => manifest.weeks.iter().find(|committed| committed.week == week),
        None => manifest.weeks.last(),
    };
    let committed = committed.with_context(|| match args.week {
        Some(week) => format!("{root} has no week {week}"),
        None => format!("{root} has no week yet"),
    })?;
    for week in manifest.weeks.iter().filter(|week| week.week <= committed.week) {
        read_store.need_records(week)?;
        read_store.need(UrlRow::NAME, &[&format!("{}/", week.week.folder())])?;
    }
    for table in [DocumentRow::NAME, ClusterRow::NAME, FeatureRow::NAME] {
        read_store.need(table, &[&format!("{}/", committed.week.folder())])?;
    }
    let week = LookedWeek::open(store, &manifest, committed)?;
    let reading = job_of_week(store, committed)?.read;
    let inputs = if args.input.is_empty() {
        inputs_at_hand(week.input_names(), &reading, Verify::Exact, true)
    } else {
        crate::readers::list(&args.input, &reading)?
    };
    let comparison = compare(&week, [&args.first, &args.second], &inputs, &reading)?;
    Ok((committed.week, comparison))
}

fn text(args: &WhyArgs, week: Week, comparison: &Comparison) -> String {
    let Comparison { pages, together, sketches, texts, chain } = comparison;
    let mut lines = vec![format!("Week {week} of {}", args.store.display())];
    for (letter, page) in ["A", "B"].iter().zip(pages) {
        let title = if page.title.is_empty() { String::new() } else { format!("  {}", printable(&page.title)) };
        lines.push(format!("{letter}  {}{title}", printable(&page.name)));
    }
    lines.push(String::new());
    let mut fact = |name: &str, fact: String| lines.push(format!("{name:20} {fact}"));
    for (number, (level, is_together)) in together.iter().enumerate() {
        fact(level.title(), of_level(*level, *is_together, number, pages));
    }
    fact(
        "sketches",
        sketches.map_or_else(
            || "a page without words has none".to_owned(),
            |SketchComparison { agreements, features, similarity }| {
                format!(
                    "{agreements} supershingles agree, {features} features are equal: about {similarity:.2} similar"
                )
            },
        ),
    );
    fact(
        "texts",
        texts.as_ref().map_or_else(
            || "not read: the crawl files are not at hand (give them with --input)".to_owned(),
            |TextComparison { shared, either, similarity, .. }| {
                let [shared, either] = [*shared, *either].map(|count| grouped(count as u64));
                format!("{similarity:.3} similar: {shared} of {either} shingles are in both")
            },
        ),
    );
    if chain.len() > 1 {
        lines.extend([String::new(), "The shortest chain of links".to_owned()]);
    }
    for ChainLink { page, with_last } in chain {
        let with_last = with_last.map_or_else(String::new, |with_last| {
            format!("  {} agree, about {:.2} similar to the one before", with_last.agreements, with_last.similarity)
        });
        lines.push(format!("    {}{with_last}", printable(&page.name)));
    }
    for (letter, passages) in ["A", "B"].iter().zip(texts.iter().flat_map(|texts| &texts.differing)) {
        lines.extend([String::new(), format!("In {letter} only: {} passages", grouped(passages.len() as u64))]);
        lines.extend(passages.iter().take(PASSAGES).map(passage_line));
    }
    lines.join("\n") + "\n"
}

/// A passage as it is printed, cut if it is long.
fn passage_line(Passage { word, text }: &Passage) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let more =
        if words.len() > WORDS { format!(" … ({} words)", grouped(words.len() as u64)) } else { String::new() };
    format!("    word {}: {}{more}", grouped(*word as u64), printable(&words[..words.len().min(WORDS)].join(" ")))
}

/// What is said of a level.
fn of_level(level: Level, is_together: bool, number: usize, pages: &[LookedPage; 2]) -> String {
    let id = match (level, pages[0].cluster_id) {
        (Level::Similar, Some(id)) => format!(", cluster_id {id}"),
        _ => String::new(),
    };
    let size = pages[0].clusters[number].1;
    if is_together { format!("one cluster, of {} pages{id}", grouped(size)) } else { "different clusters".to_owned() }
}
