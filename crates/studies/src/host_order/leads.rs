//! Which of two mirrors changes first.
//!
//! The mirrors job compares the pages that two mirrors have at one path, week by week: its table
//! `lags` says how many changes of one host were on the other one after how many weeks. A change
//! counts for the host that had it a week or more before the other. One that both have in one week
//! does not count, and neither does one that the other never has.

use super::facts::host_hash;
use crate::structures::ByKey;

/// The lead of hosts, by the hash of their names: the changes that a host had before a mirror of
/// it, less those that a mirror had before it.
#[derive(Clone, Debug, Default)]
pub struct HostLeads(ByKey<u64, i64>);

impl HostLeads {
    /// Adds changes of `host` that were on `copy` after `weeks` weeks; `None` if they never were.
    pub fn add(&mut self, host: &str, copy: &str, weeks: Option<u64>, changes: u64) {
        if weeks.is_some_and(|weeks| weeks > 0) {
            *self.0.entry(host_hash(host)).or_default() += changes as i64;
            *self.0.entry(host_hash(copy)).or_default() -= changes as i64;
        }
    }

    /// The lead of a host, by the hash of its name; 0 if nothing is known.
    pub fn of(&self, host: u64) -> i32 {
        self.0.get(&host).map_or(0, |lead| (*lead).clamp(i32::MIN.into(), i32::MAX.into()) as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_for_the_host_that_had_it_weeks_before() {
        let mut leads = HostLeads::default();
        for (host, copy, weeks, changes) in
            [("a", "b", Some(1), 5), ("b", "a", Some(2), 2), ("a", "c", Some(0), 9), ("c", "a", None, 9)]
        {
            leads.add(host, copy, weeks, changes);
        }
        assert_eq!(["a", "b", "c", "d"].map(|host| leads.of(host_hash(host))), [3, -3, 0, 0]);
    }
}
