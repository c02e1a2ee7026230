//! Files that name documents: lines of ids or URLs, or a column of Parquet, as `nigh export --list`
//! writes both.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;

use crate::cli::errors::WrongUse;
use crate::tables::Scan;

/// The texts of a file that `flag` names, each with its place for messages: its lines that are not
/// empty, without a byte order mark, or if its name ends in `.parquet` the values of a column, text
/// or whole numbers.
///
/// # Errors
/// Names the file that cannot be read, or the row without a value.
pub(super) fn keys_of_file(flag: &str, path: &Path, column: &str) -> Result<Vec<(String, String)>> {
    let name = path.display();
    let mut keys = Vec::new();
    if !path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet")) {
        let text =
            std::fs::read_to_string(path).map_err(|error| WrongUse(format!("{flag}: cannot read {name}: {error}")))?;
        let lines =
            text.strip_prefix('\u{feff}').unwrap_or(&text).lines().zip(1..).filter(|(line, _)| !line.is_empty());
        keys.extend(lines.map(|(line, number)| (line.to_owned(), format!("{name}, line {number}"))));
        return Ok(keys);
    }
    let scan = Scan::open(path, &[column]);
    scan.map_err(|error| WrongUse(format!("{flag}: {error:#}")))?.for_each(|batch| {
        let values = batch.column_by_name(column).context("the column is there")?;
        let texts: Vec<Option<String>> = if let Some(texts) = values.as_string_opt::<i32>() {
            owned(texts.iter())
        } else if let Some(texts) = values.as_string_opt::<i64>() {
            owned(texts.iter())
        } else if let Some(texts) = values.as_string_view_opt() {
            owned(texts.iter())
        } else if let Some(numbers) = values.as_primitive_opt::<Int64Type>() {
            numbers.iter().map(|number| Some(number?.to_string())).collect()
        } else {
            let kind = values.data_type();
            bail!(WrongUse(format!(
                "{flag}: the column `{column}` of {name} has values of type {kind}: text and whole numbers of 64 bits are read"
            )));
        };
        for text in texts {
            let place = format!("{name}, row {}", keys.len() + 1);
            let text = text.with_context(|| WrongUse(format!("{place} has no `{column}`")))?;
            keys.push((text, place));
        }
        Ok(())
    })?;
    Ok(keys)
}

fn owned<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> Vec<Option<String>> {
    texts.map(|text| text.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ids.txt");
        std::fs::write(&path, "\u{feff}a\r\n\r\nb\r\n").unwrap();
        let keys = keys_of_file("--ids", &path, "id").unwrap();
        assert_eq!(keys.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(keys[1].1.ends_with("ids.txt, line 3"), "{}", keys[1].1);
    }
}
