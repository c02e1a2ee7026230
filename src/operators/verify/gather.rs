//! Gathers the sets of candidates where they are compared: those of a small cluster at the owner of its root, in the order of clusters; those of
//! a large one at the owners of their documents.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::candidate_sets::{CandidateSet, CandidateSource, Step};
use super::element_sets::{ElementSets, ElementSetsWriter};
use crate::operators::exchange::run_to_end;
use crate::records::DocId;
use crate::structures::{ExternalSort, Sorted};
use crate::watch::Watch;

/// How long the source works before it yields to others.
const TIME_SLICE: Duration = Duration::from_millis(5);

/// The sets at a worker.
pub struct Gathered {
    /// Those of small clusters whose root it owns, by root and document.
    pub small: Sorted<CandidateSet>,
    /// Those of its own documents in large clusters.
    pub large: ElementSets,
}

/// Where the sets that arrive are kept.
struct Arrived {
    small: ExternalSort<CandidateSet>,
    large: ElementSetsWriter,
}

/// Reads the sets of every worker's `source`, and gathers them. `large` are the roots of large clusters, ascending, the same at every worker.
/// Sets that take more than `memory` bytes go to files in the folder `scratch`.
///
/// # Errors
/// If sets cannot be read, a file cannot be written, or a worker of this process failed.
pub fn gather(
    worker: &mut Worker,
    mut source_of_sets: impl CandidateSource + 'static,
    large: &Rc<[DocId]>,
    memory: u64,
    scratch: &Path,
    watch: &Arc<Watch>,
) -> Result<Gathered> {
    let (index, peers) = (worker.index(), worker.peers());
    let arrived = Arrived {
        small: ExternalSort::new(&scratch.join(format!("candidates-worker{index}")), memory / 2),
        large: ElementSetsWriter::new(scratch.join(format!("elements-worker{index}")), memory / 2),
    };
    let arrived = Rc::new(RefCell::new(arrived));
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let at_source = watch.clone();
        let sets =
            source::<_, CapacityContainerBuilder<Vec<CandidateSet>>, _, _>(scope, "Candidates", |capability, info| {
                let activator = scope.activator_for(info.address);
                let mut capability = Some(capability);
                move |output| {
                    // After a failure the capability is kept: other workers would take silence for an end.
                    let Some(current) = capability.as_ref().filter(|_| !at_source.failed()) else { return };
                    let mut session = output.session(current);
                    let slice = Instant::now();
                    while slice.elapsed() < TIME_SLICE {
                        match at_source.check(source_of_sets.step()) {
                            Some(Step::Set(set)) => session.give(set),
                            Some(Step::Passed) => {}
                            Some(Step::End) => {
                                drop(session);
                                capability = None;
                                return;
                            }
                            None => return,
                        }
                    }
                    activator.activate();
                }
            });
        let place = {
            let large = large.clone();
            move |set: &CandidateSet| {
                let by = if large.binary_search(&set.root).is_ok() { set.doc } else { set.root };
                by.owner(peers) as u64
            }
        };
        let (arrived, large, watch) = (arrived.clone(), large.clone(), watch.clone());
        sets.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(Exchange::new(place), "Gather", |_, _| {
            move |input, _output| {
                input.for_each(|_, sets| {
                    for set in sets.drain(..).take_while(|_| !watch.failed()) {
                        let arrived = &mut *arrived.borrow_mut();
                        if large.binary_search(&set.root).is_ok() {
                            watch.check(arrived.large.push(set.doc, set.root, &set.elements));
                        } else {
                            watch.check(arrived.small.push(set));
                        }
                    }
                });
            }
        })
        .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    // The operators that share what arrived are dropped at the next step.
    worker.step();
    let Ok(arrived) = Rc::try_unwrap(arrived) else { bail!("a dataflow that has ended still writes") };
    let Arrived { small, large } = arrived.into_inner();
    Ok(Gathered { small: small.sorted()?, large: large.finish()? })
}
