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
        let written = head.date?;
        let text = String::from_utf8_lossy(line.trim_ascii());
        let mut after_date = text.split(' ').skip_while(|field| *field != written).skip(1);
        let media_type = after_date.next().filter(|media_type| media_type.contains('/')).map(str::to_owned);
        // Dates of other programs have more digits, or only those of the day.
        let digits: String = written.chars().take_while(char::is_ascii_digit).take(14).collect();
        let date = (digits.len() >= 8).then(|| {
            let all = format!("{digits}{}", &"00000101000000"[digits.len()..]);
            let part = |from: usize, to: usize| &all[from..to];
            format!("{}-{}-{}T{}:{}:{}Z", part(0, 4), part(4, 6), part(6, 8), part(8, 10), part(10, 12), part(12, 14))
        });
        Some(ArcLine { url: head.url?, date, ip: head.ip, media_type })
    }
}

/// Whether a head is that of an ARC record.
pub(super) fn is_arc(head: &[u8]) -> bool {
    !head.starts_with(b"WARC/")
}
