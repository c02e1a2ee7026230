//! Globs: names with the signs `*`, `?`, `[` and `{`.

use anyhow::Context as _;
use globset::{GlobBuilder, GlobMatcher};

/// Whether an item contains one of the signs `*`, `?`, `[` and `{`.
pub fn is_glob(item: &str) -> bool {
    item.contains(['*', '?', '[', '{'])
}

/// Compiles a glob whose `*` and `?` stay within one folder.
///
/// # Errors
/// If the pattern is not a glob.
pub fn matcher(pattern: &str) -> anyhow::Result<GlobMatcher> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    Ok(glob.with_context(|| format!("{pattern} is not a valid glob"))?.compile_matcher())
}

/// Returns the folders of a glob before its first sign.
pub fn fixed_prefix(pattern: &str) -> &str {
    let sign = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
    &pattern[..pattern[..sign].rfind('/').map_or(0, |slash| slash.max(1))]
}
