//! The first record of CSV, which has the names of the columns.
//!
//! Fields are found by the rules of `csv-core`, which the readers use: a quote counts only where it
//! begins a field, and line breaks before a record belong to none. That both find the same names is
//! checked for each file.

use std::borrow::Cow;
use std::ops::Range;

use anyhow::{Result, ensure};
use csv_core::{ReadRecordResult, ReaderBuilder};

use super::columns::NewNames;
use crate::export::rows::BYTE_ORDER_MARK;
use crate::readers::Input;

/// A name of a column.
#[derive(Debug)]
struct CsvName {
    /// Its place in the file, with its quotes.
    place: Range<usize>,
    /// Its text.
    text: Vec<u8>,
}

/// The names of the columns of a CSV file.
pub(in crate::export) struct CsvNames<'a> {
    /// What is before the records: the names, and line breaks around them.
    head: &'a [u8],
    delimiter: u8,
    names: Vec<CsvName>,
}

impl<'a> CsvNames<'a> {
    /// The names in the bytes before the first record; none if the last one has a quote that is not
    /// closed, as readers find none then.
    ///
    /// # Errors
    /// If the names are not those that readers find.
    pub(in crate::export) fn of(head: &'a [u8], delimiter: u8, input: &Input) -> Result<CsvNames<'a>> {
        let (names, of_reader) = (names(head, delimiter), names_of_reader(head, delimiter));
        let texts: Vec<&[u8]> = names.iter().map(|name| &name.text[..]).collect();
        ensure!(
            texts == of_reader,
            "the names of the columns of {} cannot be told apart: they are {} or {}. Write its first line with plain quotes",
            input.name,
            listed(&texts),
            listed(&of_reader)
        );
        Ok(CsvNames { head, delimiter, names })
    }

    /// The texts of the names.
    pub(in crate::export) fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.names.iter().map(|name| String::from_utf8_lossy(&name.text))
    }

    /// What is before the records, with other names for some columns.
    ///
    /// # Errors
    /// If one of them is that of another column.
    pub(in crate::export) fn renamed(&self, renamed: &NewNames, input: &Input) -> Result<Vec<u8>> {
        let texts: Vec<Cow<'_, str>> = self.texts().collect();
        renamed.check(texts.iter().map(AsRef::as_ref), &input.name)?;
        let (mut out, mut at) = (Vec::with_capacity(self.head.len()), 0);
        for (CsvName { place, .. }, old) in self.names.iter().zip(&texts) {
            let new = renamed.of(old);
            if new != old {
                out.extend_from_slice(&self.head[at..place.start]);
                out.extend_from_slice(csv_text(new, self.delimiter).as_bytes());
                at = place.end;
            }
        }
        out.extend_from_slice(&self.head[at..]);
        Ok(out)
    }
}

/// A text as a field of CSV.
pub(in crate::export) fn csv_text(text: &str, delimiter: u8) -> Cow<'_, str> {
    let is_special = |byte: u8| matches!(byte, b'"' | b'\r' | b'\n') || byte == delimiter;
    match text.bytes().any(is_special) {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => Cow::Borrowed(text),
    }
}

/// Names, for a message.
fn listed(names: &[impl AsRef<[u8]>]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", String::from_utf8_lossy(name.as_ref()))).collect();
    names.join(", ")
}

/// Where the first record begins: after a byte order mark and line breaks.
fn start_of(head: &[u8]) -> usize {
    let mark = if head.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    mark + head[mark..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}

/// What was read of a field.
enum FieldState {
    /// Nothing.
    Start,
    /// Text without quotes, or after them.
    Plain,
    /// Text within quotes.
    Quoted,
    /// A quote within quotes: it ends them, or is the first one of two.
    Quote,
}

/// The names in the first record.
fn names(head: &[u8], delimiter: u8) -> Vec<CsvName> {
    let mut start = start_of(head);
    // The parser takes a mark at its own beginning away, too.
    if head[start..].starts_with(BYTE_ORDER_MARK) {
        start += start_of(&head[start..]);
    }
    let (mut names, mut text, mut state, mut end) = (Vec::new(), Vec::new(), FieldState::Start, head.len());
    for (at, byte) in head.iter().enumerate().skip(start) {
        state = match (state, byte) {
            (FieldState::Start, b'"') => FieldState::Quoted,
            (FieldState::Quoted, b'"') => FieldState::Quote,
            (FieldState::Quoted, byte) => {
                text.push(*byte);
                FieldState::Quoted
            }
            (FieldState::Quote, b'"') => {
                text.push(b'"');
                FieldState::Quoted
            }
            (_, byte) if *byte == delimiter => {
                names.push(CsvName { place: start..at, text: std::mem::take(&mut text) });
                start = at + 1;
                FieldState::Start
            }
            (_, b'\r' | b'\n') => {
                end = at;
                state = FieldState::Plain;
                break;
            }
            (_, byte) => {
                text.push(*byte);
                FieldState::Plain
            }
        };
    }
    match state {
        FieldState::Quoted => return Vec::new(),
        FieldState::Start if names.is_empty() => {}
        _ => names.push(CsvName { place: start..end, text }),
    }
    names
}

/// The names that the readers find.
fn names_of_reader(head: &[u8], delimiter: u8) -> Vec<Vec<u8>> {
    let mut reader = ReaderBuilder::new().delimiter(delimiter).build();
    // The end of the file ends a record as a line break does.
    let input = [&head[start_of(head)..], b"\n"].concat();
    let (mut text, mut ends) = (vec![0; input.len() + 1], vec![0; input.len() + 1]);
    let (found, _, _, fields) = reader.read_record(&input, &mut text, &mut ends);
    if !matches!(found, ReadRecordResult::Record) {
        return Vec::new();
    }
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(&ends[..fields]).map(|(start, end)| text[start..*end].to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::readers::{Format, Location};

    fn renamed(new: &[&str], text: &str) -> Result<String, String> {
        let place = Location::File("x.csv".into());
        let (name, format) = ("x.csv".to_owned(), Format::Csv);
        let input = Input { name, bytes: 0, format, place, page_url: None, stamp: String::new(), reading: None };
        let new = NewNames::new(new.iter().map(|name| name.parse().unwrap()).collect()).unwrap();
        let renamed = CsvNames::of(text.as_bytes(), b',', &input).and_then(|names| names.renamed(&new, &input));
        renamed.map(|head| String::from_utf8(head).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_record_has_the_new_names() {
        let new = ["id=key", "a,b=c \"d\"", "text=x,y"];
        let text = "\u{feff}id,\"a,b\",text,\"q\"\"\"\r\n";
        assert_eq!(renamed(&new, text).as_deref(), Ok("\u{feff}key,\"c \"\"d\"\"\",\"x,y\",\"q\"\"\"\r\n"));
        assert_eq!(renamed(&["q\"=r"], text).as_deref(), Ok("\u{feff}id,\"a,b\",text,r\r\n"));
        assert!(renamed(&["id=text"], text).unwrap_err().contains("x.csv has a column `text`"));
        assert!(renamed(&["none=text"], text).unwrap_err().contains("x.csv has a column `text`"));
    }

    #[test]
    fn line_breaks_before_it_and_quotes_within_names_are_as_readers_see_them() {
        assert_eq!(renamed(&["text=body"], "\nid,text\n").as_deref(), Ok("\nid,body\n"));
        assert_eq!(renamed(&["text=body"], "\u{feff}\r\n\r\nid,text").as_deref(), Ok("\u{feff}\r\n\r\nid,body"));
        let text = "id,text,size 5\",note\n";
        assert_eq!(renamed(&["note=remark"], text).as_deref(), Ok("id,text,size 5\",remark\n"));
        assert_eq!(renamed(&["size 5\"=size"], text).as_deref(), Ok("id,text,size,note\n"));
        assert!(renamed(&["text=note"], text).unwrap_err().contains("has a column `note`"));
        assert_eq!(renamed(&["ab\"=c"], "\"a\"b\",d\n").as_deref(), Ok("c,d\n"));
    }

    proptest! {
        #[test]
        fn names_are_those_of_the_parser(text in "[\u{feff}]{0,2}[\r\n]{0,2}[ab,\"\r\n]{0,20}") {
            let names: Vec<Vec<u8>> = names(text.as_bytes(), b',').into_iter().map(|name| name.text).collect();
            prop_assert_eq!(names, names_of_reader(text.as_bytes(), b','));
        }
    }
}
