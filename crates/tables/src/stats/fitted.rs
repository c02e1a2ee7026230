//! A power law as the line that a plot shows.

use super::powerlaw::{Fit, fit};

/// The line of a power law through a distribution of sizes, from its least size to the largest one:
/// on logarithmic axes two points are enough. Rows are (size, how many have it). It ends where less
/// than one is expected. `None` if no size is larger than the least one.
///
/// ```
/// use nigh_tables::stats::law_line;
/// let line = law_line(&[(2, 1000), (3, 400), (40, 1)], 2.5, 2).unwrap();
/// assert_eq!((line[0].0, line.len()), (2.0, 2));
/// assert!((600.0..800.0).contains(&line[0].1));
/// ```
pub fn law_line(sizes: &[(u64, u64)], exponent: f64, least: u64) -> Option<Vec<(f64, f64)>> {
    let above = || sizes.iter().filter(|(size, _)| *size >= least);
    let count: u64 = above().map(|(_, count)| count).sum();
    let most = above().map(|(size, _)| *size).max()? as f64;
    let least = least as f64;
    if count == 0 || most <= least {
        return None;
    }
    // The sum of all sizes from the least on, by the integral.
    let scale = count as f64 * (exponent - 1.0) * (least - 0.5).powf(exponent - 1.0);
    let at = |size: f64| (size, scale * size.powf(-exponent));
    let ends = scale.powf(1.0 / exponent).min(most).max(least);
    Some(vec![at(least), at(ends)])
}

/// A fit in words: the exponent with its standard error, the least size, and the distance.
///
/// ```
/// use nigh_tables::stats::{Fit, fit_words};
/// let fit = Fit { exponent: 2.5, x_min: 3, tail: 225, distance: 0.021 };
/// assert_eq!(fit_words(Some(fit)), "exponent 2.50 ± 0.10 from size 3 (225 of them; distance 0.021)");
/// ```
pub fn fit_words(fit: Option<Fit>) -> String {
    match fit {
        None => "too few for a power law".to_owned(),
        Some(Fit { exponent, x_min, tail, distance }) => {
            let error = (exponent - 1.0) / (tail as f64).sqrt();
            format!("exponent {exponent:.2} ± {error:.2} from size {x_min} ({tail} of them; distance {distance:.3})")
        }
    }
}

/// A distribution of sizes, its fit, and the line of that.
pub struct Fitted {
    /// Sizes, and how many have each.
    pub sizes: Vec<(u64, u64)>,
    /// The power law; `None` if there are too few.
    pub fit: Option<Fit>,
    /// The line of the law; empty without one.
    pub line: Vec<(f64, f64)>,
}

impl Fitted {
    /// Fits sizes of two and more.
    pub fn of(sizes: Vec<(u64, u64)>) -> Fitted {
        let sizes: Vec<(u64, u64)> = sizes.into_iter().filter(|(size, count)| *size > 1 && *count > 0).collect();
        let fit = fit(&sizes);
        let line = fit.and_then(|fit| law_line(&sizes, fit.exponent, fit.x_min)).unwrap_or_default();
        Fitted { sizes, fit, line }
    }

    /// The sizes as points.
    pub fn points(&self) -> Vec<(f64, f64)> {
        self.sizes.iter().map(|(size, count)| (*size as f64, *count as f64)).collect()
    }
}
