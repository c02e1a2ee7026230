//! What several formats share: dates, UTF-8, and texts cut to a limit.

use std::borrow::Cow;
use std::net::IpAddr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::{rfc2822, strtime};
use jiff::tz::TimeZone;

/// The time of a fetch, as a field gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Date {
    /// There is no value.
    None,
    /// Microseconds since 1970, UTC.
    At(i64),
    /// There is a value, and it is not a date in a known form.
    Unreadable,
}

impl Date {
    /// Returns the microseconds since 1970, if the time is known.
    pub(crate) fn microseconds(self) -> Option<i64> {
        match self {
            Date::At(microseconds) => Some(microseconds),
            Date::None | Date::Unreadable => None,
        }
    }
}

/// Reads the address of a server. Crawlers write 0.0.0.0 for one that they do not know.
pub(crate) fn address(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().filter(|address| !address.is_unspecified())
}

/// Reads a date in any of the forms of crawls. A form without a zone is UTC.
///
/// - ISO 8601 and RFC 3339, with `T` or a blank, with or without a time: `2024-01-08T01:02:03Z`,
///   `2024-01-08 01:02:03.5 +0100`, `2024-01-08`;
/// - 14 digits, or 8: `20240108010203`, `20240108`;
/// - seconds, milliseconds, microseconds or nanoseconds since 1970, as [`epoch`] reads them;
/// - the three forms of HTTP (RFC 9110, section 5.6.7): `Mon, 08 Jan 2024 01:02:03 GMT`,
///   `Monday, 08-Jan-24 01:02:03 GMT`, `Mon Jan  8 01:02:03 2024`; and the zones of mail (`+0000`).
pub(crate) fn date(text: &str) -> Date {
    // The form of WARC files and of most others.
    if let Ok(time) = text.parse::<Timestamp>() {
        return Date::At(time.as_microsecond());
    }
    let text = text.trim_ascii();
    if text.is_empty() {
        return Date::None;
    }
    let time = if text.starts_with(|first: char| first.is_ascii_digit()) {
        if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return digits(text);
        }
        iso(text)
    } else {
        http(text)
    };
    time.map_or(Date::Unreadable, |time| Date::At(time.as_microsecond()))
}

/// Reads a number as a time: 8 or 14 digits of a date since 1990, or the time since 1970 in the
/// unit that the number of digits shows: seconds have 9 or 10, milliseconds 12 or 13, microseconds
/// 15 or 16, nanoseconds 18 or 19 (the years 1973 to 2286).
pub(crate) fn epoch(number: f64) -> Date {
    let whole = number as i64;
    let microseconds = match number {
        19_900_101.0..21_000_000.0 => return civil(whole * 1_000_000),
        19_900_101e6..21_000_000e6 => return civil(whole),
        1e8..1e10 => number * 1e6,
        1e11..1e13 => number * 1e3,
        1e14..1e16 => number,
        1e17..9e18 => number / 1e3,
        _ => return Date::Unreadable,
    };
    Date::At(microseconds.round() as i64)
}

/// Reads text that consists of digits and points.
fn digits(text: &str) -> Date {
    text.parse().map_or(Date::Unreadable, epoch)
}

/// Reads the digits of a date and a time, `YYYYMMDDhhmmss`.
fn civil(digits: i64) -> Date {
    let part = |place: i64| digits / place % 100;
    let (year, month, day) = (digits / 10_000_000_000, part(100_000_000), part(1_000_000));
    let time =
        DateTime::new(year as i16, month as i8, day as i8, part(10_000) as i8, part(100) as i8, part(1) as i8, 0);
    time.ok().and_then(utc).map_or(Date::Unreadable, |time| Date::At(time.as_microsecond()))
}

/// Reads an ISO date whose zone is missing, or stands after a blank.
fn iso(text: &str) -> Option<Timestamp> {
    let text = ["UTC", "GMT"].iter().find_map(|zone| text.strip_suffix(zone)).unwrap_or(text).trim_ascii_end();
    if let Some((time, zone)) = text.rsplit_once(' ')
        && zone.starts_with(['+', '-', 'Z'])
    {
        return format!("{time}{zone}").parse().ok();
    }
    // A name of a zone in brackets would be passed over.
    if text.contains('[') {
        return None;
    }
    text.parse().ok().or_else(|| text.parse().ok().and_then(utc))
}

/// Reads a date of HTTP or of mail.
fn http(text: &str) -> Option<Timestamp> {
    let of = |format: &str| strtime::parse(format, text).ok()?.to_datetime().ok().and_then(utc);
    rfc2822::parse(text)
        .ok()
        .map(|time| time.timestamp())
        .or_else(|| of("%A, %d-%b-%y %H:%M:%S GMT"))
        .or_else(|| of("%a %b %e %H:%M:%S %Y"))
}

fn utc(time: DateTime) -> Option<Timestamp> {
    time.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp())
}

/// Decodes UTF-8, with invalid bytes as U+FFFD.
pub(crate) fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    // Nearly every text is valid. To check that takes a fifth of the time of `from_utf8_lossy`.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Reads a URL. Of bytes that are not UTF-8 each becomes `%XX`: two URLs with different bytes stay
/// two.
pub(crate) fn url(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(url) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(url);
    }
    let mut url = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        url.push_str(chunk.valid());
        for byte in chunk.invalid() {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
    Cow::Owned(url)
}

/// Reads a date of a WARC file (WARC 1.1, 5.4: a profile of ISO 8601). A year, or a year and a
/// month, is its first moment.
pub(crate) fn warc_date(text: &str) -> Date {
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.trim_ascii();
    match text.split_once('-') {
        None if digits(text, 4) => date(&format!("{text}-01-01")),
        Some((year, month)) if digits(year, 4) && digits(month, 2) => date(&format!("{text}-01")),
        _ => date(text),
    }
}

/// Cuts a text to at most `limit` bytes, at the end of a character; returns also whether it was
/// longer.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// 2024-01-08T01:02:03Z.
    const TIME: i64 = 1_704_675_723_000_000;
    const DAY: i64 = 1_704_672_000_000_000;

    #[test]
    fn an_address_that_is_not_known_is_none() {
        assert_eq!(address("10.0.0.1"), Some(IpAddr::from([10, 0, 0, 1])));
        for text in ["0.0.0.0", "::", "", "localhost"] {
            assert_eq!(address(text), None, "{text}");
        }
    }

    #[test]
    fn dates_are_read_in_every_form_of_crawls() {
        for text in [
            "2024-01-08T01:02:03Z",
            "2024-01-08t01:02:03z",
            "2024-01-08T02:02:03+01:00",
            "2024-01-08T01:02:03",
            "2024-01-08 01:02:03",
            " 2024-01-08 01:02:03 ",
            "2024-01-08 01:02:03Z",
            "2024-01-08 01:02:03 UTC",
            "2024-01-08 01:02:03 +0000 UTC",
            "2024-01-07 20:02:03 -0500",
            "2024-01-08 01:02:03+00:00",
            "20240108010203",
            "1704675723",
            "1704675723.0",
            "1704675723000",
            "1704675723000000",
            "1704675723000000000",
            "Mon, 08 Jan 2024 01:02:03 GMT",
            "Mon, 8 Jan 2024 02:02:03 +0100",
            "Monday, 08-Jan-24 01:02:03 GMT",
            "Mon Jan  8 01:02:03 2024",
        ] {
            assert_eq!(date(text), Date::At(TIME), "{text}");
        }
        for text in ["2024-01-08", "20240108", "20240108000000", "2024-01-08T00:00:00.000Z"] {
            assert_eq!(date(text), Date::At(DAY), "{text}");
        }
        assert_eq!(date("2024-01-08T01:02:03.25Z"), Date::At(TIME + 250_000));
        assert_eq!(date("2024-01-08 01:02:03.25"), Date::At(TIME + 250_000));
        assert_eq!(date("1704675723.25"), Date::At(TIME + 250_000));
        assert_eq!(epoch(1_704_675_723.25), Date::At(TIME + 250_000));
    }

    #[test]
    fn dates_of_warc_may_end_with_the_year_or_the_month() {
        const YEAR: i64 = 1_704_067_200_000_000;
        for (text, time) in [
            ("2024", YEAR),
            (" 2024-01 ", YEAR),
            ("2024-01-08", DAY),
            ("2024-01-08T01:02Z", TIME - 3_000_000),
            ("2024-01-08T01:02:03Z", TIME),
            ("2024-01-08T01:02:03.25Z", TIME + 250_000),
            ("20240108010203", TIME),
        ] {
            assert_eq!(warc_date(text), Date::At(time), "{text}");
        }
        for text in ["2024-13", "202", "20240", "2024-1", "-2024", "2024-"] {
            assert_eq!(warc_date(text), Date::Unreadable, "{text}");
        }
        assert_eq!(warc_date(""), Date::None);
    }

    #[test]
    fn bytes_of_a_url_that_are_not_utf8_stay_these_bytes() {
        assert_eq!(url(b"http://a/caf\xe9"), "http://a/caf%E9");
        assert_eq!(url(b"http://a/caf\xe8?\xff\xfe"), "http://a/caf%E8?%FF%FE");
        assert_eq!(url("http://a/é".as_bytes()), "http://a/é");
        // A character that is cut, and a valid one beside a byte that is none.
        assert_eq!(url(b"http://a/\xe2\x82"), "http://a/%E2%82");
        assert_eq!(url(b"http://a/\xc3\xa9\xe9/x"), "http://a/é%E9/x");
    }

    #[test]
    fn what_is_no_date_is_not_guessed() {
        for text in [
            "yesterday",
            "0",
            "12",
            "2024",
            "2024-13-08",
            "20241308010203999",
            "99999999999999999999",
            "1.2.3",
            "08/01/2024",
            "Tue, 08 Jan 2024 01:02:03 GMT",
            "2024-01-08T01:02:03[America/New_York]",
            "2024-01-08 01:02:03 +99:99",
            "2024-01-08 01:02:03 CET",
        ] {
            assert_eq!(date(text), Date::Unreadable, "{text}");
        }
        assert_eq!((date(""), date("  ")), (Date::None, Date::None));
        assert_eq!(
            (epoch(f64::NAN), epoch(-1e9), epoch(f64::INFINITY)),
            (Date::Unreadable, Date::Unreadable, Date::Unreadable)
        );
    }
}
