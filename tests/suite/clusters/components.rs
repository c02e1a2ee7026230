//! The components operators against sequential union-find and differential dataflow's `propagate`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use differential_dataflow::algorithms::graphs::propagate::propagate;
use differential_dataflow::input::Input;
use nigh::operators::components::{Labels, components, edges as edges_to, resolve};
use nigh::records::{DocId, Edge, mix};
use nigh::structures::Ownership;
use nigh::watch::Watch;
use nigh_exchange::{Context, install, run_to_end};
use timely::dataflow::operators::probe::Handle;
use timely::order::Product;

use crate::program::PlainUnionFind;

const SHARDS: u64 = 8;

/// Node numbers as documents: dense rows of `SHARDS` shards.
fn doc(node: u64) -> DocId {
    DocId::new((node % SHARDS) as u32, node / SHARDS)
}

/// The root of every node of a graph, by the operators, with so many workers; and the rounds that
/// it took.
fn labelled(nodes: u64, edges: &[(u64, u64)], workers: usize) -> (Vec<(i64, i64)>, u32) {
    let rows: Vec<u64> = (0..SHARDS).map(|shard| (nodes + SHARDS - 1 - shard) / SHARDS).collect();
    let edges = edges.to_vec();
    let guards = timely::execute(timely::Config::process(workers), move |worker| {
        let cx = &mut Context::alone(worker);
        let (index, peers) = (cx.index(), cx.peers());
        let watch = Arc::new(Watch::default());
        let owned = Ownership::new(index, peers, &rows);
        let labels = Rc::new(RefCell::new(Labels::new(&owned)));
        let probe: Handle<Product<u64, u32>> = Handle::new();
        let mine: Vec<Edge> = edges
            .iter()
            .skip(index)
            .step_by(peers)
            .map(|(a, b)| (doc(*a), doc(*b)))
            .map(|(a, b)| Edge { doc: a.max(b), root: a.min(b) })
            .collect();
        install(cx, |scope| {
            let stream = edges_to(scope, mine, &watch);
            components(scope, stream, &labels, &probe, &watch);
        });
        run_to_end(cx, &probe).unwrap();
        let labels = labels.replace(Labels::new(&Ownership::new(0, 1, &[])));
        let roots = resolve(cx, &owned, labels.label).unwrap();
        let pairs: Vec<(i64, i64)> =
            owned.docs().zip(roots).map(|(doc, root)| (doc.to_table(), root.to_table())).collect();
        (pairs, labels.rounds)
    })
    .unwrap();
    let (mut all, mut rounds) = (Vec::new(), 0);
    for result in guards.join() {
        let (pairs, workers_rounds) = result.unwrap();
        all.extend(pairs);
        rounds = rounds.max(workers_rounds);
    }
    all.sort_unstable();
    (all, rounds)
}

/// The same by sequential union-find.
fn twin(nodes: u64, edges: &[(u64, u64)]) -> Vec<(i64, i64)> {
    let mut sets = PlainUnionFind::default();
    edges.iter().for_each(|(a, b)| sets.union(doc(*a).to_table(), doc(*b).to_table()));
    let mut all: Vec<(i64, i64)> =
        (0..nodes).map(|node| (doc(node).to_table(), sets.find(doc(node).to_table()))).collect();
    all.sort_unstable();
    all
}

/// The same by differential dataflow, for nodes with edges.
fn differential(edges: &[(u64, u64)]) -> Vec<(i64, i64)> {
    let edges = edges.to_vec();
    timely::execute_directly(move |worker| {
        let found = Rc::new(RefCell::new(Vec::new()));
        let (mut input, probe) = worker.dataflow::<u32, _, _>(|scope| {
            let (input, graph) = scope.new_collection::<(i64, i64), i32>();
            let both = graph.clone().map(|(a, b)| (b, a)).concat(graph);
            let nodes = both.clone().map(|(a, _)| (a, a));
            let kept = found.clone();
            let (probe, _) =
                propagate(both, nodes).inspect(move |(pair, _, diff)| kept.borrow_mut().push((*pair, *diff))).probe();
            (input, probe)
        });
        edges.iter().for_each(|(a, b)| input.update((doc(*a).to_table(), doc(*b).to_table()), 1));
        input.close();
        while !probe.done() {
            worker.step_or_park(None);
        }
        let mut net = std::collections::BTreeMap::new();
        found.borrow().iter().for_each(|(pair, diff)| *net.entry(*pair).or_insert(0) += diff);
        net.into_iter().filter(|(_, count)| *count > 0).map(|(pair, _)| pair).collect()
    })
}

fn random_edges(nodes: u64, count: u64, seed: u64) -> Vec<(u64, u64)> {
    (0..count).map(|i| (mix(seed * 1000 + 2 * i) % nodes, mix(seed * 1000 + 2 * i + 1) % nodes)).collect()
}

#[test]
fn random_graphs_have_the_components_of_union_find() {
    for seed in 0..10 {
        eprintln!("seed {seed}");
        let nodes = 50 + mix(seed) % 500;
        let edges = random_edges(nodes, nodes / 2 + mix(seed + 99) % nodes, seed);
        for workers in [1, 2, 4] {
            assert_eq!(labelled(nodes, &edges, workers).0, twin(nodes, &edges), "{workers} workers");
        }
    }
}

#[test]
fn differential_dataflow_agrees() {
    let edges = random_edges(400, 300, 7);
    let ours = labelled(400, &edges, 2).0;
    let theirs = differential(&edges);
    // 300 edges among 400 nodes: far more than 200 nodes have one, or nothing is compared.
    assert!(theirs.len() > 200);
    for pair in theirs {
        assert!(ours.binary_search(&pair).is_ok(), "{pair:?}");
    }
}

#[test]
fn chains_and_stars_take_few_rounds() {
    // A chain in an order that is random, rising, and falling; a star around its largest and its
    // smallest node.
    let nodes = 20_000u64;
    let mut shuffled: Vec<u64> = (0..nodes).collect();
    shuffled.sort_unstable_by_key(|node| mix(*node));
    let chain = |order: &[u64]| order.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>();
    let rising: Vec<u64> = (0..nodes).collect();
    let falling: Vec<u64> = rising.iter().rev().copied().collect();
    let graphs = [
        chain(&shuffled),
        chain(&rising),
        chain(&falling),
        (1..nodes).map(|node| (0, node)).collect(),
        (0..nodes - 1).map(|node| (nodes - 1, node)).collect(),
    ];
    for (graph, edges) in graphs.iter().enumerate() {
        for workers in [1, 2, 4] {
            let (roots, rounds) = labelled(nodes, edges, workers);
            assert!(roots.iter().all(|(_, root)| *root == 0), "graph {graph}, {workers} workers");
            // Plain label propagation would take as many rounds as the chain is long.
            // `nigh bench components` takes 15 at most for as many nodes.
            assert!(rounds < 100, "graph {graph}, {workers} workers: {rounds} rounds");
        }
    }
}

#[test]
fn nodes_without_edges_are_components_of_their_own() {
    assert_eq!(labelled(20, &[], 2).0, twin(20, &[]));
    assert_eq!(labelled(0, &[], 2).0, []);
}
