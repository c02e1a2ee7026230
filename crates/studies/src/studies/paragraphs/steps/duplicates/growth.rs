//! The growth of duplicates: how many are found, and in how many clusters, if the crawl is searched
//! part by part (Pereira 2006, Fig. 5).
//!
//! The study holds the paragraphs of one part at a time in memory, and probes all pages against
//! them. So two duplicates are found in the step of the one whose part is smaller, and a class of
//! equal pages as a whole in the step of its smallest part: no step needs to be made.
//!
//! ```text
//! for each class of several pages:      clusters[least part] += 1, duplicates[least part] += pages - 1
//! for clusters of several classes:      the same, class by class and false match by false match, as Kruskal's algorithm takes edges
//! ```

use std::collections::BTreeMap;

use anyhow::Result;
use nigh_exchange::Context;

use super::classes::{DuplicateClass, FalseMatch};
use crate::records::DocId;
use crate::structures::OwnUnionFind;

/// What each step adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// By step, from 0.
    pub steps: Vec<GrowthStep>,
    /// The clusters by the step that finds the first pages of them, and by their number of pages in
    /// the end.
    pub found: BTreeMap<(u32, u64), u64>,
}

/// What one step adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrowthStep {
    /// The pages of its part.
    pub documents: u64,
    /// Clusters; a step that joins more clusters than it finds adds fewer than none.
    pub clusters: i64,
    /// Duplicates: pages in clusters, less one for each cluster.
    pub duplicates: u64,
}

impl Growth {
    /// The growth of all workers, from the own pages of each part, and from the own classes that no
    /// false match joins: their number by least part and size.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub(in crate::studies::paragraphs::steps) fn gather(
        cx: &mut Context,
        documents: Vec<u64>,
        classes: BTreeMap<(u32, u64), u64>,
        false_matches: &[FalseMatch],
    ) -> Result<Growth> {
        let mut growth = Growth { steps: vec![GrowthStep::default(); documents.len()], ..Growth::default() };
        for (step, documents) in cx.concat(documents.into_iter().enumerate().collect())? {
            growth.steps[step].documents += documents;
        }
        for ((part, size), count) in cx.concat(classes.into_iter().collect())? {
            *growth.found.entry((part, size)).or_default() += count;
            let step = &mut growth.steps[part as usize];
            step.clusters += count as i64;
            step.duplicates += count * (size - 1);
        }
        growth.add_joined(false_matches);
        Ok(growth)
    }

    /// Adds the clusters that false matches join from classes.
    fn add_joined(&mut self, false_matches: &[FalseMatch]) {
        let mut classes: BTreeMap<DocId, JoinedClass> = BTreeMap::new();
        for of in false_matches {
            let step = of.parts().min().unwrap_or_default();
            for (doc, class) in of.classes.into_iter().zip(of.of_classes) {
                let joined = classes.entry(doc).or_insert(JoinedClass { class, step, number: 0 });
                joined.step = joined.step.min(step);
            }
        }
        classes.values_mut().zip(0..).for_each(|(class, number)| class.number = number);
        let mut joined = OwnUnionFind::new(classes.len());
        // The pages of each root, and the step that finds the first of them.
        let mut pages: Vec<u64> = classes.values().map(|class| u64::from(class.class.size)).collect();
        let mut first: Vec<u32> = classes.values().map(|class| class.step).collect();
        // All pages of a class are joined in the step of the first page that is a duplicate of all
        // of them: of the class, or of a false match.
        for class in classes.values() {
            let step = &mut self.steps[class.step as usize];
            step.duplicates += u64::from(class.class.size) - 1;
            step.clusters += i64::from(class.class.size > 1);
        }
        let mut edges: Vec<(u32, [u32; 2])> = false_matches
            .iter()
            .map(|of| (of.parts().min().unwrap_or_default(), of.classes.map(|class| classes[&class].number)))
            .collect();
        edges.sort_unstable();
        for (part, numbers) in edges {
            let Some(roots) = joined.join(numbers) else { continue };
            let [low, high] = roots.map(|root| root as usize);
            let clusters = [low, high].iter().filter(|root| pages[**root] > 1).count() as i64;
            let step = &mut self.steps[part as usize];
            step.duplicates += 1;
            step.clusters += 1 - clusters;
            pages[low] += pages[high];
            first[low] = first[low].min(first[high]);
        }
        for root in joined.roots() {
            *self.found.entry((first[root as usize], pages[root as usize])).or_default() += 1;
        }
    }
}

/// A class that a false match joins to another one.
struct JoinedClass {
    class: DuplicateClass,
    /// The step that joins its pages.
    step: u32,
    number: u32,
}
