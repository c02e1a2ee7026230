//! The report of a samplers summary: how well samples estimate resemblance (Broder 1997; Fetterly
//! 2004, section 2).

use super::{SamplerBand, SamplersSummary};
use crate::sheet::{Grid, Sheet, grouped, plural};

/// The report, as `run` and `show` print it.
pub fn samplers(summary: &SamplersSummary) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.line(format!(
        "Samplers on week {}: {} of pages, {} functions, {}",
        summary.last,
        plural(summary.pairs, "pair"),
        summary.functions,
        plural(summary.seeds, "seed")
    ));
    sheet.blank();
    let bands: &[SamplerBand] = summary.samplers.first().map_or(&[], |sampler| &sampler.bands);
    let lows: Vec<String> = bands.iter().map(|band| format!("{:.2}", band.low)).collect();
    let numbers = ["bytes", "empty"].into_iter().chain(lows.iter().map(String::as_str));
    let mut grid = Grid::of_numbers("resemblance from", numbers);
    let mut row = |name: &str, bytes: String, empty: String, bands: &mut dyn Iterator<Item = String>| {
        grid.row([name.to_owned(), bytes, empty].into_iter().chain(bands));
    };
    row("pairs", String::new(), String::new(), &mut bands.iter().map(|band| grouped(band.pairs)));
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    for sampler in &summary.samplers {
        let bytes = sampler.bytes.map_or("-".to_owned(), |bytes| format!("{bytes:.0}"));
        let empty = format!("{:.2}%", 100.0 * sampler.empty);
        row(&sampler.sampler.to_string(), bytes, empty, &mut sampler.bands.iter().map(|band| number(band.error)));
        let mut theory = sampler.bands.iter().map(|band| number(Some(band.theory)));
        row("  by theory", String::new(), String::new(), &mut theory);
    }
    sheet.grid(grid);
    sheet.blank();
    let all = || summary.samplers.iter().flat_map(|sampler| &sampler.bands);
    let as_in_theory = all().filter(|band| band.is_as_in_theory()).count();
    let biased = all().filter(|band| band.is_biased()).count();
    let count = all().count();
    let errors = "roots of the mean square of estimate minus exact resemblance";
    sheet.fact("Errors", format!("{errors}; {as_in_theory} of {count} within 10% of theory"));
    sheet.fact("Bias", format!("within 3 standard errors in {} of {count} rows of sampler-errors", count - biased));
    let pages = grouped(summary.pages);
    sheet.fact("Empty", format!("expected share of the {pages} pages with words that have no sample"));
    sheet
}
