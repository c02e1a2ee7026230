//! The text of a samplers summary: how well samples estimate resemblance (Broder 1997; Fetterly 2004, section 2).

use std::fmt::Write as _;
use std::path::Path;

use super::grouped;
use crate::summary::{SamplerBand, SamplersSummary};

/// The text of the summary, as `run` and `show` print it; `tables` is the folder of the job's tables.
pub fn samplers(summary: &SamplersSummary, tables: &Path) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line(format!(
        "Samplers on week {}: {} pairs of pages, {} functions, {} seeds",
        summary.last,
        grouped(summary.pairs),
        summary.functions,
        summary.seeds
    ));
    line(String::new());
    let columns =
        |values: &mut dyn Iterator<Item = String>| values.map(|value| format!(" {value:>7}")).collect::<String>();
    let bands: &[SamplerBand] = summary.samplers.first().map_or(&[], |sampler| &sampler.bands);
    line(format!(
        "{:19} {:>8} {:>7}{}",
        "resemblance from",
        "bytes",
        "empty",
        columns(&mut bands.iter().map(|band| format!("{:.2}", band.low)))
    ));
    line(format!("{:19} {:>8} {:>7}{}", "pairs", "", "", columns(&mut bands.iter().map(|band| grouped(band.pairs)))));
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    for sampler in &summary.samplers {
        let bytes = sampler.bytes.map_or("-".to_owned(), |bytes| format!("{bytes:.0}"));
        let empty = format!("{:.2}%", 100.0 * sampler.empty);
        let errors = columns(&mut sampler.bands.iter().map(|band| number(band.error)));
        line(format!("{:19} {bytes:>8} {empty:>7}{errors}", sampler.sampler));
        let theory = columns(&mut sampler.bands.iter().map(|band| number(Some(band.theory))));
        line(format!("{:>19} {:>8} {:>7}{theory}", "by theory", "", ""));
    }
    line(String::new());
    let all = || summary.samplers.iter().flat_map(|sampler| &sampler.bands);
    let as_in_theory = all().filter(|band| band.is_as_in_theory()).count();
    let biased = all().filter(|band| band.is_biased()).count();
    let count = all().count();
    line(format!(
        "Errors   roots of the mean square of estimate minus exact resemblance; {as_in_theory} of {count} within 10% of theory"
    ));
    line(format!("Bias     within 3 standard errors in {} of {count} rows of sampler-errors", count - biased));
    line(format!("Empty    expected share of the {} pages with words that have no sample", grouped(summary.pages)));
    line(format!("Tables   {}", tables.display()));
    out
}
