//! Hosts and the clusters of their pages, of a made-up web: what mirrors by content are computed
//! from.
//!
//! A host has 30 pages on the average. Of all pages 38% have near-duplicates: some giant clusters,
//! on many hosts or with many pages on few hosts; groups of mirrors, with numbers of hosts and of
//! pages by power laws; clusters within a host and between any hosts.

use nigh_bench::synthetic::Random;

use crate::records::mix;

/// Pages of a host, on the average.
const PAGES: u64 = 30;

/// A made-up web.
#[derive(Clone, Debug)]
pub(super) struct HostClusters {
    /// The cluster and the host of each page that has near-duplicates.
    pub pages: Vec<(u32, u32)>,
}

impl HostClusters {
    /// A web of so many pages, at least 100,000. If it is wide, two of its giant clusters are on
    /// twelve times as many hosts.
    pub fn new(pages: u64, is_wide: bool) -> HostClusters {
        let (hosts, mut random) = (pages / PAGES, Random(3));
        let mut web = HostClusters { pages: Vec::new() };
        let wide = if is_wide { 12 } else { 1 };
        let giants = [
            (pages * 9 / 15_000 * wide, hosts / 110 * wide),
            (pages * 9 / 1_500, hosts / 800),
            (pages / 1_500, hosts / 420),
            (pages * 9 / 15_000 * wide, hosts / 95 * wide),
        ];
        for (cluster, (of_cluster, on)) in (0..).zip(giants) {
            let first = random.below(hosts - on);
            web.pages.extend((0..of_cluster).map(|_| (cluster, (first + random.below(on)) as u32)));
        }
        let mut cluster = giants.len() as u32;
        let share = |share: u64| (pages * share / 100) as usize;
        // Mirrors: each of some pages is on most of some hosts.
        while web.pages.len() < share(12) {
            let (on, of_host) = (random.power(2.0, 1.6, 180), random.power(8.0, 1.2, 2_000));
            let mirrors: Vec<u32> = (0..on).map(|_| random.below(hosts) as u32).collect();
            for _ in 0..of_host {
                web.pages.extend(mirrors.iter().filter(|_| random.share() < 0.85).map(|host| (cluster, *host)));
                cluster += 1;
            }
        }
        // Popular hosts have more pages in clusters.
        let popular = |random: &mut Random| ((hosts as f64).powf(random.share()) - 1.0) as u32;
        while web.pages.len() < share(38) {
            let size = random.power(2.0, 1.6, 10_000);
            let host = (random.share() < 0.6).then(|| popular(&mut random));
            web.pages.extend((0..size).map(|_| (cluster, host.unwrap_or_else(|| popular(&mut random)))));
            cluster += 1;
        }
        web
    }

    /// A hash of a host, as of its name.
    pub fn hash(host: u32) -> u128 {
        let low = mix(u64::from(host) + 1);
        u128::from(mix(low)) << 64 | u128::from(low)
    }
}
