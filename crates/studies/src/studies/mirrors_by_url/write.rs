//! The tables and the summary of the mirrors-by-url job.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::compared::ComparedTable;
use super::steps::{
    CandidateHost, HostFailure, ListedPair, ListedPairs, MirrorLevel, PathOutcome, PathTest, TestRules, TestedPair,
    UrlCounts, UrlStage,
};
use super::{MirrorsByUrlSummary, PUBLISHED_URLS};
use crate::stats::ratio;
use crate::structures::{CompactSort, UnionFind};
use crate::studies::StudyPlan;
use crate::tables::studies::mirrors_by_url::{
    CandidateRow, PathTestRow, ProbeRow, RankingRow, UrlDomainRow, UrlGroupRow, UrlLevelRow,
};
use crate::text::domain;

/// Writes the tables, and makes the summary.
pub(super) struct UrlMirrorWriter<'a> {
    pub(super) plan: &'a StudyPlan,
    pub(super) stage: &'a UrlStage,
    pub(super) rules: TestRules,
    pub(super) listed: &'a ListedPairs,
    /// By number of the pair.
    pub(super) tested: &'a [TestedPair],
    pub(super) compared: &'a ComparedTable,
    /// By number of the host: its place in the order of hosts, if it is a mirror.
    pub(super) places: &'a BTreeMap<usize, u32>,
}

/// The parts of the list for which `ranking` has a row.
const PARTS: usize = 20;
/// The top-level domain of an address.
const ADDRESS: &str = "address";

impl UrlMirrorWriter<'_> {
    /// The listed pairs, with their tests.
    fn pairs(&self) -> impl Iterator<Item = (&ListedPair, &TestedPair)> + Clone {
        self.listed.pairs.iter().zip(self.tested)
    }

    /// The names of the hosts of a pair.
    fn names(&self, pair: &ListedPair) -> [&str; 2] {
        pair.hosts.map(|host| self.listed.hosts[host].name.as_str())
    }

    /// Writes all tables. Worker 0 calls it. `all` is the number of all candidates; `passed_over`
    /// of records in files for tests.
    pub(super) fn write(&self, counts: UrlCounts, all: u64, passed_over: u64) -> Result<MirrorsByUrlSummary> {
        let plan = self.plan;
        plan.write(self.pairs().enumerate().map(|(number, (pair, tested))| self.candidate_row(number, pair, tested)))?;
        plan.write(self.pairs().enumerate().flat_map(|(number, (pair, tested))| self.test_rows(number, pair, tested)))?;
        let levels = self.levels();
        let level_row = |(level, pairs): &(MirrorLevel, u64)| UrlLevelRow {
            level: level.name().to_owned(),
            pairs: *pairs,
            published: level.published(),
        };
        let level_rows: Vec<UrlLevelRow> = levels.iter().map(level_row).collect();
        plan.write(level_rows.iter().cloned())?;
        plan.write(self.ranking())?;
        plan.write(self.domains())?;
        let (groups, probes) = (self.groups()?, self.probes());
        let probe_count = probes.len() as u64;
        plan.write(groups.iter().cloned())?;
        plan.write(probes)?;
        plan.write(self.compared.rows.iter().cloned())?;
        let week = plan.history.weeks.last();
        let mirrors = levels.iter().filter(|(level, _)| level.is_mirror()).map(|(_, pairs)| pairs).sum();
        Ok(MirrorsByUrlSummary {
            store: plan.history.store.clone(),
            method: plan.history.method.clone(),
            first: week.map(|week| week.week),
            last: week.map(|week| week.week),
            week_commit: week.map(|week| week.made),
            read: counts.read,
            distinct_urls: counts.urls,
            gone: counts.gone,
            refused: counts.refused,
            hosts: counts.hosts,
            least_urls: self.stage.least_urls,
            sampled_hosts: counts.sampled,
            sampled_paths: counts.paths,
            candidates: all,
            listed: self.listed.pairs.len() as u64,
            compared: self.tested.iter().filter(|pair| pair.level.is_tested()).count() as u64,
            levels: level_rows,
            mirrors,
            mirror_hosts: groups.len() as u64,
            as_the_study: Some(self.mirrors_of_study()),
            groups: groups.last().map_or(0, |row| row.group as u64),
            unknown_tests: self.tested.iter().map(|pair| u64::from(pair.counts.of(PathOutcome::Unknown))).sum(),
            probes: probe_count,
            files: plan.files.crawl.len() as u64,
            passed_over,
            ways: self.compared.ways(),
            directories: self.compared.directories(),
            published: PUBLISHED_URLS,
        })
    }

    fn candidate_row(&self, number: usize, pair: &ListedPair, tested: &TestedPair) -> CandidateRow {
        CandidateRow {
            rank: number as i64 + 1,
            hosts: self.names(pair).map(str::to_owned),
            score: pair.candidate.score(),
            same_domain: domain(self.names(pair)[0]) == domain(self.names(pair)[1]),
            features: pair.candidate.features as i64,
            path_features: pair.candidate.path_features as i64,
            urls: pair.hosts.map(|host| self.listed.hosts[host].urls as i64),
            level: tested.level.name(),
            failures: tested.failures.map(|failure| failure.map(HostFailure::name)),
            outcomes: tested.counts.0.map(i64::from),
        }
    }

    fn test_rows(&self, number: usize, pair: &ListedPair, tested: &TestedPair) -> Vec<PathTestRow> {
        let row = |test: &PathTest| {
            let [a, b] = self.names(pair);
            let (source, target) = if test.from_second { (b, a) } else { (a, b) };
            PathTestRow {
                rank: number as i64 + 1,
                source: source.to_owned(),
                target: target.to_owned(),
                path: self.path(pair, test.from_second, test.path).to_owned(),
                outcome: test.outcome.name(),
                similarity: self.rules.similarity(test),
                near: self.rules.is_near(test),
            }
        };
        tested.tests.iter().map(row).collect()
    }

    /// The text of a sampled path of one host of a pair, or of the root.
    fn path(&self, pair: &ListedPair, of_second: bool, path: u64) -> &str {
        let sample = &self.listed.hosts[pair.hosts[usize::from(of_second)]].sample;
        sample.binary_search_by_key(&path, |(hash, _)| *hash).map_or("/", |place| &sample[place].1)
    }

    /// The number of pairs of each level.
    fn levels(&self) -> Vec<(MirrorLevel, u64)> {
        let count = |level| self.tested.iter().filter(|pair| pair.level == level).count() as u64;
        MirrorLevel::ALL.into_iter().map(|level| (level, count(level))).collect()
    }

    /// The pairs of levels 1 to 5, and the hosts in them.
    fn mirrors_of_study(&self) -> [u64; 2] {
        let mirrors = self.pairs().filter(|(_, tested)| tested.level <= MirrorLevel::Related);
        let hosts: BTreeSet<usize> = mirrors.clone().flat_map(|(pair, _)| pair.hosts).collect();
        [mirrors.count() as u64, hosts.len() as u64]
    }

    /// The shares of mirrors in the first twentieth of the list, the first two, and so on.
    fn ranking(&self) -> Vec<RankingRow> {
        let row = |part: usize| {
            let first = &self.tested[..(self.tested.len() * part).div_ceil(PARTS)];
            let levels: Vec<MirrorLevel> =
                first.iter().map(|pair| pair.level).filter(|level| level.is_tested()).collect();
            let pairs = levels.len() as u64;
            let share =
                |is: fn(MirrorLevel) -> bool| ratio(levels.iter().filter(|level| is(**level)).count() as u64, pairs);
            RankingRow {
                prefix: part as f64 / PARTS as f64,
                pairs: pairs as i64,
                levels13: share(MirrorLevel::is_whole),
                levels14: share(MirrorLevel::is_mirror),
            }
        };
        (1..=PARTS).map(row).collect()
    }

    /// The top-level domains of mirrors on two of them, by group of levels.
    fn domains(&self) -> Vec<UrlDomainRow> {
        let mut counts: BTreeMap<(&str, [&str; 2]), u64> = BTreeMap::new();
        for (pair, tested) in self.pairs() {
            let group = match tested.level {
                level if level.is_whole() => "1-3",
                MirrorLevel::Partial => "4",
                MirrorLevel::Related => "5",
                _ => continue,
            };
            let mut domains = self.names(pair).map(top_level);
            domains.sort_rows();
            if domains[0] != domains[1] {
                *counts.entry((group, domains)).or_default() += 1;
            }
        }
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        counts.iter().for_each(|((group, _), pairs)| *sums.entry(group).or_default() += pairs);
        let mut rows: Vec<((&str, [&str; 2]), u64)> = counts.into_iter().collect();
        rows.sort_items_by_key(|((group, domains), pairs)| (*group, Reverse(*pairs), *domains));
        let row = |((group, domains), pairs): ((&'static str, [&str; 2]), u64)| UrlDomainRow {
            group,
            domains: domains.map(str::to_owned),
            pairs: pairs as i64,
            share: pairs as f64 / sums[group] as f64,
        };
        rows.into_iter().map(row).collect()
    }

    /// The groups of hosts that are mirrors of each other, directly or through others.
    fn groups(&self) -> Result<Vec<UrlGroupRow>> {
        let hosts = &self.listed.hosts;
        let mirrors = self.pairs().filter(|(_, tested)| tested.level.is_mirror());
        let mirrors: Vec<[usize; 2]> = mirrors.map(|(pair, _)| pair.hosts).collect();
        let joined = UnionFind::new(hosts.len());
        joined.join(&mirrors.iter().map(|[a, b]| (*a as u32, *b as u32)).collect::<Vec<_>>())?;
        let in_groups: BTreeSet<usize> = mirrors.into_iter().flatten().collect();
        let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        in_groups.into_iter().for_each(|host| groups.entry(joined.root(host as u32)).or_default().push(host));
        let name = |host: usize| hosts[host].name.as_str();
        let mut groups: Vec<(usize, Vec<usize>)> = groups
            .into_values()
            .filter_map(|group| {
                let preferred = *group.iter().min_by_key(|host| self.places[*host])?;
                Some((preferred, group))
            })
            .collect();
        groups.sort_items_by_key(|(preferred, _)| name(*preferred));
        let mut rows = Vec::new();
        for (number, (preferred, mut group)) in groups.into_iter().enumerate() {
            group.sort_items_by_key(|host| name(*host));
            rows.extend(group.into_iter().map(|host| UrlGroupRow {
                group: number as i64 + 1,
                host: name(host).to_owned(),
                urls: hosts[host].urls as i64,
                preferred: host == preferred,
            }));
        }
        Ok(rows)
    }

    /// The URLs of unknown tests: each once, with the best pair that asks for it.
    fn probes(&self) -> Vec<ProbeRow> {
        let (mut rows, mut seen) = (Vec::new(), BTreeSet::new());
        for (number, (pair, tested)) in self.pairs().enumerate() {
            for test in tested.tests.iter().filter(|test| test.outcome == PathOutcome::Unknown) {
                let path = self.path(pair, test.from_second, test.path);
                for (host, known) in pair.hosts.into_iter().zip(test.known) {
                    if !known && seen.insert((host, test.path)) {
                        let CandidateHost { name, is_plain, .. } = &self.listed.hosts[host];
                        let url = format!("{}://{name}{path}", if *is_plain { "http" } else { "https" });
                        rows.push(ProbeRow { rank: number as i64 + 1, url });
                    }
                }
            }
        }
        rows
    }
}

/// The last label of a host's name.
fn top_level(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    let label = name.rsplit('.').next().unwrap_or(name);
    let is_address = name.starts_with('[') || label.bytes().all(|byte| byte.is_ascii_digit());
    if is_address { ADDRESS } else { label }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_level_domains_are_last_labels() {
        assert_eq!(top_level("a.example."), "example");
        let found = ["www.a.example", "b.co.uk:8080", "localhost", "10.0.0.1:80", "[::1]:8080", "[::1]", "a.xn--p1ai"];
        let found = found.map(top_level);
        assert_eq!(found, ["example", "uk", "localhost", ADDRESS, ADDRESS, ADDRESS, "xn--p1ai"]);
    }
}
