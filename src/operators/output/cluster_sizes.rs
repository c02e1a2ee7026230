//! How many documents each cluster has, told to every worker that owns one of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{FrontierNotificator, Probe};
use timely::worker::Worker;

use crate::operators::exchange::{BlockBuilder, Dealer, by_part, run_to_end};
use crate::records::{DocId, Level};
use crate::structures::{DocHasher, Ownership};
use crate::watch::Watch;

/// One level's clusters: the root of every own document, by number, and how many belong to each root.
pub struct LevelClusters {
    /// The level.
    pub level: Level,
    /// Roots by number.
    pub roots: Vec<DocId>,
    /// Members by root.
    pub tallies: ClusterSizes,
}

/// Members of a cluster that one worker counted; or, on the way back, all its members.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RootCount {
    root: DocId,
    members: u64,
    worker: u64,
}

type ByDoc<T> = HashMap<DocId, T, BuildHasherDefault<DocHasher>>;

/// The clusters of own documents at one level.
pub struct ClusterSizes {
    owned: Ownership,
    /// Members of the cluster that an own document roots, by number; 0 for one that roots none.
    own: Vec<u64>,
    /// The same for roots of other owners.
    others: ByDoc<u64>,
}

impl ClusterSizes {
    /// The members of the cluster with this root, to which an own document belongs.
    pub fn members(&self, root: DocId) -> u64 {
        if self.owned.has(root) {
            self.own[self.owned.index(root)]
        } else {
            self.others.get(&root).copied().unwrap_or(0)
        }
    }

    /// Every cluster that an own document roots: root and members.
    pub fn own(&self) -> impl Iterator<Item = (DocId, u64)> {
        self.owned.docs().zip(self.own.iter().copied()).filter(|(_, members)| *members > 0)
    }
}

/// Counts the members of every cluster, given the root of each own document by number; [`DocId::NONE`] is no root.
///
/// # Errors
/// Where a worker of this process failed.
pub fn cluster_sizes(
    worker: &mut Worker,
    owned: &Ownership,
    roots: &[DocId],
    watch: &Arc<Watch>,
) -> Result<ClusterSizes> {
    let (index, peers) = (worker.index() as u64, worker.peers());
    let mut own = vec![0; owned.len()];
    let mut elsewhere: ByDoc<u64> = HashMap::default();
    for root in roots.iter().filter(|root| **root != DocId::NONE) {
        match owned.has(*root) {
            true => own[owned.index(*root)] += 1,
            false => *elsewhere.entry(*root).or_default() += 1,
        }
    }
    let tallies = Rc::new(RefCell::new(ClusterSizes { owned: owned.clone(), own, others: HashMap::default() }));
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let (at_root, at_member) = (tallies.clone(), tallies.clone());
        let mut dealer = Dealer::new(index as usize, peers, watch);
        let mut replies = Dealer::new(index as usize, peers, watch);
        source::<_, BlockBuilder<RootCount>, _, _>(scope, "Count", |capability, _| {
            let mut held = Some(capability);
            move |output| {
                let Some(capability) = held.take() else { return };
                let mut session = output.session_with_builder(&capability);
                for (root, members) in elsewhere.drain() {
                    dealer.deal(root.owner(peers) as u64, RootCount { root, members, worker: index });
                    dealer.full().for_each(|mut block| session.give_container(&mut block));
                }
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
            }
        })
        .unary_frontier::<BlockBuilder<RootCount>, _, _, _>(by_part(), "Tally", |capability, _| {
            let mut asked: Vec<RootCount> = Vec::new();
            let mut notificator = FrontierNotificator::from([capability]);
            move |(input, frontier), output| {
                input.for_each(|_, block| {
                    let mut tallies = at_root.borrow_mut();
                    for count in std::mem::take(block).records() {
                        let at = tallies.owned.index(count.root);
                        tallies.own[at] += count.members;
                        asked.push(*count);
                    }
                });
                notificator.for_each(&[frontier], |capability, _| {
                    let tallies = at_root.borrow();
                    let mut session = output.session_with_builder(&capability);
                    for count in asked.drain(..) {
                        let at = tallies.owned.index(count.root);
                        let total = RootCount { members: tallies.own[at], ..count };
                        replies.deal(count.worker, total);
                    }
                    replies.finish().for_each(|mut block| session.give_container(&mut block));
                });
            }
        })
        .unary::<BlockBuilder<RootCount>, _, _, _>(by_part(), "Told", |_, _| {
            move |input, _output| {
                input.for_each(|_, block| {
                    let block = std::mem::take(block);
                    let told = block.records().iter().map(|count| (count.root, count.members));
                    at_member.borrow_mut().others.extend(told);
                });
            }
        })
        .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(Pipeline, "End", |_, _| {
            |input, _| input.for_each(|_, _| {})
        })
        .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    // Timely may hold the operators, and with them their share of the state, until its next step.
    let mut tallies = tallies.borrow_mut();
    Ok(ClusterSizes {
        owned: owned.clone(),
        own: std::mem::take(&mut tallies.own),
        others: std::mem::take(&mut tallies.others),
    })
}
