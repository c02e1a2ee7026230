//! The listed candidates: their hosts with names and samples, the same at every worker.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use nigh_exchange::Context;

use super::candidates::Candidate;
use super::features::SampledTexts;
use super::urls::{UrlName, check_same_host, slash_twin, text_hash};

/// A host of a listed candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateHost {
    /// The hash of its name.
    pub hash: u64,
    /// Its name, with its port.
    pub name: String,
    /// Whether a sampled path of it has the scheme `http`.
    pub is_plain: bool,
    /// Its URLs.
    pub urls: u64,
    /// Its sample, in the order of the hashes: each with the text of the path.
    pub sample: Vec<(u64, String)>,
}

/// A listed candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedPair {
    /// The numbers of its hosts: first the one with more URLs, of equally many that with the
    /// smaller name.
    pub hosts: [usize; 2],
    /// What the list says of it.
    pub candidate: Candidate,
}

/// The listed candidates, and their hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedPairs {
    /// In the order of the hashes.
    pub hosts: Vec<CandidateHost>,
    /// The best candidates first; of equal scores in the order of names.
    pub pairs: Vec<ListedPair>,
}

impl ListedPairs {
    /// Gathers the names and samples of the hosts of `candidates`; `texts` are those that this
    /// worker read.
    ///
    /// # Errors
    /// If two hosts have the same hash, or a worker of this process failed.
    pub fn gather(cx: &mut Context, candidates: &[Candidate], texts: SampledTexts) -> Result<ListedPairs> {
        let urls: BTreeMap<u64, u64> =
            candidates.iter().flat_map(|candidate| candidate.hosts.into_iter().zip(candidate.urls)).collect();
        let names = texts.names.into_iter().filter(|(host, _)| urls.contains_key(host)).collect();
        let paths = texts.paths.into_iter().filter(|(host, ..)| urls.contains_key(host)).collect();
        let (names, paths) = (cx.sorted(names)?, cx.sorted(paths)?);
        let mut named: BTreeMap<u64, (String, bool)> = BTreeMap::new();
        for (host, (name, has_plain)) in names {
            let (known, is_plain) = named.entry(host).or_insert_with(|| (name.clone(), false));
            check_same_host(known, &name)?;
            *is_plain |= has_plain;
        }
        let mut samples: BTreeMap<u64, Vec<(u64, String)>> = BTreeMap::new();
        for (host, path, text) in paths {
            samples.entry(host).or_default().push((path, text.into()));
        }
        let host = |(hash, urls): (&u64, &u64)| {
            let (name, is_plain) = named.remove(hash).unwrap_or_default();
            CandidateHost { hash: *hash, name, is_plain, urls: *urls, sample: samples.remove(hash).unwrap_or_default() }
        };
        let mut listed = ListedPairs { hosts: urls.iter().map(host).collect(), pairs: Vec::new() };
        for candidate in candidates {
            let number = |hash: u64| listed.host(hash).context("every host of a candidate is listed");
            let mut hosts = [number(candidate.hosts[0])?, number(candidate.hosts[1])?];
            hosts.sort_by_key(|host| (Reverse(listed.hosts[*host].urls), &listed.hosts[*host].name));
            listed.pairs.push(ListedPair { hosts, candidate: *candidate });
        }
        let ListedPairs { hosts, pairs } = &mut listed;
        let name = |host: usize| hosts[host].name.as_str();
        pairs.sort_by(|a, b| {
            let names = |pair: &ListedPair| pair.hosts.map(name);
            b.candidate.score().total_cmp(&a.candidate.score()).then_with(|| names(a).cmp(&names(b)))
        });
        Ok(listed)
    }

    /// The number of a host, by the hash of its name.
    pub fn host(&self, hash: u64) -> Option<usize> {
        self.hosts.binary_search_by_key(&hash, |host| host.hash).ok()
    }
}

/// The URLs that tests may ask for: those with the host of a listed pair, and with a path of some
/// sample, or one that differs from it in a slash at its end, or the root.
#[derive(Clone, Debug)]
pub struct WantedUrls {
    hosts: Vec<u64>,
    paths: Vec<u64>,
}

impl WantedUrls {
    /// The URLs that tests of these pairs may ask for.
    pub fn of(listed: &ListedPairs) -> WantedUrls {
        let sampled = || listed.hosts.iter().flat_map(|host| &host.sample);
        let twins = sampled().filter_map(|(_, path)| slash_twin(path)).map(|path| text_hash(&path));
        let mut paths: Vec<u64> = sampled().map(|(path, _)| *path).chain(twins).chain([text_hash("/")]).collect();
        paths.sort_unstable();
        paths.dedup();
        WantedUrls { hosts: listed.hosts.iter().map(|host| host.hash).collect(), paths }
    }

    /// Whether a host is one of a listed pair.
    pub fn has_host(&self, host: u64) -> bool {
        self.hosts.binary_search(&host).is_ok()
    }

    /// Whether a test may ask for a URL.
    pub fn has(&self, name: UrlName) -> bool {
        self.has_host(name.host) && self.paths.binary_search(&name.path).is_ok()
    }
}
