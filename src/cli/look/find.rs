//! `nigh find`: the documents of a week that are most like a text or a page.

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
    let text = args.text.as_deref().map(read).transpose()?;
    let found = args.look.of_week(&[FeatureRow::NAME], |week, _| {
        let query = match (&text, &args.url) {
            (Some((bytes, is_html)), _) => Query::of_text(week, bytes, *is_html)?.context("the text has no word")?,
            (None, url) => Query::of_page(week, url.as_deref().unwrap_or_default())?,
        };
        nearest(week, &query, args.top.get(), args.all)
    })?;
    args.look.print(&found, of_nearest)
}

/// The bytes of a text, and whether it has markup.
fn read(name: &str) -> Result<(Vec<u8>, bool)> {
    if name == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
        return Ok((bytes, false));
    }
    let lower = name.to_lowercase();
    let bytes = std::fs::read(name).with_context(|| format!("cannot read {name}"))?;
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
