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

use self::sections::Section;
use crate::figures::{FigureFormat, MadeFigure};
use crate::look::Overview;
use crate::markup::Html;
use crate::records::Week;

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
        let mut body = Html::default();
        of_paper.iter().for_each(|made| _ = body.add(&pictures::made(made, formats)));
        sections.push(Section { id, title: paper.to_owned(), body });
    }
    of_sections(&format!("Figures of the papers from {}, until week {week}", store.display()), &sections)
}

/// A page of sections.
fn of_sections(title: &str, sections: &[Section]) -> String {
    let mut html = Html::default();
    html.own("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.own("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '").own(STYLE_HASH);
    html.own("'; script-src '").own(SCRIPT_HASH).own("'; base-uri 'none'; form-action 'none'\">\n");
    html.own("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>").text(title);
    html.own("</title>\n<style>").own(STYLE).own("</style>\n</head>\n<body>\n");
    html.own("<a class=\"skip\" href=\"#main\">Skip to the report</a>\n<header>\n<h1>").text(title);
    html.own("</h1>\n<nav aria-label=\"Sections\"><ul>\n");
    for section in sections {
        html.own("<li><a href=\"#").text(&section.id).own("\">").text(&section.title).own("</a></li>\n");
    }
    html.own("</ul></nav>\n</header>\n<main id=\"main\">\n");
    for section in sections {
        html.own("<section id=\"").text(&section.id).own("\">\n<h2>").text(&section.title).own("</h2>\n");
        html.add(&section.body).own("</section>\n");
    }
    html.own("</main>\n<footer class=\"soft\"><p>Made by nigh ").own(env!("CARGO_PKG_VERSION"));
    html.own(".</p></footer>\n<script>").own(SCRIPT).own("</script>\n</body>\n</html>\n");
    html.into_text()
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
