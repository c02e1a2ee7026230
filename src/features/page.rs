//! A page taken apart: from the bytes of a body to words, sketch, title and out-links.

use super::rabin::Polynomials;
use super::shingles::Shingler;
use super::sketch::{Sketch, Sketcher};
use crate::config::Method;
use crate::text::{charset, html, urls};

/// Takes pages apart; its buffers are reused from page to page.
pub struct Fingerprinter {
    shingler: Shingler,
    sketcher: Sketcher,
    fold_case: bool,
    max_links: usize,
    extract: html::Extract,
}

/// What a page says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageFacts {
    /// Words of the text.
    pub words: u64,
    /// Empty for a page without words.
    pub sketch: Sketch,
    /// White space folded, at most 512 bytes.
    pub title: String,
    /// Canonical URLs, distinct, in order of first appearance.
    pub links: Vec<String>,
}

impl Fingerprinter {
    /// The fingerprinter of a method; keeps `max_links` out-links of a page at most.
    pub fn new(method: &Method, polynomials: &Polynomials, max_links: usize) -> Fingerprinter {
        Fingerprinter {
            shingler: Shingler::new(polynomials.shingles, method.words),
            sketcher: Sketcher::new(method, polynomials),
            fold_case: method.fold_case,
            max_links,
            extract: html::Extract::default(),
        }
    }

    /// Takes an HTML page apart. `label` is the charset of its HTTP header.
    pub fn html(&mut self, body: &[u8], label: Option<&str>, page: &urls::Canonical) -> PageFacts {
        let (decoded, _) = charset::decode(body, label);
        let mut extract = std::mem::take(&mut self.extract);
        extract.clear();
        html::scan(&decoded, self.max_links, &mut extract);
        let mut facts = self.text(&extract.text);
        facts.title = std::mem::take(&mut extract.title);
        facts.links = urls::out_links(page, extract.base.as_deref(), &extract.hrefs);
        self.extract = extract;
        facts
    }

    /// Takes plain text apart, as bytes in some charset.
    pub fn plain(&mut self, body: &[u8], label: Option<&str>) -> PageFacts {
        self.text(&charset::decode(body, label).0)
    }

    /// Takes text apart from which markup is gone: no title, no links.
    pub fn text(&mut self, text: &str) -> PageFacts {
        let mut facts = PageFacts::default();
        let folded = self.fold_case.then(|| text.to_lowercase());
        let preimages = self.shingler.preimages(folded.as_deref().unwrap_or(text));
        facts.words = preimages.len() as u64;
        if !preimages.is_empty() {
            self.sketcher.sketch(preimages, &mut facts.sketch);
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::polynomials;

    fn fingerprinter(fold_case: bool) -> Fingerprinter {
        let method = Method { fold_case, ..Method::default() };
        Fingerprinter::new(&method, &polynomials(method.seed, method.features), 10)
    }

    #[test]
    fn markup_makes_no_words() {
        let page = urls::canonical("http://example.org/a/").unwrap();
        let facts = fingerprinter(false).html(
            b"<html><title>A  page</title><body class=x>One<b>two</b> three &eacute;t&eacute; <a href=\"../b#c\">four</a>",
            None,
            &page,
        );
        assert_eq!((facts.words, facts.title.as_str()), (7, "A page"));
        assert_eq!(facts.links, ["http://example.org/b"]);
        assert_eq!(facts.sketch, fingerprinter(false).text("A page One two three été four").sketch);
    }

    #[test]
    fn a_page_without_words_has_no_sketch() {
        let facts = fingerprinter(false).text(" -- ");
        assert_eq!((facts.words, facts.sketch), (0, Sketch::default()));
    }

    #[test]
    fn case_is_kept_unless_the_job_folds_it() {
        let sketch = |fold, text| fingerprinter(fold).text(text).sketch;
        assert_ne!(sketch(false, "The House"), sketch(false, "the house"));
        assert_eq!(sketch(true, "The House"), sketch(true, "the house"));
    }
}
