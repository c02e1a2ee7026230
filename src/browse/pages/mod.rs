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
use super::request::AskedPage;
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
    pub(super) fn page(&self, asked: &AskedPage) -> Result<String> {
        let (title, body) = match asked {
            AskedPage::Home => self.home()?,
            AskedPage::Clusters { order, page } => self.clusters(*order, *page)?,
            AskedPage::Cluster { id, page } => self.cluster(*id, *page)?,
            AskedPage::Page { doc } => self.known_page(*doc)?,
            AskedPage::Compare { docs } => self.compare(*docs)?,
            AskedPage::Host { name, page } => self.host(name, *page)?,
            AskedPage::Search { part, from } => self.search(part, *from)?,
            AskedPage::Text { text, is_scan } => self.near_text(text, *is_scan)?,
            AskedPage::Style => return Ok(html::STYLE.to_owned()),
        };
        Ok(html::page(&title, &self.footer(), &body))
    }

    /// The page that says why another one is not there.
    pub(super) fn refusal(&self, refusal: &Refusal) -> String {
        let mut body = html::paragraph(&refusal.text);
        body.own("<p>").add(&html::link(&AskedPage::Home, "Back to the start")).own("</p>\n");
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
    html.own("<a href=\"").text(AskedPage::Page { doc: page.doc }).own("\">").add(&html::short(&page.name)).own("</a>");
    html
}
