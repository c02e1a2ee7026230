//! A cluster: its pages, the links that hold these together, and what became of it week by week.

use std::collections::BTreeMap;

use anyhow::Result;

use super::clusters::signed;
use super::{Browse, LISTED, check_part, named_link};
use crate::browse::graph::{GraphLink, GraphNode, groups, picture};
use crate::browse::html::{HtmlColumn, Paging, facts, heading, link, note, paragraph, short, similarity, table, text};
use crate::browse::request::AskedPage;
use crate::browse::timeline::{ClusterExchange, ExchangeKind, Moment, timeline};
use crate::live::Refusal;
use crate::look::{LookedEvidence, LookedPage, Pages, evidence, joining_links};
use crate::markup::Html;
use crate::records::{DocId, Week};
use crate::sheet::{grouped, plural};

/// The page on which each page hangs.
type Neighbours = BTreeMap<DocId, (DocId, LookedEvidence)>;

impl Browse<'_> {
    pub(super) fn cluster(&self, id: i64, page: u64) -> Result<(String, Html)> {
        if !self.index.knows(id)? {
            let text = format!("no week until {} has a cluster {id}", self.week.week.week);
            return Err(Refusal::missing(text).into());
        }
        let mut body = Html::default();
        let title = match self.index.cluster(id) {
            None => {
                check_part(&Paging { page, size: LISTED, all: 0 })?;
                body.add(&paragraph(format!("Week {} does not have this cluster any more.", self.week.week.week)));
                format!("Cluster {id}")
            }
            Some(cluster) => {
                let paging = Paging { page, size: LISTED, all: cluster.pages.into() };
                check_part(&paging)?;
                let mut said = vec![("pages", text(grouped(cluster.pages.into())))];
                if cluster.hosts > 0 {
                    said.push(("hosts", text(grouped(cluster.hosts.into()))));
                }
                if cluster.mean.is_finite() {
                    let links = format!("{:.3} similar on average, {:.3} at least", cluster.mean, cluster.least);
                    said.push(("links", text(links)));
                }
                if self.weeks.len() > 1 && cluster.growth() != 0 {
                    let mut growth = signed(cluster.growth());
                    growth
                        .text(format!(" since the week before, when it had {}", plural(cluster.before.into(), "page")));
                    said.push(("growth", growth));
                }
                body.add(&facts(&said));
                self.add_pages(id, &paging, &mut body)?;
                format!("Cluster {id}: {}", plural(cluster.pages.into(), "page"))
            }
        };
        body.add(&heading("Weeks"));
        let weeks: Vec<Week> = self.weeks.iter().map(|(week, _)| *week).collect();
        body.add(&self.moments(&timeline(&self.index, &weeks, id)?, id));
        Ok((title, body))
    }

    /// A part of its pages, with their links.
    fn add_pages(&self, id: i64, paging: &Paging, body: &mut Html) -> Result<()> {
        let docs = self.index.members(id, self.number(), paging.from(), paging.size)?;
        let hanging: Neighbours = evidence(self.week, &docs)?;
        let others = hanging.values().map(|(neighbour, _)| *neighbour);
        let pages = self.week.pages(docs.iter().copied().chain(others))?;
        let mut numbers: BTreeMap<DocId, u64> = BTreeMap::new();
        for doc in pages.keys() {
            numbers.extend(self.index.number(id, self.number(), *doc)?.map(|number| (*doc, number)));
        }
        let number = |doc: &DocId| numbers.get(doc).copied();
        body.add(&heading("What holds it together"));
        body.add(&self.graph(&docs, &hanging, &pages, number)?);
        if paging.all > paging.size {
            body.add(&note("The picture has the pages of this part of the list, and those that they hang on."));
        }
        body.add(&heading("Pages"));
        body.add(&note("Choose two, and compare them word by word."));
        let links = paging.links(|page| AskedPage::Cluster { id, page });
        body.add(&links).own("<form action=\"/compare\">\n");
        let rows: Vec<Vec<Html>> = docs
            .iter()
            .enumerate()
            .filter_map(|(place, doc)| Some((place, pages.get(doc)?)))
            .map(|(place, page)| {
                self.row(id, paging.from() + 1 + place as u64, place, page, hanging.get(&page.doc), number)
            })
            .collect::<Result<_>>()?;
        let columns = [
            HtmlColumn::number("page"),
            HtmlColumn::number("A"),
            HtmlColumn::number("B"),
            HtmlColumn::long("name"),
            HtmlColumn::long("title"),
            HtmlColumn::number("words"),
            HtmlColumn::text("what"),
            HtmlColumn::number("hangs on"),
            HtmlColumn::number("agree"),
            HtmlColumn::number("similar"),
        ];
        body.add(&table("Pages of the cluster", &columns, &rows));
        if docs.len() > 1 {
            body.own("<p><button>Compare A with B</button></p>\n");
        }
        body.own("</form>\n").add(&links);
        Ok(())
    }

    fn row(
        &self,
        id: i64,
        number: u64,
        place: usize,
        page: &LookedPage,
        hangs: Option<&(DocId, LookedEvidence)>,
        number_of: impl Fn(&DocId) -> Option<u64>,
    ) -> Result<Vec<Html>> {
        let radio = |name: &'static str, is_chosen: bool| {
            let mut html = Html::default();
            html.own("<input type=\"radio\" required name=\"").own(name).own("\" value=\"").text(page.doc);
            html.own("\" aria-label=\"").own(if name == "a" { "A" } else { "B" }).own(": page ").text(number);
            html.own(if is_chosen { "\" checked>" } else { "\">" });
            html
        };
        let mut what: Vec<&str> = Vec::new();
        if page.canonical {
            what.push("stays");
        }
        if self.number() > 0 && !self.index.has_member(id, self.number() - 1, page.doc)? {
            what.push("joined");
        }
        let [mut on, mut agree, mut similar] = [Html::default(), Html::default(), Html::default()];
        if let Some((neighbour, evidence)) = hangs {
            let to = AskedPage::Compare { docs: [*neighbour, page.doc] };
            on = link(&to, number_of(neighbour).map_or_else(|| neighbour.to_string(), |number| number.to_string()));
            (agree, similar) = (text(evidence.agreements), similarity(evidence.similarity));
        }
        Ok(vec![
            text(number),
            radio("a", place == 0),
            radio("b", place == 1),
            named_link(page),
            short(&page.title),
            text(grouped(page.words)),
            text(what.join(", ")),
            on,
            agree,
            similar,
        ])
    }

    /// The links of some pages.
    fn graph(
        &self,
        docs: &[DocId],
        hanging: &Neighbours,
        pages: &Pages,
        number: impl Fn(&DocId) -> Option<u64>,
    ) -> Result<Html> {
        let mut all: Vec<DocId> = docs.to_vec();
        for (neighbour, _) in hanging.values() {
            if !all.contains(neighbour) {
                all.push(*neighbour);
            }
        }
        let node = |doc: &DocId| {
            let page = pages.get(doc);
            GraphNode {
                label: number(doc).map_or_else(|| format!("document {doc}"), |number| number.to_string()),
                name: page.map_or_else(String::new, |page| page.name.clone()),
                stays: page.is_some_and(|page| page.canonical),
            }
        };
        let place = |doc: &DocId| all.iter().position(|other| other == doc);
        let link = |(doc, (neighbour, evidence)): (&DocId, &(DocId, LookedEvidence))| {
            let (page, neighbour) = (place(doc)?, place(neighbour)?);
            Some(GraphLink { page, neighbour, agreements: evidence.agreements, similarity: evidence.similarity })
        };
        let links: Vec<GraphLink> = hanging.iter().filter_map(link).collect();
        let joining = self.joining(&all, &links)?;
        Ok(picture(&all.iter().map(node).collect::<Vec<GraphNode>>(), &links, &joining))
    }

    /// Links that join the groups of pages which others leave: each page hangs on one other page,
    /// and that need not hold a cluster together.
    fn joining(&self, all: &[DocId], links: &[GraphLink]) -> Result<Vec<GraphLink>> {
        let groups = groups(all.len(), links);
        if groups.windows(2).all(|two| two[0] == two[1]) {
            return Ok(Vec::new());
        }
        let mut places: Vec<usize> = (0..all.len()).collect();
        places.sort_by_key(|place| all[*place]);
        let docs: Vec<DocId> = places.iter().map(|place| all[*place]).collect();
        let of_docs: Vec<usize> = places.iter().map(|place| groups[*place]).collect();
        let link = |([a, b], of): ([usize; 2], crate::look::SketchComparison)| GraphLink {
            page: places[b],
            neighbour: places[a],
            agreements: of.agreements as i32,
            similarity: of.similarity as f32,
        };
        Ok(joining_links(self.week, &docs, &of_docs)?.into_iter().map(link).collect())
    }

    /// The weeks of a cluster.
    fn moments(&self, moments: &[Moment], id: i64) -> Html {
        let row = |moment: &Moment| {
            let [joined, left] = match moment.moved {
                None => [Html::default(), Html::default()],
                Some(counts) => counts.map(|count| text(grouped(count))),
            };
            let mut told = Html::default();
            for exchange in &moment.exchanges {
                told.add(&self.exchange(exchange)).text(". ");
            }
            let told_of = moment.exchanges.len() as u64;
            if moment.rows > told_of + 1 {
                told.text(format!("{} in the table `changes`.", plural(moment.rows, "row")));
            }
            vec![text(moment.week), text(grouped(moment.pages)), joined, left, told]
        };
        let rows: Vec<Vec<Html>> = moments.iter().rev().map(row).collect();
        let columns = [
            HtmlColumn::text("week"),
            HtmlColumn::number("pages"),
            HtmlColumn::number("joined"),
            HtmlColumn::number("left"),
            HtmlColumn::text("merged and split"),
        ];
        let mut html = table(&format!("Weeks of cluster {id}"), &columns, &rows);
        html.add(&note(
            "Joined and left: pages that are in it and were not the week before, and the other way \
             round. They are empty in the first week, and in clusters of more than 200,000 pages.",
        ));
        html
    }

    fn exchange(&self, ClusterExchange { kind, other, pages }: &ClusterExchange) -> Html {
        let of_other = link(&AskedPage::Cluster { id: *other, page: 1 }, format!("cluster {other}"));
        // A removed week may have been the only one with it.
        let of_other =
            if self.index.knows(*other).unwrap_or(false) { of_other } else { text(format!("cluster {other}")) };
        let pages = plural(*pages, "page");
        let mut html = Html::default();
        match kind {
            ExchangeKind::MergedFrom => {
                html.text("merged: ").add(&of_other).text(format!(" came into it with {pages}"))
            }
            ExchangeKind::MergedInto => {
                html.text("merged: it went into ").add(&of_other).text(format!(" with {pages}"))
            }
            ExchangeKind::SplitFrom => html.text(format!("split: {pages} came from ")).add(&of_other),
            ExchangeKind::SplitTo => html.text(format!("split: {pages} went to ")).add(&of_other),
        };
        html
    }
}
