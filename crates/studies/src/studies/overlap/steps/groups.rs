//! Groups: the components of units that overlap, by pairs, families and copies. A crawl could leave
//! out all units of a group except one.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use anyhow::Result;
use nigh_exchange::{Context, LocalAnswers, lookup};

use super::units::Units;
use crate::operators::components::component_roots;
use crate::operators::output::cluster_sizes;
use crate::records::{DocId, Edge};
use crate::stats::machines;

/// The number of groups that are described.
pub const LARGEST: usize = 20;

/// The groups of one chunking, as one worker knows them.
#[derive(Debug, Default)]
pub struct Groups {
    /// The own units in groups of several, with the smallest unit of each.
    pub members: Vec<(DocId, DocId)>,
    /// The own units that exist, with the number of units in the group of each.
    pub sizes: Vec<u64>,
    /// The groups whose smallest unit is an own one.
    pub count: u64,
    /// The bytes of own units that are not the smallest of their group.
    pub saved_bytes: u64,
    /// Own units that are not the smallest of their group: of the same host as that, of another
    /// host on the same machine, others.
    pub reasons: [u64; 3],
    /// The largest groups of at least two units, the same at every worker; the largest first.
    pub largest: Vec<Group>,
}

/// A large group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its units.
    pub units: u64,
    /// Their pages.
    pub pages: u64,
    /// Distinct hosts of these.
    pub hosts: u64,
    /// Their machines: hosts with an address in common are on one.
    pub machines: u64,
    /// The smallest page.
    pub first: DocId,
}

/// Finds the groups of the units of all workers, from edges that each worker has.
///
/// # Errors
/// If a worker of this process failed.
pub fn groups(cx: &mut Context, units: &Units, edges: Vec<Edge>) -> Result<Groups> {
    let owned = &units.owned;
    let mut roots = component_roots(cx, owned, edges)?;
    roots.iter_mut().zip(&units.pages).filter(|(_, pages)| **pages == 0).for_each(|(root, _)| *root = DocId::NONE);
    let sizes = cluster_sizes(cx, owned, roots.iter().copied())?;
    let members = |unit: usize| sizes.members(roots[unit]);
    let mut candidates: Vec<(u64, DocId)> =
        sizes.own_clusters().map(|(root, members)| (u64::MAX - members, root)).collect();
    candidates.sort_unstable();
    candidates.truncate(LARGEST);
    let docs = owned.docs().enumerate();
    let in_groups = docs.filter(|(unit, _)| units.pages[*unit] > 0 && members(*unit) > 1);
    Ok(Groups {
        members: in_groups.map(|(unit, doc)| (doc, roots[unit])).collect(),
        sizes: units.numbers().map(members).collect(),
        count: sizes.of_own_roots().count() as u64,
        saved_bytes: others(units, &roots).map(|unit| units.bytes[unit]).sum(),
        reasons: reasons(cx, units, &roots)?,
        largest: largest(cx, units, &roots, candidates)?,
    })
}

/// The own units that are not the smallest of their group.
fn others(units: &Units, roots: &[DocId]) -> impl Iterator<Item = usize> {
    units
        .numbers()
        .zip(units.owned.docs().zip(&units.pages).filter(|(_, pages)| **pages > 0))
        .filter_map(|(unit, (doc, _))| (roots[unit] != doc).then_some(unit))
}

/// Why own units are in the group of a smaller one; those without a host are not counted.
fn reasons(cx: &mut Context, units: &Units, roots: &[DocId]) -> Result<[u64; 3]> {
    let asked: Vec<usize> = others(units, roots).filter(|unit| units.host[*unit] > 0).collect();
    let of_roots: Rc<Vec<DocId>> = Rc::new(asked.iter().map(|unit| roots[*unit]).collect());
    let facts: Vec<[u64; 2]> =
        (0..units.pages.len()).map(|unit| [units.host[unit], units.machines_of(unit).next().unwrap_or(0)]).collect();
    let local = LocalAnswers::own(cx, move |unit: usize| facts[unit]);
    let questions = || {
        let of_roots = of_roots.clone();
        (0..of_roots.len()).map(move |place| of_roots[place])
    };
    let mut reasons = [0; 3];
    lookup(cx, &units.owned, questions, &local, |place, [host, machine]| {
        let unit = asked[place];
        let reason = if units.host[unit] == host {
            0
        } else if machine > 0 && units.machines_of(unit).any(|own| own == machine) {
            1
        } else {
            2
        };
        reasons[reason] += 1;
    })?;
    Ok(reasons)
}

/// Describes the largest groups, from the largest of each worker.
fn largest(cx: &mut Context, units: &Units, roots: &[DocId], candidates: Vec<(u64, DocId)>) -> Result<Vec<Group>> {
    let mut chosen = cx.sorted(candidates)?;
    chosen.truncate(LARGEST);
    let places: HashMap<DocId, usize> = chosen.iter().enumerate().map(|(place, (_, root))| (*root, place)).collect();
    let (mut hosts, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    let mut own = vec![(0u64, DocId::NONE); chosen.len()];
    for unit in units.numbers() {
        let Some(&place) = places.get(&roots[unit]) else { continue };
        hosts.extend((units.host[unit] > 0).then_some((place, units.host[unit])));
        addresses.extend(units.machines_of(unit).map(|address| (place, units.host[unit], address)));
        own[place] = (own[place].0 + u64::from(units.pages[unit]), own[place].1.min(units.first[unit]));
    }
    let index = cx.index();
    let own = own.into_iter().enumerate().map(|(place, (pages, first))| (place, index, pages, first)).collect();
    let parts = cx.sorted(own)?;
    let mut hosts = cx.sorted(hosts.into_iter().collect())?;
    let addresses = cx.sorted(addresses.into_iter().collect())?;
    hosts.dedup();
    let group = |(place, (members, _)): (usize, &(u64, DocId))| {
        let parts = parts.iter().filter(|part| part.0 == place);
        Group {
            units: u64::MAX - members,
            pages: parts.clone().map(|part| part.2).sum(),
            hosts: hosts.iter().filter(|(of, _)| *of == place).count() as u64,
            machines: machines(addresses.iter().filter(|of| of.0 == place).map(|(_, host, address)| (host, address))),
            first: parts.map(|part| part.3).min().unwrap_or(DocId::NONE),
        }
    };
    Ok(chosen.iter().enumerate().map(group).collect())
}
