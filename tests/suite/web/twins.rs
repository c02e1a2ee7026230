//! Slow twins: what the jobs compute, by counting.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use super::{CrawledPage, Web};

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The distinct shingles of a text, sorted: every word begins one of five words, and the text wraps
/// around at its end.
fn shingles<W: Copy + Ord>(words: &[W]) -> Vec<[W; 5]> {
    let word = |at: usize| words[at % words.len()];
    let mut shingles: Vec<[W; 5]> = (0..words.len()).map(|at| [0, 1, 2, 3, 4].map(|next| word(at + next))).collect();
    shingles.sort_unstable();
    shingles.dedup();
    shingles
}

fn jaccard(shared: usize, a: usize, b: usize) -> f64 {
    if a + b == 0 { 0.0 } else { shared as f64 / (a + b - shared) as f64 }
}

/// The resemblance of two texts: the shared part of their distinct 5-word shingles. Of two texts
/// without words it is 0.
pub fn exact_resemblance(a: &str, b: &str) -> f64 {
    let [a, b] = [a, b].map(|text| shingles(&words(text).collect::<Vec<_>>()));
    resemblance(&a, &b)
}

/// The resemblance of two lists of distinct shingles, sorted.
fn resemblance<W: Ord>(a: &[[W; 5]], b: &[[W; 5]]) -> f64 {
    let shared = a.iter().filter(|shingle| b.binary_search(shingle).is_ok()).count();
    jaccard(shared, a.len(), b.len())
}

/// All pairs of pages with a resemblance of at least `least`, which is above 0: positions in
/// `pages`, the smaller first, and the resemblance.
///
/// Exact: shingles are compared as words, never as hashes. An inverted index, so that only pairs
/// with a shingle in common are counted. The web of 15,400 pages takes some seconds in a dev build:
/// [`similar_pages_of_research`] has its pairs.
pub fn similar_pages(pages: &[CrawledPage], least: f64) -> Vec<(usize, usize, f64)> {
    // Words as numbers, the same number for the same word only.
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut sizes = Vec::new();
    // A shingle and a page that has it: 20 bits for each of the five words, and 28 for the page.
    let mut postings: Vec<u128> = Vec::new();
    for (page, of) in pages.iter().enumerate() {
        let mut number = |word| {
            let next = numbers.len() as u32;
            *numbers.entry(word).or_insert(next)
        };
        let shingles = shingles(&words(&of.text).map(&mut number).collect::<Vec<_>>());
        sizes.push(shingles.len());
        for [a, b, c, d, e] in shingles {
            let [a, b, c, d, e] = [a, b, c, d, e].map(u128::from);
            postings.push(a << 108 | b << 88 | c << 68 | d << 48 | e << 28 | page as u128);
        }
    }
    assert!(numbers.len() < 1 << 20 && pages.len() < 1 << 28, "the bits are enough");
    postings.sort_unstable();
    let page_of = |posting: u128| posting as u32 & ((1 << 28) - 1);
    let mut holders: Vec<Vec<u32>> = Vec::new();
    let mut shingles_of: Vec<Vec<u32>> = vec![Vec::new(); pages.len()];
    for same in postings.chunk_by(|a, b| a >> 28 == b >> 28).filter(|same| same.len() > 1) {
        same.iter().for_each(|posting| shingles_of[page_of(*posting) as usize].push(holders.len() as u32));
        holders.push(same.iter().map(|posting| page_of(*posting)).collect());
    }
    let mut pairs = Vec::new();
    let mut counts = vec![0usize; pages.len()];
    for (page, shingles) in shingles_of.iter().enumerate() {
        let mut partners = Vec::new();
        for shingle in shingles {
            for other in &holders[*shingle as usize] {
                let other = *other as usize;
                if other >= page {
                    break;
                }
                if counts[other] == 0 {
                    partners.push(other);
                }
                counts[other] += 1;
            }
        }
        for other in partners {
            let resemblance = jaccard(std::mem::take(&mut counts[other]), sizes[page], sizes[other]);
            if resemblance >= least {
                pairs.push((other, page, resemblance));
            }
        }
    }
    pairs.sort_by_key(|(a, b, _)| (*a, *b));
    pairs
}

/// The pairs of pages of the first week of the web of the research with a resemblance of at least
/// 0.8: found once for all tests.
pub fn similar_pages_of_research() -> &'static [(usize, usize, f64)] {
    static PAIRS: LazyLock<Vec<(usize, usize, f64)>> =
        LazyLock::new(|| similar_pages(&Web::of_research().week(0).pages, 0.8));
    &PAIRS
}

/// Two hosts, and how many pages of each have a page on the other that resembles them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPair {
    /// The name that sorts first.
    pub a: String,
    pub b: String,
    pub pages_a: usize,
    pub pages_b: usize,
}

/// The pairs of different hosts of which at least `least_pages` pages each have a page on the other
/// with an exact resemblance of at least `least`; sorted. Cost and exactness are those of
/// [`similar_pages`].
pub fn host_pairs_by_brute_force(pages: &[CrawledPage], least: f64, least_pages: usize) -> Vec<HostPair> {
    host_pairs(pages, &similar_pages(pages, least), least_pages)
}

/// The same, from the pairs of pages that [`similar_pages`] finds.
pub fn host_pairs(pages: &[CrawledPage], pairs: &[(usize, usize, f64)], least_pages: usize) -> Vec<HostPair> {
    let mut matched: BTreeMap<(&str, &str), [BTreeSet<usize>; 2]> = BTreeMap::new();
    for (one, other, _) in pairs {
        let (hosts, of) = ((&*pages[*one].host, &*pages[*other].host), [*one, *other]);
        let (hosts, of) = if hosts.0 < hosts.1 { (hosts, of) } else { ((hosts.1, hosts.0), [of[1], of[0]]) };
        if hosts.0 != hosts.1 {
            let sets = matched.entry(hosts).or_default();
            sets.iter_mut().zip(of).for_each(|(set, page)| _ = set.insert(page));
        }
    }
    let pairs = matched.into_iter().map(|((a, b), [of_a, of_b])| HostPair {
        a: a.to_owned(),
        b: b.to_owned(),
        pages_a: of_a.len(),
        pages_b: of_b.len(),
    });
    pairs.filter(|pair| pair.pages_a.min(pair.pages_b) >= least_pages).collect()
}

/// How many elements every two sets share, of those that share any: positions in `sets`, the
/// smaller first. An element that a set lists twice counts once.
pub fn shared_counts(sets: &[Vec<u64>]) -> BTreeMap<(usize, usize), u64> {
    let mut holders: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    for (at, set) in sets.iter().enumerate() {
        set.iter().for_each(|element| _ = holders.entry(*element).or_default().insert(at));
    }
    let mut counts = BTreeMap::new();
    for holders in holders.values() {
        for b in holders {
            holders.range(..b).for_each(|a| *counts.entry((*a, *b)).or_default() += 1);
        }
    }
    counts
}

mod tests {
    use super::*;

    #[test]
    fn brute_force_finds_the_pairs_that_a_loop_over_all_pairs_finds() {
        let web = Web::small();
        let mut pages = web.week(0).pages;
        pages.retain(|page| page.text.len() % 5 == 0);
        let sets: Vec<Vec<[&str; 5]>> =
            pages.iter().map(|page| shingles(&words(&page.text).collect::<Vec<_>>())).collect();
        let mut expected = Vec::new();
        for (b, of_b) in sets.iter().enumerate() {
            for (a, of_a) in sets[..b].iter().enumerate() {
                let resemblance = resemblance(of_a, of_b);
                if resemblance >= 0.5 {
                    expected.push((a, b, resemblance));
                }
            }
        }
        expected.sort_by_key(|(a, b, _)| (*a, *b));
        assert!(expected.len() > 100);
        assert_eq!(similar_pages(&pages, 0.5), expected);
    }

    #[test]
    fn brute_force_finds_what_was_constructed() {
        let web = Web::small();
        let crawl = web.week(0);
        let pairs = host_pairs_by_brute_force(&crawl.pages, 0.8, 10);
        let names: BTreeSet<(&str, &str)> = pairs.iter().map(|pair| (&*pair.a, &*pair.b)).collect();
        let is_found = |a: &str, b: &str| names.contains(&(a.min(b), a.max(b)));
        for mirror in web.truth.mirrors.iter().filter(|mirror| mirror.copying.weeks.contains(&0)) {
            assert!(is_found(&mirror.host, &mirror.of), "{mirror:?}");
        }
        for alias in web.truth.aliases.iter().filter(|alias| alias.copying.kept > 0.0) {
            assert!(is_found(&alias.host, &alias.of), "{alias:?}");
        }
        for farm in &web.truth.farms {
            assert!(farm.hosts.iter().all(|a| farm.hosts.iter().all(|b| a == b || is_found(a, b))));
            let of_farm = pairs.iter().filter(|pair| farm.hosts.contains(&pair.a) && farm.hosts.contains(&pair.b));
            assert!(of_farm.clone().all(|pair| pair.pages_a == farm.pages && pair.pages_b == farm.pages));
            assert_eq!(of_farm.count(), farm.hosts.len() * (farm.hosts.len() - 1) / 2);
        }
        let collections =
            web.truth.collections.iter().filter(|collection| is_found(&collection.host, &collection.of_host));
        assert!(collections.count() >= 1);
        // Store fronts have too few pages each, and no host resembles itself.
        assert!(pairs.iter().all(|pair| pair.a < pair.b && !web.truth.family.contains(&pair.a)));
    }

    #[test]
    fn shingles_wrap_around_and_texts_without_words_resemble_nothing() {
        assert_eq!(exact_resemblance("a b c d e f", "a, b; c d e f!"), 1.0);
        // Of ten shingles each, five have the changed word.
        assert_eq!(exact_resemblance("a b c d e f g h i j", "a b c d e f g h i x"), 5.0 / 15.0);
        assert_eq!(exact_resemblance("a b", "b a"), 1.0);
        assert_eq!(exact_resemblance("a", "A"), 0.0);
        assert_eq!(exact_resemblance("", "--"), 0.0);
    }

    proptest::proptest! {
        #[test]
        fn shared_counts_are_those_of_intersections(sets in proptest::collection::vec(proptest::collection::vec(0u64..40, 0..25), 0..20)) {
            let counts = shared_counts(&sets);
            let distinct: Vec<BTreeSet<u64>> = sets.iter().map(|set| set.iter().copied().collect()).collect();
            for b in 0..sets.len() {
                for a in 0..b {
                    let shared = distinct[a].intersection(&distinct[b]).count() as u64;
                    proptest::prop_assert_eq!(counts.get(&(a, b)).copied().unwrap_or_default(), shared);
                }
            }
            proptest::prop_assert!(counts.values().all(|shared| *shared > 0));
        }
    }
}
