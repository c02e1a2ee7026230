//! Values with a unit or a bound: sizes in bytes, lengths of time, shares, and counts of workers or
//! processes.

use std::fmt;
use std::str::FromStr;

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// A size in bytes, written as a number or with a unit.
///
/// ```
/// use nigh_readers::units::Bytes;
///
/// assert_eq!("512MiB".parse::<Bytes>(), Ok(Bytes(512 << 20)));
/// assert_eq!("16GB".parse::<Bytes>(), Ok(Bytes(16_000_000_000)));
/// assert_eq!("1048576".parse::<Bytes>(), Ok(Bytes(1 << 20)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "BytesText")]
pub struct Bytes(pub u64);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of bytes, or a text such as \"512MiB\" or \"16GB\"")]
pub(crate) enum BytesText {
    Number(u64),
    Text(String),
}

/// Units of [`Bytes`]. `B` comes last, because the others end with it.
const UNITS: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1000),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

impl TryFrom<BytesText> for Bytes {
    type Error = String;

    fn try_from(text: BytesText) -> Result<Bytes, String> {
        match text {
            BytesText::Number(number) => Ok(Bytes(number)),
            BytesText::Text(text) => text.parse(),
        }
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Bytes, String> {
        let (digits, unit) = UNITS
            .iter()
            .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?.trim_end(), *unit)))
            .unwrap_or((text, 1));
        let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        bytes.map(Bytes).ok_or_else(|| {
            format!("`{text}` is not a size: write a whole number and one of B, kB, KiB, MB, MiB, GB, GiB, TB, TiB")
        })
    }
}

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match units.into_iter().find(|(_, unit)| self.0 >= *unit) {
            None => write!(f, "{} B", self.0),
            Some((name, unit)) => write!(f, "{:.1} {name}", self.0 as f64 / unit as f64),
        }
    }
}

/// Formats a length of time, in seconds, for a message: in seconds below two minutes, in minutes
/// below two hours, else in hours. A negative length, as clocks of two machines can give, counts as
/// 0.
///
/// ```
/// assert_eq!([45, 3600, 86_400].map(nigh_readers::units::age), ["45 s", "60 min", "24 h"]);
/// ```
pub fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// A share from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Share(pub f64);

impl TryFrom<f64> for Share {
    type Error = String;

    fn try_from(value: f64) -> Result<Share, String> {
        if (0.0..=1.0).contains(&value) {
            Ok(Share(value))
        } else {
            Err(format!("{value} is not a share: allowed is 0.0 to 1.0"))
        }
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> f64 {
        share.0
    }
}

/// A number of workers or processes: 1 to 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Count(pub usize);

impl TryFrom<u64> for Count {
    type Error = String;

    fn try_from(value: u64) -> Result<Count, String> {
        match value {
            1..=1024 => Ok(Count(value as usize)),
            _ => Err(format!("{value}: allowed is 1 to 1024")),
        }
    }
}

impl From<Count> for u64 {
    fn from(count: Count) -> u64 {
        count.0 as u64
    }
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Count, String> {
        text.parse::<u64>().map_err(|_| format!("`{text}` is not a whole number"))?.try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_the_unit_that_fits() {
        assert_eq!([-5, 0, 119, 120, 7199, 7200].map(age), ["0 s", "0 s", "119 s", "2 min", "119 min", "2 h"]);
    }

    #[test]
    fn sizes_have_units() {
        let bytes = |text: &str| Bytes::try_from(BytesText::Text(text.into())).map(|b| b.0);
        assert_eq!(bytes("2GiB"), Ok(2 << 30));
        assert_eq!(bytes("2 GB"), Ok(2_000_000_000));
        assert_eq!(bytes("7"), Ok(7));
        assert!(bytes("-1B").is_err() && bytes("99999999999TiB").is_err());
    }
}
