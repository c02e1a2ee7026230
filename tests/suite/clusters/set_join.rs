//! The set join against all pairs by brute force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use nigh::operators::set_join::{
    Element, ExactShare, KnownSet, Requirement, SetJoin, SetJoinStage, SetSource, SetsPass, TooManyPairs, WeightedSets,
    set_join,
};
use nigh::records::mix;
use nigh_exchange::{Context, SharedValues};
use proptest::prelude::*;

/// A set: its distinct elements with their weights.
type ElementWeights = BTreeMap<u64, u32>;

/// How a pair was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PairOrigin {
    /// In the list, with the shared weights of the set with the smaller name and of the other.
    Listed([u64; 2]),
    /// Two members of one distinct set, with the weight that they share.
    Equal(u64),
    /// Two sets of one family, with the weight that they share at least.
    Family(u64),
}

/// The workers of a join, and which of them share memory.
#[derive(Clone, Copy, Debug)]
struct JoinWorkers {
    count: usize,
    /// The workers of each process.
    threads: usize,
}

const WORKERS: [JoinWorkers; 4] = [
    JoinWorkers { count: 1, threads: 1 },
    JoinWorkers { count: 2, threads: 2 },
    JoinWorkers { count: 2, threads: 1 },
    JoinWorkers { count: 4, threads: 2 },
];

/// Bytes for the records in flight of a worker.
const MEMORIES: [u64; 3] = [1 << 10, 1 << 14, 1 << 20];

/// The parameters of a join.
#[derive(Clone, Copy, Debug)]
struct Parameters {
    requirement: Requirement,
    family: u64,
    memory: u64,
    max_pairs: u64,
    has_known: bool,
}

impl Parameters {
    fn of(requirement: Requirement) -> Parameters {
        Parameters { requirement, family: 5, memory: 1 << 20, max_pairs: u64::MAX, has_known: false }
    }

    /// What is known of a set, if anything is: most sets are old, and a third of them is in two
    /// families.
    fn known(&self, set: u64) -> KnownSet {
        let family = mix(set ^ 0xF00D) % 6;
        let family = if family < 3 { family as u32 } else { 0 };
        if self.has_known { KnownSet { is_old: !mix(set).is_multiple_of(4), family } } else { KnownSet::default() }
    }

    /// Whether the pair of two sets is known, so that the join leaves it out.
    fn knows(&self, a: u64, b: u64) -> bool {
        let (a, b) = (self.known(a), self.known(b));
        a.is_old && b.is_old || a.family > 0 && a.family == b.family
    }
}

/// The sets of a worker, and what is known of them.
#[derive(Clone)]
struct KnownSets {
    sets: Arc<WeightedSets>,
    parameters: Parameters,
}

impl SetSource for KnownSets {
    type Pass = SetsPass;

    fn len(&self) -> usize {
        self.sets.len()
    }

    fn name(&self, set: usize) -> u64 {
        self.sets.name(set)
    }

    fn known(&self, set: usize) -> KnownSet {
        self.parameters.known(self.sets.name(set))
    }

    fn pass(&self) -> anyhow::Result<SetsPass> {
        self.sets.pass()
    }
}

/// What a worker found: its join, and the pairs that were listed there as (own set, other name,
/// shared weights).
type WorkerJoin = (SetJoin, Vec<(u32, u64, [u64; 2])>);
/// What each worker found.
type Joins = Vec<Result<WorkerJoin, TooManyPairs>>;

fn run(sets: &[ElementWeights], parameters: Parameters, workers: JoinWorkers) -> Joins {
    let sets = Arc::new(sets.to_vec());
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().to_owned();
    let processes: Vec<Arc<SharedValues>> = (0..workers.count).map(|_| Arc::default()).collect();
    let guards = timely::execute(timely::Config::process(workers.count), move |worker| {
        let shared = &processes[worker.index() / workers.threads];
        let cx = &mut Context::new(worker, &Arc::default(), shared).with(parameters.memory, &scratch);
        let (index, peers) = (cx.index(), cx.peers());
        let mut own = WeightedSets::default();
        for (number, set) in sets.iter().enumerate().skip(index).step_by(peers) {
            let elements: Vec<Element> =
                set.iter().map(|(element, weight)| Element { hash: mix(*element), weight: *weight }).collect();
            own.push(number as u64, &elements).unwrap();
        }
        let stage = SetJoinStage {
            requirement: parameters.requirement,
            family: parameters.family,
            with_collections: true,
            has_known: parameters.has_known,
            thorough: false,
            max_pairs: parameters.max_pairs,
        };
        let listed = Arc::new(Mutex::new(Vec::new()));
        let each = {
            let listed = listed.clone();
            move |pair: nigh::operators::set_join::SetPair| {
                listed.lock().unwrap().push((pair.own, pair.names[1], pair.shared));
                Ok(())
            }
        };
        let source = KnownSets { sets: Arc::new(own), parameters };
        let joined = set_join(cx, &stage, &source, each);
        let failed = |error: anyhow::Error| error.downcast::<TooManyPairs>().expect("no other failure");
        joined.map(|joined| (joined, std::mem::take(&mut *listed.lock().unwrap()))).map_err(failed)
    });
    guards.unwrap().join().into_iter().map(Result::unwrap).collect()
}

/// All pairs by the join, by the numbers of their sets.
fn pairs(sets: &[ElementWeights], parameters: Parameters, workers: JoinWorkers) -> BTreeMap<(u64, u64), PairOrigin> {
    let joins: Vec<_> = run(sets, parameters, workers).into_iter().map(Result::unwrap).collect();
    // The members of each distinct set, by its name; and the distinct sets.
    let mut members: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut distinct = BTreeMap::new();
    for (worker, (joined, _)) in joins.iter().enumerate() {
        for (set, location) in joined.sets.iter().zip(&joined.distinct_of) {
            let of_set = joins[location.worker as usize].0.distinct[location.number as usize];
            members.entry(of_set.name).or_default().push(worker as u64 + u64::from(*set) * workers.count as u64);
        }
        distinct.extend(joined.distinct.iter().filter(|set| set.members > 0).map(|set| (set.name, *set)));
        assert_eq!(joined.families, joins[0].0.families, "all workers know all families");
    }
    check_collections(sets, parameters, &joins, &members);
    let mut found = BTreeMap::new();
    let mut add = |a: u64, b: u64, how: PairOrigin| {
        let (pair, how) = match how {
            PairOrigin::Listed([first, second]) if a > b => ((b, a), PairOrigin::Listed([second, first])),
            _ => ((a.min(b), a.max(b)), how),
        };
        assert_eq!(found.insert(pair, how), None, "{pair:?} was found twice");
    };
    // What a distinct set says of known pairs is right; the pairs of two distinct sets are without
    // them as soon as they are expanded.
    let is_new = |a: u64, b: &&u64| !parameters.knows(a, **b);
    for set in distinct.values() {
        let sets = &members[&set.name];
        assert_eq!((sets.len(), sets.iter().min()), (set.members as usize, Some(&set.name)));
        let of_sets: Vec<KnownSet> = sets.iter().map(|set| parameters.known(*set)).collect();
        assert_eq!(of_sets.iter().filter(|known| known.is_old).count(), set.old as usize);
        assert!(of_sets.iter().all(|known| known.family == set.known_family));
        for (number, a) in sets.iter().enumerate().filter(|_| set.is_clique) {
            let others = sets[number + 1..].iter().filter(|b| is_new(*a, b));
            others.for_each(|b| add(*a, *b, PairOrigin::Equal(set.weight)));
        }
    }
    for a in distinct.values() {
        for b in distinct.range(a.name + 1..).map(|(_, b)| b).filter(|b| a.family.is_some() && a.family == b.family) {
            let family = joins[0].0.families[a.family.unwrap() as usize];
            let shared = match parameters.requirement {
                Requirement::Both(_) => u64::from(a.of_family.min(b.of_family)),
                _ => u64::from(a.of_family) + u64::from(b.of_family) - family.of,
            };
            for one in &members[&a.name] {
                members[&b.name].iter().for_each(|other| add(*one, *other, PairOrigin::Family(shared)));
            }
        }
    }
    for (joined, listed) in &joins {
        for (own, other, shared) in listed {
            for one in &members[&joined.distinct[*own as usize].name] {
                let others = members[other].iter().filter(|other| is_new(*one, other));
                others.for_each(|other| add(*one, *other, PairOrigin::Listed(*shared)));
            }
        }
    }
    found
}

/// Checks the collections of families: what they weigh, and what each set has of them.
fn check_collections(
    sets: &[ElementWeights],
    parameters: Parameters,
    joins: &[WorkerJoin],
    members: &BTreeMap<u64, Vec<u64>>,
) {
    if matches!(parameters.requirement, Requirement::Both(_)) {
        return;
    }
    let weight_of = |set: u64, elements: &[u64]| -> u64 {
        let weights = sets[set as usize].iter().filter(|(element, _)| elements.binary_search(&mix(**element)).is_ok());
        weights.map(|(_, weight)| u64::from(*weight)).sum()
    };
    let mut of_family = BTreeMap::new();
    for (joined, _) in joins {
        for (number, elements) in &joined.collections {
            let distinct = joined.distinct[*number];
            match distinct.family {
                Some(family) => assert_eq!(of_family.insert(family, elements.clone()), None, "each is at one worker"),
                None => {
                    assert!(u64::from(distinct.members) >= parameters.family);
                    let members = members[&distinct.name].iter();
                    members.for_each(|set| assert_eq!(weight_of(*set, elements), distinct.weight));
                }
            }
        }
    }
    assert_eq!(of_family.len(), joins[0].0.families.len());
    for (joined, _) in joins {
        for distinct in &joined.distinct {
            if let Some(family) = distinct.family {
                let family_of = joined.families[family as usize];
                let elements = &of_family[&family];
                assert_eq!(weight_of(family_of.name, elements), family_of.of);
                let weights = members[&distinct.name].iter().map(|set| weight_of(*set, elements));
                weights.for_each(|weight| assert_eq!(weight, u64::from(distinct.of_family)));
            }
        }
    }
}

/// All pairs by brute force, with their shared weights.
fn twin(sets: &[ElementWeights], requirement: Requirement) -> BTreeMap<(u64, u64), [u64; 2]> {
    let size = |set: &ElementWeights| set.values().map(|weight| u64::from(*weight)).sum::<u64>();
    let mut pairs = BTreeMap::new();
    for (a, one) in sets.iter().enumerate() {
        for (b, other) in sets.iter().enumerate().skip(a + 1) {
            let common = one.keys().filter(|element| other.contains_key(element));
            let shared =
                common.fold([0, 0], |[x, y], element| [x + u64::from(one[element]), y + u64::from(other[element])]);
            // In fractions, not by the bounds of the join.
            let (share, sum) = (shared[0].min(shared[1]), size(one) + size(other));
            let is_pair = share > 0
                && match requirement {
                    Requirement::Shared(least) | Requirement::Both(least) => share >= u64::from(least),
                    Requirement::Dice(of) => (2 * share) as f64 >= of.value() * sum as f64 - 1e-9,
                    Requirement::Resemblance(of) => share as f64 >= of.value() * (sum - share) as f64 - 1e-9,
                };
            if is_pair {
                pairs.insert((a as u64, b as u64), shared);
            }
        }
    }
    pairs
}

/// Checks the join against brute force; returns how many pairs were listed, of equal sets
/// and of families.
fn check(sets: &[ElementWeights], parameters: Parameters, workers: JoinWorkers) -> [usize; 3] {
    let (found, mut expected) = (pairs(sets, parameters, workers), twin(sets, parameters.requirement));
    expected.retain(|(a, b), _| !parameters.knows(*a, *b));
    let of_join: BTreeSet<_> = found.keys().copied().collect();
    assert_eq!(of_join, expected.keys().copied().collect(), "{parameters:?} {workers:?}");
    let mut kinds = [0; 3];
    for (pair, how) in found {
        let shared = expected[&pair];
        match how {
            PairOrigin::Listed(listed) => assert_eq!(listed, shared, "{pair:?}"),
            PairOrigin::Equal(weight) => assert_eq!([weight, weight], shared, "{pair:?}"),
            PairOrigin::Family(least) => assert!(shared[0].min(shared[1]) >= least, "{pair:?}: {least} of {shared:?}"),
        }
        kinds[match how {
            PairOrigin::Listed(_) => 0,
            PairOrigin::Equal(_) => 1,
            PairOrigin::Family(_) => 2,
        }] += 1;
    }
    kinds
}

fn share(share: f64) -> ExactShare {
    ExactShare::new(share).unwrap()
}

fn requirements() -> Vec<Requirement> {
    vec![
        Requirement::Shared(1),
        Requirement::Shared(2),
        Requirement::Shared(15),
        Requirement::Both(1),
        Requirement::Both(6),
        Requirement::Dice(share(0.5)),
        Requirement::Dice(share(0.9)),
        Requirement::Resemblance(share(0.3)),
        Requirement::Resemblance(share(0.8)),
        Requirement::Resemblance(share(1.0)),
    ]
}

/// Weights of elements: the same in all sets, except for `Both`.
fn weighed(sets: &[BTreeSet<u64>], requirement: Requirement) -> Vec<ElementWeights> {
    let by_set = matches!(requirement, Requirement::Both(_));
    let weight = |number: usize, element: u64| 1 + (mix(element ^ if by_set { number as u64 } else { 0 }) % 3) as u32;
    let of = |(number, set): (usize, &BTreeSet<u64>)| set.iter().map(|e| (*e, weight(number, *e))).collect();
    sets.iter().enumerate().map(of).collect()
}

/// Random sets of a small world: some like one of a few templates with elements left out, some
/// equal, some by chance, and with `common` one element in all of them.
fn worlds() -> impl Strategy<Value = Vec<BTreeSet<u64>>> {
    let template = prop::collection::vec(any::<prop::sample::Index>(), 0..6);
    let set = (0..4u64, template, prop::collection::btree_set(1000..1040u64, 0..12), any::<bool>());
    (prop::collection::vec(set, 0..60), any::<bool>()).prop_map(|(sets, common)| {
        let of = |(kind, left_out, chance, keeps): (u64, Vec<prop::sample::Index>, BTreeSet<u64>, bool)| {
            let mut set: BTreeSet<u64> =
                if kind < 3 { (0..24).map(|e| 100 * kind + e).collect() } else { BTreeSet::new() };
            left_out.iter().for_each(|index| _ = set.remove(&(100 * kind + index.index(24) as u64)));
            set.extend(chance.into_iter().filter(|_| keeps));
            set.extend(common.then_some(7777));
            set
        };
        sets.into_iter().map(of).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_join_finds_the_pairs_of_brute_force(world in worlds(), family in 2..12u64, first in 0..WORKERS.len()) {
        for (number, requirement) in requirements().into_iter().enumerate() {
            let sets = weighed(&world, requirement);
            // Little memory: many ranges of keys, and many rounds.
            let memory = MEMORIES[(number + first) % MEMORIES.len()];
            let parameters = Parameters { family, memory, ..Parameters::of(requirement) };
            let kinds = check(&sets, parameters, WORKERS[(number + first) % WORKERS.len()]);
            let one = Parameters { memory: 1 << 30, ..parameters };
            prop_assert_eq!(kinds, check(&sets, one, WORKERS[0]), "the kinds of the pairs are the same");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn pairs_that_are_known_are_left_out_and_no_others(world in worlds(), first in 0..WORKERS.len()) {
        for (number, requirement) in requirements().into_iter().enumerate() {
            let sets = weighed(&world, requirement);
            let memory = MEMORIES[(number + first) % MEMORIES.len()];
            let parameters = Parameters { memory, has_known: true, ..Parameters::of(requirement) };
            let [listed, _, family] = check(&sets, parameters, WORKERS[(number + first) % WORKERS.len()]);
            prop_assert_eq!(family, 0);
            // No pair of distinct sets is listed of which nothing is new.
            let joins = run(&sets, parameters, WORKERS[0]).remove(0).unwrap();
            prop_assert!(joins.1.len() <= listed, "{} pairs of distinct sets for {} pairs", joins.1.len(), listed);
        }
    }
}

/// Sets like a template of `of` elements, each without its own choice of a tenth of them.
fn ragged(count: u64, of: u64) -> Vec<BTreeSet<u64>> {
    let has = |set: u64, element: u64| !mix(set << 32 | element).is_multiple_of(10);
    (0..count).map(|set| (0..of).filter(|element| has(set, *element)).chain([9000 + set]).collect()).collect()
}

#[test]
fn a_family_is_found_whatever_its_members_lack() {
    for requirement in [Requirement::Shared(15), Requirement::Dice(share(0.5)), Requirement::Resemblance(share(0.3))] {
        let sets = weighed(&ragged(150, 40), requirement);
        for workers in WORKERS {
            let [listed, _, family] = check(&sets, Parameters { family: 20, ..Parameters::of(requirement) }, workers);
            assert!(family > 5 * listed, "{requirement:?}: {listed} pairs were listed, {family} were not");
        }
    }
}

#[test]
fn an_element_of_all_sets_proposes_no_pair() {
    // Couples that share six elements, each of the two with one that the next couple has, too; and
    // one element in all of them.
    let of =
        |couple: u64, side: u64| (0..6).map(move |e| 10 * couple + e).chain([5000 + couple + side, 7777]).collect();
    let world: Vec<BTreeSet<u64>> = (0..200u64).flat_map(|couple| [of(couple, 0), of(couple, 1)]).collect();
    let sets: Vec<ElementWeights> = world.iter().map(|set| set.iter().map(|element| (*element, 1)).collect()).collect();
    for workers in WORKERS {
        let parameters = Parameters { family: 1000, ..Parameters::of(Requirement::Shared(4)) };
        assert_eq!(check(&sets, parameters, workers), [200, 0, 0]);
        let joins = run(&sets, parameters, workers);
        let candidates: u64 = joins.into_iter().map(|join| join.unwrap().0.stats.candidates).sum();
        assert!((200..=400).contains(&candidates), "{candidates} of 79,800 pairs were looked at");
    }
}

#[test]
fn a_clique_without_an_edge_lacks_just_that_edge() {
    // Each pair of sets but (0, 1) has two elements of its own.
    let mut sets = vec![ElementWeights::new(); 40];
    for a in 0..40u64 {
        for b in (a + 1..40).filter(|b| (a, *b) != (0, 1)) {
            for element in [a << 20 | b << 1, a << 20 | b << 1 | 1] {
                sets[a as usize].insert(element, 1);
                sets[b as usize].insert(element, 1);
            }
        }
    }
    for workers in WORKERS {
        let kinds = check(&sets, Parameters::of(Requirement::Shared(2)), workers);
        assert_eq!(kinds, [40 * 39 / 2 - 1, 0, 0]);
    }
}

#[test]
fn an_element_of_thousands_of_sets_is_shared_out() {
    // Couples of equal sets that all share one heavy element: its postings are two blocks.
    let sets: Vec<ElementWeights> = (0..2500u64).map(|set| [(1, 3), (10 + set / 2, 1)].into()).collect();
    let parameters = Parameters { family: 10_000, memory: 1 << 16, ..Parameters::of(Requirement::Shared(3)) };
    for workers in WORKERS {
        // Whether a pair was listed: the smaller name times the number of sets, and the other.
        let (mut pairs, mut distinct) = (vec![false; sets.len() * sets.len()], 0);
        for (joined, listed) in run(&sets, parameters, workers).into_iter().map(Result::unwrap) {
            distinct += joined.distinct.iter().filter(|set| set.members > 0).count();
            for (own, other, shared) in listed {
                let own = joined.distinct[own as usize].name;
                let pair = &mut pairs[own.min(other) as usize * sets.len() + own.max(other) as usize];
                assert!(shared == [3, 3] && !std::mem::replace(pair, true), "{own} {other} {shared:?}");
            }
        }
        let listed = pairs.iter().filter(|is_listed| **is_listed).count();
        assert_eq!((distinct, listed), (1250, 1250 * 1249 / 2));
    }
}

#[test]
fn sets_of_a_family_do_not_meet() {
    // A family of sets that each lack a tenth of a template, and some sets beside it. Sets that
    // lack the same are one distinct set.
    let world: Vec<BTreeSet<u64>> = ragged(1500, 40);
    let distinct: BTreeSet<Vec<u64>> =
        world.iter().map(|set| set.iter().copied().filter(|e| *e < 40).collect()).collect();
    let mut sets = weighed(&world, Requirement::Shared(15));
    sets.extend(
        (0..20u64).map(|set| (0..16).map(|e| (e + set, 1 + (mix(e + set) % 3) as u32)).collect::<ElementWeights>()),
    );
    for workers in WORKERS {
        let joins = run(&sets, Parameters { family: 100, ..Parameters::of(Requirement::Shared(15)) }, workers);
        let joins: Vec<_> = joins.into_iter().map(|join| join.unwrap().0).collect();
        let candidates: u64 = joins.iter().map(|joined| joined.stats.candidates).sum();
        let of_family = joins[0].families[0].sets;
        assert!(of_family as usize > distinct.len() * 95 / 100, "{of_family} of {} sets", distinct.len());
        let pairs = of_family * (of_family - 1) / 2;
        assert!(candidates < pairs / 10, "{candidates} pairs were looked at, beside {pairs} of the family");
    }
}

#[test]
fn too_many_pairs_are_refused_with_the_elements_that_propose_them() {
    let sets: Vec<ElementWeights> =
        (0..300u64).map(|set| [(1, 2), (2, 2), (10 + set / 3, 1), (1000 + set % 7, 1)].into()).collect();
    let parameters = Parameters { family: 1000, max_pairs: 100, ..Parameters::of(Requirement::Shared(4)) };
    for workers in WORKERS {
        for refused in run(&sets, parameters, workers) {
            let refused = refused.unwrap_err();
            // The two elements of all sets, those of three sets each, and those of every
            // seventh set.
            let [all, of_three, of_seventh] = [300 * 299 / 2, 100 * 3, 6 * (43 * 42 / 2) + 42 * 41 / 2];
            let most = refused.elements.first().unwrap();
            assert_eq!((most.pairs, most.sets, most.example), (all, 300, 0));
            assert_eq!((refused.pairs, refused.most), (all + of_three + of_seventh, 100));
            assert_eq!(refused.to_string(), "up to 51429 pairs would be looked at, and at most 100 may be");
        }
    }
}

#[test]
fn no_sets_and_one_set_have_no_pairs() {
    for sets in [vec![], vec![ElementWeights::from([(1, 5)])], vec![ElementWeights::new(), ElementWeights::new()]] {
        for requirement in requirements() {
            WORKERS
                .into_iter()
                .for_each(|workers| assert_eq!(check(&sets, Parameters::of(requirement), workers), [0; 3]));
        }
    }
}
