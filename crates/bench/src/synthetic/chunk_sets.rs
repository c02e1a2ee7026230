//! Sets of chunks of a made-up web: what the overlap of all pairs is computed from.
//!
//! Sites with templates, platforms that many sites share, quotations by Zipf's law, 39% of the
//! pages in clusters of copies and edited copies with sizes by a power law of exponent 2.5, and one
//! family of store fronts, which are 1% of all pages: 14.4 chunks a page.

use super::random::Random;
use crate::records::mix;

/// A made-up web of so many pages.
#[derive(Clone, Debug)]
pub struct ChunkSets {
    /// The page that each page is a copy of; [`ALONE`] for a page that is none.
    copy_of: Vec<u32>,
    /// The first page of the family of store fronts.
    front: u32,
    /// Whether each store front lacks a tenth of the template.
    is_ragged: bool,
}

/// No page.
const ALONE: u32 = u32::MAX;
/// Chunks of the template of store fronts.
const TEMPLATE: u64 = 40;
/// Chunks that a page has of its own: the median, the spread of the logarithm, and the most.
const OWN: (f64, f64, f64) = (5.0, 1.1, 1500.0);

impl ChunkSets {
    /// The web of so many pages: at least 200.
    pub fn new(pages: u32, is_ragged: bool) -> ChunkSets {
        let count = pages as usize;
        let mut random = Random(7);
        let mut order: Vec<u32> = (0..pages).collect();
        for at in (1..count).rev() {
            order.swap(at, random.below(at as u64 + 1) as usize);
        }
        let mut copy_of = vec![ALONE; count];
        let fronts = count / 100;
        (1..fronts).for_each(|at| copy_of[order[at] as usize] = order[0]);
        let mut at = fronts;
        while (at as f64) < 0.39 * count as f64 {
            let size = (2.0 * random.share().max(1e-9).powf(-1.0 / 1.5)).min(count as f64 / 200.0) as usize;
            (1..size.min(count - at)).for_each(|copy| copy_of[order[at + copy] as usize] = order[at]);
            at += size;
        }
        ChunkSets { copy_of, front: order[0], is_ragged }
    }

    /// Replaces `chunks` by the distinct chunks of a page, in the order of their hashes.
    pub fn page(&self, page: u32, chunks: &mut Vec<u64>) {
        chunks.clear();
        let original = self.copy_of[page as usize];
        let mut random = Random(mix(u64::from(page) ^ 0x9999));
        if original == self.front || page == self.front {
            for chunk in 0..TEMPLATE {
                if !self.is_ragged || random.share() >= 0.1 {
                    chunks.push(mix(0xF00D + chunk));
                }
            }
            chunks.push(mix(mix(u64::from(page) ^ 0x5555)));
        } else {
            self.original(if original == ALONE { page } else { original }, chunks);
            if original != ALONE && random.share() > 0.45 {
                // An edited copy.
                let lost = random.share().powi(2) * 0.4;
                for _ in 0..((chunks.len() as f64 * lost) as u64).max(1) {
                    let at = random.below(chunks.len() as u64) as usize;
                    chunks[at] = random.bits();
                }
            }
        }
        chunks.sort_unstable();
        chunks.dedup();
    }

    /// Adds the chunks of a page that is no copy.
    fn original(&self, page: u32, chunks: &mut Vec<u64>) {
        let page = u64::from(page);
        let mut random = Random(mix(page ^ 0xABCD));
        let share = random.share();
        let host = ((self.copy_of.len() as f64 / 20.0) * share * share) as u64;
        let mut of_host = Random(mix(host ^ 0x77));
        let template = of_host.below(7);
        let add = |chunks: &mut Vec<u64>, seed: u64, count: u64| {
            chunks.extend((0..count).map(|chunk| mix(mix(seed).wrapping_add(chunk))));
        };
        add(chunks, host ^ 0x1111, template);
        if of_host.share() < 0.3 {
            let platform = (of_host.share().powi(3) * 50.0) as u64;
            add(chunks, platform ^ 0x2222, 3);
        }
        if random.share() < 0.3 {
            for _ in 0..=random.below(3) {
                let quotation = 100_000f64.powf(random.share()) as u64;
                add(chunks, quotation ^ 0x3333, 1);
            }
        }
        let (median, spread, most) = OWN;
        let own = (median.ln() + spread * random.normal()).exp().min(most) as u64 + 1;
        add(chunks, page ^ 0x4444_0000, own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_the_same_in_every_run_and_have_fourteen_chunks() {
        let (web, again) = (ChunkSets::new(20_000, true), ChunkSets::new(20_000, true));
        let (mut chunks, mut same, mut all) = (Vec::new(), Vec::new(), 0);
        for page in 0..20_000 {
            web.page(page, &mut chunks);
            again.page(page, &mut same);
            assert!(chunks == same && chunks.is_sorted_by(|a, b| a < b));
            all += chunks.len();
        }
        assert!((13.0..16.0).contains(&(all as f64 / 20_000.0)), "{all}");
    }

    #[test]
    fn store_fronts_share_a_template() {
        let web = ChunkSets::new(10_000, false);
        let (mut front, mut other) = (Vec::new(), Vec::new());
        web.page(web.front, &mut front);
        let fronts: Vec<u32> = (0..10_000).filter(|page| web.copy_of[*page as usize] == web.front).collect();
        assert_eq!(fronts.len(), 99);
        web.page(fronts[7], &mut other);
        assert_eq!(front.iter().filter(|chunk| other.contains(chunk)).count(), TEMPLATE as usize);
    }
}
