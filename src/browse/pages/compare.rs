//! Two pages word by word.

use anyhow::Result;

use super::{Browse, named_link};
use crate::browse::difference::{DifferencePart, difference};
use crate::browse::html::{facts, heading, link, note, paragraph, short, text};
use crate::browse::request::AskedPage;
use crate::features::WordsAndShingles;
use crate::live::Refusal;
use crate::look::{LookedPage, TextComparison, compare_texts, sketches, words_of_pages};
use crate::markup::Html;
use crate::records::{DocId, Level};
use crate::sheet::{grouped, plural};

/// Words of each text that are compared, at most.
const MOST_WORDS: usize = 100_000;
/// Equal words that are shown before and after a change; the others can be unfolded.
const AROUND: usize = 40;
/// Changes that are linked.
const LINKED: usize = 40;

impl Browse<'_> {
    pub(super) fn compare(&self, docs: [DocId; 2]) -> Result<(String, Html)> {
        if docs[0] == docs[1] {
            return Err(Refusal::bad("A and B are the same page: choose two").into());
        }
        let pages = [self.one_page(docs[0])?, self.one_page(docs[1])?];
        let mut body = Html::default();
        body.own("<div class=\"pair\">\n");
        for (letter, page) in ["A", "B"].into_iter().zip(&pages) {
            body.own("<div><p>").own(letter).own(": ").add(&named_link(page)).own("</p>\n<p class=\"soft\">");
            body.add(&short(&page.title)).text(format!(" ({})", plural(page.words, "word"))).own("</p></div>\n");
        }
        body.own("</div>\n");
        let swapped = AskedPage::Compare { docs: [docs[1], docs[0]] };
        body.own("<p>").add(&link(&swapped, "Exchange A and B")).own("</p>\n");
        let mut said = self.levels(&pages);
        if pages.iter().all(|page| page.words > 0) {
            let of = sketches(self.week, docs)?;
            said.push((
                "sketches",
                text(format!(
                    "{} and {} are equal: about {:.2} similar",
                    plural(of.agreements as u64, "supershingle"),
                    plural(of.features as u64, "feature"),
                    of.similarity
                )),
            ));
        }
        // A file that cannot be read is told; the rest of the page is there all the same.
        let words = words_of_pages(self.week, &pages, &self.inputs, &self.reading);
        if let Ok(Some([a, b])) = &words {
            said.push(("texts", text(of_texts(&compare_texts(a, b, self.week.method.words)))));
        }
        body.add(&facts(&said)).add(&heading("Texts"));
        match words {
            Ok(Some([a, b])) => body.add(&of_words(&a, &b)),
            Ok(None) => body.add(&paragraph(
                "Their texts are not there: the crawl files are not where the run had them, or have \
                 other pages at these places. Give them with --input.",
            )),
            Err(error) => body.add(&paragraph(format!("Their texts could not be read: {error:#}"))),
        };
        Ok(("Two pages".to_owned(), body))
    }

    /// Whether the two are in one cluster, by level.
    fn levels(&self, pages: &[LookedPage; 2]) -> Vec<(&'static str, Html)> {
        let of_level = |(number, level): (usize, Level)| {
            let [a, b] = [&pages[0], &pages[1]].map(|page| page.clusters[number]);
            let said = if a.0 == b.0 {
                format!("one cluster, of {}", plural(a.1, "page"))
            } else {
                "different clusters".to_owned()
            };
            let said = match pages[0].cluster_id.filter(|_| level == Level::Similar && a.0 == b.0) {
                Some(id) => link(&AskedPage::Cluster { id, page: 1 }, said),
                None => text(said),
            };
            (level.title(), said)
        };
        (0..).zip(Level::ALL).map(of_level).collect()
    }
}

/// What is said of the similarity of two texts.
fn of_texts(texts: &TextComparison) -> String {
    if texts.either == 0 {
        return "without words: they are compared by their bytes".to_owned();
    }
    let [shared, either] = [texts.shared, texts.either].map(|count| grouped(count as u64));
    format!("{:.3} similar: {shared} of {either} shingles are in both", texts.similarity)
}

/// The words of both texts, with what B has more and less than A.
fn of_words(a: &WordsAndShingles, b: &WordsAndShingles) -> Html {
    let [of_a, of_b] = [a, b].map(|text| &text.words[..text.words.len().min(MOST_WORDS)]);
    let parts = difference(of_a, of_b);
    let mut html = Html::default();
    if [a, b].iter().any(|text| text.words.len() > MOST_WORDS) {
        html.add(&note(format!("Of each text the first {} words are compared.", grouped(MOST_WORDS as u64))));
    }
    let changes = parts.iter().filter(|part| !part.is_equal).count();
    if changes == 0 {
        html.add(&paragraph("Both have the same words in the same order."));
    } else {
        let count =
            |of: fn(&DifferencePart) -> usize| parts.iter().filter(|part| !part.is_equal).map(of).sum::<usize>() as u64;
        let [deleted, inserted] = [count(|part| part.deleted.len()), count(|part| part.inserted.len())];
        html.own("<p>").text(format!("From A to B: {}, ", plural(changes as u64, "change")));
        html.own("<del>[-").text(plural(deleted, "word")).own(" deleted-]</del>, <ins>{+");
        html.text(plural(inserted, "word")).own(" inserted+}</ins>. Changes:");
        for number in 1..=changes.min(LINKED) {
            html.own(" <a href=\"#change").text(number).own("\">").text(number).own("</a>");
        }
        html.own("</p>\n");
    }
    html.own("<div class=\"words\">\n<p>");
    let last = parts.len().saturating_sub(1);
    let mut change = 0;
    for (number, part) in parts.iter().enumerate() {
        if part.is_equal {
            add_equal(&of_a[part.deleted.clone()], number > 0, number < last, &mut html);
            continue;
        }
        change += 1;
        let mut has_anchor = false;
        let mut anchor = |html: &mut Html| {
            if !std::mem::replace(&mut has_anchor, true) {
                html.own(" id=\"change").text(change).own("\"");
            }
        };
        if !part.deleted.is_empty() {
            html.own("<del");
            anchor(&mut html);
            html.own(">[-").text(of_a[part.deleted.clone()].join(" ")).own("-]</del> ");
        }
        if !part.inserted.is_empty() {
            html.own("<ins");
            anchor(&mut html);
            html.own(">{+").text(of_b[part.inserted.clone()].join(" ")).own("+}</ins> ");
        }
    }
    html.own("</p>\n</div>\n");
    html
}

/// Equal words. In a long run those far from a change are folded.
fn add_equal(words: &[String], has_before: bool, has_after: bool, html: &mut Html) {
    let head = if has_before { AROUND } else { 0 };
    let tail = if has_after { AROUND } else { 0 };
    if words.len() <= head + tail + AROUND || !(has_before || has_after) {
        html.text(words.join(" ")).own(" ");
        return;
    }
    let (before, rest) = words.split_at(head);
    let (folded, after) = rest.split_at(rest.len() - tail);
    html.text(before.join(" ")).own("</p>\n<details><summary>").text(grouped(folded.len() as u64));
    html.own(" equal words</summary><p>").text(folded.join(" ")).own("</p></details>\n<p>");
    html.text(after.join(" ")).own(" ");
}
