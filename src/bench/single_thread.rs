//! The single thread that a distributed system must beat (McSherry, Isard, Murray: Scalability! But at what COST?,
//! 2015).
//!
//! Plain sequential code that computes what the cluster stage computes, and knows nothing of workers. It is meant to be
//! fast: it goes over the vectors once for each choice of supershingles and deals a key and a document at a time to
//! partitions small enough for a cache, then groups each partition by a hash table and joins what shares a key, in a
//! union-find of 32-bit parents. All of it reads and writes memory in sequence but for the joins.
//!
//! What it does not do: leave out, as the cluster stage may, the documents that cannot share a choice with any other.
//! Keys are hashes: two that differ are taken for equal once in 2^64 times the number of partitions.

use crate::records::mix;

/// Records of a partition, in the mean: with a table of twice as many slots, 1.2 MB. A power of two would double the
/// table of every other partition.
const PARTITION: usize = 60_000;
/// Records that a partition collects before they are written out, three cache lines.
const BUFFER: usize = 16;
/// Records of a chunk of a partition: whole buffers.
const CHUNK: usize = 64 * BUFFER;
/// Edges whose memory is waited for together.
const BATCH: usize = 64;

/// The smallest document of each document's cluster, by number: a cluster is documents that agree in at least
/// `agreements` supershingles, transitively. There are fewer than 2^32 documents.
pub(crate) fn clusters<const WIDTH: usize>(vectors: &[[u64; WIDTH]], agreements: usize) -> Vec<u32> {
    clusters_by(PARTITION, vectors, agreements)
}

/// Components of a graph of so many nodes: the smallest node of each node's component. Sequential union-find over
/// edges.
pub(crate) fn components(nodes: u32, edges: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut forest = SequentialUnionFind::new(nodes);
    forest.join(edges);
    forest.roots()
}

/// A checksum of a labelling, whatever its order: the wrapping sum of a mix of each document and its root.
pub(crate) fn checksum(labels: impl Iterator<Item = (u64, u64)>) -> u64 {
    labels.fold(0, |sum, (document, root)| sum.wrapping_add(mix(mix(document) ^ root)))
}

fn clusters_by<const WIDTH: usize>(partition: usize, vectors: &[[u64; WIDTH]], agreements: usize) -> Vec<u32> {
    const { assert!(WIDTH < 32, "choices are bits of a word") };
    let documents = u32::try_from(vectors.len()).expect("documents are numbered by 32 bits");
    let mut forest = SequentialUnionFind::new(documents);
    let mut partitions = Partitions::new(vectors.len().div_ceil(partition));
    let mut groups = Groups::default();
    for choice in (0u32..1 << WIDTH).filter(|choice| choice.count_ones() as usize == agreements) {
        let columns: Vec<usize> = (0..WIDTH).filter(|column| choice >> column & 1 == 1).collect();
        for (document, vector) in (0..documents).zip(vectors) {
            let (key, place) = hashes(columns.iter().map(|column| vector[*column]));
            partitions.push(place, KeyedDocument { key: [key as u32, (key >> 32) as u32], document });
        }
        partitions.take(|records| forest.join(groups.edges(records)));
    }
    forest.roots()
}

/// The key of some words, and a second hash that says where the key is kept: the key alone need not tell all from all.
fn hashes(words: impl Iterator<Item = u64>) -> (u64, u64) {
    words.fold((0, 0), |(key, place), word| {
        let product = u128::from(key ^ word ^ 0x9E37_79B9_7F4A_7C15) * 0xBF58_476D_1CE4_E5B9;
        let sum = u64::rotate_left(place, 32).wrapping_add(word);
        (product as u64 ^ (product >> 64) as u64, sum.wrapping_mul(0x94D0_49BB_1331_11EB))
    })
}

/// A document and what it is grouped by, in 12 bytes.
#[derive(Clone, Copy, Default)]
struct KeyedDocument {
    key: [u32; 2],
    document: u32,
}

/// Records by partition, in chunks of one arena. Records wait in buffers that lie close together, so that a record
/// costs no cache line and no page of its own.
struct Partitions {
    buffers: Vec<[KeyedDocument; BUFFER]>,
    /// Records of each partition so far.
    lengths: Vec<usize>,
    /// The numbers of each partition's chunks.
    chunks: Vec<Vec<usize>>,
    arena: Vec<KeyedDocument>,
    /// Chunks of the arena that are in use.
    used: usize,
    /// The records of the partition that is taken.
    taken: Vec<KeyedDocument>,
}

impl Partitions {
    fn new(partitions: usize) -> Partitions {
        Partitions {
            buffers: vec![[KeyedDocument::default(); BUFFER]; partitions],
            lengths: vec![0; partitions],
            chunks: vec![Vec::new(); partitions],
            arena: Vec::new(),
            used: 0,
            taken: Vec::new(),
        }
    }

    /// Adds a record to the partition that 64 random bits fall in.
    fn push(&mut self, place: u64, record: KeyedDocument) {
        let partition = ((u128::from(place) * self.buffers.len() as u128) >> 64) as usize;
        let length = self.lengths[partition] + 1;
        self.lengths[partition] = length;
        self.buffers[partition][(length - 1) % BUFFER] = record;
        if length.is_multiple_of(BUFFER) {
            self.write(partition, length - BUFFER);
        }
    }

    /// Writes a full buffer, the first of whose records has the number `first` in its partition.
    fn write(&mut self, partition: usize, first: usize) {
        if first.is_multiple_of(CHUNK) {
            self.chunks[partition].push(self.used);
            self.used += 1;
            if self.arena.len() < self.used * CHUNK {
                self.arena.resize(self.used * CHUNK, KeyedDocument::default());
            }
        }
        let at = self.chunks[partition][first / CHUNK] * CHUNK + first % CHUNK;
        self.arena[at..at + BUFFER].copy_from_slice(&self.buffers[partition]);
    }

    /// Gives every partition's records in the order in which they came, and is empty after that.
    fn take(&mut self, mut each: impl FnMut(&[KeyedDocument])) {
        for (partition, buffer) in self.buffers.iter().enumerate() {
            let length = std::mem::take(&mut self.lengths[partition]);
            self.taken.clear();
            for chunk in self.chunks[partition].drain(..) {
                let records = (length / BUFFER * BUFFER - self.taken.len()).min(CHUNK);
                self.taken.extend_from_slice(&self.arena[chunk * CHUNK..][..records]);
            }
            self.taken.extend_from_slice(&buffer[..length % BUFFER]);
            each(&self.taken);
        }
        self.used = 0;
    }
}

/// Groups the records of a partition; its table is used again and again.
#[derive(Default)]
struct Groups {
    /// The number of a record, counted from 1; 0 where the slot is free.
    slots: Vec<u32>,
    edges: Vec<(u32, u32)>,
}

impl Groups {
    /// An edge from each document to the first one of its key.
    fn edges(&mut self, records: &[KeyedDocument]) -> impl Iterator<Item = (u32, u32)> {
        let size = (2 * records.len()).next_power_of_two().max(2);
        self.slots.clear();
        self.slots.resize(size, 0);
        let shift = u32::BITS - size.trailing_zeros();
        for (record, number) in records.iter().zip(1..) {
            let mut at = (record.key[1] >> shift) as usize;
            loop {
                match self.slots[at] {
                    0 => {
                        self.slots[at] = number;
                        break;
                    }
                    other if records[other as usize - 1].key == record.key => {
                        self.edges.push((records[other as usize - 1].document, record.document));
                        break;
                    }
                    _ => at = (at + 1) % size,
                }
            }
        }
        self.edges.drain(..)
    }
}

/// Union-find: a node's parent is never larger than the node, so that a root is the smallest of its component.
struct SequentialUnionFind {
    parents: Vec<u32>,
}

impl SequentialUnionFind {
    fn new(nodes: u32) -> SequentialUnionFind {
        SequentialUnionFind { parents: (0..nodes).collect() }
    }

    /// Joins the ends of all edges. A batch of edges first takes two steps up together: the processor waits for their
    /// memory at once, where one edge after the other would wait for each.
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

    /// The parent's parent, which is now the parent: path halving.
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

    /// Every node's root: parents are smaller, and are done before.
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

    /// Every document takes the smallest label of all that it is related to, until nothing changes.
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
        fn components_are_those_of_all_pairs(edges in prop::collection::vec((0u32..150, 0u32..150), 0..150)) {
            let related = |a: usize, b: usize| {
                edges.contains(&(a as u32, b as u32)) || edges.contains(&(b as u32, a as u32))
            };
            prop_assert_eq!(components(150, edges.iter().copied()), twin(150, related));
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
    fn a_checksum_does_not_depend_on_order_and_does_on_every_label() {
        let labels = [(0, 0), (1, 0), (2, 2)];
        let sum = |labels: [(u64, u64); 3]| checksum(labels.into_iter());
        assert_eq!(sum(labels), sum([labels[2], labels[0], labels[1]]));
        assert_ne!(sum(labels), sum([(0, 0), (1, 1), (2, 2)]));
        assert_ne!(sum(labels), sum([(0, 0), (1, 2), (2, 0)]));
    }
}
