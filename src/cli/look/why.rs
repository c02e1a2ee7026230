//! `nigh why`: why two pages are in one cluster, or not.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::{INDENT, LookArgs};
use crate::config::{Reading, Verify};
use crate::look::{ChainLink, Comparison, LookedPage, Passage, SketchComparison, TextComparison, compare};
use crate::readers::is_passing;
use crate::records::Level;
use crate::sheet::{Grid, GridColumn, Sheet, grouped, plural};
use crate::tables::{FeatureRow, Table as _};
use crate::text::printable;

/// Passages that are printed of each page, and words of each.
const PASSAGES: usize = 10;
const WORDS: usize = 30;

#[derive(Args)]
#[command(after_help = "Example:\n    nigh why crawls http://one.example/ http://two.example/")]
pub(in crate::cli) struct WhyArgs {
    #[command(flatten)]
    look: LookArgs,
    /// A page: its URL, or its id in a store that knows documents by ids.
    #[arg(value_name = "A")]
    first: String,
    /// Another page.
    #[arg(value_name = "B")]
    second: String,
    /// The crawl files, for the words that differ [default: those of the week, if they are at
    /// hand].
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    input: Vec<String>,
}

/// Prints what two pages have in common.
pub(in crate::cli) fn why(args: &WhyArgs) -> Result<ExitCode> {
    let (comparison, missing) = args.look.of_week(&[FeatureRow::NAME], |week, reading| {
        let inputs = if args.input.is_empty() {
            week.inputs_at_hand(reading, Verify::Exact)
        } else {
            week.named_inputs(&args.input, reading)?
        };
        let comparison = compare(week, [&args.first, &args.second], &inputs, reading)?;
        let files = comparison.pages.iter().map(|page| page.file.as_str());
        let mut missing = files.filter(|file| !inputs.iter().any(|input| input.name == **file));
        let missing = missing.next().map(|file| not_at_hand(file, &args.input, reading));
        Ok((comparison, missing))
    })?;
    args.look.print(&comparison, |comparison| of_comparison(comparison, missing.as_deref()))
}

/// That a crawl file was not found, and where it was looked for.
fn not_at_hand(file: &str, input: &[String], reading: &Reading) -> String {
    if !input.is_empty() {
        return format!("{file} is not among the files that --input names");
    }
    if is_passing(file) {
        return format!("its words came from standard input or a pipe ({file}), which nothing gives again");
    }
    let elsewhere = "is not there: if the crawl files are elsewhere, give them with --input";
    if file.contains("://") {
        return format!("{file} {elsewhere}");
    }
    let folders: Vec<&PathBuf> = reading.folders.iter().filter(|folder| folder.is_absolute()).collect();
    let mut places = std::iter::once(PathBuf::from(file)).chain(folders.iter().map(|folder| folder.join(file)));
    let is_denied = |place: &PathBuf| File::open(place).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
    if let Some(place) = places.find(is_denied) {
        return format!("this user may not read {}", place.display());
    }
    if Path::new(file).is_absolute() {
        return format!("{file} {elsewhere}");
    }
    let folders: Vec<String> = folders.iter().map(|folder| format!(" and in {}", folder.display())).collect();
    format!("{file} was looked for in the working directory{}, and {elsewhere}", folders.concat())
}

fn of_comparison(comparison: &Comparison, missing: Option<&str>) -> Sheet {
    let Comparison { pages, together, sketches, texts, chain } = comparison;
    let mut sheet = Sheet::indented(INDENT);
    for (letter, page) in ["A", "B"].iter().zip(pages) {
        sheet.line(format!("{letter}  {}", printable(&page.name)));
        if !page.title.is_empty() {
            sheet.line(format!("   {}", printable(&page.title)));
        }
    }
    sheet.blank();
    for (number, (level, is_together)) in together.iter().enumerate() {
        sheet.fact(level.title(), of_level(*level, *is_together, number, pages));
    }
    let of_sketches = match sketches {
        None => "a page without words has none".to_owned(),
        Some(SketchComparison { agreements, features, similarity }) => format!(
            "{}, {}: about {similarity:.2} similar",
            plural(*agreements as u64, "equal supershingle"),
            plural(*features as u64, "equal feature")
        ),
    };
    sheet.fact("sketches", of_sketches);
    let of_texts = match texts {
        None => match missing {
            Some(missing) => format!("not read: {missing}"),
            None => "not read: the crawl files have changed since (give them as they were with --input)".to_owned(),
        },
        Some(TextComparison { either: 0, .. }) => "without words: they are compared by their bytes".to_owned(),
        Some(TextComparison { shared, either, similarity, .. }) => {
            let [shared, either] = [*shared, *either].map(|count| grouped(count as u64));
            format!("{similarity:.3} similar: {shared} of {either} shingles are in both")
        }
    };
    sheet.fact("texts", of_texts);
    if chain.len() > 1 {
        sheet.blank();
        sheet.line("The shortest chain of links");
        sheet.grid(of_chain(chain));
    }
    for (letter, passages) in ["A", "B"].iter().zip(texts.iter().flat_map(|texts| &texts.differing)) {
        sheet.blank();
        sheet.line(format!("In {letter} only: {}", plural(passages.len() as u64, "passage")));
        for Passage { word, text, .. } in passages.iter().take(PASSAGES) {
            sheet.fact(format!("  word {}", grouped(*word as u64)), cut(text));
        }
        if passages.len() > PASSAGES {
            sheet.line(format!("  and {} more: --json has them all", grouped((passages.len() - PASSAGES) as u64)));
        }
    }
    sheet
}

/// The pages of a chain, each with what it has in common with the one before.
fn of_chain(chain: &[ChainLink]) -> Grid {
    let mut grid =
        Grid::new([("shared", GridColumn::Number), ("similar", GridColumn::Number), ("page", GridColumn::Text)]);
    for ChainLink { page, with_last, exact } in chain {
        let [shared, similar] = match with_last {
            None => [String::new(), String::new()],
            Some(with_last) => {
                let similarity = exact.map_or(with_last.similarity, f64::from);
                [with_last.agreements.to_string(), format!("{similarity:.2}")]
            }
        };
        grid.row([shared, similar, printable(&page.name).into_owned()]);
    }
    grid
}

/// The text of a passage as it is printed: the first words of a long one.
fn cut(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let more =
        if words.len() > WORDS { format!(" … ({} words)", grouped(words.len() as u64)) } else { String::new() };
    format!("{}{more}", printable(&words[..words.len().min(WORDS)].join(" ")))
}

/// What is said of a level.
fn of_level(level: Level, is_together: bool, number: usize, pages: &[LookedPage; 2]) -> String {
    let id = match (level, pages[0].cluster_id) {
        (Level::Similar, Some(id)) => format!(": cluster {id}"),
        _ => String::new(),
    };
    let size = plural(pages[0].clusters[number].1, "page");
    if is_together { format!("one cluster, of {size}{id}") } else { "different clusters".to_owned() }
}
