//! The clusters of the week, in an order.

use anyhow::Result;

use super::{Browse, LISTED, check_part, page_link};
use crate::browse::html::{Column, Paging, by, link, note, paragraph, short, similarity, table, text};
use crate::browse::index::Cluster;
use crate::browse::request::{Asked, Order};
use crate::markup::Html;
use crate::sheet::grouped;

impl Browse<'_> {
    pub(super) fn clusters(&self, order: Order, page: u64) -> Result<(String, Html)> {
        let paging = Paging { page, size: LISTED, all: self.index.clusters() };
        check_part(&paging)?;
        let clusters: Vec<&Cluster> = self.index.ordered(order, paging.from() as usize, LISTED as usize).collect();
        let pages = self.week.pages(clusters.iter().map(|cluster| cluster.example))?;
        let row = |cluster: &&Cluster| {
            let title = pages.get(&cluster.example).map_or_else(Html::default, |page| short(&page.title));
            let growth = if self.weeks.len() > 1 { signed(cluster.growth()) } else { Html::default() };
            vec![
                link(&Asked::Cluster { id: cluster.id, page: 1 }, cluster.id),
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
            Column::number("cluster"),
            Column::order("pages", Order::Size, order),
            Column::order("hosts", Order::Hosts, order),
            Column::order("mean", Order::Loose, order),
            Column::number("least"),
            Column::order("growth", Order::Growth, order),
            Column::long("page"),
            Column::long("title"),
        ];
        let mut body = Html::default();
        if rows.is_empty() {
            body.add(&paragraph("No two pages of the week are very similar, so it has no cluster."));
            return Ok((by(order).to_owned(), body));
        }
        let links = paging.links(|page| Asked::Clusters { order, page });
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
