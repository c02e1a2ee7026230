//! The values of columns as text, as CSV and TSV have them.
//!
//! | value | text |
//! |---|---|
//! | null | nothing |
//! | empty text | `""` |
//! | text | as it is; between quotes, with its quotes doubled, if it has a separator, a quote or an end of line |
//! | number | decimal digits; the shortest that are read as the same number |
//! | boolean | `true` or `false` |
//! | date | `2024-01-08` |
//! | moment | `2024-01-08T00:00:00Z`, in UTC |
//! | bytes | hexadecimal digits |

use std::borrow::Cow;
use std::fmt::Write as _;

use anyhow::{Result, bail};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int32Array, Int64Array, StringArray, TimestampMicrosecondArray,
};

use crate::records::Week;
use crate::text::printable;

/// A column whose values are written as text.
pub(super) enum Cells<'a> {
    Boolean(&'a BooleanArray),
    Int(&'a Int32Array),
    Long(&'a Int64Array),
    Float(&'a Float32Array),
    Double(&'a Float64Array),
    Text(&'a StringArray),
    Bytes(&'a BinaryArray),
    FixedBytes(&'a FixedSizeBinaryArray),
    Date(&'a Date32Array),
    Moment(&'a TimestampMicrosecondArray),
}

/// How texts are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextStyle {
    /// What stands between two values.
    pub separator: char,
    /// Whether a person reads them on a terminal, where some characters act.
    pub is_for_terminal: bool,
}

impl<'a> Cells<'a> {
    /// The values of a column.
    ///
    /// # Errors
    /// If tables have no columns of its type.
    pub(super) fn of(column: &'a ArrayRef) -> Result<Cells<'a>> {
        macro_rules! first_of {
            ($($kind:ident: $array:ty),*) => {
                $(if let Some(values) = column.as_any().downcast_ref::<$array>() { return Ok(Cells::$kind(values)); })*
            };
        }
        first_of!(
            Long: Int64Array, Text: StringArray, Int: Int32Array, Double: Float64Array, Boolean: BooleanArray,
            Float: Float32Array, Bytes: BinaryArray, FixedBytes: FixedSizeBinaryArray, Date: Date32Array,
            Moment: TimestampMicrosecondArray
        );
        bail!("a column has the type {}, which is not written as text", column.data_type())
    }

    fn array(&self) -> &'a dyn Array {
        match self {
            Cells::Boolean(values) => *values,
            Cells::Int(values) => *values,
            Cells::Long(values) => *values,
            Cells::Float(values) => *values,
            Cells::Double(values) => *values,
            Cells::Text(values) => *values,
            Cells::Bytes(values) => *values,
            Cells::FixedBytes(values) => *values,
            Cells::Date(values) => *values,
            Cells::Moment(values) => *values,
        }
    }

    /// Adds the value of a row to a line.
    pub(super) fn push(&self, row: usize, style: TextStyle, line: &mut String) {
        if self.array().is_null(row) {
            return;
        }
        // Writing to a text cannot fail.
        let _ = match self {
            Cells::Boolean(values) => write!(line, "{}", values.value(row)),
            Cells::Int(values) => write!(line, "{}", values.value(row)),
            Cells::Long(values) => write!(line, "{}", values.value(row)),
            Cells::Float(values) => write!(line, "{:?}", values.value(row)),
            Cells::Double(values) => write!(line, "{:?}", values.value(row)),
            Cells::Date(values) => write!(line, "{}", Week::from_days(values.value(row))),
            Cells::Moment(values) => match jiff::Timestamp::from_microsecond(values.value(row)) {
                Ok(moment) => write!(line, "{moment}"),
                // A number that is no moment of the calendar.
                Err(_) => write!(line, "{}", values.value(row)),
            },
            Cells::Bytes(values) => push_bytes(values.value(row), line),
            Cells::FixedBytes(values) => push_bytes(values.value(row), line),
            Cells::Text(values) => {
                push_text(values.value(row), style, line);
                Ok(())
            }
        };
    }
}

fn push_bytes(bytes: &[u8], line: &mut String) -> std::fmt::Result {
    bytes.iter().try_for_each(|byte| write!(line, "{byte:02x}"))
}

/// Adds a text to a line, between quotes if it must be.
pub(super) fn push_text(text: &str, style: TextStyle, line: &mut String) {
    let text = if style.is_for_terminal { printable(text) } else { Cow::Borrowed(text) };
    let is_plain = !text.is_empty() && !text.contains([style.separator, '"', '\n', '\r']);
    if is_plain {
        line.push_str(&text);
        return;
    }
    line.push('"');
    line.push_str(&text.replace('"', "\"\""));
    line.push('"');
}

/// A line of CSV, with its end; `None` is a cell without a value.
///
/// ```
/// assert_eq!(nigh_store::query::csv_line([Some("a,b"), None, Some("")]), "\"a,b\",,\"\"\n");
/// ```
pub fn csv_line<'a>(cells: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let style = TextStyle { separator: ',', is_for_terminal: false };
    let mut line = String::new();
    for (place, cell) in cells.into_iter().enumerate() {
        line.extend((place > 0).then_some(style.separator));
        if let Some(text) = cell {
            push_text(text, style, &mut line);
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const CSV: TextStyle = TextStyle { separator: ',', is_for_terminal: false };

    fn text(column: ArrayRef, style: TextStyle) -> Vec<String> {
        let cells = Cells::of(&column).unwrap();
        let cell = |row| {
            let mut line = String::new();
            cells.push(row, style, &mut line);
            line
        };
        (0..column.len()).map(cell).collect()
    }

    #[test]
    fn values_are_written_as_the_table_says() {
        let texts = StringArray::from(vec![Some("a"), None, Some(""), Some("b,\"c\"\nd"), Some("e\tf")]);
        let texts: ArrayRef = Arc::new(texts);
        assert_eq!(text(texts.clone(), CSV), ["a", "", "\"\"", "\"b,\"\"c\"\"\nd\"", "e\tf"]);
        let tsv = TextStyle { separator: '\t', ..CSV };
        assert_eq!(text(texts, tsv)[4], "\"e\tf\"");
        let terminal = TextStyle { is_for_terminal: true, ..CSV };
        assert_eq!(text(Arc::new(StringArray::from(vec!["\u{1b}[2J"])), terminal), ["\\u{1b}[2J"]);
        assert_eq!(text(Arc::new(Float64Array::from(vec![0.1, 1.0, 1e-300])), CSV), ["0.1", "1.0", "1e-300"]);
        assert_eq!(text(Arc::new(Date32Array::from(vec![19_730])), CSV), ["2024-01-08"]);
        assert_eq!(text(Arc::new(BinaryArray::from_vec(vec![&[0, 255]])), CSV), ["00ff"]);
        let moments = TimestampMicrosecondArray::from(vec![0, 1_500_000]).with_timezone("UTC");
        assert_eq!(text(Arc::new(moments), CSV), ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01.5Z"]);
    }
}
