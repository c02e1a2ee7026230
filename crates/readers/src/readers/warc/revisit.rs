//! Reads revisit records (WARC 1.1, section 6.7): what the answer was, and which other download has
//! its page.
//!
//! The block of a revisit has the HTTP head of the answer, without its body. The head decides what
//! the record is, as that of a response does: with status 404 it is a failed download, with 301 a
//! redirect, with an image's media type it is passed over, and with 304 the page has not changed. A
//! record without a head is taken for an answer 200.

use super::http::{NoPage, begins_http, check_media_type, last_head, status, without_page};
use super::no_page::without_url;
use super::record::RecordHead;
use crate::readers::fields;
use crate::readers::fields::Date;
use crate::readers::item::{Item, Profile, Revisit};
use crate::readers::sniff;
use crate::reading::Reading;

/// What a revisit record says of its answer.
#[derive(Debug, PartialEq)]
pub(super) struct RevisitAnswer {
    /// In which way the page is the same.
    profile: Profile,
    /// The media type, if the head has one.
    media_type: Option<String>,
}

/// An answer 304.
pub(super) const NOT_MODIFIED: RevisitAnswer = RevisitAnswer { profile: Profile::NotModified, media_type: None };

/// Reads the HTTP head of a revisit record.
///
/// # Errors
/// Why it has no page: by its status or media type, or because it is malformed.
pub(super) fn answer(record: &RecordHead, block: &[u8], reading: &Reading) -> Result<RevisitAnswer, NoPage> {
    let uri = record.refers.as_ref().and_then(|refers| refers.profile.as_deref());
    let profile = uri.map_or(Profile::Other, profile);
    let (label, _) = super::header::content_type(&record.content_type);
    if block.is_empty() || !begins_http(block) && !label.is_empty() && label != "application/http" {
        return Ok(RevisitAnswer { profile, media_type: None });
    }
    let (line, mut fields) = super::header::split(last_head(block).0);
    match status(line)? {
        304 => Ok(NOT_MODIFIED),
        200 => {
            let of_type = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"content-type"));
            let media_type = of_type.map(|(_, value)| super::header::content_type(&value).0);
            let media_type = media_type.filter(|media_type| !sniff::is_unknown(media_type));
            media_type.iter().try_for_each(|media_type| check_media_type(media_type, reading))?;
            Ok(RevisitAnswer { profile, media_type })
        }
        status => Err(without_page(status, fields)),
    }
}

/// The profile that a URI names: `http://netpreserve.org/warc/1.1/revisit/server-not-modified`, of
/// any version.
fn profile(uri: &str) -> Profile {
    let name = uri.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    match name.to_ascii_lowercase().as_str() {
        "identical-payload-digest" => Profile::IdenticalPayload,
        "server-not-modified" => Profile::NotModified,
        _ => Profile::Other,
    }
}

/// Makes the item of a record whose page is what another one was.
pub(super) fn item(record: RecordHead, RevisitAnswer { profile, media_type }: RevisitAnswer) -> Item {
    let Some(url) = record.url else {
        return without_url(record.offset);
    };
    let refers = record.refers.map(|refers| *refers).unwrap_or_default();
    let time = |date: Option<String>| date.map_or(Date::None, |date| fields::warc_date(&date)).microseconds();
    Item::Revisit(Box::new(Revisit {
        url,
        ip: record.ip.and_then(|ip| fields::address(&ip)),
        fetched: time(record.date),
        profile,
        of_id: refers.id,
        of_url: refers.url,
        of_date: time(refers.date),
        digest: record.entry.digest,
        media_type,
        offset: record.offset,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::record::parse;
    use super::*;
    use crate::readers::item::{RedirectAnswer, Skip};

    const HTTP: &str = "application/http; msgtype=response";

    fn read(profile: &str, content_type: &str, block: &str) -> Result<RevisitAnswer, NoPage> {
        let profile = if profile.is_empty() { String::new() } else { format!("WARC-Profile: {profile}\r\n") };
        let head = format!("WARC/1.0\r\nWARC-Type: revisit\r\n{profile}Content-Type: {content_type}\r\n\r\n");
        answer(&parse(head.as_bytes(), 0).unwrap(), block.as_bytes(), &Reading::default())
    }

    #[test]
    fn the_stored_head_decides_as_that_of_a_response() {
        let same = "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest";
        let html = Some("text/html".to_owned());
        let page = Ok(RevisitAnswer { profile: Profile::IdenticalPayload, media_type: html });
        assert_eq!(read(same, HTTP, "HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=x\r\n\r\n"), page);
        assert_eq!(read(same, HTTP, "HTTP/1.1 100 Continue\r\n\r\nHTTP/2 200\ncontent-type: text/html\n\n"), page);
        assert_eq!(
            read(same, HTTP, "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n"),
            Err(NoPage::Skip(Skip::MediaType))
        );
        for status in [204, 303, 404, 410, 503] {
            assert_eq!(read(same, HTTP, &format!("HTTP/1.0 {status} X\r\n\r\n")), Err(NoPage::Status(status)));
        }
        let redirect = RedirectAnswer { status: 308, location: "/b".to_owned() };
        assert_eq!(read(same, HTTP, "HTTP/1.1 308 X\r\nLocation: /b\r\n\r\n"), Err(NoPage::Redirect(redirect)));
        assert_eq!(read(same, HTTP, "HTTP/1.1 304 Not Modified\r\nContent-Type: image/png\r\n\r\n"), Ok(NOT_MODIFIED));
        assert_eq!(read(same, HTTP, "\r\n<html>"), Err(NoPage::Broken("http: no status line")));
    }

    #[test]
    fn without_a_head_it_is_a_page_in_the_way_of_the_profile() {
        for (uri, profile) in [
            ("http://netpreserve.org/warc/1.1/revisit/server-not-modified", Profile::NotModified),
            ("https://netpreserve.org/warc/1.0/revisit/Server-Not-Modified/", Profile::NotModified),
            ("server-not-modified", Profile::NotModified),
            ("http://netpreserve.org/warc/1.1/revisit/identical-payload-digest", Profile::IdenticalPayload),
            ("http://netpreserve.org/warc/1.0/revisit/uri-agnostic-identical-payload-digest", Profile::Other),
            ("", Profile::Other),
        ] {
            assert_eq!(read(uri, HTTP, ""), Ok(RevisitAnswer { profile, media_type: None }), "{uri}");
        }
        // The block of a resource is not an answer.
        assert_eq!(read("", "text/html", "<html>"), Ok(RevisitAnswer { profile: Profile::Other, media_type: None }));
    }
}
