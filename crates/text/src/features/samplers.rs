//! The samplers of Broder 1997, which Fetterly 2004 (section 2) compares with its own: parts of a
//! set of shingles that estimate resemblance.
//!
//! ```text
//! MOD m       the images divisible by m                                 |A ∩ B| / |A ∪ B| of the samples
//! MOD 2^i     the images divisible by 2^i, so that about k are left     likewise, with the larger of both i
//! MIN s       the s smallest images                                     of the s smallest of both together, the share that both have
//! functions   the smallest image by each of k functions                 the share of equal places
//! b bits      of each of these minima b bits (Li and König 2010)        (equal - 2^-b) / (1 - 2^-b)
//! ```
//!
//! Images are those of shingles under random one-to-one functions, so a sampler with another seed
//! is another draw. Every estimate is without bias; [`Sampler::variance`] is its variance.

use std::ops::RangeInclusive;

use nigh_kernels::kernels::{Functions, Kernels, Polynomial};
use nigh_kernels::records::mix;

use crate::method::Shape;

/// A sampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sampler {
    /// Min-wise functions, of whose minima so many bits are compared: 64 for all.
    Functions {
        /// The bits of a minimum that are compared.
        bits: u32,
    },
    /// The smallest images, as many as there are functions.
    Min,
    /// The images divisible by this.
    Mod(u64),
    /// The images divisible by a power of two, so that about as many are left as there are
    /// functions.
    ModPower,
}

impl Sampler {
    /// The name in tables.
    pub fn name(self) -> String {
        match self {
            Sampler::Functions { bits: 64 } => "functions".to_owned(),
            Sampler::Functions { bits } => format!("functions, {bits} bits"),
            Sampler::Min => "min".to_owned(),
            Sampler::Mod(modulus) => format!("mod {modulus}"),
            Sampler::ModPower => "mod 2^i".to_owned(),
        }
    }

    /// The bytes of a sample of `values` values: images and minima have 8 bytes, unless only some
    /// bits of them are kept.
    pub fn bytes(self, values: f64) -> f64 {
        match self {
            Sampler::Functions { bits } => values * f64::from(bits) / 8.0,
            Sampler::Min | Sampler::Mod(_) | Sampler::ModPower => 8.0 * values,
        }
    }

    /// The share of a set's images that are kept, if each is kept or not by itself; `k` is the
    /// number of functions.
    fn kept_share(self, values: usize, k: usize) -> Option<f64> {
        match self {
            Sampler::Functions { .. } | Sampler::Min => None,
            Sampler::Mod(modulus) => Some(1.0 / modulus as f64),
            Sampler::ModPower => Some(0.5f64.powi(power(values, k) as i32)),
        }
    }

    /// The probability that a set of so many shingles has no sample; `k` is the number of
    /// functions.
    pub fn empty_chance(self, shingles: usize, k: usize) -> f64 {
        match self.kept_share(shingles, k) {
            None => f64::from(u8::from(shingles == 0)),
            Some(share) => (1.0 - share).powi(shingles.min(i32::MAX as usize) as i32),
        }
    }

    /// The variance of the estimate for a pair with at least one sample, over all draws; `k` is the
    /// number of functions.
    ///
    /// Functions: that of a mean of `k`. The others draw from the union without replacement: a
    /// sample of n of its u shingles has the variance J (1 - J) / n (u - n) / (u - 1), and for
    /// moduli n is binomial.
    pub fn variance(self, pair: &ExactPair, k: usize) -> f64 {
        let ExactPair { similarity, union, larger } = *pair;
        let of_part = |n: f64| {
            let u = union as f64;
            similarity * (1.0 - similarity) / n * (u - n) / (u - 1.0).max(1.0)
        };
        match (self, self.kept_share(larger, k)) {
            (Sampler::Functions { bits }, _) => {
                let by_chance = by_chance(bits);
                let equal = by_chance + (1.0 - by_chance) * similarity;
                equal * (1.0 - equal) / k as f64 / (1.0 - by_chance).powi(2)
            }
            (_, None) => of_part(k.min(union) as f64),
            (_, Some(share)) => binomial_mean(union, share, 1..=union, |n| of_part(n as f64)),
        }
    }
}

/// The exact truth about a pair of sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExactPair {
    /// The resemblance.
    pub similarity: f64,
    /// The shingles of either.
    pub union: usize,
    /// Those of the larger set.
    pub larger: usize,
}

/// The probability that so many bits of two unlike minima are equal.
fn by_chance(bits: u32) -> f64 {
    if bits >= 64 { 0.0 } else { 0.5f64.powi(bits as i32) }
}

/// The mean of `of(n)` for a binomial n of `draws` draws, given that n is in a range.
fn binomial_mean(draws: usize, share: f64, range: RangeInclusive<usize>, of: impl Fn(usize) -> f64) -> f64 {
    if share >= 1.0 {
        return of(draws);
    }
    // Weights are relative to that of the most likely number, and sums go from there to both sides
    // until nothing is added.
    let mode = ((share * draws as f64) as usize).clamp(*range.start(), *range.end());
    let odds = share / (1.0 - share);
    let (mut sum, mut weights) = (of(mode), 1.0);
    let mut weight = 1.0;
    for n in mode + 1..=*range.end() {
        weight *= (draws - n + 1) as f64 / n as f64 * odds;
        (sum, weights) = (sum + weight * of(n), weights + weight);
        if weight < 1e-15 {
            break;
        }
    }
    weight = 1.0;
    for n in (*range.start()..mode).rev() {
        weight *= (n + 1) as f64 / (draws - n) as f64 / odds;
        (sum, weights) = (sum + weight * of(n), weights + weight);
        if weight < 1e-15 {
            break;
        }
    }
    sum / weights
}

/// The images of a set of shingles that samplers need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// The smallest shingle by each function.
    minima: Vec<u64>,
    /// All images under the first function, ascending.
    images: Vec<u64>,
}

/// Makes the samples of sets with one seed.
pub struct SampleMaker {
    functions: Functions,
    kernels: &'static Kernels,
    /// The first function alone.
    first: Polynomial,
}

impl SampleMaker {
    /// Makes samples with the functions of these polynomials, one at least.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(polynomials: &[u64], kernels: &'static Kernels) -> SampleMaker {
        SampleMaker { functions: Functions::new(polynomials), kernels, first: Polynomial::new(polynomials[0]) }
    }

    /// The samples of a set of distinct shingles; it must have one at least.
    pub fn samples(&self, shingles: &[u64]) -> Samples {
        let mut minima = Vec::new();
        self.kernels.minima(&self.functions, shingles, &mut minima);
        let mut images: Vec<u64> = shingles.iter().map(|shingle| self.first.image(*shingle)).collect();
        images.sort_unstable();
        Samples { minima, images }
    }
}

/// The exponent i for which about `k` of `values` values are divisible by 2^i: log2(values / k),
/// rounded.
fn power(values: usize, k: usize) -> u32 {
    let square = |number: usize| (number as u128).pow(2);
    let is_too_small = |i: &u32| square(values) >= square(k.max(1)) << (2 * i + 1);
    (0..).find(|i| !is_too_small(i)).unwrap_or(0)
}

/// Of the smallest `most` numbers that two ascending lists have: how many both have, and how many
/// there are.
fn shared_and_all(a: impl Iterator<Item = u64>, b: impl Iterator<Item = u64>, most: usize) -> (usize, usize) {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    let (mut shared, mut all) = (0, 0);
    while all < most
        && let Some(smallest) = [a.peek(), b.peek()].into_iter().flatten().min().copied()
    {
        let of_both = [a.next_if_eq(&smallest), b.next_if_eq(&smallest)].iter().flatten().count();
        (shared, all) = (shared + of_both / 2, all + 1);
    }
    (shared, all)
}

impl Samples {
    /// How many values a sampler keeps of the set.
    pub fn values(&self, sampler: Sampler) -> usize {
        let k = self.minima.len();
        match sampler {
            Sampler::Functions { .. } => k,
            Sampler::Min => self.images.len().min(k),
            Sampler::Mod(modulus) => self.images.iter().filter(|image| **image % modulus == 0).count(),
            Sampler::ModPower => {
                let i = power(self.images.len(), k);
                self.images.iter().filter(|image| image.trailing_zeros() >= i).count()
            }
        }
    }

    /// The resemblance of two sets as a sampler estimates it, from samples with the same seed;
    /// `None` if neither has a sample. With few bits it can be less than 0.
    pub fn resemblance(&self, other: &Samples, sampler: Sampler) -> Option<f64> {
        let k = self.minima.len();
        let of_both = |is_kept: &dyn Fn(u64) -> bool| {
            let [a, b] = [self, other].map(|samples| samples.images.iter().copied().filter(|image| is_kept(*image)));
            shared_and_all(a, b, usize::MAX)
        };
        let (shared, all) = match sampler {
            Sampler::Functions { bits } => {
                // The minima are shingles, whose low bits are not random: they are mixed first.
                let is_equal = |(a, b): &(&u64, &u64)| (mix(**a) ^ mix(**b)) << (64 - bits) == 0;
                let equal = self.minima.iter().zip(&other.minima).filter(is_equal).count();
                let by_chance = by_chance(bits);
                return (k > 0).then(|| (equal as f64 / k as f64 - by_chance) / (1.0 - by_chance));
            }
            Sampler::Min => shared_and_all(self.images.iter().copied(), other.images.iter().copied(), k),
            Sampler::Mod(modulus) => of_both(&|image| image.is_multiple_of(modulus)),
            Sampler::ModPower => {
                let i = power(self.images.len().max(other.images.len()), k);
                of_both(&|image| image.trailing_zeros() >= i)
            }
        };
        (all > 0).then(|| shared as f64 / all as f64)
    }

    /// Whether enough supershingles agree, of consecutive minima as `shape` has them.
    pub fn are_joined(&self, other: &Samples, shape: Shape) -> bool {
        let run = shape.features / shape.supershingles;
        let runs = self.minima.chunks_exact(run).zip(other.minima.chunks_exact(run));
        runs.filter(|(a, b)| a == b).count() >= shape.agreements
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use nigh_kernels::kernels::{chosen, polynomials};

    use super::*;

    /// Two sets of so many shingles, of which so many are shared.
    fn sets(shared: u64, own: u64) -> [Vec<u64>; 2] {
        let of = |from: u64| -> Vec<u64> { (0..shared).chain(from..from + own).map(mix).collect() };
        [of(1 << 20), of(1 << 21)]
    }

    const SAMPLERS: [Sampler; 6] = [
        Sampler::Functions { bits: 64 },
        Sampler::Functions { bits: 8 },
        Sampler::Functions { bits: 1 },
        Sampler::Min,
        Sampler::Mod(8),
        Sampler::ModPower,
    ];

    #[test]
    fn samplers_are_unbiased_and_as_exact_as_theory_says() {
        let [a, b] = sets(800, 100);
        let exact: f64 = 0.8;
        let pair = ExactPair { similarity: exact, union: 1000, larger: 900 };
        let kernels = chosen().unwrap();
        let mut found: Vec<Vec<f64>> = vec![Vec::new(); SAMPLERS.len()];
        for seed in 0..200 {
            let maker = SampleMaker::new(&polynomials(1000 + seed, 84).features, kernels);
            let (a, b) = (maker.samples(&a), maker.samples(&b));
            for (of_sampler, sampler) in found.iter_mut().zip(SAMPLERS) {
                of_sampler.push(a.resemblance(&b, sampler).unwrap());
            }
        }
        for (of_sampler, sampler) in found.iter().zip(SAMPLERS) {
            let count = of_sampler.len() as f64;
            let mean = of_sampler.iter().sum::<f64>() / count;
            let error = (of_sampler.iter().map(|e| (e - exact).powi(2)).sum::<f64>() / count).sqrt();
            let theory = sampler.variance(&pair, 84).sqrt();
            assert!((mean - exact).abs() < 3.0 * theory / count.sqrt(), "{sampler:?}: {mean} {theory}");
            // The standard error of a standard error from n draws is about one in sqrt(2 n).
            assert!((error / theory - 1.0).abs() < 4.0 / (2.0 * count).sqrt(), "{sampler:?}: {error} {theory}");
        }
    }

    #[test]
    fn estimates_are_those_of_the_definitions() {
        let [a, b] = sets(150, 90);
        let maker = SampleMaker::new(&polynomials(7, 84).features, chosen().unwrap());
        let (a, b) = (maker.samples(&a), maker.samples(&b));
        let set = |samples: &Samples, keep: &dyn Fn(u64) -> bool| -> BTreeSet<u64> {
            samples.images.iter().copied().filter(|image| keep(*image)).collect()
        };
        let resemblance =
            |a: &BTreeSet<u64>, b: &BTreeSet<u64>| a.intersection(b).count() as f64 / a.union(b).count() as f64;
        let by_eight = |image: u64| image.is_multiple_of(8);
        assert_eq!(a.resemblance(&b, Sampler::Mod(8)), Some(resemblance(&set(&a, &by_eight), &set(&b, &by_eight))));
        // 240 values: i is 2, as 60 of them are nearer to 84 than 120 by the logarithm.
        let by_four = |image: u64| image.is_multiple_of(4);
        assert_eq!(a.resemblance(&b, Sampler::ModPower), Some(resemblance(&set(&a, &by_four), &set(&b, &by_four))));
        let all = |_: u64| true;
        let smallest: BTreeSet<u64> = set(&a, &all).union(&set(&b, &all)).copied().take(84).collect();
        let both = smallest.iter().filter(|image| set(&a, &all).contains(image) && set(&b, &all).contains(image));
        assert_eq!(a.resemblance(&b, Sampler::Min), Some(both.count() as f64 / 84.0));
        let equal = a.minima.iter().zip(&b.minima).filter(|(a, b)| a == b).count();
        assert_eq!(a.resemblance(&b, Sampler::Functions { bits: 64 }), Some(equal as f64 / 84.0));
        assert_eq!(a.resemblance(&a, Sampler::Functions { bits: 2 }), Some(1.0));
        let shape = |supershingles, agreements| Shape { features: 84, supershingles, agreements };
        assert!(a.are_joined(&a, shape(6, 6)) && !a.are_joined(&b, shape(1, 1)) && a.are_joined(&b, shape(84, 1)));
    }

    #[test]
    fn small_sets_may_have_no_sample() {
        let maker = SampleMaker::new(&polynomials(7, 84).features, chosen().unwrap());
        let shingles: Vec<u64> = (0..3).map(mix).collect();
        let few = maker.samples(&shingles);
        assert_eq!((few.values(Sampler::Min), few.values(Sampler::ModPower)), (3, 3));
        for (values, i) in [(0, 0), (84, 0), (118, 0), (119, 1), (237, 1), (238, 2), (84 << 20, 20)] {
            assert_eq!(power(values, 84), i, "{values}");
        }
        assert_eq!(few.values(Sampler::Mod(1 << 40)), 0);
        assert_eq!(few.resemblance(&few, Sampler::Mod(1 << 40)), None);
        assert_eq!(few.resemblance(&few, Sampler::Min), Some(1.0));
    }

    #[test]
    fn variances_are_those_of_the_definitions() {
        let pair = ExactPair { similarity: 0.75, union: 12, larger: 11 };
        assert_eq!(Sampler::Functions { bits: 64 }.variance(&pair, 84), 0.75 * 0.25 / 84.0);
        // One bit: equal with probability 7/8.
        assert_eq!(Sampler::Functions { bits: 1 }.variance(&pair, 84), 0.875 * 0.125 / 84.0 * 4.0);
        assert_eq!(Sampler::Min.variance(&pair, 84), 0.0, "all of the union is in the sample");
        // Over all 2^12 samples of the union, of which 9 shingles are shared.
        let (mut sum, mut weights) = (0.0, 0.0);
        for sample in 1u32..1 << 12 {
            let n = sample.count_ones();
            let weight = (0.25f64).powi(n as i32) * 0.75f64.powi(12 - n as i32);
            let estimate = f64::from((sample & 0x1FF).count_ones()) / f64::from(n);
            (sum, weights) = (sum + weight * (estimate - 0.75f64).powi(2), weights + weight);
        }
        let found = Sampler::Mod(4).variance(&pair, 84);
        assert!((found / (sum / weights) - 1.0).abs() < 1e-12, "{found} {}", sum / weights);
        // A number of draws of which even the most likely outcome has a tiny probability.
        let large = ExactPair { similarity: 0.5, union: 10_000_000, larger: 9_000_000 };
        let found = Sampler::Mod(8).variance(&large, 84);
        let wanted = 0.25 / 1_250_000.0 * 0.875;
        assert!((found / wanted - 1.0).abs() < 1e-4, "{found} {wanted}");
        assert_eq!(Sampler::Mod(25).empty_chance(2, 84), 0.96f64.powi(2));
        assert_eq!((Sampler::Min.empty_chance(2, 84), Sampler::ModPower.empty_chance(2, 84)), (0.0, 0.0));
    }
}
