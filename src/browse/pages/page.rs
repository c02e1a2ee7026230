//! What is known of a page.

use anyhow::Result;

use super::{Browse, page_link};
use crate::browse::html::{facts, heading, link, outside, paragraph, text};
use crate::browse::request::AskedPage;
use crate::look::evidence;
use crate::markup::Html;
use crate::records::{DocId, Level};
use crate::sheet::{grouped, plural};

/// The host in a URL, as the table of documents has it.
fn host_of(name: &str) -> Option<String> {
    crate::text::canonical(name).map(|url| url.host().to_owned())
}

impl Browse<'_> {
    pub(super) fn known_page(&self, doc: DocId) -> Result<(String, Html)> {
        let page = self.one_page(doc)?;
        let mut said = vec![("address", outside(&page.name))];
        if let Some(host) = host_of(&page.name)
            && self.index.pages_of_host(&host)? > 0
        {
            said.push(("host", link(&AskedPage::Host { name: host.clone(), page: 1 }, &host)));
        }
        said.push(("words", text(grouped(page.words))));
        said.push(("crawled", text(page.crawled)));
        said.push(("file", text(format!("{} at {}", page.file, page.offset))));
        said.push(("document", text(doc)));
        said.push(("if duplicates are removed", text(if page.canonical { "it stays" } else { "it goes" })));
        let mut body = facts(&said);
        body.add(&heading("Clusters"));
        let mut of_levels = Vec::new();
        for (level, (_, size)) in Level::ALL.into_iter().zip(page.clusters) {
            let others = if size > 1 { plural(size, "page") } else { "no other page".to_owned() };
            let html = match page.cluster_id.filter(|_| level == Level::Similar) {
                Some(id) => link(&AskedPage::Cluster { id, page: 1 }, format!("cluster {id}, of {others}")),
                None => text(others),
            };
            of_levels.push((level.title(), html));
        }
        body.add(&facts(&of_levels));
        match evidence(self.week, &[doc])?.remove(&doc) {
            None if page.clusters[0].1 > 1 => {
                body.add(&paragraph("It is the first page of its cluster: others hang on it."));
            }
            None => {}
            Some((neighbour, evidence)) => {
                let pages = self.week.pages([neighbour])?;
                body.own("<p>").text("It is in its cluster because it is like ").add(&page_link(&pages, neighbour));
                body.text(format!(
                    ": {} agree, {:.3} similar (by {}). ",
                    plural(evidence.agreements as u64, "supershingle"),
                    evidence.similarity,
                    evidence.found
                ));
                body.add(&link(&AskedPage::Compare { docs: [neighbour, doc] }, "Compare them word by word"))
                    .own("</p>\n");
            }
        }
        let title = if page.title.is_empty() { page.name } else { page.title };
        Ok((title, body))
    }
}
