//! What goes from the text of a record that stays: paragraphs, or passages.

use anyhow::{Result, ensure};
use nigh_text::features::WordReader;
use serde::{Deserialize, Serialize};

use super::paragraphs::without as without_lines;
use crate::config::Method;
use crate::kernels::TEXT_BYTES;
use crate::structures::Sortable;

/// Which passages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum WhichPassages {
    /// The first occurrence of each stays.
    Copies,
    /// None stays that stands more than once.
    All,
}

/// Where a text is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum CutAt {
    /// Before the first word that goes, and before the next one that stays.
    #[default]
    Words,
    /// Whole lines go, if each of their words does.
    Lines,
}

/// Which passages go, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassageRules {
    /// Which go.
    pub which: WhichPassages,
    /// Where texts are cut.
    pub cut: CutAt,
    /// The commit whose tables say what stands more than once.
    pub commit: u64,
}

/// A passage that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::export) struct PassagePlace {
    pub(in crate::export) file: u32,
    pub(in crate::export) offset: u64,
    /// Its first byte in the text of the record, and the byte after its last one.
    pub(in crate::export) bytes: [u64; 2],
}

impl Sortable for PassagePlace {
    type Key = PassagePlace;

    fn key(&self) -> PassagePlace {
        *self
    }

    fn weight(&self) -> usize {
        size_of::<PassagePlace>()
    }
}

/// What goes from a text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Gone {
    /// Nothing.
    #[default]
    Nothing,
    /// Paragraphs: the numbers of their lines, ascending.
    Paragraphs(Vec<u32>),
    /// Passages: their bytes, by the first one. They can overlap.
    Passages(Vec<[u64; 2]>, CutAt),
}

impl Gone {
    /// Whether nothing goes.
    pub(in crate::export) fn is_nothing(&self) -> bool {
        *self == Gone::Nothing
    }

    /// Adds a paragraph, by the number of its line.
    pub(in crate::export) fn add_paragraph(&mut self, line: u32) {
        match self {
            Gone::Paragraphs(lines) => lines.push(line),
            _ => *self = Gone::Paragraphs(vec![line]),
        }
    }

    /// Adds a passage, by its bytes.
    pub(in crate::export) fn add_passage(&mut self, bytes: [u64; 2], cut: CutAt) {
        match self {
            Gone::Passages(passages, _) => passages.push(bytes),
            _ => *self = Gone::Passages(vec![bytes], cut),
        }
    }
}

/// What is left of texts from which something goes.
pub(in crate::export) struct LeftTexts<'a> {
    /// Says what a word is.
    method: &'a Method,
    /// Made for the first passage: only passages end at words.
    reader: Option<WordReader>,
}

impl<'a> LeftTexts<'a> {
    /// Of documents that were compared in this way.
    pub(in crate::export) fn new(method: &'a Method) -> LeftTexts<'a> {
        LeftTexts { method, reader: None }
    }

    /// A text without what goes; `None` if no word, or no paragraph, is left.
    ///
    /// # Errors
    /// If this program cannot read words as the method does, or the text is too long for it.
    pub(in crate::export) fn of(&mut self, gone: &Gone, text: &str) -> Result<Option<String>> {
        let (passages, cut) = match gone {
            Gone::Nothing => return Ok(Some(text.to_owned())),
            Gone::Paragraphs(lines) => return Ok(without_lines(text, lines)),
            Gone::Passages(passages, cut) => (passages, cut),
        };
        ensure!(text.len() <= TEXT_BYTES, "passages are taken out of texts of at most {TEXT_BYTES} bytes");
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(WordReader::of_method(self.method)?),
        };
        let words = TextWords { text, places: reader.places(text) };
        let passages = words.united(passages);
        let left = match cut {
            CutAt::Words => words.without(&passages),
            CutAt::Lines => without_lines(text, &words.lines_of(&passages)).unwrap_or_default(),
        };
        Ok(Some(left).filter(|left| !reader.text(left).is_empty()))
    }

    /// The texts of the columns of a record, whose text was joined from them, without what goes
    /// from it. `None` for a column that has no text; one of which nothing is left is empty.
    ///
    /// # Errors
    /// As [`of`](LeftTexts::of).
    pub(in crate::export) fn of_columns(&mut self, gone: &Gone, texts: &[Option<&str>]) -> Result<Vec<Option<String>>> {
        let (mut left, mut first_byte, mut first_line) = (Vec::with_capacity(texts.len()), 0, 0);
        for text in texts {
            let of_column = text.unwrap_or_default();
            let end = first_byte + of_column.len() as u64;
            let lines = of_column.matches('\n').count() as u32 + 1;
            let gone = match gone {
                Gone::Nothing => Gone::Nothing,
                Gone::Paragraphs(gone) => {
                    let of_column = gone.iter().filter_map(|line| line.checked_sub(first_line));
                    Gone::Paragraphs(of_column.filter(|line| *line < lines).collect())
                }
                Gone::Passages(passages, cut) => {
                    let of_column = |[begin, stop]: &[u64; 2]| [(*begin).max(first_byte), (*stop).min(end)];
                    let of_column = passages.iter().map(of_column).filter(|[begin, stop]| begin < stop);
                    Gone::Passages(of_column.map(|range| range.map(|byte| byte - first_byte)).collect(), *cut)
                }
            };
            let is_same = match &gone {
                Gone::Nothing => true,
                Gone::Paragraphs(lines) => lines.is_empty(),
                Gone::Passages(passages, _) => passages.is_empty(),
            };
            left.push(match text {
                Some(text) if is_same => Some((*text).to_owned()),
                Some(text) => Some(self.of(&gone, text)?.unwrap_or_default()),
                None => None,
            });
            // The line break between two texts.
            (first_byte, first_line) = (end + 1, first_line + lines);
        }
        Ok(left)
    }
}

/// The words of a text, as its method reads them.
struct TextWords<'a> {
    text: &'a str,
    /// The first byte of each word, and the byte after its last one, in order.
    places: Vec<[u32; 2]>,
}

impl TextWords<'_> {
    /// Where the next word begins, at a byte or after it.
    fn next(&self, byte: usize) -> Option<usize> {
        let number = self.places.partition_point(|[start, _]| (*start as usize) < byte);
        self.places.get(number).map(|[start, _]| *start as usize)
    }

    /// Whether a word ends before this byte, with nothing between.
    fn ends_at(&self, byte: usize) -> bool {
        let number = self.places.partition_point(|[start, _]| (*start as usize) < byte);
        number.checked_sub(1).is_some_and(|number| self.places[number][1] as usize == byte)
    }

    /// Ranges of bytes that overlap, or have no word between them, become one.
    fn united(&self, passages: &[[u64; 2]]) -> Vec<[usize; 2]> {
        let text = self.text;
        let mut united: Vec<[usize; 2]> = Vec::new();
        for passage in passages {
            let [start, end] = passage.map(|byte| text.floor_char_boundary((byte as usize).min(text.len())));
            match united.last_mut() {
                Some(before) if start <= before[1] || self.next(before[1]).is_none_or(|word| start <= word) => {
                    before[1] = before[1].max(end);
                }
                _ => united.push([start, end]),
            }
        }
        united
    }

    /// The text without passages, each of which goes up to the next word. A line break behind one
    /// stays, if a line before it does; and where two words would become one, a blank comes between
    /// them.
    fn without(&self, passages: &[[usize; 2]]) -> String {
        let text = self.text;
        let mut left = String::with_capacity(text.len());
        let mut at = 0;
        for [start, end] in passages {
            left.push_str(&text[at..*start]);
            let next = self.next(*end);
            let gap = &text[*end..next.unwrap_or(text.len())];
            at = next.unwrap_or(text.len());
            if next.is_none() {
                left.truncate(left.trim_end().len());
            }
            let ends_line = gap.contains('\n') && !left.is_empty();
            let ends_with = left.trim_end_matches([' ', '\t', '\r']).chars().next_back();
            if ends_line && ends_with != Some('\n') && (next.is_some() || text.ends_with('\n')) {
                left.truncate(left.trim_end().len());
                left.push('\n');
            } else if next.is_some() && self.ends_at(*start) {
                left.push(' ');
            }
        }
        left.push_str(&text[at..]);
        left
    }

    /// The numbers of the lines that have words, all of them in passages.
    fn lines_of(&self, passages: &[[usize; 2]]) -> Vec<u32> {
        let (mut lines, mut begin, mut passages) = (Vec::new(), 0, passages.iter().peekable());
        for (number, line) in (0..).zip(self.text.split_inclusive('\n')) {
            let end = begin + line.len();
            // A word of some rules can have a line break in it.
            let first = self.places.partition_point(|[_, last]| *last as usize <= begin);
            let after = self.places.partition_point(|[start, _]| (*start as usize) < end);
            begin = end;
            let Some([[first, _], .., [_, last]] | [[first, last]]) = self.places.get(first..after) else { continue };
            let (first, last) = (*first as usize, *last as usize);
            while passages.next_if(|[_, end]| *end <= first).is_some() {}
            if passages.peek().is_some_and(|[start, end]| *start <= first && last <= *end) {
                lines.push(number);
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use nigh_text::method::{WordPattern, WordRule};

    use super::*;
    use crate::config::TextColumns;

    /// What is left of a text whose passages are in brackets.
    fn left(marked: &str, cut: CutAt) -> Option<String> {
        left_by(WordRule::default(), marked, ['[', ']'], cut)
    }

    /// The same, of words by a rule, whose passages begin and end at these characters.
    fn left_by(rule: WordRule, marked: &str, marks: [char; 2], cut: CutAt) -> Option<String> {
        let (mut text, mut gone, mut open) = (String::new(), Gone::Nothing, Vec::new());
        for c in marked.chars() {
            match c {
                c if c == marks[0] => open.push(text.len() as u64),
                c if c == marks[1] => gone.add_passage([open.pop().unwrap(), text.len() as u64], cut),
                c => text.push(c),
            }
        }
        if let Gone::Passages(passages, _) = &mut gone {
            passages.sort_unstable();
        }
        LeftTexts::new(&Method { rule, ..Method::default() }).of(&gone, &text).unwrap()
    }

    #[test]
    fn a_passage_goes_up_to_the_next_word() {
        for (marked, expected) in [
            ("Before. [A passage]. After.", "Before. After."),
            ("[A passage], and after", "and after"),
            ("Before [a passage].", "Before"),
            ("Before\n[a passage]\nafter\n", "Before\nafter\n"),
            ("Before [a passage].\nAfter", "Before\nAfter"),
            ("[A passage]\n\nafter", "after"),
            ("Before\n[a passage]\n", "Before\n"),
            ("(one)[two](three)", "(one)three)"),
            ("東[京]大", "東 大"),
            ("one [two] - [three] four", "one four"),
            ("one [two [three] four] five", "one five"),
            ("one [two] x [three] four", "one x four"),
            ("é [è] ü", "é ü"),
        ] {
            assert_eq!(left(marked, CutAt::Words).as_deref(), Some(expected), "{marked}");
        }
        assert_eq!(left("[All of it].", CutAt::Words), None);
        assert_eq!(left("Nothing", CutAt::Words).as_deref(), Some("Nothing"));
    }

    #[test]
    fn what_is_no_letter_stays_if_it_is_a_word() {
        let pattern = WordRule::Pattern(WordPattern::new(r"(?s)<[^>]*>|\S").unwrap());
        for (rule, marked, expected) in [
            (WordRule::Code, "start { «alpha = beta» ; } ; end", Some("start { ; } ; end")),
            (WordRule::Code, "f(«x») + 1", Some("f( ) + 1")),
            (WordRule::Code, "«a» + «b» c", Some("+ c")),
            (WordRule::Code, "«a = b» ;", Some(";")),
            (WordRule::Code, "«a = b ;» \u{7}", None),
            (WordRule::Characters, "a«b»! c", Some("a ! c")),
            (pattern.clone(), "a «<b\nc> d e» <f>", Some("a <f>")),
        ] {
            let left = left_by(rule, marked, ['«', '»'], CutAt::Words);
            assert_eq!(left.as_deref(), expected, "{marked}");
        }
        for (rule, marked, expected) in [
            (WordRule::Code, "«a = b» ;\n«c»\n};", Some("a = b ;\n};")),
            (WordRule::Code, "«a = b\nc» -- ", Some("c -- ")),
            (WordRule::Code, "«a\n;»\n", None),
            (pattern, "a <b\nc> «d\ne»", Some("a <b\nc> d")),
        ] {
            assert_eq!(left_by(rule, marked, ['«', '»'], CutAt::Lines).as_deref(), expected, "{marked}");
        }
    }

    #[test]
    fn what_goes_from_a_joined_text_goes_from_its_columns() {
        let columns = [Some("one\ntwo"), None, Some(""), Some("three four\nfive\n"), Some("six")];
        let texts = || columns.into_iter();
        let joined = TextColumns::joined(texts().map(|text| text.map(Cow::Borrowed))).unwrap();
        assert_eq!(joined, "one\ntwo\n\n\nthree four\nfive\n\nsix");
        let method = Method::default();
        let mut texts_left = LeftTexts::new(&method);
        let mut of_columns = |gone: &Gone| {
            let left = texts_left.of_columns(gone, &columns).unwrap();
            // What is left of the text is what is left of the columns.
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let all = TextColumns::joined(left.iter().map(|text| text.as_deref().map(Cow::Borrowed))).unwrap();
            let of_joined = texts_left.of(gone, &joined).unwrap();
            assert_eq!(words(&all), of_joined.map(|text| words(&text)).unwrap_or_default());
            assert_eq!((&left[1], left[2].as_deref()), (&None, Some("")));
            [&left[0], &left[3], &left[4]].map(|text| text.clone().unwrap())
        };
        let place = |word: &str| joined.find(word).unwrap() as u64;
        assert_eq!(of_columns(&Gone::Nothing), ["one\ntwo", "three four\nfive\n", "six"]);
        assert_eq!(of_columns(&Gone::Paragraphs(vec![1, 5])), ["one", "three four\n", "six"]);
        assert_eq!(of_columns(&Gone::Paragraphs(vec![0, 4, 7])), ["two", "five\n", ""]);
        assert_eq!(of_columns(&Gone::Paragraphs(vec![0, 1, 4, 5, 7])), ["", "", ""]);
        let gone = Gone::Passages(vec![[place("two"), place("four")]], CutAt::Words);
        assert_eq!(of_columns(&gone), ["one", "four\nfive\n", "six"]);
        let gone = Gone::Passages(vec![[place("two"), place("four")], [place("five"), place("six") + 3]], CutAt::Lines);
        assert_eq!(of_columns(&gone), ["one", "three four\n", ""]);
    }

    #[test]
    fn whole_lines_go() {
        for (marked, expected) in [
            ("Before [a\nwhole line,\nand] a part", "Before a\nand a part"),
            ("[one line]\ntwo [words\n* three *\nlines]", "two words"),
            ("one\n[two]\n\n[three]\nfour\n", "one\n\nfour\n"),
        ] {
            assert_eq!(left(marked, CutAt::Lines).as_deref(), Some(expected), "{marked}");
        }
        assert_eq!(left("[one\n\ntwo]\n --", CutAt::Lines), None);
    }
}
