//! The list for a person, and for a crawler.

use std::cmp::Reverse;

use super::{AvoidList, AvoidedPrefix, StudyRead, StudyState};
use crate::sheet::{Grid, GridColumn, Sheet, grouped, plural};
use crate::text::printable;

/// The prefixes that are shown: those with the most pages.
const SHOWN: usize = 20;

/// The list as `nigh avoid` prints it.
pub fn sheet(list: &AvoidList) -> Sheet {
    let mut sheet = Sheet::indented(16);
    let share = |part: u64, of: u64| if of == 0 { 0.0 } else { 100.0 * part as f64 / of as f64 };
    let prefixes = match list.prefixes.len() as u64 {
        1 => "1 prefix".to_owned(),
        count => format!("{} prefixes", grouped(count)),
    };
    sheet.line(format!("Avoid list of week {}: {prefixes}", list.week));
    sheet.line(format!(
        "{} of {} skipped ({:.1}%), {} of these lost ({:.1}%)",
        grouped(list.skipped),
        plural(list.documents, "page"),
        share(list.skipped, list.documents),
        grouped(list.lost),
        share(list.lost, list.skipped)
    ));
    sheet.blank();
    let mut rows: Vec<_> = list.prefixes.iter().collect();
    rows.sort_by_key(|row| (Reverse(row.pages), Reverse(row.redirects)));
    let numbers = ["pages", "named", "lost"].map(|name| (name, GridColumn::Number));
    let texts = ["prefix", "keep", "why"].map(|name| (name, GridColumn::Text));
    let mut grid = Grid::new(numbers.into_iter().chain(texts));
    for row in rows.iter().take(SHOWN) {
        let [prefix, keep] = [&row.prefix, &row.keep].map(|text| printable(text).into_owned());
        let [pages, named, lost] = [row.pages, row.named, row.lost].map(grouped);
        grid.row([pages, named, lost, prefix, keep, why(row)]);
    }
    if !grid.is_empty() {
        sheet.grid(grid);
        if rows.len() > SHOWN {
            let more = grouped((rows.len() - SHOWN) as u64);
            sheet.line(format!("and {more} more: --out writes all prefixes, --json all rows"));
        }
        sheet.blank();
    }
    for study in &list.studies {
        sheet.fact(study.study, said(study));
    }
    sheet
}

/// The findings of a row; of redirects how many.
fn why(row: &AvoidedPrefix) -> String {
    let text = |why: &String| match why.as_str() {
        "redirect" => plural(row.redirects, "redirect"),
        why => why.to_owned(),
    };
    row.why.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// What is said of a study.
fn said(study: &StudyRead) -> String {
    let of = study.of.map_or_else(|| "lists of URLs".to_owned(), |week| format!("week {week}"));
    let what = match study.state {
        StudyState::Read => return format!("read: tables of {of}"),
        StudyState::Older => format!("read, but older: tables of {of}, as it was then; now"),
        StudyState::TooOld => format!("not read: tables of {of}, as it was then; now"),
        StudyState::Later => format!("not read: tables of {of}, which is later;"),
        StudyState::OfHosts => "not read: tables of hosts; with `unit = \"document\"`".to_owned(),
        StudyState::WithoutTexts => "not read: no whole texts; with `document` in its chunkings".to_owned(),
        StudyState::Missing => "no tables;".to_owned(),
    };
    format!("{what} `{}`", study.command.as_deref().unwrap_or_default())
}

/// The prefixes for a crawler, one on each line, after lines that begin with `#` and say how they
/// are meant.
pub fn prefix_file(list: &AvoidList) -> String {
    let mut text = format!(
        "# Avoid list of {} for week {}, made by nigh {}.\n\
         # Each other line is a prefix. A URL need not be fetched if, in its canonical form (WHATWG URL\n\
         # standard, without fragment, user and password), it begins with one of them, letter by letter.\n",
        printable(&list.store.display().to_string()),
        list.week,
        env!("CARGO_PKG_VERSION")
    );
    for row in &list.prefixes {
        text += &row.prefix;
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    #[test]
    fn the_list_fits_a_screen_of_80_columns() {
        let row = |number: u64| AvoidedPrefix {
            prefix: format!("http://a-host-with-a-long-name-{number}.example/and/a/path/"),
            keep: "http://another-host-with-a-long-name.example/and/a/path/".into(),
            why: vec!["redirect".into(), "mirror by content".into(), "exact copies".into()],
            pages: 12_345 * number,
            redirects: 2345,
            named: 12_345,
            lost: 1234,
            sample: Vec::new(),
        };
        let study = |study, state| StudyRead {
            study,
            state,
            of: Some(crate::records::Week::from_days(19_730)),
            command: Some(format!("nigh run jobs/{study}.toml --store crawls --week 2024-01-08")),
        };
        let list = AvoidList {
            store: PathBuf::from("crawls"),
            week: crate::records::Week::from_days(19_730),
            purity: 0.92,
            least: 10,
            studies: vec![
                study("collections", StudyState::Older),
                study("mirrors", StudyState::Missing),
                study("mirrors-by-url", StudyState::Later),
                study("overlap", StudyState::OfHosts),
            ],
            documents: 123_456_789,
            skipped: 12_345_678,
            lost: 123_456,
            prefixes: (0..25).map(row).collect(),
        };
        let lines = sheet(&list).lines(Some(80));
        assert!(lines.iter().all(|line| line.width() <= 80), "{lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("and 5 more")), "{lines:#?}");
        assert!(
            lines.iter().any(|line| line.contains("296,280")),
            "the prefix with the most pages is shown: {lines:#?}"
        );
        let file = prefix_file(&list);
        assert_eq!(file.lines().filter(|line| !line.starts_with('#')).count(), 25);
    }
}
