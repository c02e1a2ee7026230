//! The part of a config that is about other machines, and about what happens when one fails.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One `[[hosts]]` table: where a process of the run is. A machine that is listed twice has two.
///
/// Every process has the same number of workers: the engine numbers them so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostTable {
    /// What `ssh` is to connect to: a name, `user@name`, or an alias of the user's ssh config.
    pub name: Destination,
    /// Where the other processes connect to: a name or an address; `name` without its user where it is not given.
    pub address: Option<String>,
    /// Where the process listens; `address` where it is not given.
    pub listen: Option<IpAddr>,
    /// The port that it listens at, or a range of which it takes the first that is free; the system's choice where it
    /// is not given.
    #[serde(default)]
    pub port: Ports,
    /// The program there; `copy` sends this one along.
    pub binary: Option<String>,
    /// Variables that the process gets.
    #[serde(default)]
    pub environment: Variables,
}

/// A destination that `ssh` cannot take for an option.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Destination(String);

impl Destination {
    /// As `ssh` takes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The machine, without the user.
    pub fn machine(&self) -> &str {
        self.0.rsplit_once('@').map_or(&self.0, |(_, machine)| machine)
    }
}

impl TryFrom<String> for Destination {
    type Error = String;

    fn try_from(text: String) -> Result<Destination, String> {
        let odd = |c: char| c.is_whitespace() || c.is_control();
        match text.is_empty() || text.starts_with('-') || text.contains(odd) {
            true => Err(format!("{text:?} is no destination of ssh: allowed are `name` and `user@name`")),
            false => Ok(Destination(text)),
        }
    }
}

impl From<Destination> for String {
    fn from(destination: Destination) -> String {
        destination.0
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The ports that a process may listen at: `2101`, or `"2101-2199"`; 0 is the system's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PortsText", into = "String")]
pub struct Ports {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a port such as 2101, or a range such as \"2101-2199\"")]
enum PortsText {
    Port(u16),
    Range(String),
}

impl TryFrom<PortsText> for Ports {
    type Error = String;

    fn try_from(text: PortsText) -> Result<Ports, String> {
        match text {
            PortsText::Port(port) => Ok(Ports { first: port, last: port }),
            PortsText::Range(text) => {
                let (first, last) = text.split_once('-').unwrap_or((&text, &text));
                match (first.trim().parse(), last.trim().parse()) {
                    (Ok(first), Ok(last)) if first <= last => Ok(Ports { first, last }),
                    _ => Err(format!("{text:?} are no ports: write 2101, or \"2101-2199\"")),
                }
            }
        }
    }
}

impl From<Ports> for String {
    fn from(ports: Ports) -> String {
        format!("{}-{}", ports.first, ports.last)
    }
}

/// Environment variables, with names that every shell takes, and values of one line: that is how a shell is told them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct Variables(pub BTreeMap<String, String>);

impl TryFrom<BTreeMap<String, String>> for Variables {
    type Error = String;

    fn try_from(variables: BTreeMap<String, String>) -> Result<Variables, String> {
        for (name, value) in &variables {
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !plain || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(format!("{name:?} is no name of a variable: allowed are letters, digits and `_`"));
            }
            if value.contains(['\0', '\n']) {
                return Err(format!("the value of {name} holds more than one line"));
            }
        }
        Ok(Variables(variables))
    }
}

impl From<Variables> for BTreeMap<String, String> {
    fn from(variables: Variables) -> BTreeMap<String, String> {
        variables.0
    }
}

/// A time with its unit: `"500ms"`, `"20s"`, `"15min"`, `"1h"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(pub Duration);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Time, String> {
        // The longer spelling of a suffix first.
        let units = [("ms", 1), ("min", 60_000), ("s", 1000), ("h", 3_600_000)];
        let millis = units.iter().find_map(|(suffix, millis)| {
            text.strip_suffix(suffix)?.trim_end().parse::<u64>().ok()?.checked_mul(*millis)
        });
        match millis {
            Some(millis @ 1..) => Ok(Time(Duration::from_millis(millis))),
            _ => Err(format!("`{text}` is no time: write a whole number above 0 and one of ms, s, min, h")),
        }
    }
}

impl From<Time> for String {
    fn from(time: Time) -> String {
        time.to_string()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            millis if millis % 3_600_000 == 0 => write!(f, "{}h", millis / 3_600_000),
            millis if millis % 60_000 == 0 => write!(f, "{}min", millis / 60_000),
            millis if millis % 1000 == 0 => write!(f, "{}s", millis / 1000),
            millis => write!(f, "{millis}ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Result<Time, String> {
        Time::try_from(text.to_owned())
    }

    #[test]
    fn times_have_units_and_say_them_again() {
        for text in ["500ms", "20s", "15min", "2h"] {
            assert_eq!(time(text).unwrap().to_string(), text);
        }
        assert_eq!(time("90 s").unwrap().0, Duration::from_secs(90));
        for text in ["20", "s", "-1s", "0s", "1d", "99999999999999999h"] {
            assert!(time(text).unwrap_err().contains("is no time"), "{text}");
        }
    }

    #[test]
    fn hosts_say_what_is_wrong_with_them() {
        let host = |text: &str| toml::from_str::<HostTable>(text).map_err(|error| error.to_string());
        let plain = host("name = \"me@node-1\"\nport = \"2101-2199\"").unwrap();
        assert_eq!((plain.name.machine(), plain.port), ("node-1", Ports { first: 2101, last: 2199 }));
        assert_eq!(host("name = \"n\"\nport = 7").unwrap().port, Ports { first: 7, last: 7 });
        for (text, wanted) in [
            ("name = \"-oProxyCommand=x\"", "is no destination"),
            ("name = \"a b\"", "is no destination"),
            ("name = \"n\"\nport = \"9-1\"", "are no ports"),
            ("name = \"n\"\nport = 70000", "a port such as 2101"),
            ("name = \"n\"\nworkers = 3", "unknown field `workers`"),
            ("name = \"n\"\n[environment]\n\"A=B;x\" = \"1\"", "is no name of a variable"),
            ("name = \"n\"\n[environment]\nA = \"1\\n2\"", "more than one line"),
        ] {
            let error = host(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
