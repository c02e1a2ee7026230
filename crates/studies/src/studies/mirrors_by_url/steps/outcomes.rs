//! What a test finds, and the level of a pair by its tests (Bharat and Broder 1999, section 4 and
//! Table 1).

use serde::{Deserialize, Serialize};

use super::failures::HostFailure;

/// What the test of one path finds: the page of the source host against the page of the target host
/// at the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PathOutcome {
    /// Source failure: the source does not have the page.
    SourceFailure,
    /// Target failure: the target does not have it.
    TargetFailure,
    /// Fingerprint match: both pages are the same bytes.
    FingerprintMatch,
    /// Full similarity: the texts resemble each other wholly.
    FullSimilarity,
    /// High similarity: the resemblance is high.
    HighSimilarity,
    /// Trace similarity: the resemblance is above 0.
    TraceSimilarity,
    /// No similarity.
    NoSimilarity,
    /// It is not known whether one of the hosts has the page.
    Unknown,
}

impl PathOutcome {
    /// All outcomes, in the order of columns.
    pub const ALL: [PathOutcome; 8] = [
        PathOutcome::SourceFailure,
        PathOutcome::TargetFailure,
        PathOutcome::FingerprintMatch,
        PathOutcome::FullSimilarity,
        PathOutcome::HighSimilarity,
        PathOutcome::TraceSimilarity,
        PathOutcome::NoSimilarity,
        PathOutcome::Unknown,
    ];

    /// Its name in tables: the study's letters.
    pub fn name(self) -> &'static str {
        match self {
            PathOutcome::SourceFailure => "SF",
            PathOutcome::TargetFailure => "TF",
            PathOutcome::FingerprintMatch => "FM",
            PathOutcome::FullSimilarity => "FS",
            PathOutcome::HighSimilarity => "HS",
            PathOutcome::TraceSimilarity => "TS",
            PathOutcome::NoSimilarity => "NS",
            PathOutcome::Unknown => "unknown",
        }
    }
}

/// The outcomes of the tests of a pair: how many there are of each, in the order of
/// [`PathOutcome::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OutcomeCounts(pub [u32; PathOutcome::ALL.len()]);

impl OutcomeCounts {
    /// Adds an outcome.
    pub fn add(&mut self, outcome: PathOutcome) {
        self.0[outcome as usize] += 1;
    }

    /// The number of tests with this outcome.
    pub fn of(&self, outcome: PathOutcome) -> u32 {
        self.0[outcome as usize]
    }

    /// The tests with an outcome other than unknown and source failure, which tell nothing of the
    /// target.
    pub fn compared(&self) -> u32 {
        self.0.iter().sum::<u32>() - self.of(PathOutcome::Unknown) - self.of(PathOutcome::SourceFailure)
    }
}

/// How much of the structure and of the content two hosts have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MirrorLevel {
    /// Level 1: the same structure, identical content.
    Identical,
    /// Level 2: the same structure, equivalent content.
    Equivalent,
    /// Level 3: the same structure, similar content.
    Similar,
    /// Level 4: partly the same structure, similar content.
    Partial,
    /// Level 5: the same structure, related content.
    Related,
    /// No mirrors.
    Mismatch,
    /// DNS failure: the name of a host does not resolve.
    DnsFailure,
    /// Server failure: a host has no connection, or answers with errors only.
    ServerFailure,
    /// Too few paths could be compared, or no page of one host is known.
    Few,
}

/// The compared paths that a pair with a level has, at least.
pub const LEAST_TESTS: u32 = 3;

impl MirrorLevel {
    /// All levels, in the order of tables.
    pub const ALL: [MirrorLevel; 9] = [
        MirrorLevel::Identical,
        MirrorLevel::Equivalent,
        MirrorLevel::Similar,
        MirrorLevel::Partial,
        MirrorLevel::Related,
        MirrorLevel::Mismatch,
        MirrorLevel::DnsFailure,
        MirrorLevel::ServerFailure,
        MirrorLevel::Few,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            MirrorLevel::Identical => "1",
            MirrorLevel::Equivalent => "2",
            MirrorLevel::Similar => "3",
            MirrorLevel::Partial => "4",
            MirrorLevel::Related => "5",
            MirrorLevel::Mismatch => "mismatch",
            MirrorLevel::DnsFailure => "dns-failure",
            MirrorLevel::ServerFailure => "server-failure",
            MirrorLevel::Few => "few",
        }
    }

    /// Whether pairs of this level have the same structure and at least similar content: levels 1
    /// to 3.
    pub fn is_whole(self) -> bool {
        self <= MirrorLevel::Similar
    }

    /// Whether pairs of this level have pages in common: levels 1 to 4.
    pub fn is_mirror(self) -> bool {
        self <= MirrorLevel::Partial
    }

    /// Whether pairs of this level were tested: levels 1 to 5 and mismatch.
    pub fn is_tested(self) -> bool {
        self <= MirrorLevel::Mismatch
    }

    /// The pairs of the level that the study found, of 21,820 (Table 1). Of its 29,336 candidates
    /// the other 7,516 were DNS and server failures; how many of each is not known.
    pub fn published(self) -> Option<u64> {
        Some(match self {
            MirrorLevel::Identical => 9_619,
            MirrorLevel::Equivalent => 700,
            MirrorLevel::Similar => 406,
            MirrorLevel::Partial => 6_011,
            MirrorLevel::Related => 189,
            MirrorLevel::Mismatch => 4_895,
            MirrorLevel::DnsFailure | MirrorLevel::ServerFailure | MirrorLevel::Few => return None,
        })
    }

    /// The level of a pair that cannot be tested, by what does not work at each of its hosts: a
    /// name that does not resolve counts before a server that does not answer.
    pub fn of_failures(failures: [Option<HostFailure>; 2]) -> Option<MirrorLevel> {
        match failures.into_iter().flatten().min()? {
            HostFailure::Dns => Some(MirrorLevel::DnsFailure),
            HostFailure::Connection | HostFailure::ServerError => Some(MirrorLevel::ServerFailure),
        }
    }

    /// The level of a pair with these outcomes (Table 1). Some trace similarity beside target
    /// failures is in no row of the table, and so a mismatch.
    pub fn of(counts: &OutcomeCounts) -> MirrorLevel {
        if counts.compared() < LEAST_TESTS {
            return MirrorLevel::Few;
        }
        MirrorLevel::of_compared(counts)
    }

    /// The level by outcomes of which at least one compares the hosts.
    fn of_compared(counts: &OutcomeCounts) -> MirrorLevel {
        let has = |outcome| counts.of(outcome) > 0;
        let (failure, trace, none) =
            (has(PathOutcome::TargetFailure), has(PathOutcome::TraceSimilarity), has(PathOutcome::NoSimilarity));
        let (high, full) = (has(PathOutcome::HighSimilarity), has(PathOutcome::FullSimilarity));
        if !failure && !trace && !none {
            return if high {
                MirrorLevel::Similar
            } else if full {
                MirrorLevel::Equivalent
            } else {
                MirrorLevel::Identical
            };
        }
        if high || full || has(PathOutcome::FingerprintMatch) {
            MirrorLevel::Partial
        } else if trace && !failure {
            MirrorLevel::Related
        } else {
            MirrorLevel::Mismatch
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The rows of Table 1, as they are written there: the first that holds is the level.
    fn table_1(outcomes: &BTreeSet<&str>) -> &'static str {
        let all = |of: &[&str]| outcomes.iter().all(|outcome| of.contains(outcome));
        let not_all_failed = !all(&["SF"]);
        if all(&["SF", "FM"]) && not_all_failed {
            "1"
        } else if all(&["SF", "FM", "FS"]) && not_all_failed {
            "2"
        } else if all(&["SF", "FM", "FS", "HS"]) && not_all_failed {
            "3"
        } else if ["HS", "FM", "FS"].iter().any(|some| outcomes.contains(some)) {
            "4"
        } else if !outcomes.contains("TF") && outcomes.contains("TS") {
            "5"
        } else {
            "mismatch"
        }
    }

    #[test]
    fn levels_are_those_of_table_1_for_all_sets_of_outcomes() {
        let known = &PathOutcome::ALL[..7];
        for set in 1u32..1 << known.len() {
            let (mut counts, mut names) = (OutcomeCounts::default(), BTreeSet::new());
            for outcome in known.iter().filter(|outcome| set >> **outcome as u32 & 1 == 1) {
                (0..LEAST_TESTS).for_each(|_| counts.add(*outcome));
                names.insert(outcome.name());
            }
            let level = MirrorLevel::of(&counts).name();
            if names.iter().eq(["SF"].iter()) {
                assert_eq!(level, "few", "the hosts were not compared at all");
            } else {
                assert_eq!(level, table_1(&names), "{names:?}");
            }
        }
    }

    #[test]
    fn two_compared_paths_are_too_few() {
        let mut counts = OutcomeCounts::default();
        let add = |counts: &mut OutcomeCounts, outcome, times| (0..times).for_each(|_| counts.add(outcome));
        add(&mut counts, PathOutcome::FingerprintMatch, 2);
        add(&mut counts, PathOutcome::Unknown, 10);
        add(&mut counts, PathOutcome::SourceFailure, 7);
        assert_eq!(MirrorLevel::of(&counts), MirrorLevel::Few);
        counts.add(PathOutcome::FingerprintMatch);
        assert_eq!(MirrorLevel::of(&counts), MirrorLevel::Identical);
    }

    #[test]
    fn a_name_that_does_not_resolve_counts_before_a_server_that_fails() {
        use HostFailure::{Connection, Dns, ServerError};
        let level = |a, b| MirrorLevel::of_failures([a, b]).map(MirrorLevel::name);
        assert_eq!(level(None, None), None);
        assert_eq!(level(None, Some(Dns)), Some("dns-failure"));
        assert_eq!(level(Some(ServerError), Some(Dns)), Some("dns-failure"));
        assert_eq!(level(Some(Connection), None), Some("server-failure"));
        assert_eq!(level(Some(Connection), Some(ServerError)), Some("server-failure"));
    }

    #[test]
    fn the_published_levels_are_all_tested_pairs() {
        let published: Vec<u64> = MirrorLevel::ALL.iter().filter_map(|level| level.published()).collect();
        assert_eq!(published.iter().sum::<u64>(), 21_820);
        assert_eq!(published[..5].iter().sum::<u64>(), 16_925);
    }
}
