//! Clusters: the largest ones, and some with the words of two of their pages.

use super::escape::{line, name, short};
use super::parts::{HtmlCell, table};
use crate::look::{LookedCluster, Passage, ShownCluster, Why};
use crate::markup::Html;
use crate::records::Level;
use crate::sheet::{grouped, plural};

/// Passages of a page that are shown.
const PASSAGES: usize = 8;

/// The table of the largest clusters of a level.
pub(super) fn largest(level: Level, clusters: &[LookedCluster], id: &str) -> Html {
    let id_of = if level == Level::Similar { "cluster" } else { "root" };
    let heads = [(id_of, true), ("pages", true), ("hosts", true), ("page", false), ("title", false)];
    let row = |cluster: &LookedCluster| {
        let id = cluster.cluster_id.unwrap_or_else(|| cluster.root.to_table());
        vec![
            HtmlCell::Number(id.to_string(), Some(id as f64)),
            HtmlCell::count(cluster.pages),
            HtmlCell::count(cluster.hosts),
            HtmlCell::Name(cluster.example.name.clone()),
            HtmlCell::Text(cluster.example.title.clone()),
        ]
    };
    let rows: Vec<Vec<HtmlCell>> = clusters.iter().map(row).collect();
    table(Some(&format!("table-{id}")), &format!("Largest {} clusters", level.title()), &heads, &rows)
}

/// A cluster with two of its pages and their differing words.
pub(super) fn card(shown: &ShownCluster) -> Html {
    let ShownCluster { pair, sketches, texts, .. } = shown;
    let mut html = Html::default();
    html.own("<article class=\"card\">\n<h3>Cluster ")
        .text(shown.cluster_id)
        .own(": ")
        .text(plural(shown.pages, "page"));
    if shown.hosts > 0 {
        html.own(" of ").text(plural(shown.hosts, "host"));
    }
    let reasons: Vec<String> = shown.reasons.iter().map(|why| reason(*why, shown.pages)).collect();
    html.own("</h3>\n<p class=\"soft\">").text(reasons.join(" ")).own("</p>\n");
    if let Some(texts) = texts {
        let [shared, either] = [texts.shared, texts.either].map(|count| grouped(count as u64));
        let similarity = texts.similarity;
        html.own("<p>")
            .text(format!("{similarity:.3} similar: {shared} of {either} shingles are in both."))
            .own("</p>\n");
    } else if let Some(sketches) = sketches {
        html.own("<p>").text(format!("About {:.2} similar, by their sketches.", sketches.similarity)).own("</p>\n");
    }
    if let Some(unread) = &shown.unread {
        html.own("<p>Their words could not be read: ").text(line(unread)).own(".</p>\n");
    }
    let is_same = texts.as_ref().is_some_and(|texts| texts.differing.iter().all(Vec::is_empty));
    if is_same {
        html.own("<p>Neither page has words that the other lacks.</p>\n");
    }
    html.own("<div class=\"pair\">\n");
    for (side, page) in pair.iter().enumerate() {
        html.own("<div><p>")
            .add(&name(&page.name))
            .own("</p>\n<p class=\"soft\">")
            .text(short(&page.title))
            .own("</p>\n");
        if let Some(texts) = texts.as_ref().filter(|_| !is_same) {
            let passages = &texts.differing[side];
            html.own("<ul>\n");
            for passage in passages.iter().take(PASSAGES) {
                html.own("<li>").add(&in_context(passage)).own("</li>\n");
            }
            if passages.is_empty() {
                html.own("<li>No words that the other page lacks</li>\n");
            } else if passages.len() > PASSAGES {
                html.own("<li>and ").text(grouped((passages.len() - PASSAGES) as u64)).own(" more</li>\n");
            }
            html.own("</ul>\n");
        }
        html.own("</div>\n");
    }
    html.own("</div>\n</article>\n");
    html
}

/// A passage between the words around it.
fn in_context(passage: &Passage) -> Html {
    let [before, text, after] = [&passage.before, &passage.text, &passage.after].map(|words| short(words));
    let mut html = Html::default();
    if passage.word > 1 + passage.before.split(' ').count() {
        html.own("… ");
    }
    if !before.is_empty() {
        html.text(before).own(" ");
    }
    html.own("<mark>").text(text).own("</mark>");
    if !after.is_empty() {
        html.own(" ").text(&after).own(" …");
    }
    html.own(" <small class=\"soft\">(word ").text(grouped(passage.word as u64)).own(")</small>");
    html
}

/// Why a cluster of so many pages is shown.
fn reason(why: Why, pages: u64) -> String {
    match why {
        Why::Largest => "One of the largest clusters.".to_owned(),
        Why::Loosest(similarity) => {
            format!(
                "One of the loosest of the largest clusters: two of its pages are {similarity:.2} similar, on average."
            )
        }
        Why::Grown(before) => {
            format!("Grew from {} to {} since the week before.", plural(before, "page"), grouped(pages))
        }
    }
}
