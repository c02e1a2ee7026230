//! Fields that several formats have: dates, UTF-8 text, and texts cut to a limit.

use std::borrow::Cow;

/// Reads a date and time in UTC or with an offset to microseconds since 1970.
pub(crate) fn microseconds(date: &str) -> Option<i64> {
    date.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond)
}

/// Reads UTF-8, bad bytes as U+FFFD.
pub(crate) fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    // Nearly all is UTF-8, and to see that takes a fifth of what the search for bad bytes does.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Cuts a text to a limit of bytes, at the end of a character; the flag says whether there was more.
pub(crate) fn cut(text: Cow<'_, str>, limit: usize) -> (String, bool) {
    let (length, keeps) = (text.len(), text.floor_char_boundary(limit));
    let text = match text {
        Cow::Borrowed(text) => text[..keeps].to_owned(),
        Cow::Owned(mut text) => {
            text.truncate(keeps);
            text
        }
    };
    (text, length > limit)
}
