//! The S-curve: how likely two documents of some similarity share enough supershingles (Fetterly
//! 2004, section 2).

/// How a document's features are cut into supershingles, and how many of these two documents of a
/// cluster share at least.
///
/// ```
/// use nigh_text::method::Shape;
///
/// // The study's six supershingles of 14 features, of which two must agree: 2.6% of pairs of similarity 0.8, 88% of those of 0.95.
/// let study = Shape { features: 84, supershingles: 6, agreements: 2 };
/// assert!((study.chance(0.8) - 0.026).abs() < 0.001);
/// assert!((study.chance(0.95) - 0.879).abs() < 0.001);
/// assert_eq!(study.megashingles(), Some(15));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Features (minima) of a document, a multiple of `supershingles`.
    pub features: usize,
    /// Supershingles of a document, each of `features / supershingles` consecutive features.
    pub supershingles: usize,
    /// How many supershingles two documents of a cluster share at least.
    pub agreements: usize,
}

/// The similarities at which a curve is shown.
pub const CURVE: [f64; 11] = [0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99];

impl Shape {
    /// The number of megashingles of a document: the ways to choose `agreements` of
    /// `supershingles`. `None` if it overflows.
    pub fn megashingles(self) -> Option<usize> {
        (0..self.agreements).try_fold(1usize, |ways, i| Some(ways.checked_mul(self.supershingles - i)? / (i + 1)))
    }

    /// The probability that two documents of similarity `p`, 0 to 1, share at least `agreements`
    /// supershingles, so that they are linked:
    ///
    /// ```text
    /// q = p ^ (features / supershingles)                        one supershingle agrees
    /// P = sum over j >= agreements of C(supershingles, j) q^j (1 - q)^(supershingles - j)
    /// ```
    pub fn chance(self, p: f64) -> f64 {
        let q = p.clamp(0.0, 1.0).powi((self.features / self.supershingles) as i32);
        let mut ways = 1.0;
        let mut chance = 0.0;
        for agreeing in 0..=self.supershingles {
            if agreeing >= self.agreements {
                chance += ways * q.powi(agreeing as i32) * (1.0 - q).powi((self.supershingles - agreeing) as i32);
            }
            ways *= (self.supershingles - agreeing) as f64 / (agreeing + 1) as f64;
        }
        chance.min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_the_closed_forms() {
        for step in 0..=100 {
            let p = f64::from(step) / 100.0;
            let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{p}: {a} {b}");
            let study = Shape { features: 84, supershingles: 6, agreements: 2 };
            let q = p.powi(14);
            near(study.chance(p), 1.0 - (1.0 - q).powi(6) - 6.0 * q * (1.0 - q).powi(5));
            let bands = Shape { features: 112, supershingles: 14, agreements: 1 };
            near(bands.chance(p), 1.0 - (1.0 - p.powi(8)).powi(14));
            let all = Shape { features: 84, supershingles: 6, agreements: 6 };
            near(all.chance(p), p.powi(84));
        }
    }

    #[test]
    fn chances_are_those_of_draws() {
        // Features of which each is equal with the probability p, drawn by a hash.
        let shape = Shape { features: 60, supershingles: 15, agreements: 3 };
        for p in [0.5, 0.7, 0.8] {
            let equal =
                |draw: u64, feature: u64| nigh_kernels::records::mix(draw << 8 | feature) as f64 / u64::MAX as f64 <= p;
            let linked = (0..4000).filter(|draw| {
                let agreeing = (0..15).filter(|part| (0..4).all(|place| equal(*draw, part * 4 + place))).count();
                agreeing >= 3
            });
            let share = linked.count() as f64 / 4000.0;
            assert!((share - shape.chance(p)).abs() < 0.03, "{p}: {share} {}", shape.chance(p));
        }
    }
}
