//! Which columns the lines of a file have, before it is read.

use std::io::Read;

use anyhow::{Context as _, bail};

use super::reader::JsonlReader;
use crate::readers::streams::LineStep;
use crate::reading::Reading;

/// Lines that are looked at before the run.
const CHECKED: usize = 20;
/// Lines that are searched first for columns whose values are kept, and the names that are
/// remembered.
pub(super) const SEARCHED: usize = 1000;
const MOST_NAMES: usize = 100;
/// What a JSON array is, and what to do about it; after the name of the file.
pub const ARRAY: &str = "is a JSON array, and nigh reads JSON Lines: `jq -c '.[]'` makes lines of it";

/// Which lines of a file say what columns it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    /// The first ones.
    First,
    /// All: a column can begin anywhere.
    All,
}

/// Checks that the first lines have the columns of the job, as a Parquet file must have them.
/// Returns whether one has a URL; `None` if there is no line with an object.
///
/// # Errors
/// If the file cannot be read or is an array, or all of its first lines are objects and none has an
/// id, or a URL, that the job names, or none has a body. The message names the fields that the
/// first one has.
pub fn check(source: Box<dyn Read + Send>, name: &str, reading: &Reading) -> anyhow::Result<Option<bool>> {
    let failed = || format!("cannot read {name}");
    let mut lines = JsonlReader::new(source, name, reading).with_context(failed)?.lines;
    let columns = &reading.columns;
    let bodies: Vec<&str> = columns.text.names().iter().chain(&columns.html).map(String::as_str).collect();
    if bodies.is_empty() {
        bail!("cannot read pages from {name}: set `text` or `html` in [cluster.read.columns]");
    }
    let mut fields: Option<Vec<String>> = None;
    let (mut has_id, mut has_url, mut has_body) = (columns.id.is_none(), false, false);
    for _ in 0..CHECKED {
        match lines.advance().with_context(failed)? {
            Some(LineStep::Line(_)) => {}
            Some(_) => return Ok(None),
            None => break,
        }
        let line = lines.line().trim_ascii();
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        if fields.is_none() && line.starts_with(b"[") {
            bail!("{name} {ARRAY}");
        }
        let Ok(object) = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(line) else {
            return Ok(None);
        };
        let names = field_names(&object);
        has_id |= columns.id.as_ref().is_some_and(|id| names.contains(id));
        has_url |= names.iter().any(|name| name == columns.url());
        has_body |= bodies.iter().any(|body| names.iter().any(|name| name == body));
        if has_id && has_url && has_body {
            return Ok(Some(true));
        }
        fields.get_or_insert(names);
    }
    let Some(fields) = fields else { return Ok(None) };
    let missing = match (&columns.id, &columns.url) {
        (Some(id), _) if !has_id => id.clone(),
        (_, Some(url)) if !has_url => url.clone(),
        _ if !has_body => bodies.join("` and no field `"),
        _ => return Ok(Some(has_url)),
    };
    bail!(
        "{name} has no field `{missing}`: it has {}; set the names in [cluster.read.columns], or by --id, --url and --text",
        fields.join(", ")
    )
}

/// The names of the fields that these lines have, and which of the columns whose values are kept
/// are among them. No further line is read once all of these are found.
///
/// # Errors
/// If the file cannot be read.
pub fn columns(
    source: Box<dyn Read + Send>,
    name: &str,
    reading: &Reading,
    searched: Searched,
) -> anyhow::Result<(Vec<String>, Vec<bool>)> {
    let failed = || format!("cannot read {name}");
    let mut lines = JsonlReader::new(source, name, reading).with_context(failed)?.lines;
    let values = &reading.columns.values;
    let (mut names, mut has) = (Vec::new(), vec![false; values.len()]);
    let most = match searched {
        Searched::First => SEARCHED,
        Searched::All => usize::MAX,
    };
    for _ in 0..most {
        match lines.advance().with_context(failed)? {
            Some(LineStep::Line(_)) => {}
            Some(_) => continue,
            None => break,
        }
        let line = lines.line().trim_ascii();
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let Ok(object) = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(line) else { continue };
        let of_line = field_names(&object);
        has.iter_mut().zip(values).for_each(|(has, value)| *has |= of_line.contains(value));
        if has.iter().all(|has| *has) {
            return Ok((of_line, has));
        }
        // A file of lines with fields of their own has more names than a message can show.
        names.extend(
            of_line
                .into_iter()
                .filter(|name| !names.contains(name))
                .take(MOST_NAMES - names.len().min(MOST_NAMES))
                .collect::<Vec<_>>(),
        );
    }
    Ok((names, has))
}

/// The names of the fields of an object, with those of the objects inside it after a dot.
fn field_names(object: &serde_json::Map<String, serde_json::Value>) -> Vec<String> {
    fn add(prefix: &str, object: &serde_json::Map<String, serde_json::Value>, names: &mut Vec<String>) {
        for (name, value) in object {
            let name = format!("{prefix}{name}");
            names.push(name.clone());
            if let Some(inner) = value.as_object() {
                add(&format!("{name}."), inner, names);
            }
        }
    }
    let mut names = Vec::new();
    add("", object, &mut names);
    names
}
