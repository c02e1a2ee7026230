//! What goes from the text of a record that stays: paragraphs, or passages.

use serde::{Deserialize, Serialize};

use super::paragraphs::without as without_lines;
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

    /// A text without what goes; `None` if no word, or no paragraph, is left.
    pub(in crate::export) fn without(&self, text: &str) -> Option<String> {
        match self {
            Gone::Nothing => Some(text.to_owned()),
            Gone::Paragraphs(lines) => without_lines(text, lines),
            Gone::Passages(passages, cut) => {
                let passages = united(passages, text);
                let left = match cut {
                    CutAt::Words => without_passages(text, &passages),
                    CutAt::Lines => without_lines(text, &lines_of(text, &passages)).unwrap_or_default(),
                };
                left.contains(char::is_alphanumeric).then_some(left)
            }
        }
    }
}

/// The texts of the columns of a record, whose text was joined from them, without what
/// goes from it. `None` for a column that has no text; one of which nothing is left is empty.
pub(in crate::export) fn without_in_columns(gone: &Gone, texts: &[Option<&str>]) -> Vec<Option<String>> {
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
        left.push(text.map(|text| if is_same { text.to_owned() } else { gone.without(text).unwrap_or_default() }));
        // The line break between two texts.
        (first_byte, first_line) = (end + 1, first_line + lines);
    }
    left
}

/// Ranges of bytes that overlap, or have no word between them, become one.
fn united(passages: &[[u64; 2]], text: &str) -> Vec<[usize; 2]> {
    let mut united: Vec<[usize; 2]> = Vec::new();
    for passage in passages {
        let [start, end] = passage.map(|byte| text.floor_char_boundary((byte as usize).min(text.len())));
        match united.last_mut() {
            Some(before) if start <= before[1] || !text[before[1]..start].contains(char::is_alphanumeric) => {
                before[1] = before[1].max(end);
            }
            _ => united.push([start, end]),
        }
    }
    united
}

/// A text without passages, each of which goes up to the next word. A line break behind one stays,
/// if a line before it does; and where two words would become one, a blank comes between them.
fn without_passages(text: &str, passages: &[[usize; 2]]) -> String {
    let mut left = String::with_capacity(text.len());
    let mut at = 0;
    for [start, end] in passages {
        left.push_str(&text[at..*start]);
        let next = text[*end..].find(char::is_alphanumeric).map(|length| end + length);
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
        } else if next.is_some() && left.ends_with(char::is_alphanumeric) {
            left.push(' ');
        }
    }
    left.push_str(&text[at..]);
    left
}

/// The numbers of the lines that have words, all of them in passages.
fn lines_of(text: &str, passages: &[[usize; 2]]) -> Vec<u32> {
    let (mut lines, mut begin, mut passages) = (Vec::new(), 0, passages.iter().peekable());
    for (number, line) in (0..).zip(text.split_inclusive('\n')) {
        let first = line.find(char::is_alphanumeric).map(|at| begin + at);
        let last = line.char_indices().rfind(|(_, c)| c.is_alphanumeric()).map(|(at, c)| begin + at + c.len_utf8());
        begin += line.len();
        let (Some(first), Some(last)) = (first, last) else { continue };
        while passages.next_if(|[_, end]| *end <= first).is_some() {}
        if passages.peek().is_some_and(|[start, end]| *start <= first && last <= *end) {
            lines.push(number);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::config::TextColumns;

    /// A text whose passages are in brackets, without these, and what is left of it.
    fn left(marked: &str, cut: CutAt) -> Option<String> {
        let (mut text, mut gone, mut open) = (String::new(), Gone::Nothing, Vec::new());
        for c in marked.chars() {
            match c {
                '[' => open.push(text.len() as u64),
                ']' => gone.add_passage([open.pop().unwrap(), text.len() as u64], cut),
                c => text.push(c),
            }
        }
        if let Gone::Passages(passages, _) = &mut gone {
            passages.sort_unstable();
        }
        gone.without(&text)
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
            ("é[è]ü", "é ü"),
        ] {
            assert_eq!(left(marked, CutAt::Words).as_deref(), Some(expected), "{marked}");
        }
        assert_eq!(left("[All of it].", CutAt::Words), None);
        assert_eq!(left("Nothing", CutAt::Words).as_deref(), Some("Nothing"));
    }

    #[test]
    fn what_goes_from_a_joined_text_goes_from_its_columns() {
        let columns = [Some("one\ntwo"), None, Some(""), Some("three four\nfive\n"), Some("six")];
        let texts = || columns.into_iter();
        let joined = TextColumns::joined(texts().map(|text| text.map(Cow::Borrowed))).unwrap();
        assert_eq!(joined, "one\ntwo\n\n\nthree four\nfive\n\nsix");
        let of_columns = |gone: &Gone| {
            let left = without_in_columns(gone, &columns);
            // What is left of the text is what is left of the columns.
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let all = TextColumns::joined(left.iter().map(|text| text.as_deref().map(Cow::Borrowed))).unwrap();
            assert_eq!(words(&all), gone.without(&joined).map(|text| words(&text)).unwrap_or_default());
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
