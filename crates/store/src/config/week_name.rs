//! The name of a week in a job or a flag: a date, or a word for one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::records::Week;

/// A week as a user names it: by its date, or by the date of the clock. All dates are UTC.
///
/// ```
/// use nigh_store::config::WeekName;
///
/// let sunday = "2024-01-14".parse()?;
/// let date_of = |name: &str| Ok::<_, String>(name.parse::<WeekName>()?.date(sunday).to_string());
/// assert_eq!(date_of("2024-01-01")?, "2024-01-01");
/// assert_eq!(date_of("today")?, "2024-01-14");
/// assert_eq!(date_of("monday")?, "2024-01-08");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum WeekName {
    /// `YYYY-MM-DD`.
    Date(Week),
    /// `today`: the date on which the run begins.
    Today,
    /// `monday`: the Monday of that date's week, which is the date itself on a Monday.
    Monday,
}

impl WeekName {
    /// The date that it stands for on the day `today`.
    pub fn date(self, today: Week) -> Week {
        match self {
            WeekName::Date(week) => week,
            WeekName::Today => today,
            // The day 0, 1970-01-01, is a Thursday.
            WeekName::Monday => Week::from_days(today.days() - (today.days() + 3).rem_euclid(7)),
        }
    }
}

impl fmt::Display for WeekName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WeekName::Date(week) => week.fmt(f),
            WeekName::Today => f.write_str("today"),
            WeekName::Monday => f.write_str("monday"),
        }
    }
}

impl FromStr for WeekName {
    type Err = String;

    fn from_str(text: &str) -> Result<WeekName, String> {
        match text {
            "today" => Ok(WeekName::Today),
            "monday" => Ok(WeekName::Monday),
            _ => {
                text.parse().map(WeekName::Date).map_err(|error: String| format!("{error}, nor `today`, nor `monday`"))
            }
        }
    }
}

impl TryFrom<String> for WeekName {
    type Error = String;

    fn try_from(text: String) -> Result<WeekName, String> {
        text.parse()
    }
}

impl From<WeekName> for String {
    fn from(name: WeekName) -> String {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monday_is_the_day_of_which_a_walk_back_says_so() {
        // A Monday, and the days around it, over years with and without a 29th of February.
        let monday: Week = "2023-12-25".parse().unwrap();
        for day in -800..800 {
            let today = Week::from_days(monday.days() + day);
            let mut expected = monday.days() - 7 * 200;
            while expected + 7 <= today.days() {
                expected += 7;
            }
            assert_eq!(WeekName::Monday.date(today), Week::from_days(expected), "{today}");
        }
        // Before 1970.
        assert_eq!(WeekName::Monday.date("1969-12-31".parse().unwrap()).to_string(), "1969-12-29");
    }

    #[test]
    fn names_are_written_as_they_are_read() {
        for text in ["today", "monday", "2024-01-08"] {
            assert_eq!(text.parse::<WeekName>().unwrap().to_string(), text);
        }
        for text in ["", "Today", "tuesday", "2024-1-8"] {
            let error = text.parse::<WeekName>().unwrap_err();
            assert!(error.contains("YYYY-MM-DD, nor `today`, nor `monday`"), "{error}");
        }
    }
}
