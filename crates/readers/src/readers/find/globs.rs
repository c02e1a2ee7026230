//! Globs: names with the signs `*`, `?`, `[` and `{`.

use anyhow::Context as _;
use globset::{GlobBuilder, GlobMatcher};

use super::found::{COMPRESSED, FoundBy};

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

/// How a file was found that matches a glob: the glob names its ending if it does not match the
/// same name with another ending.
pub fn found_by(matcher: &GlobMatcher, path: &str) -> FoundBy {
    let lower = path.to_ascii_lowercase();
    let end = COMPRESSED.iter().find_map(|ending| lower.strip_suffix(ending)).map_or(path.len(), str::len);
    let name = path[..end].rfind('/').map_or(0, |slash| slash + 1);
    let Some(dot) = path[name..end].rfind('.') else { return FoundBy::Glob };
    let ending = name + dot + 1;
    let other = format!("{}{}{}", &path[..ending], "~".repeat(end - ending), &path[end..]);
    if matcher.is_match(other) { FoundBy::Glob } else { FoundBy::Ending }
}
