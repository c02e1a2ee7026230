//! The part of a config about other machines: the `[[hosts]]` tables of a pool, and times with
//! units.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One `[[hosts]]` table: the machine of one process. A machine that is listed twice has two
/// processes.
///
/// All processes have the same number of workers, because the engine numbers workers that way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostTable {
    /// What `ssh` connects to: a name, `user@name`, or an alias in the user's ssh config. Required.
    pub name: SshDestination,
    /// The name or address to which the other processes connect. Default: `name` without its user.
    pub address: Option<String>,
    /// The address at which the process listens. Default: `address`.
    pub listen: Option<IpAddr>,
    /// The port at which the process listens, or a range of which it takes the first free one.
    /// Default: the system's choice.
    #[serde(default)]
    pub port: Ports,
    /// The program on this host: a path, a name, or `copy` to send this program. Default: the
    /// config's `binary`.
    pub binary: Option<String>,
    /// Environment variables of the process.
    #[serde(default)]
    pub environment: Variables,
}

/// A destination of `ssh`: `name` or `user@name`. It cannot be mistaken for an option.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SshDestination(String);

impl SshDestination {
    /// The argument for `ssh`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the machine, without the user.
    pub fn machine(&self) -> &str {
        self.0.rsplit_once('@').map_or(&self.0, |(_, machine)| machine)
    }
}

impl TryFrom<String> for SshDestination {
    type Error = String;

    fn try_from(text: String) -> Result<SshDestination, String> {
        let is_blank = |c: char| c.is_whitespace() || c.is_control();
        if text.is_empty() || text.starts_with('-') || text.contains(is_blank) {
            return Err(format!("{text:?} is not a destination of ssh: allowed are `name` and `user@name`"));
        }
        Ok(SshDestination(text))
    }
}

impl From<SshDestination> for String {
    fn from(destination: SshDestination) -> String {
        destination.0
    }
}

impl fmt::Display for SshDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The ports at which a process may listen: `2101`, or `"2101-2199"`. 0 is the system's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PortsText", into = "String")]
pub struct Ports {
    /// The first port of the range.
    pub first: u16,
    /// The last port of the range; the same as `first` if there is one port.
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
                    _ => Err(format!("{text:?} is not a port or a range: write 2101, or \"2101-2199\"")),
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

/// Environment variables. Names have letters, digits and `_`, values have one line, because they
/// pass through a shell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct Variables(pub BTreeMap<String, String>);

impl TryFrom<BTreeMap<String, String>> for Variables {
    type Error = String;

    fn try_from(variables: BTreeMap<String, String>) -> Result<Variables, String> {
        for (name, value) in &variables {
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !plain || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(format!("{name:?} is not the name of a variable: allowed are letters, digits and `_`"));
            }
            if value.contains(['\0', '\n']) {
                return Err(format!("the value of {name} has more than one line"));
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

/// A time with its unit: `"500ms"`, `"20s"`, `"15min"`, `"1h"`. Above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(pub Duration);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Time, String> {
        // `ms` comes before `s`, which it ends with.
        let units = [("ms", 1), ("min", 60_000), ("s", 1000), ("h", 3_600_000)];
        let millis = units.iter().find_map(|(suffix, millis)| {
            text.strip_suffix(suffix)?.trim_end().parse::<u64>().ok()?.checked_mul(*millis)
        });
        match millis {
            Some(millis @ 1..) => Ok(Time(Duration::from_millis(millis))),
            _ => Err(format!("`{text}` is not a time: write a whole number above 0 and one of ms, s, min, h")),
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
    fn times_have_units_and_are_printed_with_them() {
        for text in ["500ms", "20s", "15min", "2h"] {
            assert_eq!(time(text).unwrap().to_string(), text);
        }
        assert_eq!(time("90 s").unwrap().0, Duration::from_secs(90));
        for text in ["20", "s", "-1s", "0s", "1d", "99999999999999999h"] {
            assert!(time(text).unwrap_err().contains("is not a time"), "{text}");
        }
    }

    #[test]
    fn errors_in_hosts_show_what_is_wrong() {
        let host = |text: &str| toml::from_str::<HostTable>(text).map_err(|error| error.to_string());
        let plain = host("name = \"me@node-1\"\nport = \"2101-2199\"").unwrap();
        assert_eq!((plain.name.machine(), plain.port), ("node-1", Ports { first: 2101, last: 2199 }));
        assert_eq!(host("name = \"n\"\nport = 7").unwrap().port, Ports { first: 7, last: 7 });
        for (text, wanted) in [
            ("name = \"-oProxyCommand=x\"", "is not a destination"),
            ("name = \"a b\"", "is not a destination"),
            ("name = \"n\"\nport = \"9-1\"", "is not a port or a range"),
            ("name = \"n\"\nport = 70000", "a port such as 2101"),
            ("name = \"n\"\nworkers = 3", "unknown field `workers`"),
            ("name = \"n\"\n[environment]\n\"A=B;x\" = \"1\"", "is not the name of a variable"),
            ("name = \"n\"\n[environment]\nA = \"1\\n2\"", "more than one line"),
        ] {
            let error = host(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
