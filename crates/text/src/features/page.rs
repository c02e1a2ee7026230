//! Fingerprints documents: from the bytes of a page or text to words, sketch, title and out-links.

use anyhow::Result;
use nigh_kernels::kernels::{JoinedWords, Kernels, Polynomials, chosen, polynomials};
use nigh_kernels::structures::{TextList, WordSet};

use super::chunks::PageChunks;
use super::form::TextFormer;
use super::shingles::Shingler;
use super::sketch::{Sketch, Sketcher};
use crate::method::{Content, Method};
use crate::text::{charset, html, scan_content, urls};

/// Computes sketches, chunks, titles and links of documents; its buffers are reused from document
/// to document.
pub struct Fingerprinter {
    shingler: Shingler,
    sketcher: Sketcher,
    /// The words of a page, of which chunks are made; `None` if chunks are not kept.
    joined: Option<JoinedWords>,
    former: TextFormer,
    content: Content,
    max_links: usize,
    kernels: &'static Kernels,
    decoded: String,
    extract: html::Extract,
    distinct: WordSet,
}

/// What is read from one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageFacts {
    /// The number of words of the text.
    pub words: u64,
    /// The sketch of the text; empty for a document without words.
    pub sketch: Sketch,
    /// The chunks of the text; `None` for a document without words, and if the fingerprinter does
    /// not keep chunks.
    pub chunks: Option<PageChunks>,
    /// The title, each run of white space as one space, at most 512 bytes.
    pub title: String,
    /// Canonical URLs, distinct, in order of first appearance.
    pub links: TextList,
    /// Whether the method asks for the main content, and none was found: the text is that of the
    /// whole page.
    pub is_whole: bool,
}

/// The words of a text in the form in which they are compared, and the shingle that begins with
/// each, as a pre-image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordsAndShingles {
    /// The words.
    pub words: Vec<String>,
    /// As many.
    pub shingles: Vec<u64>,
}

impl Fingerprinter {
    /// Makes the fingerprinter of a method with its polynomials as the caller has them. It keeps at
    /// most `max_links` out-links of a page.
    ///
    /// # Errors
    /// If the method asks for the main content of pages, or for words of ICU, and this program is
    /// built without them.
    pub fn new(
        method: &Method,
        polynomials: &Polynomials,
        max_links: usize,
        kernels: &'static Kernels,
    ) -> Result<Fingerprinter> {
        method.content.check()?;
        method.rule.check()?;
        Ok(Fingerprinter {
            shingler: Shingler::of_method(polynomials.shingles, method, kernels),
            sketcher: Sketcher::new(method, polynomials, kernels),
            joined: None,
            former: TextFormer::of_method(method, kernels),
            content: method.content,
            max_links,
            kernels,
            decoded: String::new(),
            extract: html::Extract::default(),
            distinct: WordSet::default(),
        })
    }

    /// Makes the fingerprinter of a method, which finds its polynomials and its kernels itself and
    /// keeps no links: for comparing texts outside of a job.
    ///
    /// The search for the polynomials takes some milliseconds: make one fingerprinter and reuse it.
    ///
    /// ```
    /// use nigh_text::{method::Method, features::Fingerprinter};
    ///
    /// let mut fingerprinter = Fingerprinter::of_method(&Method::default())?;
    /// let facts = fingerprinter.text("Seven words make seven shingles of five.");
    /// assert_eq!((facts.words, facts.sketch.features.len(), facts.sketch.supershingles.len()), (7, 84, 6));
    /// # anyhow::Ok(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Fingerprinter::new); and if `NIGH_KERNELS` names a level of kernels that this
    /// machine does not have.
    pub fn of_method(method: &Method) -> Result<Fingerprinter> {
        Fingerprinter::new(method, &polynomials(method.seed, method.features), 0, chosen()?)
    }

    /// Finds chunks, too, if `keep` says so.
    ///
    /// ```
    /// use nigh_text::{method::Method, features::Fingerprinter};
    ///
    /// let mut fingerprinter = Fingerprinter::of_method(&Method::default())?.keeping_chunks(true);
    /// let chunks = fingerprinter.text("Two lines.\nOne paragraph.").chunks.unwrap_or_default();
    /// assert_eq!((chunks.lines.len(), chunks.paragraphs.len(), chunks.characters), (2 * 4, 8, 25));
    /// # anyhow::Ok(())
    /// ```
    #[must_use]
    pub fn keeping_chunks(mut self, keep: bool) -> Fingerprinter {
        self.joined = keep.then(JoinedWords::default);
        self
    }

    /// Computes the sketch of a text without markup, as a job does. A text without words has an
    /// empty sketch.
    ///
    /// # Panics
    /// If the text is longer than [`TEXT_BYTES`](nigh_kernels::kernels::TEXT_BYTES).
    pub fn sketch(&mut self, text: &str) -> Sketch {
        self.text(text).sketch
    }

    /// Reads an HTML page at the URL `page`, if it has one. `label` is the charset of its HTTP
    /// header.
    pub fn html(&mut self, body: &[u8], label: Option<&str>, page: Option<&urls::CanonicalUrl>) -> PageFacts {
        let mut extract = std::mem::take(&mut self.extract);
        let decoded = charset::decode_bytes(body, label, &mut self.decoded);
        let is_whole = scan_content(decoded, self.content, self.max_links, self.kernels, &mut extract);
        let mut facts = self.bytes(&extract.text, html::LINE_END);
        facts.is_whole = is_whole;
        facts.title = std::mem::take(&mut extract.title);
        facts.links = urls::out_links(page, extract.base.as_deref(), extract.hrefs.iter());
        self.extract = extract;
        facts
    }

    /// Reads plain text, as bytes in some charset. `label` is the charset of its HTTP header.
    pub fn plain(&mut self, body: &[u8], label: Option<&str>) -> PageFacts {
        let mut decoded = std::mem::take(&mut self.decoded);
        let facts = self.bytes(charset::decode_plain_bytes(body, label, &mut decoded), b'\n');
        self.decoded = decoded;
        facts
    }

    /// Reads text without markup: no title, no links.
    pub fn text(&mut self, text: &str) -> PageFacts {
        self.bytes(text.as_bytes(), b'\n')
    }

    /// The distinct shingles of an HTML page, as pre-images, in the order of their first words: the
    /// set of which a sketch is made. `label` is as for [`html`](Fingerprinter::html).
    pub fn html_shingles(&mut self, body: &[u8], label: Option<&str>) -> Vec<u64> {
        let mut extract = std::mem::take(&mut self.extract);
        let decoded = charset::decode_bytes(body, label, &mut self.decoded);
        scan_content(decoded, self.content, 0, self.kernels, &mut extract);
        let shingles = self.distinct_of(&extract.text);
        self.extract = extract;
        shingles
    }

    /// The distinct shingles of plain text, as [`html_shingles`](Fingerprinter::html_shingles).
    pub fn plain_shingles(&mut self, body: &[u8], label: Option<&str>) -> Vec<u64> {
        let mut decoded = std::mem::take(&mut self.decoded);
        let shingles = self.distinct_of(charset::decode_plain_bytes(body, label, &mut decoded));
        self.decoded = decoded;
        shingles
    }

    /// The distinct shingles of a text, as [`html_shingles`](Fingerprinter::html_shingles).
    ///
    /// ```
    /// use nigh_text::{method::Method, features::Fingerprinter};
    ///
    /// let mut fingerprinter = Fingerprinter::of_method(&Method::default())?;
    /// assert_eq!(fingerprinter.text_shingles("to be or not to be").len(), 6);
    /// assert_eq!(fingerprinter.text_shingles("to to to to to to").len(), 1);
    /// # anyhow::Ok(())
    /// ```
    pub fn text_shingles(&mut self, text: &str) -> Vec<u64> {
        self.distinct_of(text.as_bytes())
    }

    /// The words and shingles of an HTML page. `label` is as for [`html`](Fingerprinter::html).
    pub fn words_of_html(&mut self, body: &[u8], label: Option<&str>) -> WordsAndShingles {
        let mut extract = std::mem::take(&mut self.extract);
        let decoded = charset::decode_bytes(body, label, &mut self.decoded);
        scan_content(decoded, self.content, 0, self.kernels, &mut extract);
        let words = self.words_of(&extract.text);
        self.extract = extract;
        words
    }

    /// The words and shingles of plain text. `label` is the charset of its HTTP header.
    pub fn words_of_plain(&mut self, body: &[u8], label: Option<&str>) -> WordsAndShingles {
        let mut decoded = std::mem::take(&mut self.decoded);
        let words = self.words_of(charset::decode_plain_bytes(body, label, &mut decoded));
        self.decoded = decoded;
        words
    }

    /// The words and shingles of a text.
    ///
    /// ```
    /// use nigh_text::{method::Method, features::Fingerprinter};
    ///
    /// let mut fingerprinter = Fingerprinter::of_method(&Method::default())?;
    /// let read = fingerprinter.words_of_text("To be, or not to be");
    /// assert_eq!((read.words.join(" "), read.shingles.len()), ("To be or not to be".to_owned(), 6));
    /// # anyhow::Ok(())
    /// ```
    pub fn words_of_text(&mut self, text: &str) -> WordsAndShingles {
        self.words_of(text.as_bytes())
    }

    fn words_of(&mut self, text: &[u8]) -> WordsAndShingles {
        let text = self.former.form(text);
        let shingles = self.shingler.preimages(text).to_vec();
        let words = self.shingler.last_words(text).map(|word| String::from_utf8_lossy(word).into_owned());
        WordsAndShingles { words: words.collect(), shingles }
    }

    /// The shingles of the last document, as pre-images, one for each word.
    pub fn last_shingles(&self) -> &[u64] {
        self.shingler.last()
    }

    fn distinct_of(&mut self, text: &[u8]) -> Vec<u64> {
        distinct(self.shingler.preimages(self.former.form(text)), &mut self.distinct)
    }

    /// As [`text`](Fingerprinter::text), with `line_end` between the lines. Bytes that are not
    /// UTF-8 are not part of a word, and neither is U+FFFD, with which a decoder would replace
    /// them.
    fn bytes(&mut self, text: &[u8], line_end: u8) -> PageFacts {
        let mut facts = PageFacts::default();
        let text = self.former.form(text);
        let preimages = match &mut self.joined {
            Some(joined) => self.shingler.preimages_and_words(text, line_end, joined),
            None => self.shingler.preimages(text),
        };
        facts.words = preimages.len() as u64;
        if !preimages.is_empty() {
            self.sketcher.sketch(preimages, &mut facts.sketch);
        }
        if let Some(joined) = &mut self.joined {
            joined.leave_out(self.former.blanks());
        }
        facts.chunks = self.joined.as_ref().and_then(|joined| PageChunks::of(joined, self.kernels));
        facts
    }
}

/// The distinct words of `words`, in order; `set` is overwritten.
pub fn distinct(words: &[u64], set: &mut WordSet) -> Vec<u64> {
    set.reset(words.len());
    words.iter().copied().filter(|word| set.insert(*word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::TextForm;

    fn fingerprinter(fold_case: bool) -> Fingerprinter {
        let method = Method { form: TextForm { fold_case, ..TextForm::default() }, ..Method::default() };
        Fingerprinter::new(&method, &polynomials(method.seed, method.features), 10, chosen().unwrap()).unwrap()
    }

    #[test]
    fn the_short_way_gives_the_sketch_of_a_job() {
        let text = "one two three four five six seven";
        let short = Fingerprinter::of_method(&Method::default()).unwrap().sketch(text);
        assert_eq!(short, fingerprinter(false).text(text).sketch);
    }

    #[test]
    fn markup_makes_no_words() {
        let page = urls::canonical("http://example.org/a/").unwrap();
        let facts = fingerprinter(false).html(
            b"<html><title>A  page</title><body class=x>One<b>two</b> three &eacute;t&eacute; <a href=\"../b#c\">four</a>",
            None,
            Some(&page),
        );
        assert_eq!((facts.words, facts.title.as_str()), (7, "A page"));
        assert_eq!(facts.links, ["http://example.org/b"]);
        assert_eq!(facts.sketch, fingerprinter(false).text("A page One two three été four").sketch);
    }

    #[test]
    fn bytes_that_do_not_decode_end_words() {
        let facts = fingerprinter(true).plain(b"A\xffb \xc3 c\xe9", Some("utf-8"));
        assert_eq!((facts.words, facts.sketch), (3, fingerprinter(false).text("a b c").sketch));
    }

    #[test]
    fn a_page_without_words_has_no_sketch() {
        let facts = fingerprinter(false).text(" -- ");
        assert_eq!((facts.words, facts.sketch), (0, Sketch::default()));
    }

    #[test]
    fn lines_of_html_end_with_blocks_and_lines_of_text_where_the_text_has_them() {
        let page = urls::canonical("http://example.org/").unwrap();
        let mut fingerprinter = fingerprinter(false).keeping_chunks(true);
        let text = fingerprinter.text("A title\none two three\nfour").chunks;
        assert_eq!(text.as_ref().unwrap().lines.len(), 3 * 4);
        let html = b"<title>A title</title>\n<p>one\ntwo <b>three</b></p>four";
        assert_eq!(fingerprinter.html(html, None, Some(&page)).chunks, text);
        assert_eq!(fingerprinter.plain(b"A title\r\none two\tthree\r\nfour\r\n", None).chunks, text);
        assert_eq!(fingerprinter.text(" -- ").chunks, None);
    }

    #[test]
    fn chunks_change_nothing_else() {
        let (text, mut with) = ("One. Two three.\nFour", fingerprinter(true).keeping_chunks(true));
        let facts = with.text(text);
        let folded = with.text(&text.to_lowercase());
        assert_eq!(facts.chunks, folded.chunks, "words are folded in chunks, too");
        assert_eq!(PageFacts { chunks: None, ..facts }, fingerprinter(true).text(text));
    }

    #[test]
    fn case_is_kept_unless_the_job_folds_it() {
        let sketch = |fold, text| fingerprinter(fold).text(text).sketch;
        assert_ne!(sketch(false, "The House"), sketch(false, "the house"));
        assert_eq!(sketch(true, "The House"), sketch(true, "the house"));
    }
}
