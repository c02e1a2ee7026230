//! The values of a row in the columns that [`Columns::values`](crate::reading::Columns::values)
//! names: texts, which have an order.
//!
//! Every format gives the same text for the same value, and the text says what it is: a number as
//! JSON writes it, a time that begins with a date (`2024-01-08`, ISO 8601, in UTC without a zone),
//! `true` and `false`; everything else is text. So the records of a CSV file have the order of the
//! same records in Parquet.
//!
//! ```text
//! booleans < numbers < times < texts; a missing value is last, in either direction
//! ```
//!
//! Limitations: numbers are compared as floats of 64 bits, whole ones of 64 bits exactly; of a text
//! the first [`LONGEST`] bytes count.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::readers::fields;

/// The bytes of a value that count, at most.
pub const LONGEST: usize = 120;

/// What a value is, in its order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColumnValue {
    /// `false` comes before `true`.
    Boolean(bool),
    /// The nearest float of 64 bits, as bits that ascend with it; and how much a whole number is
    /// above that.
    Number(u64, i16),
    /// Microseconds since 1970, UTC.
    Time(i64),
    /// Bytes of UTF-8.
    Text(String),
}

impl ColumnValue {
    /// What a text is; `None` if it is empty, or a float that is not finite: `NaN`, `-inf`,
    /// `1e999`.
    ///
    /// ```
    /// use nigh_readers::readers::ColumnValue;
    ///
    /// let of = |text| ColumnValue::of(text).unwrap();
    /// assert!(of("true") < of("-1e3") && of("-1e3") < of("9007199254740992") && of("9007199254740992") < of("9007199254740993"));
    /// assert!(of("10") < of("2024-01-08") && of("2024-01-08") == of("2024-01-08T01:00:00+01:00"));
    /// assert!(of("2024-01-08") < of("007") && of("10.0") == of("1e1") && ColumnValue::of("").is_none());
    /// ```
    pub fn of(text: &str) -> Option<ColumnValue> {
        // Programs write it in several ways, all of which Rust reads.
        if text.is_empty() || text.parse().is_ok_and(|float: f64| !float.is_finite()) {
            return None;
        }
        Some(match text {
            "true" => ColumnValue::Boolean(true),
            "false" => ColumnValue::Boolean(false),
            text => number(text).or_else(|| time(text)).unwrap_or_else(|| {
                let end = text.floor_char_boundary(LONGEST);
                ColumnValue::Text(text[..end].to_owned())
            }),
        })
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            ColumnValue::Number(bits, above) => {
                let sign = if bits >> 63 == 1 { 1 << 63 } else { u64::MAX };
                Some(f64::from_bits(bits ^ sign) + f64::from(*above))
            }
            _ => None,
        }
    }

    /// Appends bytes that have the order of values, or the opposite one; a missing value is last in
    /// both. The bytes of a value are never the beginning of another's, so values can follow each
    /// other.
    pub fn write_key(value: Option<&ColumnValue>, descends: bool, key: &mut Vec<u8>) {
        let start = key.len();
        match value {
            None => return key.push(u8::MAX),
            Some(ColumnValue::Boolean(value)) => key.extend([1, u8::from(*value)]),
            Some(ColumnValue::Number(bits, above)) => {
                key.push(2);
                key.extend(bits.to_be_bytes());
                key.extend((above.cast_unsigned() ^ 1 << 15).to_be_bytes());
            }
            Some(ColumnValue::Time(microseconds)) => {
                key.push(3);
                key.extend((microseconds.cast_unsigned() ^ 1 << 63).to_be_bytes());
            }
            Some(ColumnValue::Text(text)) => {
                key.push(4);
                // A byte 0 takes two; the key has no more for it.
                for byte in text.bytes() {
                    if key.len() - start > LONGEST {
                        break;
                    }
                    key.push(byte);
                    if byte == 0 {
                        key.push(u8::MAX);
                    }
                }
                key.extend([0, 0]);
            }
        }
        if descends {
            key[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

/// A number as JSON writes it: `007` and `+1` are texts.
fn number(text: &str) -> Option<ColumnValue> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = matches!(digits.as_bytes(), [b'0'] | [b'0', b'.' | b'e' | b'E', ..] | [b'1'..=b'9', ..]);
    if !is_number
        || !digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'))
    {
        return None;
    }
    let float: f64 = text.parse().ok()?;
    let above = match text.parse::<i128>() {
        Ok(whole) if i128::from(i64::MIN) <= whole && whole <= i128::from(u64::MAX) => whole - float as i128,
        _ => 0,
    };
    // Of zero there is one.
    let bits = (float + 0.0).to_bits();
    let bits = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    Some(ColumnValue::Number(bits, above as i16))
}

/// A time that begins with a date: `YYYY-MM-DD`.
fn time(text: &str) -> Option<ColumnValue> {
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1, ..] = text.as_bytes() else { return None };
    let is_date = [y0, y1, y2, y3, m0, m1, d0, d1].into_iter().all(u8::is_ascii_digit);
    if !is_date {
        return None;
    }
    fields::date(text).microseconds().map(ColumnValue::Time)
}

/// A text as the value of a column: the bytes of it that count.
pub(crate) fn of_text(text: Cow<'_, str>) -> Option<String> {
    let text = if text.len() > LONGEST { fields::cut(text, LONGEST).0 } else { text.into_owned() };
    Some(text).filter(|text| !text.is_empty())
}

/// Bytes as the value of a column, with invalid ones as U+FFFD.
pub(crate) fn of_bytes(bytes: &[u8]) -> Option<String> {
    of_text(fields::utf8(&bytes[..bytes.len().min(LONGEST + 3)]))
}

/// A float, by the shortest text that is read as it; `None` if it is not a number.
pub(crate) fn of_double(value: f64) -> Option<String> {
    value.is_finite().then(|| format!("{value:?}"))
}

/// As [`of_double`], of 32 bits.
pub(crate) fn of_float(value: f32) -> Option<String> {
    value.is_finite().then(|| format!("{value:?}"))
}

/// As [`of_double`], of 16 bits: one for the sign, five for the exponent, ten for the rest (IEEE
/// 754).
pub(crate) fn of_half(bits: u16) -> Option<String> {
    let (exponent, rest) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let value = match exponent {
        0 => rest * 2_f64.powi(-24),
        31 => return None,
        _ => (1024.0 + rest) * 2_f64.powi(exponent - 25),
    };
    of_double(if bits >> 15 == 1 { -value } else { value })
}

/// A decimal: a whole number with the point before the last `scale` digits.
pub(crate) fn of_decimal(whole: i128, scale: i32) -> String {
    let (sign, digits) = (if whole < 0 { "-" } else { "" }, whole.unsigned_abs().to_string());
    match usize::try_from(scale) {
        Ok(0) => format!("{sign}{digits}"),
        Ok(scale) => {
            let digits = format!("{digits:0>width$}", width = scale + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            format!("{sign}{whole}.{fraction}")
        }
        Err(_) => format!("{sign}{digits}e{}", -scale),
    }
}

/// A time, in microseconds since 1970, as ISO 8601; `None` if it is of no year of four digits.
pub(crate) fn of_time(microseconds: i64) -> Option<String> {
    Timestamp::from_microsecond(microseconds).ok().map(|time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_order_of_values() {
        let ascending = [
            "false",
            "true",
            "-1e300",
            "-9007199254740993",
            "-9007199254740992",
            "-1.5",
            "-1",
            "-0.1",
            "0",
            "1e-300",
            "0.1",
            "1",
            "1.5",
            "10",
            "9007199254740991",
            "9007199254740992",
            "9007199254740993",
            "9223372036854775807",
            "18446744073709551615",
            "1e300",
            "0001-01-01",
            "1969-12-31T23:59:59.5Z",
            "2024-01-08",
            "2024-01-08T00:00:00.000001Z",
            "+1",
            "007",
            "2024-13-08",
            "True",
            "a",
            "a\0",
            "a\0b",
            "ab",
            "b",
            "é",
        ];
        let values: Vec<_> =
            ascending.into_iter().map(|text| ColumnValue::of(text).unwrap()).map(Some).chain([None]).collect();
        let key = |value: &Option<ColumnValue>, descends| {
            let mut key = Vec::new();
            ColumnValue::write_key(value.as_ref(), descends, &mut key);
            // What follows does not matter.
            key.push(7);
            key
        };
        for (a, one) in values.iter().enumerate() {
            for (b, other) in values.iter().enumerate() {
                assert_eq!(key(one, false).cmp(&key(other, false)), a.cmp(&b), "{one:?} {other:?}");
                let expected = if one.is_none() || other.is_none() { a.cmp(&b) } else { b.cmp(&a) };
                assert_eq!(key(one, true).cmp(&key(other, true)), expected, "{one:?} {other:?} descending");
            }
        }
        assert_eq!(ColumnValue::of("-0"), ColumnValue::of("0"));
        assert_eq!(ColumnValue::of("-0.0"), ColumnValue::of("0"));
        assert_eq!(ColumnValue::of("-2.5").unwrap().number(), Some(-2.5));
        assert_eq!(ColumnValue::of("0").unwrap().number(), Some(0.0));
        assert_eq!(ColumnValue::of("x").unwrap().number(), None);
        for none in ["", "NaN", "nan", "inf", "-inf", "Inf", "Infinity", "-Infinity", "1e999", "-1e999"] {
            assert_eq!(ColumnValue::of(none), None, "{none}");
        }
        assert_eq!(ColumnValue::of("info"), Some(ColumnValue::Text("info".to_owned())));
    }

    #[test]
    fn values_of_all_types_are_texts_that_say_what_they_are() {
        assert_eq!([0.1, 5.0, 1e300, -1e-7].map(|value| of_double(value).unwrap()), ["0.1", "5.0", "1e300", "-1e-7"]);
        assert_eq!(
            (of_float(0.1).unwrap(), of_double(f64::NAN), of_float(f32::INFINITY)),
            ("0.1".to_owned(), None, None)
        );
        assert_eq!(
            [0x3c00, 0xc000, 0x0001, 0x7bff].map(|bits| of_half(bits).unwrap()),
            ["1.0", "-2.0", "5.960464477539063e-8", "65504.0"]
        );
        assert_eq!(of_half(0x7c00), None);
        assert_eq!(
            [(-5, 2), (1234, 2), (7, 0), (7, -2)].map(|(whole, scale)| of_decimal(whole, scale)),
            ["-0.05", "12.34", "7", "7e2"]
        );
        assert_eq!(of_time(1_704_675_723_500_000).as_deref(), Some("2024-01-08T01:02:03.5Z"));
        assert_eq!(of_text("é".repeat(100).into()), Some("é".repeat(60)));
        assert_eq!((of_text("".into()), of_bytes(b"a\xff")), (None, Some("a\u{fffd}".to_owned())));
    }
}
