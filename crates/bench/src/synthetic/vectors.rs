//! Made-up supershingle vectors of any number of documents, with the cluster sizes of the study
//! (Fetterly 2004, section 2).
//!
//! The vector of any document is computed by itself, in a fraction of a microsecond, from the plan
//! of cluster sizes and no other state. So every worker can make its share of 150 million.
//!
//! A permutation maps documents to slots: first the slots of clusters, the largest cluster first,
//! then those of documents outside clusters. From the study come the number of documents in
//! clusters, the number of clusters, the number of duplicates (documents that agree with an earlier
//! one in all supershingles) and the three largest clusters, all scaled by the number of documents.
//! The other sizes follow a power law that is fitted to these sums. For the study's 150,836,209
//! documents its exponent is 2.608; for a few thousand documents, with a smaller range of sizes, it
//! is nearer to 2.
//!
//! A cluster is a chain, as the study describes it: each member except the first derives from a
//! random earlier member, and keeps all of its supershingles or only two to five. So the first and
//! the last member often agree in none.
//!
//! Our assumptions, not the study's: the sizes from the fourth cluster on, how many supershingles a
//! member keeps, the noise, and the random order of documents (in a crawl, neighbours often are of
//! one host and one cluster).

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::permutation::{Permutation, below};
use super::sizes::{SizeCount, fit, sizes};
use crate::records::mix;

/// Supershingles of a vector.
pub const WIDTH: usize = 6;
/// To be raised whenever the vectors change, so that files of older vectors are not used.
pub const GENERATION: u32 = 3;

/// Counts of the study: documents, documents in clusters, clusters, and virtually identical
/// duplicates.
const DOCUMENTS: f64 = 150_836_209.0;
const CLUSTERED: f64 = 57_305_947.0;
const CLUSTERS: f64 = 13_283_856.0;
const DUPLICATES: f64 = 33_473_165.0;
/// The three largest clusters of the study, and five sizes between them and the power law.
const LARGEST: [f64; 8] = [921_374.0, 315_000.0, 201_000.0, 150_000.0, 120_000.0, 95_000.0, 80_000.0, 65_000.0];
/// The largest size by the power law.
const CAP: f64 = 60_000.0;
/// The smallest value of that bound, for few documents: the mean size is over 4, so there must be
/// larger sizes.
const LEAST_CAP: u64 = 50;
/// The seed of the changes from week to week.
const WEEK: u64 = 0x7765_656b;
/// How many times in 600 a member that is not a duplicate keeps a given set of 2, 3, 4 or 5
/// supershingles of its parent: shares of 0.2, 0.2, 0.25 and 0.35 over 15, 20, 15 and 6 sets.
const KEPT: [(u32, usize); 4] = [(2, 8), (3, 6), (4, 10), (5, 35)];

/// The shares of documents outside clusters that borrow supershingles from other documents: too few
/// to join their cluster, but enough to make work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Share of documents that borrow one supershingle from one document.
    pub one: f64,
    /// Share of documents that borrow two supershingles, from two documents.
    pub two: f64,
}

impl Default for Noise {
    fn default() -> Noise {
        Noise { one: 0.10, two: 0.03 }
    }
}

impl FromStr for Noise {
    type Err = String;

    fn from_str(text: &str) -> Result<Noise, String> {
        let share = |text: &str| text.trim().parse().ok().filter(|share| (0.0..=1.0).contains(share));
        match text.split_once(',').map(|(one, two)| (share(one), share(two))) {
            Some((Some(one), Some(two))) if one + two <= 1.0 => Ok(Noise { one, two }),
            _ => Err(format!("`{text}` is not a noise: write two shares, together at most 1, as in `0.10,0.03`")),
        }
    }
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.one, self.two)
    }
}

/// The vectors of a number of documents.
pub struct MadeVectors {
    documents: u64,
    clusters: u64,
    /// The number of documents in clusters, whose slots are the first ones.
    clustered: u64,
    runs: Vec<ClustersOfSize>,
    slots: Permutation,
    /// The share of members that repeat an earlier one, in units of 2^-64.
    duplicates: u64,
    /// The share of documents outside clusters that borrow two supershingles, in units of 2^-64.
    two: u64,
    /// The share of documents outside clusters that borrow one or two, in units of 2^-64.
    any: u64,
    /// Sets of supershingles, as bits, that a member does not take from its parent; each as often
    /// as it is likely.
    fresh: Vec<u8>,
    /// The share of documents that are changed, in units of 2^-64.
    change: u64,
}

/// Successive clusters of one size: the first slot and the number of the first of them.
struct ClustersOfSize {
    slot: u64,
    cluster: u64,
    size: u64,
}

impl MadeVectors {
    /// Plans the clusters of `documents` documents.
    pub fn new(documents: u64, noise: Noise) -> MadeVectors {
        let (mut slot, mut cluster, mut runs) = (0, 0, Vec::new());
        for SizeCount { size, clusters } in planned(documents) {
            runs.push(ClustersOfSize { slot, cluster, size });
            slot += size * clusters;
            cluster += clusters;
        }
        let derived = (slot - cluster).max(1) as f64;
        MadeVectors {
            documents,
            clusters: cluster,
            clustered: slot,
            runs,
            slots: Permutation::new(documents, 1),
            duplicates: of_all_words(documents as f64 * (DUPLICATES / DOCUMENTS) / derived),
            two: of_all_words(noise.two),
            any: of_all_words(noise.one + noise.two),
            fresh: fresh(),
            change: 0,
        }
    }

    /// The same documents a week later, with a share of them changed. Of the changed documents, one
    /// in two is edited and keeps two to five of its supershingles, one in four is new, and one in
    /// four becomes similar to another document.
    pub fn later(self, change: f64) -> MadeVectors {
        MadeVectors { change: of_all_words(change), ..self }
    }

    /// The supershingles of a document, given by a number below the number of documents.
    pub fn vector(&self, document: u64) -> [u64; WIDTH] {
        let random = mix(document ^ mix(WEEK));
        if random >= self.change {
            return self.first_vector(document);
        }
        let random = mix(random);
        let (mut vector, fresh) = match random % 4 {
            0 | 1 => (self.first_vector(document), self.random_fresh(random)),
            2 => ([0; WIDTH], u8::MAX),
            _ => (self.first_vector(below(mix(random ^ 2), self.documents)), self.random_fresh(random)),
        };
        for (column, supershingle) in vector.iter_mut().enumerate().filter(|(column, _)| fresh >> column & 1 == 1) {
            *supershingle = mix(random.wrapping_add(3 + column as u64));
        }
        vector
    }

    /// Whether a document is changed.
    pub fn has_changed(&self, document: u64) -> bool {
        mix(document ^ mix(WEEK)) < self.change
    }

    /// The random numbers of a document's line of ancestors: that of the first member of its
    /// cluster, and then of each ancestor that is no duplicate of its parent, down to the document
    /// itself.
    pub fn lineage(&self, document: u64) -> Vec<u64> {
        let random = mix(document ^ mix(WEEK));
        if random >= self.change {
            return self.first_lineage(document);
        }
        let random = mix(random);
        let mut lineage = match random % 4 {
            0 | 1 => self.first_lineage(document),
            2 => Vec::new(),
            _ => self.first_lineage(below(mix(random ^ 2), self.documents)),
        };
        lineage.push(random);
        lineage
    }

    /// The lineage of a document in the first week.
    fn first_lineage(&self, document: u64) -> Vec<u64> {
        let (cluster, mut member) = self.place(self.slots.at(document));
        let cluster = mix(cluster);
        let mut lineage = Vec::new();
        while member > 0 {
            let random = mix(cluster.wrapping_add(member));
            lineage.extend((random >= self.duplicates).then_some(random));
            member = below(mix(random), member);
        }
        lineage.push(cluster);
        lineage.reverse();
        lineage
    }

    /// A random set of supershingles that a document does not take from its parent.
    fn random_fresh(&self, random: u64) -> u8 {
        self.fresh[below(mix(random ^ 1), self.fresh.len() as u64) as usize]
    }

    /// The number of documents.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The vector of a document in the first week.
    fn first_vector(&self, document: u64) -> [u64; WIDTH] {
        self.vector_at(self.slots.at(document))
    }

    /// The vector of the document in a slot in the first week.
    pub fn vector_at(&self, slot: u64) -> [u64; WIDTH] {
        let mut vector = self.undisturbed(slot);
        if slot >= self.clustered {
            self.disturb(slot, &mut vector);
        }
        vector
    }

    /// The number of a document's cluster, by construction. A document outside clusters has a
    /// number of its own.
    pub fn cluster(&self, document: u64) -> u64 {
        self.place(self.slots.at(document)).0
    }

    /// Whether a document is in a cluster of several, by construction.
    pub fn is_clustered(&self, document: u64) -> bool {
        self.slots.at(document) < self.clustered
    }

    /// The slots of documents outside clusters.
    pub fn alone(&self) -> Range<u64> {
        self.clustered..self.documents
    }

    /// The number of a document's cluster, and the number of its member in it.
    pub fn place_of(&self, document: u64) -> (u64, u64) {
        self.place(self.slots.at(document))
    }

    /// The slots of a cluster with at least two documents.
    pub fn slots_of(&self, cluster: u64) -> Range<u64> {
        let run = &self.runs[self.runs.partition_point(|run| run.cluster <= cluster) - 1];
        let first = run.slot + (cluster - run.cluster) * run.size;
        first..first + run.size
    }

    /// The number of clusters with at least two documents, by construction.
    pub fn clusters(&self) -> u64 {
        self.clusters
    }

    /// The number of a slot's cluster, and the number of its member in it. Numbers of clusters of
    /// one document follow those of the others.
    pub fn place(&self, slot: u64) -> (u64, u64) {
        if slot >= self.clustered {
            return (self.clusters + (slot - self.clustered), 0);
        }
        let run = &self.runs[self.runs.partition_point(|run| run.slot <= slot) - 1];
        (run.cluster + (slot - run.slot) / run.size, (slot - run.slot) % run.size)
    }

    /// The vector of a slot without noise.
    ///
    /// Goes from a member to its parent, up to the first member in about ln(member) steps. Each one
    /// gives the supershingles that it does not take from its own parent; the first member gives
    /// the rest.
    fn undisturbed(&self, slot: u64) -> [u64; WIDTH] {
        let (cluster, mut member) = self.place(slot);
        let cluster = mix(cluster);
        let mut vector = [0; WIDTH];
        // The supershingles that are not given yet, as bits.
        let mut open = (1u8 << WIDTH) - 1;
        loop {
            let random = mix(cluster.wrapping_add(member));
            let given = match member {
                0 => open,
                _ if random < self.duplicates => 0,
                _ => open & self.random_fresh(random),
            };
            for (column, supershingle) in vector.iter_mut().enumerate() {
                if given >> column & 1 == 1 {
                    *supershingle = mix(random.wrapping_add(2 + column as u64));
                }
            }
            open &= !given;
            if open == 0 {
                return vector;
            }
            member = below(mix(random), member);
        }
    }

    /// Replaces supershingles of a document outside clusters by borrowed ones, if the noise says
    /// so.
    fn disturb(&self, slot: u64, vector: &mut [u64; WIDTH]) {
        self.borrowed(slot).for_each(|(column, lender)| vector[column] = self.undisturbed(lender)[column]);
    }

    /// The columns of supershingles that a document outside clusters borrows, and the slots that
    /// lend them: at most two.
    pub fn borrowed(&self, slot: u64) -> impl Iterator<Item = (usize, u64)> {
        let random = mix(!slot);
        let draw = |number: u64, bound: u64| below(mix(random.wrapping_add(number)), bound);
        let of = |(column, lender): (u64, u64)| ((column % 6) as usize, lender % self.documents);
        let one = (random < self.any).then(|| (draw(1, 6), draw(2, self.documents)));
        let two = one.filter(|_| random < self.two);
        let two = two.map(|(column, lender)| (column + 1 + draw(3, 5), lender + 1 + draw(4, self.documents - 1)));
        one.map(of).into_iter().chain(two.map(of))
    }
}

/// The clusters of `documents` documents by size, the largest first. A large cluster of the study
/// is left out if, scaled, it is not larger than the largest by the power law.
fn planned(documents: u64) -> Vec<SizeCount> {
    let scaled = |count: f64| (documents as f64 * (count / DOCUMENTS)) as u64;
    let cap = scaled(CAP).max(LEAST_CAP);
    let mut planned: Vec<SizeCount> = LARGEST
        .map(|size| SizeCount { size: scaled(size), clusters: 1 })
        .into_iter()
        .filter(|e| e.size > cap)
        .collect();
    let clusters = scaled(CLUSTERS) - planned.len() as u64;
    let members = scaled(CLUSTERED) - planned.iter().map(|equals| equals.size).sum::<u64>();
    planned.extend(sizes(fit(&(2..=cap), clusters, members), &(2..=cap), clusters));
    planned
}

/// A share, from 0 to 1, in units of 2^-64.
fn of_all_words(share: f64) -> u64 {
    // The cast saturates, and 2^64 is exact.
    (share * 2f64.powi(64)) as u64
}

/// For each set of kept supershingles the set of the others, as often as [`KEPT`] says.
fn fresh() -> Vec<u8> {
    let all = (1u8 << WIDTH) - 1;
    let times = |kept: u8| KEPT.iter().find(|(count, _)| *count == kept.count_ones()).map_or(0, |(_, times)| *times);
    (0..=all).flat_map(|kept| std::iter::repeat_n(all & !kept, times(kept))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use crate::single_thread;

    const SILENT: Noise = Noise { one: 0.0, two: 0.0 };

    fn vectors(synthetic: &MadeVectors) -> Vec<[u64; WIDTH]> {
        (0..synthetic.documents).map(|document| synthetic.vector(document)).collect()
    }

    /// The smallest document of each document's cluster, by construction.
    fn roots(synthetic: &MadeVectors) -> Vec<u32> {
        let mut roots = HashMap::new();
        (0..synthetic.documents).map(|d| *roots.entry(synthetic.cluster(d)).or_insert(d as u32)).collect()
    }

    #[test]
    fn shares_and_sizes_are_the_study_s() {
        let synthetic = MadeVectors::new(200_000, Noise::default());
        let mut sizes: HashMap<u64, u64> = HashMap::new();
        (0..200_000).for_each(|document| *sizes.entry(synthetic.cluster(document)).or_default() += 1);
        sizes.retain(|_, size| *size > 1);
        assert_eq!(sizes.len() as u64, synthetic.clusters());
        assert!((sizes.len() as f64 / 200_000.0 - 0.0881).abs() < 0.0001, "{} clusters", sizes.len());
        let clustered = sizes.values().sum::<u64>() as f64 / 200_000.0;
        assert!((clustered - 0.380).abs() < 0.001, "{clustered} in clusters");
        assert_eq!(sizes.values().max(), Some(&1221));
        let distinct = vectors(&synthetic).into_iter().collect::<HashSet<_>>().len();
        let duplicates = 1.0 - distinct as f64 / 200_000.0;
        assert!((duplicates - 0.222).abs() < 0.003, "{duplicates} duplicates");
    }

    #[test]
    fn the_study_s_size_has_its_exponent() {
        let clusters = CLUSTERS as u64 - 8;
        let members = CLUSTERED as u64 - LARGEST.iter().sum::<f64>() as u64;
        let exponent = fit(&(2..=CAP as u64), clusters, members);
        assert!((exponent - 2.608).abs() < 0.002, "{exponent}");
        let synthetic = MadeVectors::new(DOCUMENTS as u64, Noise::default());
        assert_eq!(synthetic.clusters(), CLUSTERS as u64);
        assert!(synthetic.clustered.abs_diff(CLUSTERED as u64) < 1000, "{} in clusters", synthetic.clustered);
        assert_eq!(synthetic.vector(150_836_208), synthetic.vector(150_836_208));
    }

    #[test]
    fn without_noise_components_are_the_clusters_by_construction() {
        for documents in [20_000, 200_000] {
            let synthetic = MadeVectors::new(documents, SILENT);
            assert!(single_thread::clusters(&vectors(&synthetic), 2) == roots(&synthetic), "{documents} documents");
        }
    }

    #[test]
    fn clusters_hold_together_by_chains() {
        let synthetic = MadeVectors::new(20_000, SILENT);
        let largest: Vec<_> = (0..20_000).filter(|document| synthetic.cluster(*document) == 0).collect();
        let first = synthetic.vector(largest[0]);
        let agreements = |vector: [u64; WIDTH]| first.iter().zip(vector).filter(|(a, b)| *a == b).count();
        assert!(largest.iter().any(|document| agreements(synthetic.vector(*document)) < 2));
    }

    #[test]
    fn noise_shares_supershingles_and_joins_almost_no_documents() {
        let (silent, noisy) = (MadeVectors::new(50_000, SILENT), MadeVectors::new(50_000, Noise::default()));
        let [mut one, mut two] = [0, 0];
        for document in 0..50_000 {
            let changed = silent.vector(document).iter().zip(noisy.vector(document)).filter(|(a, b)| **a != *b).count();
            one += u32::from(changed == 1);
            two += u32::from(changed == 2);
            assert!(changed <= 2 && (changed == 0 || silent.cluster(document) >= silent.clusters()));
        }
        // 62% of the documents are outside clusters.
        assert!((f64::from(one) / 31_000.0 - 0.10).abs() < 0.01, "{one} borrow one");
        assert!((f64::from(two) / 31_000.0 - 0.03).abs() < 0.005, "{two} borrow two");
        let [silent, noisy] = [silent, noisy].map(|synthetic| single_thread::clusters(&vectors(&synthetic), 2));
        let joined = silent.iter().zip(&noisy).filter(|(a, b)| a != b).count();
        assert!(joined < 20, "{joined} documents joined by noise");
    }

    #[test]
    fn any_number_of_documents_can_be_made() {
        for documents in (0..300).chain([1000, 8200, 8300, 125_000]) {
            for noise in [SILENT, Noise::default(), Noise { one: 0.0, two: 1.0 }, Noise { one: 1.0, two: 0.0 }] {
                let synthetic = MadeVectors::new(documents, noise);
                assert!(synthetic.clustered <= documents && 2 * synthetic.clusters <= synthetic.clustered);
                for document in (0..documents).take(300) {
                    assert_eq!(synthetic.vector(document), synthetic.vector(document));
                }
            }
        }
    }

    #[test]
    fn the_same_documents_have_the_same_vectors_everywhere() {
        let synthetic = MadeVectors::new(100_000, Noise::default());
        let sum = single_thread::checksum(vectors(&synthetic).into_iter().map(|vector| (vector[0], vector[5])));
        assert_eq!(sum, 430_704_906_597_254_998, "raise GENERATION if the vectors change");
    }

    #[test]
    fn noise_is_parsed_as_it_is_written() {
        assert_eq!("0.10,0.03".parse(), Ok(Noise::default()));
        assert_eq!(Noise::default().to_string().parse(), Ok(Noise::default()));
        for wrong in ["", "0.1", "0.1,", "0.1,x", "0.1,0.2,0.3", "-0.1,0", "0.6,0.6", "nan,0", "2,0"] {
            assert!(wrong.parse::<Noise>().unwrap_err().contains("is not a noise"), "{wrong}");
        }
    }
}
