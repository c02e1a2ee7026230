//! The single-threaded baseline that a distributed system must beat (McSherry, Isard, Murray:
//! Scalability! But at what COST?, 2015).
//!
//! This is sequential code that computes the same result as the cluster stage, without workers. It
//! is meant to be fast. In short:
//!
//! ```text
//! for each set of `agreements` supershingles (15 pairs of 6 by default):
//!     for each document: append (hash of these supershingles, document) to a partition that fits in the cache
//!     for each partition: group by the hash with a hash table, and join the documents of a group in a union-find
//! ```
//!
//! All of it reads and writes memory in sequence, except the joins in the union-find, which has
//! 32-bit parents.
//!
//! Unlike the cluster stage it does not prune documents that cannot share a set with any other.
//! Keys are hashes: two different keys count as equal with a probability of one in 2^64 times the
//! number of partitions.

use crate::records::mix;

/// The mean number of records of a partition. With a table of twice as many slots that is 1.2 MB. A
/// power of two would double the table of every second partition.
const PARTITION: usize = 60_000;
/// Records that a partition buffers before it writes them to the arena: three cache lines.
const BUFFER: usize = 16;
/// Records in a chunk of the arena: a whole number of buffers.
const CHUNK: usize = 64 * BUFFER;
/// Edges whose cache misses overlap.
const BATCH: usize = 64;

/// The smallest document of each document's cluster, by number. Documents that agree in at least
/// `agreements` supershingles are in one cluster, transitively. There must be fewer than 2^32
/// documents.
pub fn clusters<const WIDTH: usize>(vectors: &[[u64; WIDTH]], agreements: usize) -> Vec<u32> {
    clusters_by(PARTITION, vectors, agreements)
}

/// The smallest node of each node's connected component, by sequential union-find over the edges.
pub fn components(nodes: u32, edges: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut union_find = SequentialUnionFind::new(nodes);
    union_find.join(edges);
    union_find.roots()
}

/// A checksum of labels that does not depend on their order: the wrapping sum of a hash of each
/// document and its root.
pub fn checksum(labels: impl Iterator<Item = (u64, u64)>) -> u64 {
    labels.fold(0, |sum, (document, root)| sum.wrapping_add(mix(mix(document) ^ root)))
}

fn clusters_by<const WIDTH: usize>(partition: usize, vectors: &[[u64; WIDTH]], agreements: usize) -> Vec<u32> {
    const { assert!(WIDTH < 32, "choices are bits of a word") };
    let documents = u32::try_from(vectors.len()).expect("documents are numbered by 32 bits");
    let mut union_find = SequentialUnionFind::new(documents);
    let mut partitions = Partitions::new(vectors.len().div_ceil(partition));
    let mut groups = PartitionGroups::default();
    for choice in (0u32..1 << WIDTH).filter(|choice| choice.count_ones() as usize == agreements) {
        let columns: Vec<usize> = (0..WIDTH).filter(|column| choice >> column & 1 == 1).collect();
        for (document, vector) in (0..documents).zip(vectors) {
            let (key, place) = hashes(columns.iter().map(|column| vector[*column]));
            partitions.push(place, KeyedDocument { key: [key as u32, (key >> 32) as u32], document });
        }
        partitions.drain(|records| union_find.join(groups.edges(records)));
    }
    union_find.roots()
}

/// The key of some words, and a second hash for the partition. Together they distinguish more words
/// than the key alone.
fn hashes(words: impl Iterator<Item = u64>) -> (u64, u64) {
    words.fold((0, 0), |(key, place), word| {
        let product = u128::from(key ^ word ^ 0x9E37_79B9_7F4A_7C15) * 0xBF58_476D_1CE4_E5B9;
        let sum = u64::rotate_left(place, 32).wrapping_add(word);
        (product as u64 ^ (product >> 64) as u64, sum.wrapping_mul(0x94D0_49BB_1331_11EB))
    })
}

/// A document and its key, in 12 bytes.
#[derive(Clone, Copy, Default)]
struct KeyedDocument {
    key: [u32; 2],
    document: u32,
}

/// Records by partition, in chunks of one arena. New records go to buffers that lie close together,
/// so that adding one does not touch a new cache line and page each time.
struct Partitions {
    buffers: Vec<[KeyedDocument; BUFFER]>,
    /// The number of records of each partition so far.
    lengths: Vec<usize>,
    /// The numbers of each partition's chunks.
    chunks: Vec<Vec<usize>>,
    arena: Vec<KeyedDocument>,
    /// The number of chunks of the arena in use.
    used: usize,
    /// The records of the partition that is being read.
    records: Vec<KeyedDocument>,
}

impl Partitions {
    fn new(partitions: usize) -> Partitions {
        Partitions {
            buffers: vec![[KeyedDocument::default(); BUFFER]; partitions],
            lengths: vec![0; partitions],
            chunks: vec![Vec::new(); partitions],
            arena: Vec::new(),
            used: 0,
            records: Vec::new(),
        }
    }

    /// Adds a record to the partition that `place`, a uniform hash, selects.
    fn push(&mut self, place: u64, record: KeyedDocument) {
        let partition = ((u128::from(place) * self.buffers.len() as u128) >> 64) as usize;
        let length = self.lengths[partition] + 1;
        self.lengths[partition] = length;
        self.buffers[partition][(length - 1) % BUFFER] = record;
        if length.is_multiple_of(BUFFER) {
            self.write(partition, length - BUFFER);
        }
    }

    /// Copies a full buffer to the arena. Its first record has the number `first` in the partition.
    fn write(&mut self, partition: usize, first: usize) {
        if first.is_multiple_of(CHUNK) {
            self.chunks[partition].push(self.used);
            self.used += 1;
            if self.arena.len() < self.used * CHUNK {
                self.arena.resize(self.used * CHUNK, KeyedDocument::default());
            }
        }
        let start = self.chunks[partition][first / CHUNK] * CHUNK + first % CHUNK;
        self.arena[start..start + BUFFER].copy_from_slice(&self.buffers[partition]);
    }

    /// Calls `each` with the records of every partition, in the order in which they were added, and
    /// removes them.
    fn drain(&mut self, mut each: impl FnMut(&[KeyedDocument])) {
        for (partition, buffer) in self.buffers.iter().enumerate() {
            let length = std::mem::take(&mut self.lengths[partition]);
            self.records.clear();
            for chunk in self.chunks[partition].drain(..) {
                let records = (length / BUFFER * BUFFER - self.records.len()).min(CHUNK);
                self.records.extend_from_slice(&self.arena[chunk * CHUNK..][..records]);
            }
            self.records.extend_from_slice(&buffer[..length % BUFFER]);
            each(&self.records);
        }
        self.used = 0;
    }
}

/// Groups the records of a partition. Its hash table is reused for the next partition.
#[derive(Default)]
struct PartitionGroups {
    /// For each slot the number of a record, from 1; 0 if the slot is free.
    slots: Vec<u32>,
    edges: Vec<(u32, u32)>,
}

impl PartitionGroups {
    /// The edges from the first document of each key to all others with that key.
    fn edges(&mut self, records: &[KeyedDocument]) -> impl Iterator<Item = (u32, u32)> {
        let size = (2 * records.len()).next_power_of_two().max(2);
        self.slots.clear();
        self.slots.resize(size, 0);
        let shift = u32::BITS - size.trailing_zeros();
        for (record, number) in records.iter().zip(1..) {
            let mut slot = (record.key[1] >> shift) as usize;
            loop {
                match self.slots[slot] {
                    0 => {
                        self.slots[slot] = number;
                        break;
                    }
                    other if records[other as usize - 1].key == record.key => {
                        self.edges.push((records[other as usize - 1].document, record.document));
                        break;
                    }
                    _ => slot = (slot + 1) % size,
                }
            }
        }
        self.edges.drain(..)
    }
}

/// Union-find in which a parent is never larger than its node, so the root is the smallest node of
/// its component.
struct SequentialUnionFind {
    parents: Vec<u32>,
}

impl SequentialUnionFind {
    fn new(nodes: u32) -> SequentialUnionFind {
        SequentialUnionFind { parents: (0..nodes).collect() }
    }

    /// Joins the two nodes of each edge.
    ///
    /// All nodes of a batch first move two steps up. Their cache misses overlap, where edge by edge
    /// each would be waited for.
    fn join(&mut self, edges: impl Iterator<Item = (u32, u32)>) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut edges = edges.fuse();
        loop {
            batch.clear();
            batch.extend(edges.by_ref().take(BATCH));
            if batch.is_empty() {
                return;
            }
            for (a, b) in &mut batch {
                (*a, *b) = (self.up(*a), self.up(*b));
            }
            for (a, b) in &batch {
                let (a, b) = (self.root(*a), self.root(*b));
                self.parents[a.max(b) as usize] = a.min(b);
            }
        }
    }

    /// Path halving: makes the parent's parent the parent of a node, and returns it.
    fn up(&mut self, node: u32) -> u32 {
        let parent = self.parents[node as usize];
        let above = self.parents[parent as usize];
        if above != parent {
            self.parents[node as usize] = above;
        }
        above
    }

    fn root(&mut self, mut node: u32) -> u32 {
        loop {
            let above = self.up(node);
            if above == node {
                return node;
            }
            node = above;
        }
    }

    /// The root of every node. In ascending order, as a parent is smaller and has its root already.
    fn roots(mut self) -> Vec<u32> {
        for node in 0..self.parents.len() {
            self.parents[node] = self.parents[self.parents[node] as usize];
        }
        self.parents
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The naive twin: every document takes the smallest label of all related documents, until
    /// nothing changes.
    fn twin(documents: usize, related: impl Fn(usize, usize) -> bool) -> Vec<u32> {
        let mut labels: Vec<u32> = (0..documents as u32).collect();
        loop {
            let before = labels.clone();
            for a in 0..documents {
                for b in (0..documents).filter(|b| related(a, *b)) {
                    labels[a] = labels[a].min(labels[b]);
                }
            }
            if labels == before {
                return labels;
            }
        }
    }

    fn agreements<const WIDTH: usize>(a: &[u64; WIDTH], b: &[u64; WIDTH]) -> usize {
        a.iter().zip(b).filter(|(a, b)| a == b).count()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn clusters_are_those_of_all_pairs(
            vectors in prop::collection::vec(prop::array::uniform6(0u64..12), 0..60),
            least in 0usize..8,
            partition in prop::sample::select(&[1, 7, PARTITION][..]),
        ) {
            let expected = twin(vectors.len(), |a, b| agreements(&vectors[a], &vectors[b]) >= least);
            prop_assert_eq!(clusters_by(partition, &vectors, least), expected);
        }

        #[test]
        fn components_are_those_of_all_pairs(edges in prop::collection::vec((0u32..40, 0u32..40), 0..40)) {
            let related = |a: usize, b: usize| {
                edges.contains(&(a as u32, b as u32)) || edges.contains(&(b as u32, a as u32))
            };
            prop_assert_eq!(components(40, edges.iter().copied()), twin(40, related));
        }
    }

    #[test]
    fn partitions_of_many_chunks_lose_nothing() {
        // One vector many times fills one partition; the others are spread.
        let many = 3 * CHUNK as u64 + 5;
        let vectors: Vec<[u64; 3]> = (0..2 * many).map(|d| if d < many { [7, 8, 9] } else { [mix(d), d, 9] }).collect();
        let expected: Vec<u32> = (0..2 * many as u32).map(|d| if d < many as u32 { 0 } else { d }).collect();
        for partition in [100, 1000, PARTITION] {
            assert!(clusters_by(partition, &vectors, 2) == expected, "partitions of {partition}");
            assert!(clusters_by(partition, &vectors, 1).iter().all(|root| *root == 0), "partitions of {partition}");
        }
    }

    #[test]
    fn a_long_chain_has_one_root() {
        let chain = (1..100_000).rev().map(|node| (node, node - 1));
        assert!(components(100_000, chain).iter().all(|root| *root == 0));
        assert!(components(0, std::iter::empty()).is_empty());
    }

    #[test]
    fn a_checksum_depends_on_every_label_and_not_on_their_order() {
        let labels = [(0, 0), (1, 0), (2, 2)];
        let sum = |labels: [(u64, u64); 3]| checksum(labels.into_iter());
        assert_eq!(sum(labels), sum([labels[2], labels[0], labels[1]]));
        assert_ne!(sum(labels), sum([(0, 0), (1, 1), (2, 2)]));
        assert_ne!(sum(labels), sum([(0, 0), (1, 2), (2, 0)]));
    }
}
