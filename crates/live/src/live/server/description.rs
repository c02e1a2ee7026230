//! The description of the requests by OpenAPI: a template, and what depends on the store and the
//! server.
//!
//! A line of a batch names its document by `id` or by `url`, as the store knows documents. Requests
//! need a token or none.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::records::DocumentKey;

const TEMPLATE: &str = include_str!("openapi.json");

/// The description of a server whose store knows documents by `documents`.
///
/// # Errors
/// If the template lacks a part: a fault of the program.
pub(super) fn description(documents: DocumentKey, needs_token: bool) -> Result<Bytes> {
    let mut all: Value = serde_json::from_str(TEMPLATE).context("the template of the description")?;
    let mut set = |place: &str, value: Value| -> Result<()> {
        *all.pointer_mut(place).with_context(|| format!("the template of the description has no {place}"))? = value;
        Ok(())
    };
    let (name, id, url) = match documents {
        DocumentKey::Url => (
            "url",
            json!({"type": ["string", "integer", "null"], "pattern": "^[^\\r\\n]*$", "maxLength": 8192}),
            json!({"type": "string", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://[0-9A-Za-z]"}),
        ),
        DocumentKey::Id | DocumentKey::Row => (
            "id",
            json!({"type": ["string", "integer"], "pattern": "^[^\\r\\n]+$", "minLength": 1, "maxLength": 8192}),
            json!({"type": ["string", "null"]}),
        ),
    };
    set("/components/schemas/Record/required", json!([name]))?;
    set("/components/schemas/Record/properties/id", id)?;
    set("/components/schemas/Record/properties/url", url)?;
    set("/components/schemas/Answer/required/0", json!(name))?;
    set("/security", if needs_token { json!([{"token": []}]) } else { json!([]) })?;
    Ok(Bytes::from(serde_json::to_vec(&all)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_of_its_store_and_server() {
        for (documents, name) in [(DocumentKey::Id, "id"), (DocumentKey::Url, "url")] {
            for needs_token in [false, true] {
                let all: Value = serde_json::from_slice(&description(documents, needs_token).unwrap()).unwrap();
                let schema = |of: &str| &all["components"]["schemas"][of];
                assert_eq!(schema("Record")["required"], json!([name]));
                assert_eq!(schema("Answer")["required"][0], name);
                assert_eq!(all["security"].as_array().unwrap().len(), usize::from(needs_token));
                // Each reference leads to something.
                let text = all.to_string();
                for part in text.split("\"$ref\":\"#").skip(1) {
                    let place = part.split('"').next().unwrap();
                    assert!(all.pointer(place).is_some(), "{place}");
                }
            }
        }
    }
}
