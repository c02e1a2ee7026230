//! The clusters of the week, in an order.

use anyhow::Result;

use super::{Browse, LISTED, check_part, page_link};
use crate::browse::html::{HtmlColumn, Paging, by, link, note, paragraph, short, similarity, table, text};
use crate::browse::index::IndexedCluster;
use crate::browse::request::{AskedPage, ClusterOrder};
use crate::markup::Html;
use crate::sheet::grouped;

impl Browse<'_> {
    pub(super) fn clusters(&self, order: ClusterOrder, page: u64) -> Result<(String, Html)> {
        let paging = Paging { page, size: LISTED, all: self.index.clusters() };
        check_part(&paging)?;
        let clusters: Vec<&IndexedCluster> =
            self.index.ordered(order, paging.from() as usize, LISTED as usize).collect();
        let pages = self.week.pages(clusters.iter().map(|cluster| cluster.example))?;
        let row = |cluster: &&IndexedCluster| {
            let title = pages.get(&cluster.example).map_or_else(Html::default, |page| short(&page.title));
            let growth = if self.weeks.len() > 1 { signed(cluster.growth()) } else { Html::default() };
            vec![
                link(&AskedPage::Cluster { id: cluster.id, page: 1 }, cluster.id),
                text(grouped(cluster.pages.into())),
                text(grouped(cluster.hosts.into())),
                similarity(cluster.mean),
                similarity(cluster.least),
                growth,
                page_link(&pages, cluster.example),
                title,
            ]
        };
        let rows: Vec<Vec<Html>> = clusters.iter().map(row).collect();
        let columns = [
            HtmlColumn::number("cluster"),
            HtmlColumn::order("pages", ClusterOrder::Size, order),
            HtmlColumn::order("hosts", ClusterOrder::Hosts, order),
            HtmlColumn::order("mean", ClusterOrder::Loose, order),
            HtmlColumn::number("least"),
            HtmlColumn::order("growth", ClusterOrder::Growth, order),
            HtmlColumn::long("page"),
            HtmlColumn::long("title"),
        ];
        let mut body = Html::default();
        if rows.is_empty() {
            body.add(&paragraph("No two pages of the week are very similar, so it has no cluster."));
            return Ok((by(order).to_owned(), body));
        }
        let links = paging.links(|page| AskedPage::Clusters { order, page });
        body.add(&links).add(&table(by(order), &columns, &rows)).add(&links);
        body.add(&note(
            "Mean and least: the similarity of the links that hold a cluster together, which is in \
             the table evidence. Growth: pages gained since the week before. The page is the \
            one that stays if duplicates are removed.",
        ));
        Ok((by(order).to_owned(), body))
    }
}

/// A number with its sign; nothing for 0.
pub(super) fn signed(number: i64) -> Html {
    let sign = match number {
        0 => return Html::default(),
        1.. => "+",
        _ => "-",
    };
    text(format!("{sign}{}", grouped(number.unsigned_abs())))
}
