//! A line of JSON with another text in its columns; its other bytes stay as they are.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;
use serde_json::value::RawValue;

use crate::config::TextColumns;
use crate::export::dataset::AddedField;
use crate::export::texts::{Gone, LeftTexts};

/// The field of an annotation that a line has already.
pub(super) fn own_field(line: &[u8], added: &[AddedField]) -> Option<AddedField> {
    memchr::memmem::find(line, b"nigh_")?;
    let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(line).ok()?;
    added.iter().copied().find(|field| fields.contains_key(field.name()))
}

/// Where in a line the value of a field is, whose name may lead through objects (`meta.text`).
fn json_value(line: &[u8], name: &str) -> Option<Range<usize>> {
    let text = std::str::from_utf8(line).ok()?;
    let (mut object, mut name) = (text.trim_start_matches('\u{feff}'), name);
    loop {
        let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(object.trim_end()).ok()?;
        let value = match fields.get(name) {
            Some(value) => *value,
            None => {
                let (first, rest) = name.split_once('.')?;
                (object, name) = (fields.get(first)?.get(), rest);
                continue;
            }
        };
        let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
        return Some(start..start + value.get().len());
    }
}

/// A line with another text, in its columns. `None` if it has no text.
///
/// # Errors
/// As [`LeftTexts::of`].
pub(super) fn with_text(
    line: &[u8],
    columns: &TextColumns,
    text: &str,
    gone: &Gone,
    left: &mut LeftTexts<'_>,
) -> Result<Option<Vec<u8>>> {
    let text_at = |place: Range<usize>| {
        let text: String = serde_json::from_slice(&line[place.clone()]).ok()?;
        Some((place, text))
    };
    let before: Vec<_> = columns.names().iter().map(|name| json_value(line, name).and_then(text_at)).collect();
    let after = match &before[..] {
        [Some(_)] => vec![Some(text.to_owned())],
        all => {
            left.of_columns(gone, &all.iter().map(|text| text.as_ref().map(|(_, text)| &**text)).collect::<Vec<_>>())?
        }
    };
    let mut edits: Vec<_> =
        before.into_iter().zip(after).filter_map(|(before, after)| Some((before?.0, after?))).collect();
    edits.sort_unstable_by_key(|(place, _)| place.start);
    let (mut edited, mut at) = (Vec::with_capacity(line.len()), 0);
    for (place, text) in &edits {
        edited.extend_from_slice(&line[at..place.start]);
        serde_json::to_writer(&mut edited, text)?;
        at = place.end;
    }
    edited.extend_from_slice(&line[at..]);
    Ok((!edits.is_empty()).then_some(edited))
}
