//! The report of a week as one page of HTML: styles, script and plots are inside, and nothing is
//! fetched.
//!
//! In reading order: `escape` (text of others), `plots` (figures in SVG), `parts` (sheets as HTML,
//! tables that sort and filter), `clusters` and `weeks` (what is shown of them), `pictures`
//! (figures of the papers), `sections` (all that the page has). `style.css` and `script.js` are in
//! the page as they are here.
//!
//! Titles and URLs are those of others: everything is escaped, only http and https become links,
//! and a content security policy allows no script and no style but the page's own, which it knows
//! by their SHA-256.

mod clusters;
mod escape;
mod parts;
mod pictures;
mod plots;
mod sections;
mod weeks;

use std::path::Path;

use self::escape::escaped;
use self::sections::Section;
use crate::figures::{FigureFormat, MadeFigure};
use crate::look::Overview;
use crate::records::Week;

pub use self::escape::escaped as escaped_html;
#[cfg(feature = "live")]
pub(crate) use self::escape::{is_web_address, without_middle};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// What the policy calls them; a test says what these must be.
const STYLE_HASH: &str = "sha256-M9gR3/X+pjQ5M74Gs979c+MFP016iit9RvOJ5ZjvViQ=";
const SCRIPT_HASH: &str = "sha256-A31EKA13O/Y78YuCi4CruvNIApGVOD0asyBdXgdzRao=";

/// The page of a report.
pub fn page(overview: &Overview) -> String {
    let title = format!("Near-duplicates of {}, week {}", overview.summary.store.display(), overview.summary.week);
    of_sections(&title, &sections::all(overview))
}

/// The page of all figures of the papers.
pub fn figures_page(store: &Path, week: Week, figures: &[MadeFigure], formats: &[FigureFormat]) -> String {
    let paper_of = |made: &MadeFigure| made.figure.name.split(',').next().unwrap_or_default();
    let mut sections: Vec<Section> = Vec::new();
    for of_paper in figures.chunk_by(|a, b| paper_of(a) == paper_of(b)) {
        let paper = paper_of(&of_paper[0]);
        let id = paper.to_lowercase().replace(' ', "-");
        let body = of_paper.iter().map(|made| pictures::made(made, formats)).collect();
        sections.push(Section { id, title: paper.to_owned(), body });
    }
    of_sections(&format!("Figures of the papers from {}, until week {week}", store.display()), &sections)
}

/// A page of sections.
fn of_sections(title: &str, sections: &[Section]) -> String {
    let mut out = String::new();
    out.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str(&format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'\">\n",
        STYLE_HASH, SCRIPT_HASH
    ));
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str(&format!("<title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n", escaped(title)));
    out.push_str("<a class=\"skip\" href=\"#main\">Skip to the report</a>\n<header>\n");
    out.push_str(&format!("<h1>{}</h1>\n<nav aria-label=\"Sections\"><ul>\n", escaped(title)));
    for section in sections {
        out.push_str(&format!("<li><a href=\"#{}\">{}</a></li>\n", section.id, escaped(&section.title)));
    }
    out.push_str("</ul></nav>\n</header>\n<main id=\"main\">\n");
    for section in sections {
        out.push_str(&format!(
            "<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n",
            section.id,
            escaped(&section.title),
            section.body
        ));
    }
    out.push_str(&format!(
        "</main>\n<footer class=\"soft\"><p>Made by nigh {}.</p></footer>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    ));
    out
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    #[test]
    fn the_policy_names_the_style_and_the_script() {
        for (text, hash) in [(STYLE, STYLE_HASH), (SCRIPT, SCRIPT_HASH)] {
            let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
            let encoded = base64::engine::general_purpose::STANDARD.encode(digest.as_ref());
            assert_eq!(format!("sha256-{encoded}"), hash);
        }
    }
}
