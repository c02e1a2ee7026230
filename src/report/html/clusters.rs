//! Clusters: the largest ones, and some with the words of two of their pages.

use super::escape::{line, name, short};
use super::parts::{HtmlCell, table};
use crate::look::{LookedCluster, Passage, ShownCluster, Why};
use crate::records::Level;
use crate::sheet::{grouped, plural};

/// Passages of a page that are shown.
const PASSAGES: usize = 8;

/// The table of the largest clusters of a level.
pub(super) fn largest(level: Level, clusters: &[LookedCluster], id: &str) -> String {
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
pub(super) fn card(shown: &ShownCluster) -> String {
    let reasons: Vec<String> = shown.reasons.iter().map(|why| reason(*why, shown.pages)).collect();
    let ShownCluster { pair, sketches, texts, .. } = shown;
    let hosts = if shown.hosts == 0 { String::new() } else { format!(" of {}", plural(shown.hosts, "host")) };
    let mut out = format!(
        "<article class=\"card\">\n<h3>Cluster {}: {}{hosts}</h3>\n<p class=\"soft\">{}</p>\n",
        shown.cluster_id,
        plural(shown.pages, "page"),
        reasons.join(" ")
    );
    if let Some(texts) = texts {
        let [shared, either] = [texts.shared, texts.either].map(|count| grouped(count as u64));
        out.push_str(&format!("<p>{:.3} similar: {shared} of {either} shingles are in both.</p>\n", texts.similarity));
    } else if let Some(sketches) = sketches {
        out.push_str(&format!("<p>About {:.2} similar, by their sketches.</p>\n", sketches.similarity));
    }
    if let Some(unread) = &shown.unread {
        out.push_str(&format!("<p>Their words could not be read: {}.</p>\n", line(unread)));
    }
    let is_same = texts.as_ref().is_some_and(|texts| texts.differing.iter().all(Vec::is_empty));
    if is_same {
        out.push_str("<p>Neither page has words that the other lacks.</p>\n");
    }
    out.push_str("<div class=\"pair\">\n");
    for (side, page) in pair.iter().enumerate() {
        out.push_str(&format!("<div><p>{}</p>\n<p class=\"soft\">{}</p>\n", name(&page.name), short(&page.title)));
        if let Some(texts) = texts.as_ref().filter(|_| !is_same) {
            let passages = &texts.differing[side];
            out.push_str("<ul>\n");
            for passage in passages.iter().take(PASSAGES) {
                out.push_str(&format!("<li>{}</li>\n", in_context(passage)));
            }
            if passages.is_empty() {
                out.push_str("<li>No words that the other page lacks</li>\n");
            } else if passages.len() > PASSAGES {
                out.push_str(&format!("<li>and {} more</li>\n", grouped((passages.len() - PASSAGES) as u64)));
            }
            out.push_str("</ul>\n");
        }
        out.push_str("</div>\n");
    }
    out.push_str("</div>\n</article>\n");
    out
}

/// A passage between the words around it.
fn in_context(passage: &Passage) -> String {
    let [before, text, after] = [&passage.before, &passage.text, &passage.after].map(|words| short(words));
    let begins = if passage.word > 1 + passage.before.split(' ').count() { "… " } else { "" };
    let ends = if after.is_empty() { "" } else { " …" };
    let marked = format!("{begins}{before} <mark>{text}</mark> {after}{ends}");
    format!("{} <small class=\"soft\">(word {})</small>", marked.trim(), grouped(passage.word as u64))
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
