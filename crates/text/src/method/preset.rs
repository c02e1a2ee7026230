//! Shapes by name, and the shape that finds the pairs of a similarity at the least cost.

use super::s_curve::Shape;

/// The largest number of megashingles of a document: workers exchange a record for each.
pub(super) const MAX_MEGASHINGLES: usize = 1000;
/// The largest number of features.
pub const MAX_FEATURES: usize = 1024;
/// The largest number of supershingles.
pub(super) const MAX_SUPERSHINGLES: usize = 64;
/// The share of the pairs of the wanted similarity that a chosen shape links directly, at least.
pub const RECALL: f64 = 0.99;

/// The shape of Fetterly 2004, section 2.
pub const STUDY: Shape = Shape { features: 84, supershingles: 6, agreements: 2 };
/// The name of [`STUDY`].
const STUDY_NAME: &str = "fetterly-2004";
/// How the names of banded shapes begin.
const BANDS: &str = "minhash-";

/// The shape with this name: `fetterly-2004`, or `minhash-BxR` for B bands of R features of which
/// one must agree, as most programs have it.
///
/// # Errors
/// If there is no such name.
pub(super) fn preset(name: &str) -> Result<Shape, String> {
    if name == STUDY_NAME {
        return Ok(STUDY);
    }
    let numbers = name.strip_prefix(BANDS).and_then(|numbers| numbers.split_once('x'));
    let numbers = numbers.and_then(|(bands, rows)| Some((bands.parse().ok()?, rows.parse().ok()?)));
    let Some((bands, rows)) = numbers else {
        return Err(format!(
            "preset = \"{name}\": allowed are \"{STUDY_NAME}\", and \"{BANDS}14x8\" for 14 bands of 8 features (or other numbers)"
        ));
    };
    let shape = |bands: usize, rows: usize| {
        let features = bands.checked_mul(rows).filter(|features| (1..=MAX_FEATURES).contains(features))?;
        (bands <= MAX_SUPERSHINGLES).then_some(Shape { features, supershingles: bands, agreements: 1 })
    };
    shape(bands, rows).ok_or_else(|| {
        format!(
            "preset = \"{name}\": allowed are up to {MAX_SUPERSHINGLES} bands, and up to {MAX_FEATURES} features in all of them"
        )
    })
}

/// The name of a shape, if it has one.
pub(super) fn name_of(shape: Shape) -> Option<String> {
    match shape {
        STUDY => Some(STUDY_NAME.to_owned()),
        Shape { features, supershingles, agreements: 1 } => {
            Some(format!("{BANDS}{supershingles}x{}", features / supershingles))
        }
        _ => None,
    }
}

/// What some shape must have, of what a job says itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GivenShape {
    pub(super) features: Option<usize>,
    pub(super) supershingles: Option<usize>,
    pub(super) agreements: Option<usize>,
    /// The least number of features, if it is not given.
    pub(super) least_features: usize,
}

impl GivenShape {
    pub(super) fn is_any(self) -> bool {
        self.features.or(self.supershingles).or(self.agreements).is_some()
    }

    fn allows(self, shape: Shape) -> bool {
        self.features.map_or(shape.features >= self.least_features, |features| features == shape.features)
            && self.supershingles.is_none_or(|supershingles| supershingles == shape.supershingles)
            && self.agreements.is_none_or(|agreements| agreements == shape.agreements)
    }
}

/// The cheapest shape that links at least [`RECALL`] of the pairs of similarity `similarity`, and
/// has what is `given`.
///
/// The cost of a page, in nanoseconds of one core, is that of its features, of its supershingles,
/// and of what false candidates make:
///
/// ```text
/// cost  = 40 features + 20 supershingles + 25,000 (1 - exp(-false))
/// false = sum over bands of similarity p below the wanted one: (pairs of a page in the band) * chance(p)
/// ```
///
/// A page of some 500 words and min-wise features are assumed. The pairs of 0.5 and more are those
/// of the first week of the crawl that `docs/method.md` measures; the numbers of less similar pairs
/// are assumed.
///
/// # Errors
/// If no shape with what is given links enough of the pairs.
pub(super) fn cheapest(similarity: f64, given: GivenShape) -> Result<Shape, String> {
    let mut best: Option<(f64, Shape)> = None;
    for supershingles in 1..=MAX_SUPERSHINGLES {
        for agreements in 1..=supershingles {
            for rows in 1..=MAX_FEATURES / supershingles {
                let shape = Shape { features: rows * supershingles, supershingles, agreements };
                if shape.megashingles().is_none_or(|keys| keys > MAX_MEGASHINGLES) || shape.chance(similarity) < RECALL
                {
                    // More features for each supershingle make it agree less often.
                    break;
                }
                let cost = cost(shape, similarity);
                if given.allows(shape) && best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, shape));
                }
            }
        }
    }
    best.map(|(_, shape)| shape).ok_or_else(|| {
        format!(
            "similarity = {similarity}: no numbers with those that are given link {:.0}% of such pairs: leave some of features, \
             supershingles and agreements out",
            100.0 * RECALL
        )
    })
}

/// The pairs that a page has with others in bands of similarity: the middle of a band, and how
/// many.
const PAIRS_OF_A_PAGE: [(f64, f64); 8] =
    [(0.2, 15.0), (0.4, 3.0), (0.55, 0.91), (0.65, 1.6), (0.75, 0.7), (0.825, 0.34), (0.875, 0.19), (0.925, 0.23)];

/// The cost of a page, in nanoseconds: see [`cheapest`].
fn cost(shape: Shape, similarity: f64) -> f64 {
    let below = PAIRS_OF_A_PAGE.iter().filter(|(p, _)| *p < similarity);
    let false_pairs: f64 = below.map(|(p, pairs)| pairs * shape.chance(*p)).sum();
    40.0 * shape.features as f64 + 20.0 * shape.supershingles as f64 + 25_000.0 * (1.0 - (-false_pairs).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_shapes_belong_together() {
        for (name, numbers) in
            [("fetterly-2004", [84, 6, 2]), ("minhash-14x8", [112, 14, 1]), ("minhash-20x13", [260, 20, 1])]
        {
            let [features, supershingles, agreements] = numbers;
            let shape = Shape { features, supershingles, agreements };
            assert_eq!(preset(name).unwrap(), shape);
            assert_eq!(name_of(shape).unwrap(), name);
        }
        for name in
            ["", "fetterly", "minhash-", "minhash-14", "minhash-0x8", "minhash-65x2", "minhash-64x17", "minhash-9x0"]
        {
            assert!(preset(name).unwrap_err().contains("allowed are"), "{name}");
        }
    }

    #[test]
    fn a_chosen_shape_links_the_pairs_and_no_cheaper_one_does() {
        for similarity in [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99] {
            let chosen = cheapest(similarity, GivenShape::default()).unwrap();
            assert!(chosen.chance(similarity) >= RECALL, "{similarity}: {chosen:?}");
            for supershingles in 1..=64 {
                for agreements in 1..=supershingles {
                    for features in (supershingles..=1024).step_by(supershingles) {
                        let other = Shape { features, supershingles, agreements };
                        let is_allowed = other.megashingles().is_some_and(|keys| keys <= MAX_MEGASHINGLES);
                        let is_cheaper = cost(other, similarity) < cost(chosen, similarity);
                        assert!(!is_allowed || !is_cheaper || other.chance(similarity) < RECALL, "{other:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn given_numbers_stay_and_impossible_ones_are_refused() {
        let given = GivenShape { agreements: Some(1), ..GivenShape::default() };
        let shape = cheapest(0.8, given).unwrap();
        assert!(shape.agreements == 1 && shape.chance(0.8) >= RECALL, "{shape:?}");
        let given = GivenShape { features: Some(8), agreements: Some(4), ..GivenShape::default() };
        assert!(cheapest(0.5, given).unwrap_err().contains("similarity = 0.5"));
    }
}
