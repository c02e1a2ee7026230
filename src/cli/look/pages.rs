//! The lists of `nigh show`: the largest clusters, the pages of a cluster or of a host, and what is
//! known of a page.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::{INDENT, LookArgs};
use crate::look::{
    KnownPage, ListedPage, LookedCluster, PageList, known_page, largest, pages_of_cluster, pages_of_host,
};
use crate::records::Level;
use crate::sheet::{Grid, GridColumn, Sheet, grouped, plural};
use crate::tables::{EvidenceRow, MissingRow, Table as _};
use crate::text::printable;

#[derive(Args)]
pub(super) struct PagesArgs {
    /// List the pages of a very similar cluster, given by its cluster_id; with --level, of another
    /// one, given by its root.
    #[arg(long, value_name = "ID", conflicts_with_all = ["url", "host", "changes", "job", "avoid"])]
    cluster: Option<i64>,
    /// Say what is known of a page, given by its URL or id.
    #[arg(long, value_name = "URL_OR_ID", conflicts_with_all = ["host", "level", "top", "changes", "job", "avoid"])]
    url: Option<String>,
    /// List the pages of a host, those of the largest clusters first.
    #[arg(long, value_name = "HOST", conflicts_with_all = ["level", "changes", "job", "avoid"])]
    host: Option<String>,
    /// List the largest clusters of a level: similar, identical or exact.
    #[arg(long, value_name = "LEVEL", value_parser = level, conflicts_with_all = ["changes", "job", "avoid"])]
    level: Option<Level>,
    /// Clusters or pages to list, at most [default: 20].
    #[arg(long, value_name = "N", conflicts_with_all = ["changes", "job", "avoid"])]
    top: Option<NonZeroUsize>,
}

impl PagesArgs {
    /// Whether a list is asked for.
    pub(super) fn is_given(&self) -> bool {
        self.cluster.is_some()
            || self.url.is_some()
            || self.host.is_some()
            || self.level.is_some()
            || self.top.is_some()
    }
}

fn level(name: &str) -> Result<Level, String> {
    let named = Level::ALL.into_iter().find(|level| level.name() == name);
    named.ok_or_else(|| "similar, identical and exact are the levels".to_owned())
}

/// Prints the list that the flags ask for.
pub(super) fn show(look: &LookArgs, args: &PagesArgs) -> Result<ExitCode> {
    let top = args.top.map_or(20, NonZeroUsize::get);
    let level = args.level.unwrap_or(Level::Similar);
    let tables = [EvidenceRow::NAME, MissingRow::NAME];
    if let Some(url) = &args.url {
        let page = look.of_week(&tables, |week, _| known_page(week, url))?;
        return look.print(&page, of_known);
    }
    if let Some(host) = &args.host {
        let list = look.of_week(&tables, |week, _| pages_of_host(week, host, top))?;
        return look.print(&list, |list| of_host(host, list));
    }
    if let Some(id) = args.cluster {
        let list = look.of_week(&tables, |week, _| pages_of_cluster(week, level, id, top))?;
        return look.print(&list, |list| of_cluster(level, id, list));
    }
    let clusters = look.of_week(&tables, |week, _| largest(week, &[level], top))?.concat();
    look.print(&clusters, |clusters| of_largest(level, clusters))
}

/// The name and the title of a page, as cells.
fn cells_of(page: &crate::look::LookedPage) -> [String; 2] {
    [&page.name, &page.title].map(|text| printable(text).into_owned())
}

fn of_largest(level: Level, clusters: &[LookedCluster]) -> Sheet {
    let mut sheet = Sheet::default();
    if clusters.is_empty() {
        sheet.line(format!("No two pages are in one {} cluster", level.title()));
        return sheet;
    }
    // Documents of datasets may have no URLs.
    let has_hosts = clusters.iter().any(|cluster| cluster.hosts > 0);
    let columns = [
        (if level == Level::Similar { "cluster" } else { "root" }, GridColumn::Number),
        ("pages", GridColumn::Number),
        ("hosts", GridColumn::Number),
        ("page", GridColumn::Text),
        ("title", GridColumn::Text),
    ];
    let is_shown = |place: &usize| *place != 2 || has_hosts;
    let mut grid = Grid::new((0..columns.len()).filter(is_shown).map(|place| columns[place]));
    for LookedCluster { root, cluster_id, pages, hosts, example, .. } in clusters {
        let [name, title] = cells_of(example);
        let id = cluster_id.unwrap_or_else(|| root.to_table()).to_string();
        let cells = [id, grouped(*pages), grouped(*hosts), name, title];
        grid.row((0..cells.len()).filter(is_shown).map(|place| cells[place].clone()));
    }
    sheet.line(format!("The largest {} clusters", level.title()));
    sheet.blank();
    sheet.grid(grid);
    sheet
}

fn of_cluster(level: Level, id: i64, list: &PageList) -> Sheet {
    let PageList { pages, hosts, listed, .. } = list;
    let of_hosts = if *hosts == 0 { String::new() } else { format!(" of {}", plural(*hosts, "host")) };
    let title = level.title();
    let mut sheet = Sheet::default();
    sheet.line(format!("The {title} cluster {id} has {}{of_hosts}", plural(*pages, "page")));
    sheet.blank();
    let mut grid = Grid::new([
        ("", GridColumn::Text),
        ("words", GridColumn::Number),
        ("page", GridColumn::Text),
        ("similar", GridColumn::Number),
        ("to", GridColumn::Text),
    ]);
    for ListedPage { page, evidence } in listed {
        let [similar, to] = match evidence {
            None => [String::new(), String::new()],
            Some(evidence) => [format!("{:.2}", evidence.similarity), printable(&evidence.neighbour).into_owned()],
        };
        let stays = if page.canonical { "stays" } else { "" };
        grid.row([stays.to_owned(), grouped(page.words), printable(&page.name).into_owned(), similar, to]);
    }
    sheet.grid(grid);
    and_more(*pages, listed.len(), &mut sheet);
    sheet
}

fn of_host(host: &str, list: &PageList) -> Sheet {
    let PageList { pages, duplicates, listed, .. } = list;
    let pages_of = plural(*pages, "page");
    let duplicates = plural(*duplicates, "duplicate");
    let mut sheet = Sheet::default();
    sheet.line(format!("{} has {pages_of}, of which {duplicates}", printable(host)));
    sheet.blank();
    let mut grid = Grid::new([
        ("", GridColumn::Text),
        ("cluster", GridColumn::Number),
        ("of pages", GridColumn::Number),
        ("page", GridColumn::Text),
        ("title", GridColumn::Text),
    ]);
    for ListedPage { page, .. } in listed {
        let [name, title] = cells_of(page);
        let stays = if page.canonical { "stays" } else { "" };
        let id = page.cluster_id.map_or_else(String::new, |id| id.to_string());
        grid.row([stays.to_owned(), id, grouped(page.clusters[0].1), name, title]);
    }
    sheet.grid(grid);
    and_more(*pages, listed.len(), &mut sheet);
    sheet
}

/// What is said if not all pages are listed.
fn and_more(pages: u64, listed: usize, sheet: &mut Sheet) {
    let more = pages.saturating_sub(listed as u64);
    if more > 0 {
        sheet.line(format!("and {} more: --top N lists more", grouped(more)));
    }
}

fn of_known(known: &KnownPage) -> Sheet {
    let mut sheet = Sheet::indented(INDENT);
    let (page, evidence, canonical) = match known {
        KnownPage::Missing(reason) => {
            sheet.line(format!("The week has no page of it: {}", printable(reason)));
            return sheet;
        }
        KnownPage::Page { page, canonical } => (&page.page, &page.evidence, canonical),
    };
    let [name, title] = cells_of(page);
    sheet.line(name);
    if !title.is_empty() {
        sheet.line(title);
    }
    sheet.blank();
    let mut say = |name: &str, said: &str| sheet.fact(name, said);
    for (level, (root, size)) in Level::ALL.into_iter().zip(page.clusters) {
        let id = match (level, page.cluster_id) {
            _ if size == 1 => String::new(),
            (Level::Similar, Some(id)) => format!(": cluster {id}"),
            _ => format!(": root {}", root.to_table()),
        };
        let said = if size == 1 { "alone".to_owned() } else { format!("one of {}{id}", plural(size, "page")) };
        say(level.title(), &said);
    }
    if let Some(evidence) = evidence {
        let (shared, to) = (plural(evidence.agreements as u64, "supershingle"), printable(&evidence.neighbour));
        let how = match evidence.found.as_str() {
            "features" => "about ",
            _ => "",
        };
        say("evidence", &format!("shares {shared} with {to}: {how}{:.2} similar", evidence.similarity));
    }
    let stays = match canonical.as_str() {
        _ if page.canonical => "stays".to_owned(),
        "" => "goes: no page of its cluster stays".to_owned(),
        canonical => format!("goes: {} stays", printable(canonical)),
    };
    say("without duplicates", &stays);
    say("words", &grouped(page.words));
    say("crawled", &page.crawled.to_string());
    say("read", &format!("{} at {}", printable(&page.file), page.offset));
    say("document", &page.doc.to_table().to_string());
    sheet
}
