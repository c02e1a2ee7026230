//! Pages of a made-up web: text, markup and links, with near-duplicates.
//!
//! Which documents are near-duplicates, and how one derives from another, is that of
//! [`MadeVectors`]. A page has the first text of its cluster with the edits of its line of
//! ancestors; an edit replaces a few words, so that about as many supershingles stay as the study
//! says. Lengths are those of the pages of a corpus of documentation, news and forums: 16
//! quantiles. Hosts hold 512, 256, 128 pages and so on, and have a menu and a footer that all their
//! pages share. The pages of a cluster have those of one host, so that copies are copies.
//!
//! Any page is computed by itself, the same on every machine.

use super::random::Random;
use super::vectors::{MadeVectors, Noise};
use super::words::{Script, Vocabulary, Word};
use crate::records::mix;

/// Words of a page: the 16-quantiles of a corpus of 2,572 pages, the last one cut.
const LENGTHS: [u64; 17] = [8, 48, 102, 137, 182, 223, 290, 379, 452, 532, 618, 737, 872, 1087, 1425, 1818, 4000];
/// Pages of the hosts of a block.
const HOSTS: [u64; 11] = [512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1];
/// Pages of all of them.
const BLOCK: u64 = 1024;
/// Links of the menu of a host, and words of its footer.
const MENU: u64 = 12;
const FOOTER: u64 = 20;
/// One word in so many is a link.
const WORDS_OF_LINK: u64 = 25;
/// Words of a paragraph, at most.
const PARAGRAPH: u64 = 120;
/// Words of a sentence: at least, and how many more at most.
const SENTENCE: (u64, u64) = (5, 20);
/// A page has one edited word for so many words at the most.
const WORDS_OF_EDIT: u64 = 130;
/// Bytes of styles and scripts of a host's pages.
const SCRIPT: usize = 3000;

/// The pages of a made-up web.
pub struct WebPages {
    synthetic: MadeVectors,
    documents: u64,
    vocabularies: [Vocabulary; 3],
}

/// The words of a page.
pub struct MadeText<'a> {
    vocabulary: &'a Vocabulary,
    words: Vec<Word>,
    /// The random number of its sentences and paragraphs, which near-duplicates share.
    shape: u64,
}

/// A host, and its pages.
struct MadeHost {
    /// Its number among all.
    number: u64,
    /// Its first page.
    first: u64,
    pages: u64,
}

/// What is around the text of a page.
struct Frame {
    /// The host whose menu and footer it has.
    host: MadeHost,
    /// The random number of its links.
    links: u64,
    /// Whether the page is one of a cluster, whose pages are on several hosts.
    is_shared: bool,
}

impl WebPages {
    /// The pages of `documents` documents, with a share of them changed since the first week: see
    /// [`MadeVectors::later`].
    pub fn new(documents: u64, change: f64) -> WebPages {
        let synthetic = MadeVectors::new(documents, Noise::default()).later(change);
        let vocabularies = [Script::Latin, Script::Cyrillic, Script::Han].map(Vocabulary::new);
        WebPages { synthetic, documents, vocabularies }
    }

    /// Whether a document changed since the first week.
    pub fn has_changed(&self, document: u64) -> bool {
        self.synthetic.has_changed(document)
    }

    /// The words of a document's page.
    pub fn text(&self, document: u64) -> MadeText<'_> {
        let lineage = self.synthetic.lineage(document);
        let (first, edits) = lineage.split_first().unwrap_or((&document, &[]));
        let mut random = Random(*first);
        let vocabulary = self.vocabulary(random.bits());
        let (quantile, rest) = (random.below(16) as usize, random.below(1 << 16));
        let length = LENGTHS[quantile] + (((LENGTHS[quantile + 1] - LENGTHS[quantile]) * rest) >> 16);
        let mut words: Vec<Word> = (0..length).map(|_| vocabulary.draw(random.bits())).collect();
        for edit in edits {
            let mut random = Random(*edit);
            for _ in 0..=random.below(length / WORDS_OF_EDIT + 1) {
                words[random.below(length) as usize] = vocabulary.draw(random.bits());
            }
        }
        MadeText { vocabulary, words, shape: mix(*first) }
    }

    /// Eight texts of ten are Latin, one is Cyrillic, one Han.
    fn vocabulary(&self, random: u64) -> &Vocabulary {
        &self.vocabularies[[0, 0, 0, 0, 0, 0, 0, 0, 1, 2][(random % 10) as usize]]
    }

    /// The URL of a document.
    pub fn url(&self, document: u64) -> String {
        let host = host_of(document);
        format!("http://www.site{}.example{}", host.number, self.path(document))
    }

    fn path(&self, document: u64) -> String {
        let (words, mut path) = (&self.vocabularies[0], String::from("/"));
        for place in 0..2 {
            // Pages of a host share their folders.
            let random = mix(if place == 0 { document / 32 } else { document } ^ place);
            words.write(Word::frequent(random), &mut path);
            path.push(if place == 0 { '/' } else { '-' });
        }
        path.retain(|letter| letter.is_ascii());
        path + &format!("{document}.html")
    }

    /// What is around the text of a document.
    fn frame(&self, document: u64, text: &MadeText<'_>) -> Frame {
        let is_shared = self.synthetic.is_clustered(document);
        let links = mix(text.shape ^ 0x6C69_6E6B);
        Frame { host: host_of(if is_shared { links % self.documents } else { document }), links, is_shared }
    }

    /// The reference to a document in a frame.
    fn reference(&self, frame: &Frame, target: u64) -> String {
        let is_here = !frame.is_shared && host_of(target).number == frame.host.number;
        if is_here { self.path(target) } else { self.url(target) }
    }

    /// A page of the web to link to: of the host, mostly.
    fn target(&self, host: &MadeHost, random: &mut Random) -> u64 {
        if random.below(5) == 0 {
            return random.below(self.documents);
        }
        (host.first + random.below(host.pages)).min(self.documents - 1)
    }

    /// Writes a document as HTML in UTF-8.
    pub fn html(&self, document: u64, out: &mut String) {
        let text = self.text(document);
        let frame = self.frame(document, &text);
        let mut random = Random(mix(frame.host.number ^ 0x686F_7374));
        let menu_words = self.vocabulary(mix(text.shape));
        out.push_str("<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<title>");
        text.title(out);
        out.push_str("</title>\n<link rel=\"stylesheet\" href=\"/static/theme.css?v=3\">\n<style>\n");
        let start = out.len();
        while out.len() < start + SCRIPT {
            out.push_str(&format!(
                ".c{:x} {{ margin: {}px; color: #{:06x}; }}\n",
                random.below(4096),
                random.below(64),
                random.below(1 << 24)
            ));
        }
        out.push_str("</style>\n</head>\n<body class=\"page page-template-default\">\n<nav class=\"menu\" role=\"navigation\">\n<ul>\n");
        for item in 0..MENU {
            let target = (frame.host.first + random.below(frame.host.pages)).min(self.documents - 1);
            out.push_str(&format!(
                "<li class=\"menu-item menu-item-type-post menu-item-{item}\"><a href=\"{}\">",
                self.reference(&frame, target)
            ));
            menu_words.write(menu_words.draw(random.bits()), out);
            out.push_str("</a></li>\n");
        }
        out.push_str("</ul>\n</nav>\n<main id=\"content\" class=\"site-content\">\n<h1 class=\"entry-title\">");
        text.title(out);
        out.push_str("</h1>\n");
        self.body(&frame, &text, out);
        out.push_str("</main>\n<footer class=\"site-footer\">\n<p>");
        for _ in 0..FOOTER {
            menu_words.write(menu_words.draw(random.bits()), out);
            out.push_str(menu_words.script.blank());
        }
        out.push_str("</p>\n</footer>\n</body>\n</html>\n");
    }

    /// Writes the paragraphs.
    fn body(&self, frame: &Frame, text: &MadeText<'_>, out: &mut String) {
        let mut links = Random(frame.links);
        out.push_str("<p class=\"entry\">");
        text.each_word(|word, ends| {
            let is_link = links.below(WORDS_OF_LINK) == 0;
            if is_link {
                let target = self.target(&frame.host, &mut links);
                out.push_str(&format!("<a href=\"{}\">", self.reference(frame, target)));
            }
            text.vocabulary.write(word, out);
            out.push_str(if is_link { "</a>" } else { "" });
            match ends {
                Ends::Word => out.push_str(text.vocabulary.script.blank()),
                Ends::Sentence => out.push_str(text.vocabulary.script.stop()),
                Ends::Paragraph => out.push_str(".</p>\n<p class=\"entry\">"),
            }
        });
        out.push_str("</p>\n");
    }
}

/// What ends with a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Word,
    Sentence,
    Paragraph,
}

impl MadeText<'_> {
    /// Writes the first words.
    pub fn title(&self, out: &mut String) {
        for (place, word) in self.words.iter().take(6).enumerate() {
            out.push_str(if place > 0 { self.vocabulary.script.blank() } else { "" });
            self.vocabulary.write(*word, out);
        }
    }

    /// Writes the text alone, a line for each paragraph.
    pub fn plain(&self, out: &mut String) {
        self.each_word(|word, ends| {
            self.vocabulary.write(word, out);
            match ends {
                Ends::Word => out.push_str(self.vocabulary.script.blank()),
                Ends::Sentence => out.push_str(self.vocabulary.script.stop()),
                Ends::Paragraph => out.push_str(".\n"),
            }
        });
    }

    /// Calls `each` for every word, with what ends there.
    fn each_word(&self, mut each: impl FnMut(Word, Ends)) {
        let mut shape = Random(self.shape);
        let length = |random: &mut Random| SENTENCE.0 + random.below(SENTENCE.1);
        let (mut sentence, mut paragraph) = (length(&mut shape), PARAGRAPH);
        for word in &self.words {
            sentence -= 1;
            paragraph = paragraph.saturating_sub(1);
            let ends = match (sentence, paragraph) {
                (0, 0) => Ends::Paragraph,
                (0, _) => Ends::Sentence,
                _ => Ends::Word,
            };
            each(*word, ends);
            if sentence == 0 {
                sentence = length(&mut shape);
            }
            if ends == Ends::Paragraph {
                paragraph = 1 + shape.below(PARAGRAPH);
            }
        }
    }
}

/// The host of a document.
fn host_of(document: u64) -> MadeHost {
    let (block, mut place) = (document / BLOCK, document % BLOCK);
    for (number, pages) in HOSTS.into_iter().enumerate() {
        if place < pages {
            let number = block * HOSTS.len() as u64 + number as u64;
            return MadeHost { number, first: document - place, pages };
        }
        place -= pages;
    }
    MadeHost { number: block * HOSTS.len() as u64, first: document, pages: 1 }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// The share of the words of two texts at the same place.
    fn likeness(a: &MadeText<'_>, b: &MadeText<'_>) -> f64 {
        let same = a.words.iter().zip(&b.words).filter(|(a, b)| a == b).count();
        same as f64 / a.words.len().max(b.words.len()) as f64
    }

    #[test]
    fn members_of_a_cluster_are_near_duplicates_and_others_are_not() {
        let pages = WebPages::new(20_000, 0.0);
        let mut clusters: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        (0..20_000).for_each(|document| clusters.entry(pages.synthetic.cluster(document)).or_default().push(document));
        let (mut same, mut pairs) = (0, 0);
        for members in clusters.values().filter(|members| members.len() > 1) {
            let [a, b] = [members[0], members[1]].map(|document| pages.text(document));
            assert!(likeness(&a, &b) > 0.8, "{members:?}");
            pairs += 1;
            same += u64::from(a.words == b.words);
            let html = |document| {
                let mut html = String::new();
                pages.html(document, &mut html);
                html
            };
            assert_eq!(a.words == b.words, html(members[0]) == html(members[1]), "{members:?}");
        }
        assert!(pairs > 1000 && (pairs / 4..pairs * 3 / 4).contains(&same), "{same} of {pairs}");
        let firsts: Vec<u64> = clusters.values().map(|members| members[0]).take(200).collect();
        for pair in firsts.windows(2) {
            assert!(likeness(&pages.text(pair[0]), &pages.text(pair[1])) < 0.5);
        }
    }

    #[test]
    fn a_later_week_has_the_changes_and_nothing_else() {
        let (first, later) = (WebPages::new(20_000, 0.0), WebPages::new(20_000, 0.1));
        let changed: Vec<u64> = (0..20_000).filter(|document| later.has_changed(*document)).collect();
        assert!((1800..2200).contains(&changed.len()), "{}", changed.len());
        let differ = |document: &u64| first.text(*document).words != later.text(*document).words;
        assert!(
            (0..20_000).filter(|document| !later.has_changed(*document)).take(2000).all(|document| !differ(&document))
        );
        let differing = changed.iter().filter(|document| differ(document)).count();
        assert!(differing * 100 > changed.len() * 98, "{differing} of {}", changed.len());
    }

    #[test]
    fn pages_have_urls_of_their_own_and_links_to_others() {
        let pages = WebPages::new(5000, 0.0);
        let urls: BTreeSet<String> = (0..5000).map(|document| pages.url(document)).collect();
        assert_eq!(urls.len(), 5000);
        let mut html = String::new();
        pages.html(7, &mut html);
        let host = "http://www.site0.example";
        let links = html.split("href=\"").skip(2).filter_map(|rest| rest.split('"').next());
        let links: Vec<String> =
            links.map(|link| if link.starts_with('/') { format!("{host}{link}") } else { link.to_owned() }).collect();
        assert!(links.len() as u64 >= MENU && links.iter().all(|link| urls.contains(link)), "{links:?}");
        let mean = (0..2000).map(|document| pages.text(document).words.len()).sum::<usize>() / 2000;
        assert!((550..750).contains(&mean), "{mean}");
    }
}
