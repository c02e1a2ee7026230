//! `nigh find`: the documents of a week that are most like a text or a page.

use std::fs::File;
use std::io::Read as _;
use std::num::NonZeroUsize;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{ArgGroup, Args};

use super::LookArgs;
use crate::look::{NearPage, Nearest, Query, Way, nearest};
use crate::sheet::{Grid, GridColumn, Sheet, grouped, plural};
use crate::tables::{FeatureRow, Table as _};
use crate::text::printable;

/// Examples at the end of `nigh help find`.
const EXAMPLES: &str = "\
Examples:
  The documents that are most like a text:
    nigh find crawls --text letter.txt
  Those that are most like a page, also if they have little in common:
    nigh find crawls --url http://one.example/ --all";

#[derive(Args)]
#[command(after_help = EXAMPLES, group(ArgGroup::new("query").args(["text", "url"]).required(true)))]
pub(in crate::cli) struct FindArgs {
    #[command(flatten)]
    look: LookArgs,
    /// A text, or a page if the name ends in .html or .htm; - is standard input.
    #[arg(long, value_name = "FILE")]
    text: Option<String>,
    /// A page of the week: its URL, or its id in a store that knows documents by ids.
    #[arg(long, value_name = "URL_OR_ID")]
    url: Option<String>,
    /// Documents to list, at most.
    #[arg(long, value_name = "N", default_value = "20")]
    top: NonZeroUsize,
    /// Compare with all documents, not only those that share a supershingle: finds less similar
    /// ones, too, in a pass over the table of features.
    #[arg(long)]
    all: bool,
}

/// Prints the documents that are most like a text.
pub(in crate::cli) fn find(args: &FindArgs) -> Result<ExitCode> {
    let mut text: Option<(Vec<u8>, bool)> = None;
    let found = args.look.of_week(&[FeatureRow::NAME], |week, reading| {
        let query = match (&args.text, &args.url) {
            (Some(name), _) => {
                // A week that is replaced meanwhile is read again; standard input is read once.
                let (bytes, is_html) = match text.take() {
                    Some(text) => text,
                    None => read(name, reading.page_limit())?,
                };
                let query = Query::of_text(week, &bytes, is_html)?;
                text = Some((bytes, is_html));
                query.context("the text has no word")?
            }
            (None, url) => Query::of_page(week, url.as_deref().unwrap_or_default())?,
        };
        nearest(week, &query, args.top.get(), args.all)
    })?;
    args.look.print(&found, of_nearest)
}

/// The first `limit` bytes of a text, as many as a run reads of a page, and whether it has markup.
fn read(name: &str, limit: usize) -> Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    if name == "-" {
        let read = std::io::stdin().lock().take(limit as u64).read_to_end(&mut bytes);
        read.context("cannot read standard input")?;
    } else {
        let read = File::open(name).and_then(|file| file.take(limit as u64).read_to_end(&mut bytes));
        read.with_context(|| format!("cannot read {name}"))?;
    }
    // A letter that is cut is left out: with a part of it the text would not be UTF-8.
    if bytes.len() == limit
        && let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    let lower = name.to_lowercase();
    Ok((bytes, lower.ends_with(".html") || lower.ends_with(".htm")))
}

fn of_nearest(nearest: &Nearest) -> Sheet {
    let mut sheet = Sheet::default();
    let Nearest { way, candidates, found } = nearest;
    let how = match way {
        Way::Index => " that share a supershingle with it",
        Way::Supershingles => " that share a supershingle with it, found by a scan: there is no index of the week",
        Way::Features => "",
    };
    sheet.line(format!("{} of {}{how}", listed(found.len()), plural(*candidates, "document")));
    if found.is_empty() {
        if *way != Way::Features {
            sheet.line("Less similar documents may share none: --all compares all");
        }
        return sheet;
    }
    let mut grid = Grid::new([
        ("similar", GridColumn::Number),
        ("shared", GridColumn::Number),
        ("cluster", GridColumn::Number),
        ("page", GridColumn::Text),
        ("title", GridColumn::Text),
    ]);
    for NearPage { page, sketch } in found {
        grid.row([
            format!("{:.2}", sketch.similarity),
            sketch.agreements.to_string(),
            page.cluster_id.map_or_else(String::new, |id| id.to_string()),
            printable(&page.name).into_owned(),
            printable(&page.title).into_owned(),
        ]);
    }
    sheet.blank();
    sheet.grid(grid);
    sheet
}

fn listed(found: usize) -> String {
    match found {
        0 => "None".to_owned(),
        found => format!("The {} most similar", grouped(found as u64)),
    }
}
