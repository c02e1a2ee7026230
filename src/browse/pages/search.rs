//! Search: by a part of a URL, a title or a host, and by a text.
//!
//! Hosts are in memory. URLs and titles have no order, so they are read one after the other, for a
//! short time for each answer; the next answer goes on where the one before stopped. A whole URL is
//! looked up, and needs no such walk. A text is looked up in the inverted index.

use std::time::{Duration, Instant};

use anyhow::Result;
use arrow_array::{Int64Array, StringArray};

use super::{Browse, named_link};
use crate::browse::html::{HtmlColumn, heading, link, note, paragraph, search_form, short, table, text, text_form};
use crate::browse::index::IndexedHost;
use crate::browse::request::{AskedPage, SearchPlace};
use crate::live::Refusal;
use crate::look::{LookedPage, NearPage, Query, Way, nearest};
use crate::markup::Html;
use crate::records::DocId;
use crate::sheet::{grouped, plural};
use crate::tables::{Scan, field};

/// How long an answer may read URLs and titles.
const READING: Duration = Duration::from_millis(50);
/// Pages and hosts that an answer has, at most.
const MOST: usize = 50;
const MOST_HOSTS: usize = 20;
/// Pages of a week whose supershingles are read without asking, if there is no index.
const FEW: u64 = 300_000;
/// Pages that are most like a text.
const NEAREST: usize = 20;
/// Rows that are read at a time.
const BATCH: usize = 4096;

/// What a walk found.
struct Walk {
    docs: Vec<DocId>,
    /// Where the next one goes on; `None` after the last page.
    next: Option<SearchPlace>,
}

impl Browse<'_> {
    pub(super) fn search(&self, part: &str, from: SearchPlace) -> Result<(String, Html)> {
        let mut body = search_form(part);
        if from == SearchPlace::default() {
            self.add_known(part, &mut body)?;
        }
        let walk = self.walk(part, from)?;
        let pages = self.week.pages(walk.docs.iter().copied())?;
        body.add(&heading("Pages with it in their URL or title"));
        let rows: Vec<Vec<Html>> = walk.docs.iter().filter_map(|doc| pages.get(doc)).map(row).collect();
        if !rows.is_empty() {
            body.add(&of_pages(&rows));
        }
        match walk.next {
            None if rows.is_empty() => body.add(&paragraph("None in the rest of the week.")),
            None => body.add(&paragraph("All pages of the week were read.")),
            Some(next) => {
                let share = self.share_before(next)?;
                let to = AskedPage::Search { part: part.to_owned(), from: next };
                body.own("<p>")
                    .text(format!("{share:.0}% of the pages were read. "))
                    .add(&link(&to, "Go on"))
                    .own("</p>\n")
            }
        };
        Ok((format!("Search for {part}"), body))
    }

    /// The page of a whole URL or id, and hosts.
    fn add_known(&self, part: &str, body: &mut Html) -> Result<()> {
        // What is no URL, or what no week has, is an error there, and so are tables that cannot be
        // read: the walk reports these.
        if let Ok(doc) = self.week.find(part)
            && let Some(page) = self.week.pages([doc])?.get(&doc)
        {
            body.add(&heading("The page with this name")).add(&of_pages(&[row(page)]));
        }
        let wanted = part.to_lowercase();
        let finder = memchr::memmem::Finder::new(&wanted);
        let hosts = self.index.hosts.iter().filter(|host| finder.find(host.name.as_bytes()).is_some());
        let row = |host: &IndexedHost| {
            let to = AskedPage::Host { name: host.name.to_string(), page: 1 };
            vec![link(&to, &host.name), text(grouped(host.pages.into()))]
        };
        let rows: Vec<Vec<Html>> = hosts.take(MOST_HOSTS).map(row).collect();
        if !rows.is_empty() {
            body.add(&heading("Hosts"));
            body.add(&table(
                "Hosts with it in their name",
                &[HtmlColumn::text("host"), HtmlColumn::number("pages")],
                &rows,
            ));
            if rows.len() == MOST_HOSTS {
                body.add(&note(format!("The first {MOST_HOSTS}, those with most pages.")));
            }
        }
        Ok(())
    }

    /// Reads URLs, ids and titles from a place on, until the time is over or enough is found. At
    /// least one batch is read.
    fn walk(&self, part: &str, from: SearchPlace) -> Result<Walk> {
        let begun = Instant::now();
        let pieces = self.week.document_rows()?;
        let gone = || Refusal::missing("the search does not go on there: begin it again");
        let mut walk = Walk { docs: Vec::new(), next: None };
        let mut place = from;
        if place != SearchPlace::default() && place.piece >= pieces.len() as u64 {
            return Err(gone().into());
        }
        while let Some(rows) = pieces.get(place.piece as usize) {
            let count = rows.rows()?;
            if place.row > count {
                return Err(gone().into());
            }
            let columns = ["doc", "url", "id", "title"];
            let mut scan = Scan::open_by(rows.part(place.row..count), &columns, BATCH)?;
            while let Some(batch) = scan.batch()? {
                let docs: &Int64Array = field(&batch, "doc")?;
                let columns = ["url", "id", "title"].map(|name| field::<StringArray>(&batch, name));
                let [urls, ids, titles] = columns;
                let texts = [urls?, ids?, titles?];
                for number in 0..batch.num_rows() {
                    if walk.docs.len() == MOST {
                        walk.next = Some(place);
                        return Ok(walk);
                    }
                    // The value of a null is the empty text.
                    if texts.iter().any(|texts| has_part(texts.value(number), part)) {
                        walk.docs.push(DocId::from_table(docs.value(number)));
                    }
                    place.row += 1;
                }
                if begun.elapsed() > READING {
                    walk.next = Some(place);
                    return Ok(walk);
                }
            }
            place = SearchPlace { piece: place.piece + 1, row: 0 };
        }
        Ok(walk)
    }

    /// How many of 100 pages are before a place.
    fn share_before(&self, place: SearchPlace) -> Result<f64> {
        let (mut before, mut all) = (place.row, 0);
        for (number, rows) in (0..).zip(self.week.document_rows()?) {
            let count = rows.rows()?;
            all += count;
            before += if number < place.piece { count } else { 0 };
        }
        Ok(100.0 * before as f64 / all.max(1) as f64)
    }

    /// The pages that are most like a text.
    pub(super) fn near_text(&self, given: &str, is_scan: bool) -> Result<(String, Html)> {
        let title = "Pages that are most like a text".to_owned();
        let mut body = text_form(given);
        let Some(query) = Query::of_text(self.week, given.as_bytes(), false)? else {
            body.add(&paragraph("The text has no word."));
            return Ok((title, body));
        };
        if !is_scan && !self.week.has_index() && self.week.week.documents > FEW {
            body.add(&paragraph(
                "The store has no index of this week, which `nigh index` makes; so the supershingles \
                 of all pages must be read, which takes some seconds.",
            ));
            let to = AskedPage::Text { text: given.to_owned(), is_scan: true };
            body.own("<p>").add(&link(&to, "Read them")).own("</p>\n");
            return Ok((title, body));
        }
        let found = nearest(self.week, &query, NEAREST, false)?;
        let how = match found.way {
            Way::Index => "",
            _ => ", found by a scan: there is no index of the week",
        };
        body.add(&paragraph(format!(
            "{} share a supershingle with it{how}. Pages that are less than about 0.8 similar often share none.",
            plural(found.candidates, "page")
        )));
        let near = |NearPage { page, sketch }: &NearPage| {
            let [similar, agree] = [text(format!("{:.2}", sketch.similarity)), text(sketch.agreements)];
            [row(page), vec![similar, agree]].concat()
        };
        let rows: Vec<Vec<Html>> = found.found.iter().map(near).collect();
        if !rows.is_empty() {
            body.add(&of_pages(&rows));
        }
        Ok((title, body))
    }
}

/// A page in the list of a search.
fn row(page: &LookedPage) -> Vec<Html> {
    let cluster = page.cluster_id.map_or_else(Html::default, |id| link(&AskedPage::Cluster { id, page: 1 }, id));
    vec![named_link(page), short(&page.title), cluster, text(grouped(page.clusters[0].1))]
}

/// The list of a search; rows with two more cells say how similar a page is.
fn of_pages(rows: &[Vec<Html>]) -> Html {
    let columns = [
        HtmlColumn::long("page"),
        HtmlColumn::long("title"),
        HtmlColumn::number("cluster"),
        HtmlColumn::number("of pages"),
        HtmlColumn::number("similar"),
        HtmlColumn::number("agree"),
    ];
    let cells = rows.first().map_or(0, Vec::len);
    table("Pages", &columns[..cells.min(columns.len())], rows)
}

/// Whether a text has another one in it; letters of ASCII are the same in upper and lower case.
fn has_part(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let Some((first, _)) = part.split_first() else { return true };
    let starts = memchr::memchr2_iter(first.to_ascii_lowercase(), first.to_ascii_uppercase(), text);
    starts.into_iter().any(|at| text[at..].get(..part.len()).is_some_and(|found| found.eq_ignore_ascii_case(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_in_either_case() {
        for (text, part, wanted) in [
            ("http://One.example/a", "one.EXAMPLE", true),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("aab", "ab", true),
            ("", "a", false),
            ("é", "é", true),
            ("É", "é", false),
        ] {
            assert_eq!(has_part(text, part), wanted, "{text} {part}");
        }
    }
}
