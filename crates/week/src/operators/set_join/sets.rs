//! The sets of a worker: how a job gives them, and those that are left of them.

use anyhow::{Result, ensure};

/// An element of a set, and its weight there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Element {
    /// A hash of the element: equal elements have equal hashes, in all sets.
    pub hash: u64,
    /// Its weight, at least 1.
    pub weight: u32,
}

/// What is known of a set before a join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownSet {
    /// Whether its pairs with other such sets are known.
    pub is_old: bool,
    /// The number of its known family; 0 if it has none.
    pub family: u32,
}

/// The own sets of a worker, which can be read several times.
pub trait SetSource {
    /// A pass over the sets.
    type Pass: SetPass + 'static;

    /// The number of sets.
    fn len(&self) -> usize;

    /// Whether there are no sets.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of a set, by its number in a pass: no two sets of all workers have the same one.
    /// The results depend on the names, and not on which worker has a set.
    fn name(&self, set: usize) -> u64;

    /// What is known of a set before the join, by its number in a pass. Asked only if the join has
    /// known pairs: see [`SetJoinStage::has_known`](super::SetJoinStage::has_known).
    fn known(&self, _set: usize) -> KnownSet {
        KnownSet::default()
    }

    /// Begins to read the sets. Every pass gives the same sets in the same order.
    ///
    /// # Errors
    /// If they cannot be read.
    fn pass(&self) -> Result<Self::Pass>;
}

/// A pass over the own sets of a worker.
pub trait SetPass {
    /// Replaces `set` by the elements of the next set: distinct, in any order, the same in every
    /// pass. Returns `false` after the last set.
    ///
    /// # Errors
    /// If the set cannot be read.
    fn next(&mut self, set: &mut Vec<Element>) -> Result<bool>;

    /// Leaves out the next set. Returns `false` after the last set.
    ///
    /// # Errors
    /// If the set cannot be read.
    fn skip(&mut self) -> Result<bool> {
        self.next(&mut Vec::new())
    }
}

/// Sets in memory: 20 bytes for a set, and for an element 8 bytes, or 12 if some element of any set
/// has another weight than 1.
///
/// ```
/// use nigh_week::operators::set_join::{Element, SetPass, SetSource, WeightedSets};
///
/// let mut sets = WeightedSets::default();
/// sets.push(7, &[Element { hash: 1, weight: 1 }, Element { hash: 2, weight: 3 }]).unwrap();
/// let sets = std::sync::Arc::new(sets);
/// let (mut pass, mut set) = (sets.pass().unwrap(), Vec::new());
/// assert!(pass.next(&mut set).unwrap());
/// assert_eq!((set[1].weight, sets.name(0)), (3, 7));
/// assert!(!pass.next(&mut set).unwrap());
/// ```
#[derive(Clone, Debug)]
pub struct WeightedSets {
    names: Vec<u64>,
    /// The size of each set: the weight of all elements that it had in the beginning.
    sizes: Vec<u32>,
    /// Where the elements of each set begin; one more at the end.
    starts: Vec<usize>,
    hashes: Vec<u64>,
    /// The weights of the elements; empty as long as all are 1.
    weights: Vec<u32>,
}

impl Default for WeightedSets {
    fn default() -> WeightedSets {
        WeightedSets { names: Vec::new(), sizes: Vec::new(), starts: vec![0], hashes: Vec::new(), weights: Vec::new() }
    }
}

impl WeightedSets {
    /// Adds a set: its name and its distinct elements.
    ///
    /// # Errors
    /// If its weight is 2^32 or more.
    pub fn push(&mut self, name: u64, set: &[Element]) -> Result<()> {
        self.push_part(name, weight_in_all(set)?, set.iter().copied());
        Ok(())
    }

    /// Adds a part of a set that has this size as a whole.
    pub(super) fn push_part(&mut self, name: u64, size: u32, part: impl Iterator<Item = Element>) {
        for element in part {
            if element.weight != 1 && self.weights.is_empty() {
                self.weights.resize(self.hashes.len(), 1);
            }
            if element.weight != 1 || !self.weights.is_empty() {
                self.weights.push(element.weight);
            }
            self.hashes.push(element.hash);
        }
        self.names.push(name);
        self.sizes.push(size);
        self.starts.push(self.hashes.len());
    }

    /// The number of sets.
    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    /// The number of elements of all sets.
    pub fn elements(&self) -> usize {
        self.hashes.len()
    }

    /// The name of a set.
    pub(super) fn name_of(&self, set: usize) -> u64 {
        self.names[set]
    }

    /// The elements of a set.
    pub(super) fn set(&self, set: usize) -> impl Iterator<Item = Element> + Clone {
        self.positions(set).map(|position| Element { hash: self.hashes[position], weight: self.weight(position) })
    }

    /// The positions of the elements of a set among those of all sets.
    pub(super) fn positions(&self, set: usize) -> std::ops::Range<usize> {
        self.starts[set]..self.starts[set + 1]
    }

    /// The element at a position.
    pub(super) fn hash(&self, position: usize) -> u64 {
        self.hashes[position]
    }

    /// The weight of the element at a position.
    pub(super) fn weight(&self, position: usize) -> u32 {
        self.weights.get(position).copied().unwrap_or(1)
    }

    /// The size of a set, fallen elements included.
    pub(super) fn size(&self, set: usize) -> u32 {
        self.sizes[set]
    }

    /// The weight of the elements of a set.
    pub(super) fn weight_of(&self, set: usize) -> u64 {
        self.positions(set).map(|position| u64::from(self.weight(position))).sum()
    }

    /// The sets without the elements at some positions, and of these only the sets that `keep`:
    /// given are the size and the weight that is left. `kept` is called with the old number of each
    /// set that is kept, in order.
    pub(super) fn without(
        &self,
        falls: impl Fn(usize) -> bool,
        keep: impl Fn(u32, u64) -> bool,
        mut kept: impl FnMut(usize),
    ) -> WeightedSets {
        let mut left = WeightedSets::default();
        for set in 0..self.count() {
            let positions = || self.positions(set).filter(|position| !falls(*position));
            let weight = positions().map(|position| u64::from(self.weight(position))).sum();
            if keep(self.sizes[set], weight) {
                let part =
                    positions().map(|position| Element { hash: self.hashes[position], weight: self.weight(position) });
                left.push_part(self.names[set], self.sizes[set], part);
                kept(set);
            }
        }
        left
    }
}

/// The weight of all elements of a set.
///
/// # Errors
/// If it is 2^32 or more.
pub(super) fn weight_in_all(set: &[Element]) -> Result<u32> {
    let size: u64 = set.iter().map(|element| u64::from(element.weight)).sum();
    ensure!(size <= u32::MAX.into(), "a set weighs {size}: the most is {}", u32::MAX);
    Ok(size as u32)
}

impl SetSource for std::sync::Arc<WeightedSets> {
    type Pass = SetsPass;

    fn len(&self) -> usize {
        self.count()
    }

    fn name(&self, set: usize) -> u64 {
        self.names[set]
    }

    fn pass(&self) -> Result<SetsPass> {
        Ok(SetsPass { sets: self.clone(), next: 0 })
    }
}

/// A pass over sets in memory.
pub struct SetsPass {
    sets: std::sync::Arc<WeightedSets>,
    next: usize,
}

impl SetPass for SetsPass {
    fn next(&mut self, set: &mut Vec<Element>) -> Result<bool> {
        set.clear();
        if self.next == self.sets.count() {
            return Ok(false);
        }
        set.extend(self.sets.set(self.next));
        self.next += 1;
        Ok(true)
    }
}
