//! The messages of the handshake, and what two processes must agree on.
//!
//! Later versions may add fields but keep these, so that two versions can report that they differ.

use serde::{Deserialize, Serialize};

use super::identity::Secret;
use super::roster::Roster;
use crate::text::printable;

/// The version of the handshake, and of what processes exchange after it: since 3 a container has
/// the number of its times.
const PROTOCOL: u32 = 3;

/// The sender of a message, and the run to which it belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Hello {
    /// The version of the handshake.
    protocol: u32,
    /// The version of the program.
    program: String,
    job: u64,
    epoch: u64,
    /// A hash of the whole roster.
    roster: u64,
    /// The process that sends.
    pub me: usize,
    /// The process that shall receive.
    pub you: usize,
    /// The secret of the run, if there are no certificates.
    pub secret: Option<Secret>,
}

/// A message of the handshake. The order is hello, welcome, joined; or refused instead.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// From the process that connects.
    Hello(Hello),
    /// From the process that accepts.
    Welcome(Hello),
    /// The connecting process has accepted, too.
    Joined,
    /// The sender refuses the connection, for this reason.
    Refused(String),
}

impl Hello {
    pub fn new(me: usize, you: usize, roster: &Roster, secret: Option<Secret>) -> Hello {
        let program = env!("CARGO_PKG_VERSION").to_owned();
        Hello {
            protocol: PROTOCOL,
            program,
            job: roster.job,
            epoch: roster.epoch,
            roster: roster.hash(),
            me,
            you,
            secret,
        }
    }

    /// Checks that the other process' hello agrees with this process' hello to it. The error has
    /// both values that differ.
    pub fn check(&self, other: &Hello) -> Result<(), String> {
        let (peer, me) = (other.me, self.me);
        let same = |verb: &str, theirs: &dyn std::fmt::Display, ours: &dyn std::fmt::Display| {
            let (theirs, ours) = (printable(&theirs.to_string()).into_owned(), ours.to_string());
            if theirs == ours {
                Ok(())
            } else {
                Err(format!("process {peer} {verb} {theirs}, process {me} {verb} {ours}"))
            }
        };
        same("joins by protocol version", &other.protocol, &self.protocol)?;
        same("is of program version", &other.program, &self.program)?;
        same("does job", &format_args!("{:016x}", other.job), &format_args!("{:016x}", self.job))?;
        same("is of epoch", &other.epoch, &self.epoch)?;
        same("has roster", &format_args!("{:016x}", other.roster), &format_args!("{:016x}", self.roster))?;
        if other.you != me {
            return Err(format!("process {peer} looks for process {}, and this is process {me}", other.you));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(me: usize, you: usize) -> Hello {
        let roster = Roster::new(7, 3, vec!["127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap()]);
        Hello::new(me, you, &roster, None)
    }

    #[test]
    fn every_difference_is_reported_with_both_values() {
        assert_eq!(hello(0, 1).check(&hello(1, 0)), Ok(()));
        let differs = |change: fn(&mut Hello), words: &[&str]| {
            let mut other = hello(1, 0);
            change(&mut other);
            let reason = hello(0, 1).check(&other).unwrap_err();
            words.iter().for_each(|word| assert!(reason.contains(word), "{word}: {reason}"));
        };
        differs(|hello| hello.protocol = 1, &["process 1 joins by protocol version 1", "process 0", "version 3"]);
        differs(|hello| hello.program = "9.9.9".into(), &["process 1 is of program version 9.9.9", "process 0"]);
        differs(|hello| hello.job = 8, &["process 1 does job 0000000000000008", "process 0 does job 0000000000000007"]);
        differs(|hello| hello.epoch = 2, &["process 1 is of epoch 2, process 0 is of epoch 3"]);
        differs(|hello| hello.roster = 1, &["process 1 has roster 0000000000000001", "process 0 has roster"]);
        differs(|hello| hello.you = 2, &["process 1 looks for process 2, and this is process 0"]);
    }
}
