//! A WARC record that says: the same payload as that of another record.

use jiff::Timestamp;

use crate::export::verdicts::Verdict;
/// The profile of a revisit record whose payload is the same as the other one's (WARC 1.1, section 6.7.2).
const PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// Fields of the response that a revisit record does not keep, lower case: they describe the block, or get another value.
const NOT_KEPT: [&str; 6] =
    ["warc-type", "content-length", "warc-block-digest", "warc-truncated", "warc-segment-number", "warc-profile"];

/// The revisit record for a response, whose bytes begin with its head: the same record id, date and payload digest, and as block the head of
/// the HTTP response. `None` if the bytes are no WARC record.
pub(crate) fn revisit(record: &[u8], verdict: &Verdict) -> Option<Vec<u8>> {
    let original = verdict.original.as_ref()?;
    let head_end = memchr::memmem::find(record, b"\r\n\r\n")?;
    let head = std::str::from_utf8(&record[..head_end]).ok()?;
    let block = &record[head_end + 4..];
    let http_head = match memchr::memmem::find(block, b"\r\n\r\n") {
        Some(end) if block.starts_with(b"HTTP/") => &block[..end + 4],
        _ => &[],
    };
    let mut lines = head.split("\r\n");
    let version = lines.next().filter(|version| version.starts_with("WARC/"))?;
    let mut text = format!("{version}\r\nWARC-Type: revisit\r\nWARC-Profile: {PROFILE}\r\n");
    let mut is_kept = true;
    for line in lines {
        // A line that begins with a blank continues the field before it.
        if !line.starts_with([' ', '\t']) {
            let name = line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
            is_kept = !NOT_KEPT.contains(&name.as_str()) && !name.starts_with("warc-refers-to");
        }
        if is_kept {
            text.push_str(line);
            text.push_str("\r\n");
        }
    }
    text.push_str(&format!("WARC-Refers-To-Target-URI: {}\r\n", original.url));
    if let Some(fetched) = original.fetched.and_then(|fetched| Timestamp::from_microsecond(fetched).ok()) {
        text.push_str(&format!("WARC-Refers-To-Date: {fetched}\r\n"));
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n", http_head.len()));
    Some([text.as_bytes(), http_head, b"\r\n\r\n"].concat())
}
