//! How many documents each cluster has, told to every worker that owns one of them.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
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

use super::block::{BlockBuilder, Dealer, by_part};
use super::phase::{Owned, run_to_end};
use super::resolve::DocHasher;
use crate::records::DocId;
use crate::watch::Watch;

/// Members of a cluster that one worker counted; or, on the way back, all its members and its name.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Count {
    root: DocId,
    members: u64,
    /// The cluster's number among those of its root's shard, plus one; 0 for a cluster of one.
    number: u64,
    worker: u64,
}

type ByDoc<T> = HashMap<DocId, T, BuildHasherDefault<DocHasher>>;

/// The clusters of own documents at one level.
pub struct Tallies {
    owned: Owned,
    /// Members of the cluster that an own document roots, by number; 0 for one that roots none.
    own: Vec<u64>,
    /// Numbers of these clusters among those of their shard, plus one.
    numbers: Vec<u64>,
    /// The same for roots of other owners.
    others: ByDoc<(u64, u64)>,
}

impl Tallies {
    /// The members of the cluster with this root, to which an own document belongs.
    pub fn members(&self, root: DocId) -> u64 {
        if self.owned.has(root) { self.own[self.owned.index(root)] } else { self.others.get(&root).map_or(0, |t| t.0) }
    }

    /// The cluster's number among the clusters of at least two documents that root in the same shard, from 0 in
    /// the order of roots.
    pub fn number(&self, root: DocId) -> Option<u64> {
        let number = match self.owned.has(root) {
            true => self.numbers[self.owned.index(root)],
            false => self.others.get(&root).map_or(0, |t| t.1),
        };
        number.checked_sub(1)
    }

    /// Every cluster that an own document roots: root and members.
    pub fn own(&self) -> impl Iterator<Item = (DocId, u64)> {
        self.owned.docs().zip(self.own.iter().copied()).filter(|(_, members)| *members > 0)
    }

    /// Clusters of at least two documents that root in each own shard.
    pub fn named(&self) -> Vec<(u32, u64)> {
        let mut named: BTreeMap<u32, u64> = self.owned.shards().map(|shard| (shard, 0)).collect();
        for (root, _) in self.own().filter(|(_, members)| *members > 1) {
            *named.entry(root.shard()).or_default() += 1;
        }
        named.into_iter().collect()
    }
}

/// Counts the members of every cluster, given the root of each own document by number.
///
/// # Errors
/// Where a worker of this process failed.
pub fn tally(worker: &mut Worker, owned: &Owned, roots: &[DocId], watch: &Arc<Watch>) -> Result<Tallies> {
    let (index, peers) = (worker.index() as u64, worker.peers());
    let mut own = vec![0; owned.len()];
    let mut elsewhere: ByDoc<u64> = HashMap::default();
    for root in roots {
        match owned.has(*root) {
            true => own[owned.index(*root)] += 1,
            false => *elsewhere.entry(*root).or_default() += 1,
        }
    }
    let numbers = vec![0; owned.len()];
    let tallies = Rc::new(RefCell::new(Tallies { owned: owned.clone(), own, numbers, others: HashMap::default() }));
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let (at_root, at_member) = (tallies.clone(), tallies.clone());
        let mut dealer = Dealer::new(index as usize, peers, watch);
        let mut replies = Dealer::new(index as usize, peers, watch);
        source::<_, BlockBuilder<Count>, _, _>(scope, "Count", |capability, _| {
            let mut held = Some(capability);
            move |output| {
                let Some(capability) = held.take() else { return };
                let mut session = output.session_with_builder(&capability);
                for (root, members) in elsewhere.drain() {
                    dealer.deal(root.owner(peers) as u64, Count { root, members, number: 0, worker: index });
                    dealer.full().for_each(|mut block| session.give_container(&mut block));
                }
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
            }
        })
        .unary_frontier::<BlockBuilder<Count>, _, _, _>(by_part(), "Tally", |capability, _| {
            let mut asked: Vec<Count> = Vec::new();
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
                    let mut tallies = at_root.borrow_mut();
                    let tallies = &mut *tallies;
                    let mut shard = (u32::MAX, 0);
                    for (at, doc) in tallies.owned.docs().enumerate().filter(|(at, _)| tallies.own[*at] > 1) {
                        if shard.0 != doc.shard() {
                            shard = (doc.shard(), 0);
                        }
                        shard.1 += 1;
                        tallies.numbers[at] = shard.1;
                    }
                    let mut session = output.session_with_builder(&capability);
                    for count in asked.drain(..) {
                        let at = tallies.owned.index(count.root);
                        let total = Count { members: tallies.own[at], number: tallies.numbers[at], ..count };
                        replies.deal(count.worker, total);
                    }
                    replies.finish().for_each(|mut block| session.give_container(&mut block));
                });
            }
        })
        .unary::<BlockBuilder<Count>, _, _, _>(by_part(), "Told", |_, _| {
            move |input, _output| {
                input.for_each(|_, block| {
                    let block = std::mem::take(block);
                    let told = block.records().iter().map(|count| (count.root, (count.members, count.number)));
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
    Ok(Tallies {
        owned: owned.clone(),
        own: std::mem::take(&mut tallies.own),
        numbers: std::mem::take(&mut tallies.numbers),
        others: std::mem::take(&mut tallies.others),
    })
}
