//! The line with which a record of an ARC file begins.

use crate::readers::arc_record;

/// The fields of the line of a record.
pub(in crate::export) struct ArcLine {
    pub(in crate::export) url: String,
    /// As WARC has it, if it has a day.
    pub(in crate::export) date: Option<String>,
    pub(in crate::export) ip: Option<String>,
    pub(in crate::export) media_type: Option<String>,
}

impl ArcLine {
    pub(in crate::export) fn parse(line: &[u8]) -> Option<ArcLine> {
        let head = arc_record(line, 0).ok()?;
        let media_type = String::from_utf8_lossy(&head.content_type).into_owned();
        let media_type = Some(media_type).filter(|media_type| !media_type.is_empty());
        // One that has a day was read as 14 digits.
        let is_date = |date: &String| date.len() == 14 && date.bytes().all(|byte| byte.is_ascii_digit());
        let date = head.date.filter(is_date).map(|date| {
            let part = |from: usize, to: usize| &date[from..to];
            format!("{}-{}-{}T{}:{}:{}Z", part(0, 4), part(4, 6), part(6, 8), part(8, 10), part(10, 12), part(12, 14))
        });
        Some(ArcLine { url: head.url?, date, ip: head.ip, media_type })
    }
}

/// Whether a head is that of an ARC record.
pub(super) fn is_arc(head: &[u8]) -> bool {
    !head.starts_with(b"WARC/")
}
