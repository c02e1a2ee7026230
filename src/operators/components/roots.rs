//! Roots: the smallest node of the component of every own node, from edges that each worker has.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use timely::dataflow::operators::probe::Handle;
use timely::order::Product;
use timely::worker::Worker;

use super::edges::edges;
use super::label_propagation::{Labels, components};
use super::pointer_doubling::resolve;
use super::verify::verify;
use crate::operators::exchange::{install, run_to_end};
use crate::records::{DocId, Edge};
use crate::structures::Ownership;
use crate::watch::Watch;

/// Returns the root of each own node, by number: the smallest node of its component. A node without edges is its own root.
///
/// # Errors
/// If the ends of an edge had different roots, or a worker of this process failed.
pub fn component_roots(
    worker: &mut Worker,
    owned: &Ownership,
    all: Vec<Edge>,
    watch: &Arc<Watch>,
) -> Result<Vec<DocId>> {
    let labels = Rc::new(RefCell::new(Labels::new(owned)));
    let probe: Handle<Product<u64, u32>> = Handle::new();
    let sent = all.clone();
    install(worker, |scope| components(scope, edges(scope, sent, watch), &labels, &probe, watch));
    run_to_end(worker, &probe, watch)?;
    let Labels { label, .. } = labels.replace(Labels::new(&Ownership::new(0, 1, &[])));
    let roots = resolve(worker, owned, label, watch)?;
    verify(worker, owned, all.into_iter(), &roots, watch)?;
    Ok(roots)
}
