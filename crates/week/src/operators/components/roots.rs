//! Roots: the smallest node of the component of every own node, from edges that each worker has.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use nigh_exchange::{Context, install, run_to_end};
use timely::dataflow::operators::probe::Handle;
use timely::order::Product;

use super::edges::edges;
use super::label_propagation::{Labels, components};
use super::pointer_doubling::resolve;
use super::verify::verify;
use crate::records::{DocId, Edge};
use crate::structures::Ownership;

/// Returns the root of each own node, by number: the smallest node of its component. A node without
/// edges is its own root.
///
/// # Errors
/// If the ends of an edge had different roots, or a worker of this process failed.
pub fn component_roots(cx: &mut Context, owned: &Ownership, all: Vec<Edge>) -> Result<Vec<DocId>> {
    let watch = &cx.watch().clone();
    let labels = Rc::new(RefCell::new(Labels::new(owned)));
    let probe: Handle<Product<u64, u32>> = Handle::new();
    let sent = all.clone();
    install(cx, |scope| components(scope, edges(scope, sent, watch), &labels, &probe, watch));
    run_to_end(cx, &probe)?;
    let Labels { label, .. } = labels.replace(Labels::new(&Ownership::new(0, 1, &[])));
    let roots = resolve(cx, owned, label)?;
    verify(cx, owned, all.into_iter(), &roots)?;
    Ok(roots)
}
