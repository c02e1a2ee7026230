//! The first page: totals of the week, its weeks before, and ways into it.

use anyhow::Result;

use super::Browse;
use crate::browse::html::{HtmlColumn, heading, link, note, paragraph, table, text, text_form};
use crate::browse::request::AskedPage;
use crate::markup::Html;
use crate::sheet::{grouped, plural};
use crate::summary::LevelSummary;

/// Hosts that are listed.
const HOSTS: usize = 15;

impl Browse<'_> {
    pub(super) fn home(&self) -> Result<(String, Html)> {
        let summary = &self.summary;
        let mut body = paragraph(format!(
            "{} from {}, {}.",
            plural(summary.counts.documents, "page"),
            plural(summary.files, "file"),
            plural(summary.counts.words, "word")
        ));
        let row = |level: &LevelSummary| {
            let share = format!("{:.1}%", 100.0 * level.share);
            let counts = [level.clusters, level.clustered, level.duplicates].map(|count| text(grouped(count)));
            [vec![text(level.level.title())], counts.to_vec(), vec![text(share)]].concat()
        };
        let rows: Vec<Vec<Html>> = summary.levels.iter().map(row).collect();
        let columns = [
            HtmlColumn::text("level"),
            HtmlColumn::number("clusters"),
            HtmlColumn::number("pages in them"),
            HtmlColumn::number("duplicates"),
            HtmlColumn::number("share"),
        ];
        body.add(&table("Totals by level", &columns, &rows));
        body.add(&note(
            "Duplicates are the pages that go if one of each cluster stays. The clusters of these \
             pages are the very similar ones.",
        ));
        body.add(&heading("Search by a text"));
        body.add(&text_form(""));
        self.add_hosts(&mut body);
        self.add_weeks(&mut body);
        Ok((format!("Near-duplicates of {}, week {}", self.store, summary.week), body))
    }

    fn add_hosts(&self, body: &mut Html) {
        let hosts = &self.index.hosts;
        body.add(&heading("Hosts"));
        if hosts.is_empty() {
            body.add(&paragraph("The pages have no URLs, and so no hosts."));
            return;
        }
        let row = |host: &crate::browse::index::IndexedHost| {
            let to = AskedPage::Host { name: host.name.to_string(), page: 1 };
            vec![link(&to, &host.name), text(grouped(host.pages.into()))]
        };
        let rows: Vec<Vec<Html>> = hosts.iter().take(HOSTS).map(row).collect();
        body.add(&table("Hosts with most pages", &[HtmlColumn::text("host"), HtmlColumn::number("pages")], &rows));
        if hosts.len() > HOSTS {
            body.add(&note(format!("{} in all: the search finds others.", plural(hosts.len() as u64, "host"))));
        }
    }

    fn add_weeks(&self, body: &mut Html) {
        body.add(&heading("Weeks"));
        let weeks = self.weeks.iter().rev();
        let rows: Vec<Vec<Html>> = weeks.map(|(week, pages)| vec![text(week), text(grouped(*pages))]).collect();
        body.add(&table("Weeks until this one", &[HtmlColumn::text("week"), HtmlColumn::number("pages")], &rows));
        body.add(&note(
            "Each cluster has its own weeks on its page. `--week` shows the store as it was in another one.",
        ));
    }
}
