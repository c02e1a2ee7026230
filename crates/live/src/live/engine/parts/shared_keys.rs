//! The keys of all parts.

use anyhow::Result;

use super::messages::{MOST_BYTES, PartReply, Request};
use super::processes::{SharedProcesses, another_reply};
use crate::live::engine::keys::{EdgeChange, KeyPart, KeyShare, NodeLists};

/// The most nodes of a request.
const AT_ONCE: usize = 4096;
/// The most bytes of a reply for each key of a node: a node that goes changes 19 edges, each of
/// three numbers of at most five bytes.
const BYTES_OF_KEY: usize = 19 * 3 * 5;

/// The keys of all parts.
pub(in crate::live::engine) struct SharedKeys {
    own: KeyPart,
    others: SharedProcesses,
    count: usize,
    /// How many nodes are asked about at once.
    at_once: usize,
}

impl SharedKeys {
    /// The keys of vectors of `width` supershingles, of which `agreements` must agree; no node has
    /// any. The other processes forget the keys and features that they have, and begin with
    /// `features` of each document.
    ///
    /// # Errors
    /// If one of these is gone.
    pub(in crate::live::engine) fn new(
        (width, agreements): (usize, usize),
        features: usize,
        others: &SharedProcesses,
    ) -> Result<SharedKeys> {
        let mut processes = others.lock();
        let count = processes.count() + 1;
        let part = |number: usize| KeyShare { number: number as u32, count: count as u32 };
        processes.send(|number| Request::Begin { part: part(number), width, agreements, features })?;
        let own = KeyPart::new(part(0), width, agreements);
        let replies = processes.receive()?;
        drop(processes);
        others.wanted(replies, |_, reply| (reply == PartReply::Ready).then_some(()))?;
        let at_once = (MOST_BYTES / 2 / BYTES_OF_KEY / own.keys_of_node().max(1)).clamp(1, AT_ONCE);
        Ok(SharedKeys { own, others: others.clone(), count, at_once })
    }

    /// The supershingles of a node.
    pub(in crate::live::engine) fn vector(&self, node: u32) -> &[u64] {
        self.own.vector(node)
    }

    /// Notes the supershingles of a node, which has no keys yet.
    pub(in crate::live::engine) fn set_vector(&mut self, node: u32, vector: &[u64]) {
        self.own.set_vector(node, vector);
    }

    /// Takes nodes out of their keys, and then adds others to theirs, in this order. Returns the
    /// edges that go and come, in any order.
    ///
    /// # Errors
    /// If another process is gone.
    pub(in crate::live::engine) fn change(&mut self, removed: &[u32], made: &[u32]) -> Result<Vec<EdgeChange>> {
        let mut edges = Vec::new();
        for nodes in removed.chunks(self.at_once) {
            let request = |_: &KeyPart| Request::Remove { nodes: nodes.to_vec() };
            let own = |own: &mut KeyPart, edges: &mut Vec<EdgeChange>| {
                nodes.iter().for_each(|node| own.remove(*node, &mut |edge| edges.push(edge)));
            };
            self.edges(request, own, &mut edges)?;
        }
        for nodes in made.chunks(self.at_once) {
            let request = |own: &KeyPart| {
                let vectors = nodes.iter().flat_map(|node| own.vector(*node)).copied().collect();
                Request::Insert { nodes: nodes.to_vec(), vectors }
            };
            let own = |own: &mut KeyPart, edges: &mut Vec<EdgeChange>| {
                nodes.iter().for_each(|node| own.insert(*node, &mut |edge| edges.push(edge)));
            };
            self.edges(request, own, &mut edges)?;
        }
        Ok(edges)
    }

    fn edges(
        &mut self,
        request: impl Fn(&KeyPart) -> Request,
        own: impl FnOnce(&mut KeyPart, &mut Vec<EdgeChange>),
        edges: &mut Vec<EdgeChange>,
    ) -> Result<()> {
        let replies = self.ask(request, |part| own(part, edges))?;
        let more = self.others.wanted(replies, |_, reply| match reply {
            PartReply::Edges(edges) => Some(edges),
            _ => None,
        })?;
        edges.extend(more.into_iter().flatten());
        Ok(())
    }

    /// The other end of every edge of some nodes, a list for each; more than once if several keys
    /// have the edge. The ends of a node are in the order of its keys.
    ///
    /// # Errors
    /// If another process is gone.
    pub(in crate::live::engine) fn neighbours(&mut self, nodes: &[u32]) -> Result<Vec<Vec<u32>>> {
        let mut found = Vec::with_capacity(nodes.len());
        for nodes in nodes.chunks(self.at_once) {
            let request = |_: &KeyPart| Request::Neighbours { nodes: nodes.to_vec() };
            let lists = self.lists(request, |own, lists| nodes.iter().for_each(|node| own.neighbours(*node, lists)))?;
            if let [own] = &lists[..] {
                let mut own = ListReader::of(own);
                for _ in nodes {
                    let lists = (0..self.own.keys_of_node()).filter_map(|_| own.next());
                    found.push(lists.flatten().copied().collect());
                }
                continue;
            }
            let mut lists: Vec<ListReader<'_>> = lists.iter().map(ListReader::of).collect();
            for node in nodes {
                let mut ends = Vec::new();
                for part in self.own.parts_of(*node) {
                    match lists[part as usize].next() {
                        Some(list) => ends.extend_from_slice(list),
                        None => return Err(self.others.lock().fail(part as usize, another_reply())),
                    }
                }
                found.push(ends);
            }
        }
        Ok(found)
    }

    /// Nodes that share a key with vectors, a list for each: at most `most` of each key, in any
    /// order, some more than once.
    ///
    /// # Errors
    /// If another process is gone.
    pub(in crate::live::engine) fn sharing(&mut self, vectors: &[u64], most: usize) -> Result<Vec<Vec<u32>>> {
        let width = self.own.width();
        let mut found = Vec::with_capacity(vectors.len() / width);
        for vectors in vectors.chunks(self.at_once * width) {
            let request = |_: &KeyPart| Request::Sharing { vectors: vectors.to_vec(), most };
            let lists = self.lists(request, |own, lists| {
                vectors.chunks_exact(width).for_each(|vector| own.sharing(vector, most, lists));
            })?;
            let mut lists: Vec<ListReader<'_>> = lists.iter().map(ListReader::of).collect();
            for _ in vectors.chunks_exact(width) {
                let mut nodes = Vec::new();
                for (number, list) in lists.iter_mut().enumerate() {
                    match list.next() {
                        Some(list) => nodes.extend_from_slice(list),
                        None => return Err(self.others.lock().fail(number, another_reply())),
                    }
                }
                found.push(nodes);
            }
        }
        Ok(found)
    }

    /// The lists of all parts, in their order.
    fn lists(
        &mut self,
        request: impl Fn(&KeyPart) -> Request,
        own: impl FnOnce(&KeyPart, &mut NodeLists),
    ) -> Result<Vec<NodeLists>> {
        let mut lists = vec![NodeLists::default()];
        let replies = self.ask(request, |part| own(part, &mut lists[0]))?;
        lists.extend(self.others.wanted(replies, |_, reply| match reply {
            PartReply::Lists(list) => Some(list),
            _ => None,
        })?);
        Ok(lists)
    }

    /// Asks the other processes, and does meanwhile what is to be done with the own part.
    fn ask(&mut self, request: impl Fn(&KeyPart) -> Request, own: impl FnOnce(&mut KeyPart)) -> Result<Vec<PartReply>> {
        if self.count == 1 {
            own(&mut self.own);
            return Ok(Vec::new());
        }
        let mut others = self.others.lock();
        others.send_all(&request(&self.own))?;
        own(&mut self.own);
        others.receive()
    }
}

/// Lists that are read one after the other.
struct ListReader<'a> {
    lengths: std::slice::Iter<'a, u32>,
    rest: &'a [u32],
}

impl<'a> ListReader<'a> {
    fn of(lists: &'a NodeLists) -> ListReader<'a> {
        ListReader { lengths: lists.lengths.iter(), rest: &lists.nodes }
    }

    /// The next list; `None` if there is none, or fewer nodes than it says.
    fn next(&mut self) -> Option<&'a [u32]> {
        let (list, rest) = self.rest.split_at_checked(*self.lengths.next()? as usize)?;
        self.rest = rest;
        Some(list)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::live::engine::parts::KeyProcesses;
    use crate::records::mix;

    /// Keys of a number of processes, which are threads.
    fn keys(processes: usize) -> (SharedKeys, SharedProcesses) {
        let others = SharedProcesses::of(KeyProcesses::threads(processes - 1));
        (SharedKeys::new((6, 2), 84, &others).unwrap(), others)
    }

    #[test]
    fn several_processes_have_the_edges_and_neighbours_of_one() {
        for seed in 0..4u64 {
            let mut of_counts = [1, 2, 3, 5].map(|processes| keys(processes).0);
            let mut there: BTreeSet<u32> = BTreeSet::new();
            for step in 0..60u64 {
                let random = |salt: u64| mix(seed << 50 ^ step << 20 ^ salt);
                let some: BTreeSet<u32> = (0..random(1) % 30).map(|at| (random(2 + at) % 90) as u32).collect();
                let (removed, made): (Vec<u32>, Vec<u32>) = some.iter().partition(|node| there.contains(node));
                removed.iter().for_each(|node| _ = there.remove(node));
                there.extend(&made);
                let vector = |node: u32| (0..6).map(move |at| random(1000 * u64::from(node) + at) % 9);
                let own: Vec<u32> = there.iter().copied().collect();
                let asked: Vec<u64> = (0..5).flat_map(|node| vector(900 + node)).collect();
                let results = of_counts.each_mut().map(|keys| {
                    // So that some requests have several pieces.
                    keys.at_once = 7;
                    let mut edges = keys.change(&removed, &[]).unwrap();
                    made.iter().for_each(|node| keys.set_vector(*node, &vector(*node).collect::<Vec<_>>()));
                    edges.extend(keys.change(&[], &made).unwrap());
                    edges.sort_unstable();
                    let sharing = keys.sharing(&asked, 3).unwrap().into_iter();
                    let sharing: Vec<BTreeSet<u32>> = sharing.map(|nodes| nodes.into_iter().collect()).collect();
                    (edges, keys.neighbours(&own).unwrap(), sharing)
                });
                assert!(results.iter().all(|result| *result == results[0]), "seed {seed}, step {step}");
                assert_eq!((results[0].1.len(), results[0].2.len()), (own.len(), 5));
            }
        }
    }

    #[test]
    fn each_process_has_a_share_of_the_keys() {
        let mut parts = [0, 1, 2].map(|number| KeyPart::new(KeyShare { number, count: 3 }, 6, 2));
        let mut shares = [0; 3];
        for node in 0..1000u32 {
            let vector: Vec<u64> = (0..6).map(|at| mix(u64::from(node) << 8 | at)).collect();
            parts.iter_mut().for_each(|part| part.set_vector(node, &vector));
            parts[0].parts_of(node).for_each(|part| shares[part as usize] += 1);
        }
        assert!(shares.iter().sum::<u32>() == 15_000 && shares.iter().all(|share| *share > 4500), "{shares:?}");
    }

    #[test]
    fn a_fault_of_the_first_process_is_an_error_and_ends_no_other_one() {
        let (mut keys, others) = keys(3);
        let error = format!("{:#}", others.lock().fail(0, another_reply()));
        assert_eq!(error, "process 0 of 0 to 2: another reply than to what it was asked");
        assert_eq!(others.lock().fault(), None);
        keys.set_vector(0, &[1; 6]);
        keys.change(&[], &[0]).unwrap();
        // Another reply of another one ends all.
        let error = others.wanted(vec![PartReply::Ready, PartReply::Equal(vec![])], |_, reply| {
            (reply == PartReply::Ready).then_some(())
        });
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("process 2 of 0 to 2 "), "{error}");
        assert_eq!(others.lock().fault(), Some(&error[..]));
    }

    #[test]
    fn a_process_that_is_gone_is_named_and_starts_again_without_nodes() {
        let (mut keys, others) = keys(3);
        keys.set_vector(0, &[1; 6]);
        keys.change(&[], &[0]).unwrap();
        others.lock().end(2);
        let error = keys.neighbours(&[0]).unwrap_err().to_string();
        assert!(error.starts_with("process 2 of 0 to 2 has ended") && error.contains("start again"), "{error}");
        assert_eq!(others.lock().fault(), Some(&error[..]));
        // Nothing is asked before all run again.
        assert_eq!(keys.sharing(&[1; 6], 8).unwrap_err().to_string(), error);
        assert!(others.lock().restart());
        let mut keys = SharedKeys::new((6, 2), 84, &others).unwrap();
        assert_eq!(keys.sharing(&[1; 6], 8).unwrap(), [Vec::<u32>::new()]);
        // It is noticed while nothing is asked, too.
        others.lock().end(1);
        others.lock().look();
        assert!(others.lock().fault().unwrap().starts_with("process 1 of 0 to 2 has ended"));
    }
}
