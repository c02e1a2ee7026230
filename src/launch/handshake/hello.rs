//! What two processes tell each other before they work together, and what they refuse.
//!
//! Later versions may add fields and keep those that are here, so that versions can tell each other that they differ.

use serde::{Deserialize, Serialize};

use super::identity::Secret;
use super::roster::Roster;

/// The version of joining: of the words, and of who says which.
const PROTOCOL: u32 = 2;
/// Who speaks, and of which run it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Hello {
    /// The version of joining.
    protocol: u32,
    /// The version of the program: what processes exchange has no other.
    program: String,
    job: u64,
    epoch: u64,
    /// A hash of the whole roster.
    roster: u64,
    /// The process that speaks.
    pub me: usize,
    /// The process that it speaks to.
    pub you: usize,
    /// What only processes of the run know, where there are no certificates.
    pub secret: Option<Secret>,
}

/// What is said, in this order: hello, welcome, joined; or a reason instead.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Message {
    /// Who connects.
    Hello(Hello),
    /// Who accepts.
    Welcome(Hello),
    /// Who connects accepts, too.
    Joined,
    /// Not with each other, and why.
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

    /// Whether what the other process says goes with what this one would say to it; else the reason, with both values.
    pub fn check(&self, other: &Hello) -> Result<(), String> {
        let (it, own) = (other.me, self.me);
        let same = |what: &str, its: &dyn std::fmt::Display, ours: &dyn std::fmt::Display| {
            let (its, ours) = (its.to_string(), ours.to_string());
            match its == ours {
                true => Ok(()),
                false => Err(format!("process {it} {what} {its}, process {own} {what} {ours}")),
            }
        };
        same("joins by protocol version", &other.protocol, &self.protocol)?;
        same("is of program version", &other.program, &self.program)?;
        same("does job", &format_args!("{:016x}", other.job), &format_args!("{:016x}", self.job))?;
        same("is of epoch", &other.epoch, &self.epoch)?;
        same("has roster", &format_args!("{:016x}", other.roster), &format_args!("{:016x}", self.roster))?;
        match other.you == own {
            true => Ok(()),
            false => Err(format!("process {it} looks for process {}, and this is process {own}", other.you)),
        }
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
    fn every_difference_is_told_with_both_values() {
        assert_eq!(hello(0, 1).check(&hello(1, 0)), Ok(()));
        let differs = |change: fn(&mut Hello), words: &[&str]| {
            let mut other = hello(1, 0);
            change(&mut other);
            let reason = hello(0, 1).check(&other).unwrap_err();
            words.iter().for_each(|word| assert!(reason.contains(word), "{word}: {reason}"));
        };
        differs(|hello| hello.protocol = 1, &["process 1 joins by protocol version 1", "process 0", "version 2"]);
        differs(|hello| hello.program = "9.9.9".into(), &["process 1 is of program version 9.9.9", "process 0"]);
        differs(|hello| hello.job = 8, &["process 1 does job 0000000000000008", "process 0 does job 0000000000000007"]);
        differs(|hello| hello.epoch = 2, &["process 1 is of epoch 2, process 0 is of epoch 3"]);
        differs(|hello| hello.roster = 1, &["process 1 has roster 0000000000000001", "process 0 has roster"]);
        differs(|hello| hello.you = 2, &["process 1 looks for process 2, and this is process 0"]);
    }
}
