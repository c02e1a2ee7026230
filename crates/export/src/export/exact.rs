//! A number with a fraction as text, which is read as it was written: `serde_json` reads the last
//! bit of some numbers in another way.

use std::fmt::Display;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes the shortest text that is this number.
pub(super) fn serialize<T: Copy + Into<f64>, S: Serializer>(number: &T, serializer: S) -> Result<S::Ok, S::Error> {
    let number: f64 = (*number).into();
    serializer.collect_str(&number)
}

/// Reads such a text; or a number, as it was written before.
///
/// # Errors
/// If it is neither, or not allowed.
pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: TryFrom<f64, Error: Display>,
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Number(f64),
    }

    let number = match Written::deserialize(deserializer)? {
        Written::Text(text) => text.parse().map_err(D::Error::custom)?,
        Written::Number(number) => number,
    };
    T::try_from(number).map_err(D::Error::custom)
}
