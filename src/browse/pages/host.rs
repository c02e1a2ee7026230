//! A host: its pages, and what studies found of it.

use anyhow::Result;

use super::{Browse, LISTED, check_part, named_link};
use crate::browse::html::{HtmlColumn, Paging, heading, link, note, paragraph, short, table, text};
use crate::browse::index::HostFindings;
use crate::browse::request::AskedPage;
use crate::live::Refusal;
use crate::markup::Html;
use crate::sheet::{grouped, plural};
use crate::studies::{HostCell, HostHead, HostRows, RowValues};
use crate::text::canonical_host;

/// Rows of a study that are listed, at most.
const FOUND: u64 = 100;

impl Browse<'_> {
    pub(super) fn host(&self, name: &str, page: u64) -> Result<(String, Html)> {
        let name = name.trim();
        let name = canonical_host(name).unwrap_or_else(|| name.to_lowercase());
        let all = self.index.pages_of_host(&name)?;
        let mut body = Html::default();
        if all == 0 && page == 1 && self.is_found(&name)? {
            body.add(&paragraph(format!("Week {} has no page of it.", self.week.week.week)));
        } else if all == 0 {
            return Err(Refusal::missing(format!("week {} has no page of the host {name}", self.week.week.week)).into());
        } else {
            let paging = Paging { page, size: LISTED, all };
            check_part(&paging)?;
            self.add_pages_of_host(&name, &paging, &mut body)?;
        }
        for number in 0..self.index.of_studies.len() {
            self.add_found(number, &name, &mut body)?;
        }
        Ok((format!("Host {name}"), body))
    }

    /// Whether a study has found something of a host.
    fn is_found(&self, name: &str) -> Result<bool> {
        for number in 0..self.index.of_studies.len() {
            if self.index.findings(number, name, &[], 0)?.is_some_and(|(count, _)| count > 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn add_pages_of_host(&self, name: &str, paging: &Paging, body: &mut Html) -> Result<()> {
        body.add(&heading(plural(paging.all, "page")));
        let docs = self.index.members_of_host(name, paging.from(), paging.size)?;
        let pages = self.week.pages(docs.iter().copied())?;
        let row = |page: &crate::look::LookedPage| {
            let cluster =
                page.cluster_id.map_or_else(Html::default, |id| link(&AskedPage::Cluster { id, page: 1 }, id));
            vec![
                named_link(page),
                short(&page.title),
                text(grouped(page.words)),
                cluster,
                text(grouped(page.clusters[0].1)),
                text(if page.canonical { "stays" } else { "" }),
            ]
        };
        let rows: Vec<Vec<Html>> = docs.iter().filter_map(|doc| pages.get(doc)).map(row).collect();
        let columns = [
            HtmlColumn::long("page"),
            HtmlColumn::long("title"),
            HtmlColumn::number("words"),
            HtmlColumn::number("cluster"),
            HtmlColumn::number("of pages"),
            HtmlColumn::text("what"),
        ];
        let links = paging.links(|page| AskedPage::Host { name: name.to_owned(), page });
        body.add(&links).add(&table("Pages of the host", &columns, &rows)).add(&links);
        Ok(())
    }

    /// Rows of a study that name a host; says so if there are none.
    fn add_found(&self, number: usize, name: &str, body: &mut Html) -> Result<()> {
        let HostFindings { study, rows: HostRows { title, columns, heads, cells, .. }, .. } =
            &self.index.of_studies[number];
        body.add(&heading(title));
        let Some((count, scans)) = self.index.findings(number, name, columns, FOUND)? else {
            let job = format!("`nigh run jobs/{study}.toml`");
            body.add(&note(format!("The store does not have them until this week: {job} finds them.")));
            return Ok(());
        };
        let shown = |cell: HostCell| match cell {
            HostCell::Host(other) => self.host_link(&other),
            HostCell::Text(words) => Ok(text(words)),
            HostCell::Url(url) => Ok(short(&url)),
        };
        let mut rows: Vec<Vec<Html>> = Vec::new();
        for scan in scans {
            scan.for_each(|batch| {
                for row in 0..batch.num_rows() {
                    if let Some(cells) = cells(&RowValues::new(batch, row), name, self.week.week.week)? {
                        rows.push(cells.into_iter().map(&shown).collect::<Result<_>>()?);
                    }
                }
                Ok(())
            })?;
        }
        if rows.is_empty() {
            body.add(&paragraph("None."));
        } else {
            let heads = heads.iter().map(|head| match head {
                HostHead::Words(head) => HtmlColumn::text(head),
                HostHead::Number(head) => HtmlColumn::number(head),
                HostHead::Url(head) => HtmlColumn::long(head),
            });
            body.add(&table(title, &heads.collect::<Vec<_>>(), &rows));
        }
        if count > FOUND {
            body.add(&note(format!("The first {FOUND} of {}.", plural(count, "row"))));
        }
        Ok(())
    }

    /// A link to a host that a study names.
    fn host_link(&self, name: &str) -> Result<Html> {
        let is_there = self.index.pages_of_host(name)? > 0 || self.is_found(name)?;
        let to = AskedPage::Host { name: name.to_owned(), page: 1 };
        // The page of a host is asked for in lower case.
        Ok(if is_there && name == name.trim().to_lowercase() { link(&to, name) } else { short(name) })
    }
}
