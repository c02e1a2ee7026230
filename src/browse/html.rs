//! What all pages are made of: the frame, links, tables, and the way through long lists.

use std::fmt::Display;

use super::request::{AskedPage, ClusterOrder};
use crate::markup::Html;
use crate::report::{is_web_address, without_middle};
use crate::sheet::grouped;

/// Characters of a title or a URL that a list shows, at most.
const SHOWN: usize = 200;
/// The length of a URL that becomes a link, at most.
const LINKED: usize = 2000;

/// The style of the report, and what these pages add.
pub(super) const STYLE: &str = concat!(include_str!("../report/html/style.css"), include_str!("browse.css"));

/// A whole page. `about` says of which store and week it is.
pub(super) fn page(title: &str, about: &str, body: &Html) -> String {
    let mut html = Html::default();
    html.own("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.own("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.own("<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/style.css\">\n<title>");
    html.text(without_middle(title, SHOWN)).own("</title>\n</head>\n<body>\n");
    html.own("<a class=\"skip\" href=\"#main\">Skip to the page</a>\n<header>\n<nav aria-label=\"Pages\"><ul>\n<li>");
    html.add(&link(&AskedPage::Home, "Start")).own("</li>\n");
    for order in ClusterOrder::ALL {
        html.own("<li>").add(&link(&AskedPage::Clusters { order, page: 1 }, by(order))).own("</li>\n");
    }
    html.own("</ul></nav>\n").add(&search_form("")).own("</header>\n<main id=\"main\">\n<h1>");
    html.text(without_middle(title, SHOWN)).own("</h1>\n").add(body).own("</main>\n<footer class=\"soft\"><p>");
    html.text(about).own("</p></footer>\n</body>\n</html>\n");
    html.into_text()
}

/// What an order of clusters is called.
pub(super) fn by(order: ClusterOrder) -> &'static str {
    match order {
        ClusterOrder::Size => "Largest clusters",
        ClusterOrder::Loose => "Loosest clusters",
        ClusterOrder::Growth => "Clusters that grew most",
        ClusterOrder::Hosts => "Clusters of most hosts",
    }
}

/// The form for a part of a URL.
pub(super) fn search_form(part: &str) -> Html {
    let mut html = Html::default();
    html.own("<form class=\"search\" action=\"/search\" role=\"search\"><label>Part of a URL, a title or a host ");
    html.own("<input type=\"search\" name=\"q\" required maxlength=\"500\" value=\"").text(part);
    html.own("\"></label> <button>Search</button></form>\n");
    html
}

/// The form for a text. A browser drops the end of line at its beginning, and writes a character as
/// nine bytes of an address at most.
pub(super) fn text_form(given: &str) -> Html {
    let mut html = Html::default();
    html.own("<form action=\"/text\"><label>A text: which pages are most like it? ");
    html.own("<textarea name=\"text\" required maxlength=\"7000\">\n").lines(given);
    html.own("</textarea></label> <button>Find pages like it</button></form>\n");
    html
}

/// A link to a page of this program.
pub(super) fn link(to: &AskedPage, text: impl Display) -> Html {
    let mut html = Html::default();
    html.own("<a href=\"").text(to).own("\">").text(text).own("</a>");
    html
}

/// A link to a page of the crawl on the web, if its name is its URL; else the name.
pub(super) fn outside(name: &str) -> Html {
    let mut html = Html::default();
    let shown = without_middle(name, SHOWN);
    if name.len() > LINKED || !is_web_address(name) {
        html.text(shown);
    } else {
        html.own("<a rel=\"noopener noreferrer nofollow\" href=\"").text(name).own("\">").text(shown).own("</a>");
    }
    html
}

/// A title or URL in a list.
pub(super) fn short(text: &str) -> Html {
    let mut html = Html::default();
    html.text(without_middle(text, SHOWN));
    html
}

/// A text.
pub(super) fn text(text: impl Display) -> Html {
    let mut html = Html::default();
    html.text(text);
    html
}

/// A paragraph.
pub(super) fn paragraph(text: impl Display) -> Html {
    let mut html = Html::default();
    html.own("<p>").text(text).own("</p>\n");
    html
}

/// A paragraph in a softer colour; what stands between two backticks is code.
pub(super) fn note(text: impl Display) -> Html {
    let mut html = Html::default();
    html.own("<p class=\"soft\">").note(text).own("</p>\n");
    html
}

/// A heading.
pub(super) fn heading(text: impl Display) -> Html {
    let mut html = Html::default();
    html.own("<h2>").text(text).own("</h2>\n");
    html
}

/// Names and what is said of each.
pub(super) fn facts(facts: &[(&'static str, Html)]) -> Html {
    let mut html = Html::default();
    html.own("<dl>\n");
    for (name, said) in facts {
        html.own("<dt>").own(name).own("</dt><dd>").add(said).own("</dd>\n");
    }
    html.own("</dl>\n");
    html
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(super) struct HtmlColumn {
    head: Html,
    /// The class of its cells.
    class: &'static str,
    is_order: bool,
}

const NUMBER: &str = " class=\"number\"";

impl HtmlColumn {
    /// A column of numbers.
    pub(super) fn number(head: &'static str) -> HtmlColumn {
        HtmlColumn { head: text(head), class: NUMBER, is_order: false }
    }

    /// A column of text.
    pub(super) fn text(head: &'static str) -> HtmlColumn {
        HtmlColumn { head: text(head), class: "", is_order: false }
    }

    /// A column of URLs or titles: it is wide on a phone, so that rows stay low.
    pub(super) fn long(head: &'static str) -> HtmlColumn {
        HtmlColumn { head: text(head), class: " class=\"long\"", is_order: false }
    }

    /// A column of numbers by which the rows are, or can be, in order.
    pub(super) fn order(head: &'static str, by: ClusterOrder, is: ClusterOrder) -> HtmlColumn {
        let head = if by == is { text(head) } else { link(&AskedPage::Clusters { order: by, page: 1 }, head) };
        HtmlColumn { head, class: NUMBER, is_order: by == is }
    }
}

/// A table. If it is wider than the screen, it scrolls by itself.
pub(super) fn table(caption: &str, columns: &[HtmlColumn], rows: &[Vec<Html>]) -> Html {
    let mut html = Html::default();
    html.own("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"")
        .text(caption)
        .own("\">\n<table>\n<thead><tr>");
    for column in columns {
        html.own("<th scope=\"col\"").own(column.class);
        html.own(if column.is_order { " aria-sort=\"other\">" } else { ">" }).add(&column.head).own("</th>");
    }
    html.own("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.own("<tr>");
        for (cell, column) in row.iter().zip(columns) {
            html.own("<td").own(column.class).own(">").add(cell).own("</td>");
        }
        html.own("</tr>\n");
    }
    html.own("</tbody>\n</table>\n</div>\n");
    html
}

/// A part of a long list: which entries it has, and links to the parts before and after it.
pub(super) struct Paging {
    /// Its number, from 1.
    pub(super) page: u64,
    /// Entries of a part.
    pub(super) size: u64,
    /// All entries.
    pub(super) all: u64,
}

impl Paging {
    /// The entries before it.
    pub(super) fn from(&self) -> u64 {
        (self.page - 1).saturating_mul(self.size)
    }

    /// Whether the list has such a part; the first one is always there.
    pub(super) fn is_there(&self) -> bool {
        self.page == 1 || self.from() < self.all
    }

    /// What it has, and the way to others.
    pub(super) fn links(&self, to: impl Fn(u64) -> AskedPage) -> Html {
        let mut html = Html::default();
        if self.all <= self.size {
            return html;
        }
        let last = self.all.div_ceil(self.size);
        html.own("<nav class=\"paging\" aria-label=\"Parts of the list\"><p>");
        html.text(format!(
            "{} to {} of {} ",
            grouped(self.from() + 1),
            grouped((self.from() + self.size).min(self.all)),
            grouped(self.all)
        ));
        let parts = [("first", 1, self.page > 1), ("before", self.page.saturating_sub(1), self.page > 1)];
        for (name, page, is_there) in
            parts.into_iter().chain([("next", self.page + 1, self.page < last), ("last", last, self.page < last)])
        {
            if is_there {
                html.add(&link(&to(page), name)).own(" ");
            }
        }
        html.own("</p></nav>\n");
        html
    }
}

/// A similarity, or nothing if none is known.
pub(super) fn similarity(value: f32) -> Html {
    if value.is_finite() { text(format!("{value:.3}")) } else { Html::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_all_of_their_parts() {
        let paging = |page, all| Paging { page, size: 25, all };
        assert_eq!(paging(1, 25).links(|_| AskedPage::Home), Html::default());
        assert!(paging(1, 0).is_there() && !paging(2, 25).is_there() && paging(2, 26).is_there());
        assert!(!paging(u64::MAX, 26).is_there());
        let links = |page| paging(page, 60).links(|page| AskedPage::Cluster { id: 7, page }).into_text();
        assert!(
            links(1).contains(
                "1 to 25 of 60 <a href=\"/cluster/7?page=2\">next</a> <a href=\"/cluster/7?page=3\">last</a>"
            )
        );
        assert!(links(2).contains("first") && links(2).contains("before") && links(2).contains("next"));
        assert!(links(3).contains("51 to 60 of 60") && !links(3).contains("next"));
    }

    #[test]
    fn only_addresses_of_the_web_lead_outside() {
        assert_eq!(outside("javascript:alert(1)").into_text(), "javascript:alert(1)");
        assert!(outside("http://one.example/\"x").into_text().contains("href=\"http://one.example/&quot;x\""));
    }
}
