//! How often the processes of a run may be started again: `restarts` of a config.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::pool::Time;

/// How often all processes are started again after a failure: a number in all, `3`, or a rate, `"3
/// in 10min"`.
///
/// Of a rate only restarts since the last progress count: a run that commits something between two
/// failures may have any number of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RestartsText", into = "String")]
pub struct Restarts {
    /// The most restarts.
    pub most: u32,
    /// The time in which they count; `None` if all restarts of the run do.
    pub within: Option<Duration>,
}

impl Default for Restarts {
    fn default() -> Restarts {
        Restarts { most: 3, within: Some(Duration::from_secs(10 * 60)) }
    }
}

/// The two forms of the key.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of restarts such as 3, or a rate such as \"3 in 10min\"")]
enum RestartsText {
    InAll(u32),
    Rate(String),
}

impl TryFrom<RestartsText> for Restarts {
    type Error = String;

    fn try_from(text: RestartsText) -> Result<Restarts, String> {
        let text = match text {
            RestartsText::InAll(most) => return Ok(Restarts { most, within: None }),
            RestartsText::Rate(text) => text,
        };
        let rate = text.split_once(" in ").and_then(|(most, time)| {
            let Time(within) = Time::try_from(time.trim().to_owned()).ok()?;
            Some(Restarts { most: most.trim().parse().ok()?, within: Some(within) })
        });
        rate.ok_or_else(|| {
            format!("restarts = {text:?}: write a number in all, such as 3, or a rate, such as \"3 in 10min\"")
        })
    }
}

impl From<Restarts> for String {
    fn from(restarts: Restarts) -> String {
        restarts.to_string()
    }
}

impl fmt::Display for Restarts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.within {
            None => write!(f, "{}", self.most),
            Some(within) => write!(f, "{} in {}", self.most, Time(within)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct RestartsTable {
        restarts: Restarts,
    }

    fn read(value: &str) -> Result<Restarts, String> {
        toml::from_str::<RestartsTable>(&format!("restarts = {value}"))
            .map(|table| table.restarts)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_number_is_of_the_whole_run_and_a_rate_has_a_time() {
        assert_eq!(read("5").unwrap(), Restarts { most: 5, within: None });
        let rate = read("\"4 in 90 s\"").unwrap();
        assert_eq!(rate, Restarts { most: 4, within: Some(Duration::from_secs(90)) });
        assert_eq!(rate.to_string(), "4 in 90s");
        assert_eq!(Restarts::default().to_string(), "3 in 10min");
    }

    #[test]
    fn other_forms_are_refused_with_both_that_are_allowed() {
        for value in ["\"3\"", "\"3 in 10\"", "\"x in 10min\"", "\"3 per 10min\"", "-1", "true"] {
            let error = read(value).unwrap_err();
            assert!(error.contains("such as 3") && error.contains("3 in 10min"), "{value}: {error}");
        }
    }
}
