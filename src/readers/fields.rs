//! What several formats share: dates, UTF-8, and texts cut to a limit.

use std::borrow::Cow;

/// Parses a date and time (RFC 3339, in UTC or with an offset) to microseconds since 1970; `None` for anything else.
pub(crate) fn microseconds(date: &str) -> Option<i64> {
    date.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond)
}

/// Decodes UTF-8, with invalid bytes as U+FFFD.
pub(crate) fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    // Nearly every text is valid. To check that takes a fifth of the time of `from_utf8_lossy`.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Cuts a text to at most `limit` bytes, at the end of a character; returns also whether it was longer.
pub(crate) fn cut(text: Cow<'_, str>, limit: usize) -> (String, bool) {
    let is_longer = text.len() > limit;
    let end = text.floor_char_boundary(limit);
    let text = match text {
        Cow::Borrowed(text) => text[..end].to_owned(),
        Cow::Owned(mut text) => {
            text.truncate(end);
            text
        }
    };
    (text, is_longer)
}
