//! A host: its pages, its mirrors and its collections.

use anyhow::Result;
use arrow_array::{BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray};

use super::{Browse, LISTED, check_part, named_link};
use crate::browse::html::{HtmlColumn, Paging, heading, link, note, paragraph, short, table, text};
use crate::browse::index::HostStudy;
use crate::browse::request::AskedPage;
use crate::live::Refusal;
use crate::markup::Html;
use crate::records::Week;
use crate::sheet::{grouped, plural};
use crate::tables::field;

/// Rows of a study that are listed, at most.
const FOUND: u64 = 100;

impl Browse<'_> {
    pub(super) fn host(&self, name: &str, page: u64) -> Result<(String, Html)> {
        let name = name.trim().to_lowercase();
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
        self.add_mirrors(&name, &mut body)?;
        self.add_mirrors_by_url(&name, &mut body)?;
        self.add_collections(&name, &mut body)?;
        Ok((format!("Host {name}"), body))
    }

    /// Whether a study has found something of a host.
    fn is_found(&self, name: &str) -> Result<bool> {
        for finding in HostStudy::ALL {
            if self.index.findings(finding, name, &[], 0)?.is_some_and(|(count, _)| count > 0) {
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

    /// Rows of a study, made of the columns of its table; says so if there are none.
    fn add_found(
        &self,
        (finding, name): (HostStudy, &str),
        (title, job): (&'static str, &'static str),
        columns: &[&str],
        heads: &[HtmlColumn],
        row: impl Fn(&RecordBatch, usize) -> Result<Option<Vec<Html>>>,
        body: &mut Html,
    ) -> Result<()> {
        body.add(&heading(title));
        let Some((count, scans)) = self.index.findings(finding, name, columns, FOUND)? else {
            body.add(&note(format!("The store does not have them until this week: `nigh run {job}` finds them.")));
            return Ok(());
        };
        let mut rows = Vec::new();
        for scan in scans {
            scan.for_each(|batch| {
                for number in 0..batch.num_rows() {
                    rows.extend(row(batch, number)?);
                }
                Ok(())
            })?;
        }
        if rows.is_empty() {
            body.add(&paragraph("None."));
        } else {
            body.add(&table(title, heads, &rows));
        }
        if count > FOUND {
            body.add(&note(format!("The first {FOUND} of {}.", plural(count, "row"))));
        }
        Ok(())
    }

    fn add_mirrors(&self, name: &str, body: &mut Html) -> Result<()> {
        let heads = [
            HtmlColumn::text("other host"),
            HtmlColumn::text("mirror"),
            HtmlColumn::text("class"),
            HtmlColumn::number("clusters"),
            HtmlColumn::number("its pages"),
            HtmlColumn::number("own pages"),
        ];
        let columns = ["week", "host_a", "host_b", "class", "mirror", "clusters", "pages_a", "pages_b"];
        let of = (HostStudy::Mirrors, name);
        self.add_found(
            of,
            ("Mirrors by content", "jobs/mirrors.toml"),
            &columns,
            &heads,
            |batch, row| {
                let weeks: &Date32Array = field(batch, "week")?;
                if Week::from_days(weeks.value(row)) != self.week.week.week {
                    return Ok(None);
                }
                let texts = |name| field::<StringArray>(batch, name);
                let longs = |name| field::<Int64Array>(batch, name);
                let is_first = texts("host_a")?.value(row) == name;
                let other = if is_first { texts("host_b")? } else { texts("host_a")? }.value(row);
                let (own, its) = if is_first { ("pages_a", "pages_b") } else { ("pages_b", "pages_a") };
                let is_mirror: &BooleanArray = field(batch, "mirror")?;
                Ok(Some(vec![
                    self.host_link(other)?,
                    text(if is_mirror.value(row) { "yes" } else { "no" }),
                    text(texts("class")?.value(row)),
                    text(grouped(longs("clusters")?.value(row) as u64)),
                    text(grouped(longs(its)?.value(row) as u64)),
                    text(grouped(longs(own)?.value(row) as u64)),
                ]))
            },
            body,
        )
    }

    fn add_mirrors_by_url(&self, name: &str, body: &mut Html) -> Result<()> {
        let heads = [
            HtmlColumn::number("rank"),
            HtmlColumn::text("other host"),
            HtmlColumn::text("level"),
            HtmlColumn::number("score"),
        ];
        let columns = ["rank", "host_a", "host_b", "level", "score"];
        let of = (HostStudy::MirrorsByUrl, name);
        self.add_found(
            of,
            ("Mirrors by URL", "jobs/mirrors-by-url.toml"),
            &columns,
            &heads,
            |batch, row| {
                let texts = |name| field::<StringArray>(batch, name);
                let [a, b] = [texts("host_a")?.value(row), texts("host_b")?.value(row)];
                let score: &Float64Array = field(batch, "score")?;
                Ok(Some(vec![
                    text(field::<Int64Array>(batch, "rank")?.value(row)),
                    self.host_link(if a == name { b } else { a })?,
                    text(texts("level")?.value(row)),
                    text(format!("{:.2}", score.value(row))),
                ]))
            },
            body,
        )
    }

    fn add_collections(&self, name: &str, body: &mut Html) -> Result<()> {
        let heads = [
            HtmlColumn::number("similar cluster"),
            HtmlColumn::long("below"),
            HtmlColumn::number("pages"),
            HtmlColumn::number("links to it"),
            HtmlColumn::text("what"),
        ];
        let columns = ["cluster", "prefix", "pages", "in_links", "principal"];
        let of = (HostStudy::Collections, name);
        self.add_found(
            of,
            ("Collections", "jobs/collections.toml"),
            &columns,
            &heads,
            |batch, row| {
                let longs = |name| field::<Int64Array>(batch, name);
                let principal: &BooleanArray = field(batch, "principal")?;
                Ok(Some(vec![
                    text(longs("cluster")?.value(row)),
                    short(field::<StringArray>(batch, "prefix")?.value(row)),
                    text(grouped(longs("pages")?.value(row) as u64)),
                    text(grouped(longs("in_links")?.value(row) as u64)),
                    text(if principal.value(row) { "the principal one" } else { "a copy" }),
                ]))
            },
            body,
        )
    }

    /// A link to a host that a study names.
    fn host_link(&self, name: &str) -> Result<Html> {
        let is_there = self.index.pages_of_host(name)? > 0 || self.is_found(name)?;
        let to = AskedPage::Host { name: name.to_owned(), page: 1 };
        // The page of a host is asked for in lower case.
        Ok(if is_there && name == name.trim().to_lowercase() { link(&to, name) } else { short(name) })
    }
}
