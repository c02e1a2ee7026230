//! Made-up documents: their words, what edits do to them, and their HTML.

use nigh::records::mix;
use xxhash_rust::xxh3::xxh3_64;

/// SplitMix64 from a seed and a name: two names give independent sequences, so what one page draws
/// does not move another.
pub struct NamedRandom {
    state: u64,
}

impl NamedRandom {
    pub fn of(seed: u64, name: &str) -> NamedRandom {
        NamedRandom { state: mix(seed ^ xxh3_64(name.as_bytes())) }
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.number()) * end as u128) >> 64) as usize
    }

    /// A number from `least` to `most`, both included.
    pub fn within(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most + 1 - least)
    }

    /// A fraction from 0 to 1.
    pub fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A fraction between two.
    pub fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.share()
    }

    /// Whether an event of this probability happens.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// Shuffles items.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}

/// A vocabulary by Zipf's law: frequent words are short.
pub struct Language {
    words: Vec<String>,
}

impl Language {
    pub fn of(seed: u64) -> Language {
        let mut random = NamedRandom::of(seed, "language");
        let word = |rank: usize| {
            let most = 1 + (rank + 4).ilog2() as usize / 3;
            let syllables = random.within(1.max(most / 2), most);
            let mut word: String = (0..syllables)
                .flat_map(|_| [b"bdfghklmnprstvwz"[random.below(16)], b"aeiou"[random.below(5)]])
                .map(char::from)
                .collect();
            match random.below(100) {
                0 => word.push('é'),
                1..50 => word.push(char::from(b"nrst"[random.below(4)])),
                _ => {}
            }
            word
        };
        Language { words: (0..8_000).map(word).collect() }
    }

    /// A word of running text.
    fn word(&self, random: &mut NamedRandom) -> &str {
        &self.words[(self.words.len() as f64).powf(random.share()) as usize - 1]
    }

    /// A word that is rare in running text.
    pub fn rare(&self, random: &mut NamedRandom) -> &str {
        &self.words[random.within(1_000, self.words.len() - 1)]
    }

    /// A name for hosts and paths, of letters only.
    pub fn name(&self, random: &mut NamedRandom) -> String {
        self.rare(random).replace('é', "e")
    }

    /// So many words, as a title.
    pub fn title(&self, random: &mut NamedRandom, words: usize) -> String {
        capital(&(0..words).map(|_| self.rare(random)).collect::<Vec<_>>().join(" "))
    }

    /// A sentence of 8 to 18 words.
    pub fn sentence(&self, random: &mut NamedRandom) -> String {
        let words = random.within(8, 18);
        let mut sentence = String::new();
        for at in 0..words {
            sentence.push_str(self.word(random));
            sentence.push_str(match at + 1 {
                last if last == words => ".",
                _ if at % 7 == 5 => ", ",
                _ => " ",
            });
        }
        capital(&sentence)
    }

    /// So many sentences.
    pub fn sentences(&self, random: &mut NamedRandom, sentences: usize) -> String {
        (0..sentences).map(|_| self.sentence(random)).collect::<Vec<_>>().join(" ")
    }

    /// A block as manuals have them: mostly a paragraph.
    fn block(&self, random: &mut NamedRandom) -> TextBlock {
        match random.below(8) {
            0 => TextBlock::Heading(self.title(random, 4)),
            1 => TextBlock::Items((0..random.within(3, 5)).map(|_| self.sentence(random)).collect()),
            2 => {
                let line = |random: &mut NamedRandom| {
                    let (call, argument) = (self.rare(random), self.rare(random));
                    format!("{call}({argument}, {});", random.below(1_000))
                };
                TextBlock::Code((0..random.within(2, 5)).map(|_| line(random)).collect::<Vec<_>>().join("\n"))
            }
            _ => {
                let sentences = random.within(2, 5);
                TextBlock::Text(self.sentences(random, sentences))
            }
        }
    }

    /// Blocks of at least so many words together; the first is a paragraph.
    pub fn blocks(&self, random: &mut NamedRandom, words: usize) -> Vec<TextBlock> {
        let mut blocks = vec![TextBlock::Text(self.sentences(random, 2))];
        let mut made = blocks[0].words();
        while made < words {
            let block = self.block(random);
            made += block.words();
            blocks.push(block);
        }
        blocks
    }

    /// Replaces one short run of words: the result keeps a resemblance above 0.8, mostly 0.9 and
    /// more.
    pub fn edit_lightly(&self, doc: &MadeDocument, random: &mut NamedRandom) -> MadeDocument {
        let mut doc = doc.clone();
        let most = (doc.words() / 25).max(1);
        let texts = doc.blocks.iter_mut().filter_map(|block| match block {
            TextBlock::Text(text) => Some(text),
            _ => None,
        });
        let mut texts: Vec<&mut String> = texts.collect();
        let chosen = random.below(texts.len());
        let text = &mut *texts[chosen];
        let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        let run = random.within(1, most).min(words.len());
        let start = random.below(words.len() + 1 - run);
        for word in &mut words[start..start + run] {
            let mark = if word.ends_with(['.', ',']) { word.pop().map(String::from) } else { None };
            let mut other = self.rare(random);
            while other == word {
                other = self.rare(random);
            }
            *word = other.to_owned() + &mark.unwrap_or_default();
        }
        *text = words.join(" ");
        doc
    }

    /// Replaces the later half of the blocks: the result keeps a resemblance of a third or so.
    pub fn edit_heavily(&self, doc: &MadeDocument, random: &mut NamedRandom) -> MadeDocument {
        let mut doc = doc.clone();
        let half = doc.words() / 2;
        let mut dropped = 0;
        while dropped < half {
            dropped += doc.blocks.pop().map_or(half, |block| block.words());
        }
        doc.blocks.extend(self.blocks(random, dropped));
        doc
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// A part of a document that stands on lines of its own.
#[derive(Clone, PartialEq)]
pub enum TextBlock {
    Heading(String),
    Text(String),
    Items(Vec<String>),
    Code(String),
}

impl TextBlock {
    fn text(&self) -> String {
        match self {
            TextBlock::Heading(text) | TextBlock::Text(text) | TextBlock::Code(text) => text.clone(),
            TextBlock::Items(items) => items.join("\n"),
        }
    }

    fn words(&self) -> usize {
        nigh::text::words(&self.text()).count()
    }

    fn html(&self) -> String {
        match self {
            TextBlock::Heading(text) => format!("<h2>{text}</h2>\n"),
            TextBlock::Text(text) => format!("<p>{text}</p>\n"),
            TextBlock::Code(text) => format!("<pre>{text}</pre>\n"),
            TextBlock::Items(items) => {
                format!("<ul>\n{}</ul>\n", items.iter().map(|item| format!("<li>{item}</li>\n")).collect::<String>())
            }
        }
    }
}

/// A link: `href` as it stands in the page, which is relative within a directory, so that a copied
/// directory keeps its links.
#[derive(Clone, PartialEq)]
pub struct Anchor {
    pub href: String,
    pub label: String,
}

/// What a page says.
#[derive(Clone, PartialEq, Default)]
pub struct MadeDocument {
    pub title: String,
    /// The line at the top and at the bottom of all pages of a site.
    pub header: String,
    pub footer: String,
    pub blocks: Vec<TextBlock>,
    pub links: Vec<Anchor>,
}

impl MadeDocument {
    /// The words of its blocks.
    pub fn words(&self) -> usize {
        self.blocks.iter().map(TextBlock::words).sum()
    }

    /// The text: what is left of [`MadeDocument::html`] without markup, a line for each block.
    pub fn text(&self) -> String {
        let blocks = self.blocks.iter().map(TextBlock::text);
        let links = self.links.iter().map(|link| link.label.clone());
        let ends = |line: &String| Some(line.clone()).filter(|line| !line.is_empty());
        let lines = [self.title.clone()].into_iter().chain(ends(&self.header)).chain(blocks);
        lines.chain(links).chain(ends(&self.footer)).collect::<Vec<_>>().join("\n")
    }

    pub fn html(&self) -> String {
        let line = |text: &str| if text.is_empty() { String::new() } else { format!("<div>{text}</div>\n") };
        let link = |link: &Anchor| format!("<li><a href=\"{}\">{}</a></li>\n", link.href, link.label);
        let mut html = format!(
            "<!DOCTYPE html>\n<html>\n<head><meta charset=\"utf-8\"><title>{}</title></head>\n<body>\n{}",
            self.title,
            line(&self.header)
        );
        html.extend(self.blocks.iter().map(TextBlock::html));
        if !self.links.is_empty() {
            html += &format!("<ul>\n{}</ul>\n", self.links.iter().map(link).collect::<String>());
        }
        html + &line(&self.footer) + "</body>\n</html>\n"
    }
}
