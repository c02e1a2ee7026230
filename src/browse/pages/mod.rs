//! The pages, one file for each kind: `home`, `clusters`, `cluster`, `page` (what is known of a
//! page), `compare`, `host`, `search`.

mod cluster;
mod clusters;
mod compare;
mod home;
mod host;
mod page;
mod search;

use anyhow::Result;

use super::Browse;
use super::html;
use super::request::Asked;
use crate::live::Refusal;
use crate::look::{LookedPage, Pages};
use crate::markup::Html;
use crate::records::DocId;

/// Entries of a list that are on one page.
const LISTED: u64 = 25;

impl Browse<'_> {
    /// The page that is asked for.
    ///
    /// # Errors
    /// A [`Refusal`] if there is no such page; another error if a table cannot be read.
    pub(super) fn page(&self, asked: &Asked) -> Result<String> {
        let (title, body) = match asked {
            Asked::Home => self.home()?,
            Asked::Clusters { order, page } => self.clusters(*order, *page)?,
            Asked::Cluster { id, page } => self.cluster(*id, *page)?,
            Asked::Page { doc } => self.known_page(*doc)?,
            Asked::Compare { docs } => self.compare(*docs)?,
            Asked::Host { name, page } => self.host(name, *page)?,
            Asked::Search { part, from } => self.search(part, *from)?,
            Asked::Text { text, is_scan } => self.near_text(text, *is_scan)?,
            Asked::Style => return Ok(html::STYLE.to_owned()),
        };
        Ok(html::page(&title, &self.footer(), &body))
    }

    /// The page that says why another one is not there.
    pub(super) fn refusal(&self, refusal: &Refusal) -> String {
        let mut body = html::paragraph(&refusal.text);
        body.own("<p>").add(&html::link(&Asked::Home, "Back to the start")).own("</p>\n");
        html::page("That is not there", &self.footer(), &body)
    }

    /// The store and the week, for the end of each page.
    fn footer(&self) -> String {
        format!("{}, week {}. Made by nigh {}.", self.store, self.week.week.week, env!("CARGO_PKG_VERSION"))
    }

    /// One page of the week.
    fn one_page(&self, doc: DocId) -> Result<LookedPage> {
        let missing = || Refusal::missing(format!("week {} has no page of document {doc}", self.week.week.week));
        Ok(self.week.pages([doc])?.remove(&doc).ok_or_else(missing)?)
    }
}

/// A list has no such part.
fn check_part(paging: &html::Paging) -> Result<()> {
    if !paging.is_there() {
        return Err(Refusal::missing(format!("the list has no part {}", paging.page)).into());
    }
    Ok(())
}

/// A link to what is known of a page.
fn page_link(pages: &Pages, doc: DocId) -> Html {
    match pages.get(&doc) {
        None => html::text(format!("document {doc}")),
        Some(page) => named_link(page),
    }
}

fn named_link(page: &LookedPage) -> Html {
    let mut html = Html::default();
    html.own("<a href=\"").text(Asked::Page { doc: page.doc }).own("\">").add(&html::short(&page.name)).own("</a>");
    html
}
