//! Growth: the collections of one similar cluster, from its pages and the links between merged
//! trivial clusters (Cho 2000, sections 3 and 4).
//!
//! The study says that the pages of merged clusters form collections of one size, each with one
//! page of every trivial cluster, and leaves open how they are put together where links allow
//! several ways. Here links are taken in a fixed order: those within a host first, then by the ids
//! of their pages. A link joins the two partial collections that it touches, unless each has a page
//! of one trivial cluster; such links are ambiguous, and are counted.
//!
//! ```text
//! every page is a partial collection
//! for each link (p, q), in order:
//!     if p and q are in different partial collections, and these have no trivial cluster in common: join them
//! ```

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::host_order::HostFacts;
use crate::records::DocId;
use crate::structures::Hashes;

/// A page of a similar cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GrowingPage {
    /// Its id.
    pub doc: DocId,
    /// The root of its trivial cluster.
    pub root: DocId,
    /// A hash of its host.
    pub host: u64,
    /// Links from pages of other hosts.
    pub in_links: u32,
    /// What is known of its host.
    pub of_host: HostFacts,
}

/// A collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrownCollection {
    /// Its pages, ascending, by their places in the list.
    pub pages: Vec<u32>,
    /// Links to them from pages of other hosts.
    pub in_links: u64,
}

/// The collections of a similar cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown {
    /// The collections, the principal one first, then in the order of their first pages.
    pub collections: Vec<GrownCollection>,
    /// Links that could have joined two partial collections, and did not.
    pub ambiguous: u64,
}

/// Puts together the collections of a similar cluster. `pages` ascend, and each has another id;
/// `links` are between merged trivial clusters, and come in any order.
///
/// The principal collection is chosen by its host, which is the first in the order of hosts: if two
/// hosts have several clusters, the same host stays in all of them. Of collections of one host it
/// is that with the most links from other hosts, then the most pages, then the smallest id. But a
/// copy that has less than another one never stays: if another collection has a replica of each of
/// its pages, and more pages, or the same and a host with pages of its own where the host of this
/// one has none, that one is principal. The study's collections are of one size; here one of fewer
/// than half of the pages of the largest is not principal. The host of a collection is that of its
/// smallest page.
///
/// ```
/// use nigh_kernels::records::DocId;
/// use nigh_studies::host_order::HostFacts;
/// use nigh_studies::studies::collections::steps::{GrowingPage, grow};
///
/// // Two copies of pages 1 and 2: pages 3 and 4. Other hosts link to the second copy.
/// let page = |number: u64, root: u64, host: u64, in_links: u32| GrowingPage {
///     doc: DocId::new(0, number),
///     root: DocId::new(0, root),
///     host,
///     in_links,
///     of_host: HostFacts { pages: 2, in_links: if host == 8 { 5 } else { 0 }, ..HostFacts::default() },
/// };
/// let pages = [page(1, 1, 7, 0), page(2, 2, 7, 0), page(3, 1, 8, 5), page(4, 2, 8, 0)];
/// let link = |from: u64, to: u64| (DocId::new(0, from), DocId::new(0, to));
/// let grown = grow(&pages, &[link(1, 2), link(3, 4)]);
/// let of = |number: usize| &grown.collections[number];
/// assert_eq!((&of(0).pages, &of(1).pages), (&vec![2, 3], &vec![0, 1]));
/// ```
pub fn grow(pages: &[GrowingPage], links: &[(DocId, DocId)]) -> Grown {
    let mut partial = Partial::new(pages);
    let place = |doc: DocId| pages.binary_search_by_key(&doc, |page| page.doc).ok();
    let mut links: Vec<(bool, usize, usize)> = links
        .iter()
        .filter_map(|(page, target)| {
            let (page, target) = (place(*page)?, place(*target)?);
            Some((pages[page].host != pages[target].host, page, target))
        })
        .collect();
    links.sort_unstable();
    let ambiguous = links.iter().filter(|(_, page, target)| !partial.join(*page, *target)).count() as u64;
    let of_pages = |of: &[u32]| GrownCollection {
        pages: of.to_vec(),
        in_links: of.iter().map(|page| u64::from(pages[*page as usize].in_links)).sum(),
    };
    let mut collections: Vec<GrownCollection> = partial
        .members
        .into_iter()
        .filter(|members| !members.is_empty())
        .map(|mut members| {
            members.sort_unstable();
            of_pages(&members)
        })
        .collect();
    collections.sort_unstable_by_key(|collection| collection.pages[0]);
    if let Some(principal) = principal(pages, &collections) {
        collections[..=principal].rotate_right(1);
    }
    Grown { collections, ambiguous }
}

/// The number of the principal collection, of some in the order of their first pages.
fn principal(pages: &[GrowingPage], collections: &[GrownCollection]) -> Option<usize> {
    let page = |place: u32| &pages[place as usize];
    let host = |of: &GrownCollection| page(of.pages[0]).of_host;
    let rank = |number: &usize| {
        let of = &collections[*number];
        let of_host = host(of).rank(page(of.pages[0]).host);
        (of_host, Reverse(of.in_links), Reverse(of.pages.len()), *number)
    };
    let roots = |number: usize| -> BTreeSet<DocId> {
        collections[number].pages.iter().map(|place| page(*place).root).collect()
    };
    let largest = collections.iter().map(|of| of.pages.len()).max()?;
    let is_large = |number: &usize| 2 * collections[*number].pages.len() >= largest;
    let mut ranked: Vec<usize> = (0..collections.len()).filter(is_large).collect();
    ranked.sort_unstable_by_key(rank);
    // To have more is a strict order, so there is one that none has more than.
    ranked.iter().copied().find(|number| {
        let (less, mut of_less) = (&collections[*number], None);
        let has_more = |other: &&usize| {
            let more = &collections[**other];
            let is_equal = more.pages.len() == less.pages.len();
            more.pages.len() > less.pages.len() || is_equal && host(less).alone == 0 && host(more).alone > 0
        };
        let mut more = ranked.iter().filter(has_more);
        !more.any(|other| roots(*other).is_superset(of_less.get_or_insert_with(|| roots(*number))))
    })
}

/// Partial collections: the larger of two that are joined takes the pages of the smaller, so a page
/// moves rarely.
struct Partial {
    /// By page: the partial collection that has it.
    of: Vec<u32>,
    /// The pages of each partial collection.
    members: Vec<Vec<u32>>,
    /// By page: the number of its trivial cluster.
    cluster: Vec<u32>,
    /// The pairs of a partial collection and of a trivial cluster that it has a page of.
    has: Hashes,
    /// Pairs of partial collections that have a trivial cluster in common: they keep it.
    apart: Hashes,
}

fn pair(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

impl Partial {
    /// Every page alone.
    fn new(pages: &[GrowingPage]) -> Partial {
        let mut roots: Vec<DocId> = pages.iter().map(|page| page.root).collect();
        roots.sort_unstable();
        roots.dedup();
        let numbers = 0..pages.len() as u32;
        let cluster: Vec<u32> =
            pages.iter().map(|page| roots.partition_point(|root| *root < page.root) as u32).collect();
        let has = numbers.clone().map(|page| pair(page, cluster[page as usize])).collect();
        let members = numbers.clone().map(|page| vec![page]).collect();
        Partial { of: numbers.collect(), members, cluster, has, apart: Hashes::default() }
    }

    /// Joins the partial collections of two pages. Returns `false` if it may not.
    fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.of[a], self.of[b]);
        if a == b {
            return true;
        }
        let size = |of: u32| self.members[of as usize].len();
        let (large, small) = if (size(a), b) > (size(b), a) { (a, b) } else { (b, a) };
        if self.apart.contains(&pair(large, small)) {
            return false;
        }
        let clusters = || self.members[small as usize].iter().map(|page| self.cluster[*page as usize]);
        if clusters().any(|cluster| self.has.contains(&pair(large, cluster))) {
            self.apart.insert(pair(large, small));
            return false;
        }
        for page in std::mem::take(&mut self.members[small as usize]) {
            let cluster = self.cluster[page as usize];
            self.has.remove(&pair(small, cluster));
            self.has.insert(pair(large, cluster));
            self.of[page as usize] = large;
            self.members[large as usize].push(page);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc(number: u64) -> DocId {
        DocId::new(0, number)
    }

    /// Pages by number, each with its trivial cluster, its host and its links from other hosts.
    fn pages(all: &[(u64, u64, u64, u32)]) -> Vec<GrowingPage> {
        let page = |(number, root, host, in_links): &(u64, u64, u64, u32)| GrowingPage {
            doc: doc(*number),
            root: doc(*root),
            host: *host,
            in_links: *in_links,
            of_host: HostFacts {
                pages: all.iter().filter(|other| other.2 == *host).count() as u32,
                alone: 0,
                first_seen: 0,
                lead: 0,
                in_links: all.iter().filter(|other| other.2 == *host).map(|other| other.3).sum(),
            },
        };
        all.iter().map(page).collect()
    }

    fn grown(pages: &[GrowingPage], links: &[(u64, u64)]) -> (Vec<Vec<u32>>, u64) {
        let links: Vec<_> = links.iter().map(|(from, to)| (doc(*from), doc(*to))).collect();
        let Grown { collections, ambiguous } = grow(pages, &links);
        (collections.into_iter().map(|of| of.pages).collect(), ambiguous)
    }

    #[test]
    fn copies_of_a_tree_are_collections_of_one_size() {
        // Three hosts have pages a, b, c, d; a links to b and c, and these to d. The third copy is
        // linked to most.
        let all: Vec<_> = (0..12).map(|page| (page, page % 4, page / 4, u32::from(page == 8))).collect();
        let links: Vec<_> = (0..3)
            .flat_map(|host| [(0, 1), (0, 2), (1, 3), (2, 3)].map(|(a, b)| (4 * host + a, 4 * host + b)))
            .collect();
        let expected = vec![vec![8, 9, 10, 11], vec![0, 1, 2, 3], vec![4, 5, 6, 7]];
        assert_eq!(grown(&pages(&all), &links), (expected, 0));
    }

    #[test]
    fn a_collection_has_one_page_of_a_trivial_cluster() {
        // Two copies of a and b on one host, whose pages link to each other: a of the first to both
        // b.
        let all = pages(&[(0, 0, 1, 0), (1, 1, 1, 0), (2, 0, 1, 0), (3, 1, 1, 0)]);
        assert_eq!(grown(&all, &[(0, 1), (0, 3), (2, 3), (2, 1)]), (vec![vec![0, 1], vec![2, 3]], 2));
        // The order of links does not matter.
        assert_eq!(grown(&all, &[(2, 1), (2, 3), (0, 3), (0, 1)]), (vec![vec![0, 1], vec![2, 3]], 2));
    }

    #[test]
    fn links_within_a_host_go_first() {
        // Page 0 links to a copy of b on another host before the one on its own.
        let all = pages(&[(0, 0, 1, 0), (1, 9, 2, 0), (2, 9, 1, 0)]);
        assert_eq!(grown(&all, &[(0, 1), (0, 2)]), (vec![vec![0, 2], vec![1]], 1));
    }

    #[test]
    fn of_equal_copies_that_on_a_host_with_pages_of_its_own_stays() {
        // Hosts 1 and 2 have copies of a and b. Links lead to those of host 2, which has nothing
        // else.
        let mut all = pages(&[(0, 0, 1, 0), (1, 1, 1, 0), (2, 0, 2, 9), (3, 1, 2, 0)]);
        let links = [(0, 1), (2, 3)];
        assert_eq!(grown(&all, &links).0, [vec![2, 3], vec![0, 1]]);
        all[..2].iter_mut().for_each(|page| page.of_host.alone = 1);
        assert_eq!(grown(&all, &links).0, [vec![0, 1], vec![2, 3]]);
        all[2..].iter_mut().for_each(|page| page.of_host.alone = 1);
        assert_eq!(grown(&all, &links).0, [vec![2, 3], vec![0, 1]]);
    }

    #[test]
    fn a_small_part_is_not_principal() {
        // All links from other hosts lead to a page alone; the copy of four pages is principal.
        let all = pages(&[(0, 0, 1, 50), (1, 0, 2, 0), (2, 2, 2, 0), (3, 3, 2, 1), (4, 4, 2, 0)]);
        let (collections, _) = grown(&all, &[(1, 2), (2, 3), (3, 4)]);
        assert_eq!(collections, [vec![1, 2, 3, 4], vec![0]]);
        // Half as large as the largest is enough, if the largest does not have all of it.
        let all = pages(&[(0, 7, 1, 50), (1, 0, 2, 0), (2, 2, 2, 0)]);
        assert_eq!(grown(&all, &[(1, 2)]).0, [vec![0], vec![1, 2]]);
        let all = pages(&[(0, 0, 1, 50), (1, 0, 2, 0), (2, 2, 2, 0)]);
        assert_eq!(grown(&all, &[(1, 2)]).0, [vec![1, 2], vec![0]]);
        assert_eq!(grown(&[], &[]), (Vec::new(), 0));
    }
}
