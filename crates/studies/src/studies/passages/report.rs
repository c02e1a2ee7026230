//! The report of a passages summary.

use super::{PassageDocuments, PassagesSummary};
use crate::config::Bytes;
use crate::sheet::{Grid, GridColumn, Sheet, grouped, plural};

/// The report, as `run` and `show` print it.
pub fn passages(summary: &PassagesSummary) -> Sheet {
    let mut sheet = Sheet::default();
    let which = match summary.documents {
        PassageDocuments::Kept => "documents that stay",
        PassageDocuments::All => "documents",
    };
    sheet.line(format!(
        "Passages of {} words and more on week {}: {} {which}, {} words",
        summary.least,
        summary.last,
        grouped(summary.read()),
        grouped(summary.words)
    ));
    sheet.blank();
    let share = |words: u64| format!("{:.1}%", 100.0 * words as f64 / summary.words.max(1) as f64);
    let mut grid = Grid::of_numbers("", ["passages", "words", "share", "text"]);
    let mut row = |name: &str, passages: u64, words: u64, bytes: u64| {
        grid.row([name.to_owned(), grouped(passages), grouped(words), share(words), Bytes(bytes).to_string()]);
    };
    let copies = summary.passages - summary.first_occurrences;
    row("repeated", summary.passages, summary.repeated_words, summary.repeated_bytes);
    row("copies", copies, summary.copied_words, summary.copied_bytes);
    sheet.grid(grid);
    sheet.blank();
    if !summary.most.is_empty() {
        let columns = [("occurrences", GridColumn::Number), ("words", GridColumn::Number), ("doc", GridColumn::Number)];
        let mut grid = Grid::new(columns.into_iter().chain([("begins", GridColumn::Text)]));
        for passage in &summary.most {
            let numbers = [grouped(passage.occurrences), grouped(passage.words.into()), passage.doc.to_string()];
            grid.row(numbers.into_iter().chain([passage.text.clone()]));
        }
        sheet.grid(grid);
        sheet.blank();
    }
    let documents = plural(summary.with_passages, "document");
    sheet.fact("Passages", format!("in {documents}, of {} long enough", grouped(summary.compared)));
    sheet
}
