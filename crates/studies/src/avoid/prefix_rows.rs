//! The rows of the list: what stays in the place of each prefix, and the pages to fetch again.

use std::collections::{BTreeMap, HashMap};

use anyhow::Result;

use super::choice::{ChosenPrefix, ChosenPrefixes};
use super::copies::{FirstKey, first_key};
use super::directories::hashed;
use super::last_week::LastWeek;
use super::week_hosts::WeekHosts;
use super::{AvoidedPrefix, Settings};
use crate::records::mix;
use crate::structures::ByKey;
use crate::studies::collections::steps::{directories, directory_hash, directory_texts};

/// The pages to fetch again, of one prefix: those with the smallest hashes, one of each directory
/// or file below the prefix first. The hash is another one each week.
#[derive(Default)]
struct PrefixSample {
    /// The smallest of each part, of those parts that have the smallest.
    of_parts: BTreeMap<u64, (u64, String)>,
    /// The smallest of all.
    smallest: BTreeMap<(u64, String), ()>,
}

impl PrefixSample {
    fn add(&mut self, url: &str, part: u64, week: i32, most: usize) {
        if most == 0 {
            return;
        }
        let entry = (mix(directory_hash(url) ^ mix(week as u64)), url.to_owned());
        match self.of_parts.get_mut(&part) {
            Some(smallest) if *smallest <= entry => {}
            Some(smallest) => *smallest = entry.clone(),
            None => {
                self.of_parts.insert(part, entry.clone());
                if self.of_parts.len() > most {
                    let last = self.of_parts.iter().max_by_key(|(_, smallest)| *smallest).map(|(part, _)| *part);
                    last.and_then(|part| self.of_parts.remove(&part));
                }
            }
        }
        self.smallest.insert(entry, ());
        if self.smallest.len() > most {
            self.smallest.pop_last();
        }
    }

    fn finish(self, most: usize) -> Vec<String> {
        let mut taken: Vec<(u64, String)> = self.of_parts.into_values().collect();
        taken.sort();
        for (entry, ()) in self.smallest {
            if taken.len() < most && !taken.contains(&entry) {
                taken.push(entry);
            }
        }
        let mut urls: Vec<String> = taken.into_iter().map(|(_, url)| url).collect();
        urls.sort();
        urls
    }
}

/// The directory that two URLs have in common, or that a directory and a URL have.
fn common<'a>(a: &'a str, b: &str) -> &'a str {
    directory_texts(a).zip(directory_texts(b)).take_while(|(a, b)| a == b).last().map_or("", |(text, _)| text)
}

/// Makes the rows. One for which nothing stays is left out.
///
/// # Errors
/// If a file cannot be read: names it.
pub(super) fn rows(
    pages: &LastWeek<'_>,
    hosts: &WeekHosts,
    choice: &ChosenPrefixes,
    settings: &Settings,
) -> Result<Vec<AvoidedPrefix>> {
    let chosen = &choice.chosen;
    let numbers: ByKey<u64, usize> = chosen.iter().map(|of| of.candidate.hash).zip(0..).collect();
    // The chosen prefix that a URL is below, and the hash of the directory or file within it.
    let place = |url: &str| {
        let mut of_url = directories(url);
        let number = of_url.find_map(|directory| numbers.get(&directory.hash).copied())?;
        Some((number, of_url.next().map_or_else(|| directory_hash(url), |directory| directory.hash)))
    };
    let week = pages.history.last().week.days();
    let mut samples: Vec<PrefixSample> = chosen.iter().map(|_| PrefixSample::default()).collect();
    // By unit with something below a prefix: the first page that stays.
    let mut first: HashMap<u64, Option<FirstKey>> =
        chosen.iter().flat_map(|of| of.units.iter().chain(&of.redirected)).map(|unit| (*unit, None)).collect();
    pages.each(|page| {
        if let Some((number, part)) = place(page.url) {
            samples[number].add(page.url, part, week, settings.sample);
        } else if let Some(first) = first.get_mut(&page.unit) {
            let key = first_key(hosts.place(hosts.of_page(page.number)), false, page.url);
            if first.as_ref().is_none_or(|first| key < *first) {
                *first = Some(key);
            }
        }
        Ok(())
    })?;
    pages.each_not_seen(|url| {
        if let Some((number, part)) = place(url) {
            samples[number].add(url, part, week, settings.sample);
        }
    })?;
    let keeps: Vec<Option<String>> = chosen.iter().map(|of| stays(of, &first)).collect();
    let keep_of = |of: &ChosenPrefix| {
        let keep = of.candidate.keep.as_deref()?;
        // The principal copy may be on the list by now, for another one.
        match hashed(keep).find_map(|(hash, _)| numbers.get(&hash)) {
            Some(number) => keeps[*number].clone(),
            None => Some(keep.to_owned()),
        }
    };
    let mut rows = Vec::new();
    for ((of, keep), sample) in chosen.iter().zip(&keeps).zip(samples) {
        let is_shown = of.candidate.below.pages + of.candidate.below.redirects > 0;
        let keep = if is_shown { keep.clone() } else { keep_of(of) };
        let Some(keep) = keep else { continue };
        rows.push(AvoidedPrefix {
            prefix: of.candidate.prefix.clone(),
            keep,
            why: of.candidate.whys.iter().map(|why| why.name().to_owned()).collect(),
            pages: of.units.len() as u64,
            redirects: of.candidate.below.redirects,
            named: of.candidate.below.named,
            lost: of.units.iter().filter(|unit| choice.is_lost(**unit)).count() as u64,
            sample: sample.finish(settings.sample),
        });
    }
    Ok(rows)
}

/// What stays in the place of a prefix: on the site that has most of the pages that stay, the
/// directory that these have in common.
fn stays(of: &ChosenPrefix, first: &HashMap<u64, Option<FirstKey>>) -> Option<String> {
    let mut sites: BTreeMap<&str, (u64, u32, &str)> = BTreeMap::new();
    for unit in of.units.iter().chain(&of.redirected) {
        let Some(Some((place, .., url))) = first.get(unit) else { continue };
        let Some(site) = directory_texts(url).next() else { continue };
        let (count, first_place, prefix) = sites.entry(site).or_insert((0, *place, url));
        *count += 1;
        *first_place = *place.min(first_place);
        *prefix = common(prefix, url);
    }
    let most = sites.into_values().min_by_key(|(count, place, prefix)| (std::cmp::Reverse(*count), *place, *prefix))?;
    Some(common(most.2, most.2).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_a_page_of_each_part_and_does_not_depend_on_the_order() {
        let urls: Vec<(String, u64)> = (0..500)
            .map(|page| {
                let part = if page % 100 == 0 { page / 100 } else { 7 };
                (format!("http://a.example/{part}/{page}"), part)
            })
            .collect();
        let sample = |urls: &mut dyn Iterator<Item = &(String, u64)>, week: i32| {
            let mut sample = PrefixSample::default();
            urls.for_each(|(url, part)| sample.add(url, *part, week, 8));
            sample.finish(8)
        };
        let of_week = sample(&mut urls.iter(), 1);
        assert_eq!(of_week.len(), 8);
        for part in [0, 1, 2, 3, 4, 7] {
            assert!(of_week.iter().any(|url| url.starts_with(&format!("http://a.example/{part}/"))), "{part}");
        }
        assert_eq!(of_week, sample(&mut urls.iter().rev(), 1));
        assert_ne!(of_week, sample(&mut urls.iter(), 2));
        // More parts than pages to fetch.
        let many: Vec<(String, u64)> = (0..90).map(|page| (format!("http://a.example/{page}/"), page)).collect();
        let of_many = sample(&mut many.iter(), 1);
        assert_eq!(of_many.len(), 8);
        assert_eq!(of_many, sample(&mut many.iter().rev(), 1));
        assert_eq!(sample(&mut urls[..3].iter(), 1).len(), 3);
    }

    #[test]
    fn what_urls_have_in_common_ends_at_a_slash() {
        assert_eq!(common("http://a.example/b/c/d", "http://a.example/b/c2/d"), "http://a.example/b/");
        assert_eq!(common("http://a.example/b/", "http://a.example/b/?c=/d/"), "http://a.example/b/");
        assert_eq!(common("http://a.example/b", "https://a.example/b"), "");
    }
}
