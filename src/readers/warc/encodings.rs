//! Transfer and content encodings of HTTP bodies, undone only where the bytes really are so encoded.
//!
//! Crawlers differ in what they store: Common Crawl decodes the body and leaves the header, wget and Heritrix store what came
//! over the wire. So a header is a claim. A body that plainly is text is taken as it is; compressed bytes that do not decode
//! are an error, never text. Decoding stops at a limit, so a bomb costs the limit and no more.

use std::io::Read;

use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};
use memchr::memchr;

use crate::readers::sniff;

/// A decoded body.
#[derive(Debug, PartialEq)]
pub struct Decoded {
    /// The bytes, at most the limit.
    pub bytes: Vec<u8>,
    /// Whether there would have been more.
    pub cut: bool,
}

/// Undoes `Transfer-Encoding: chunked`; none when the bytes do not begin as a chunk does.
///
/// A body that ends or goes wrong inside a later chunk gives what is there, marked as cut.
pub fn dechunk(body: &[u8], limit: usize) -> Option<Decoded> {
    let mut rest = body;
    let mut bytes = Vec::new();
    let mut first = true;
    loop {
        let Some((size, after)) = chunk_size(rest) else {
            return (!first).then_some(Decoded { bytes, cut: true });
        };
        if size == 0 {
            return Some(Decoded { bytes, cut: false });
        }
        let here = size.min(after.len());
        // After its first chunk a true body has a line end, unless it is cut.
        if first && here == size && !after[here..].is_empty() && !matches!(after[here], b'\r' | b'\n') {
            return None;
        }
        first = false;
        let room = limit - bytes.len();
        bytes.extend_from_slice(&after[..here.min(room)]);
        if here > room || here < size {
            return Some(Decoded { bytes, cut: true });
        }
        rest = &after[here..];
        rest = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n")).unwrap_or(rest);
        if rest.is_empty() {
            return Some(Decoded { bytes, cut: true });
        }
    }
}

fn chunk_size(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let newline = memchr(b'\n', &bytes[..bytes.len().min(1024)])?;
    let line = bytes[..newline].trim_ascii();
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if digits == 0 || digits > 15 || !matches!(line.get(digits), None | Some(b';' | b' ' | b'\t')) {
        return None;
    }
    let digits = std::str::from_utf8(&line[..digits]).ok()?;
    Some((usize::from_str_radix(digits, 16).ok()?, &bytes[newline + 1..]))
}

/// Undoes the content encodings that `header` names, last one first.
///
/// `stored_cut` says that the stored body is known to be cut short: then the part that decodes is enough.
///
/// # Errors
/// A short phrase, when an encoding is unknown or the bytes are neither so encoded nor text.
pub fn decode(body: Vec<u8>, header: &str, limit: usize, stored_cut: bool) -> Result<Decoded, &'static str> {
    let mut decoded = Decoded { bytes: body, cut: stored_cut };
    for name in header.rsplit(',') {
        let name = name.trim().trim_matches('"').to_ascii_lowercase();
        let undo: fn(&[u8], usize) -> Partly = match name.as_str() {
            // The second line is what servers write who mean the charset, or nothing.
            "" | "identity" => continue,
            "none" | "binary" | "8bit" | "7bit" | "utf-8" | "utf8" | "iso-8859-1" | "windows-1251" => continue,
            "gzip" | "x-gzip" => gunzip,
            "deflate" | "x-deflate" => inflate,
            "br" => unbrotli,
            "zstd" => unzstd,
            _ => return Err("http: unknown content encoding"),
        };
        // Gzip has a signature; the other three have none that text could not have.
        if decoded.bytes.is_empty() || sniff::is_html(&decoded.bytes) {
            continue;
        }
        let gzipped = matches!(name.as_str(), "gzip" | "x-gzip");
        if gzipped && !decoded.bytes.starts_with(&[0x1f, 0x8b]) && sniff::has_few_controls(&decoded.bytes) {
            continue;
        }
        let partly = undo(&decoded.bytes, limit);
        if partly.whole || decoded.cut && !partly.bytes.is_empty() {
            let cut = decoded.cut || partly.bytes.len() > limit;
            decoded = Decoded { bytes: partly.bytes, cut };
            decoded.bytes.truncate(limit);
        } else if !sniff::is_text(&decoded.bytes) {
            return Err("http: body does not decode");
        }
    }
    Ok(decoded)
}

/// What decoding gave, up to one byte over the limit.
struct Partly {
    bytes: Vec<u8>,
    /// Whether it went to the end, or to the limit, without an error.
    whole: bool,
}

fn partly(reader: impl Read, limit: usize) -> Partly {
    let mut bytes = Vec::new();
    let whole = reader.take(limit as u64 + 1).read_to_end(&mut bytes).is_ok();
    Partly { bytes, whole }
}

fn gunzip(body: &[u8], limit: usize) -> Partly {
    let mut rest = body;
    let mut all = Partly { bytes: Vec::new(), whole: false };
    // A body may be several members; anything else after the first is passed over.
    while rest.starts_with(&[0x1f, 0x8b]) && all.bytes.len() <= limit {
        let mut decoder = GzDecoder::new(rest);
        let one = partly(&mut decoder, limit - all.bytes.len());
        rest = decoder.into_inner();
        all.whole = one.whole;
        all.bytes.extend_from_slice(&one.bytes);
        if !one.whole {
            break;
        }
    }
    all
}

fn inflate(body: &[u8], limit: usize) -> Partly {
    // Servers send both what the standard says (zlib) and what it is named after.
    let zlib = partly(ZlibDecoder::new(body), limit);
    if zlib.whole || !zlib.bytes.is_empty() {
        return zlib;
    }
    partly(DeflateDecoder::new(body), limit)
}

fn unbrotli(body: &[u8], limit: usize) -> Partly {
    partly(brotli_decompressor::Decompressor::new(body, 4096), limit)
}

fn unzstd(body: &[u8], limit: usize) -> Partly {
    match zstd::stream::read::Decoder::with_buffer(body) {
        Ok(decoder) => partly(decoder, limit),
        Err(_) => Partly { bytes: Vec::new(), whole: false },
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const TEXT: &[u8] = b"<p>words and more words, words and more words</p>";

    const LIMIT: usize = 1000;

    fn gzipped(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn whole(bytes: &[u8]) -> Result<Decoded, &'static str> {
        Ok(Decoded { bytes: bytes.to_vec(), cut: false })
    }

    #[test]
    fn chunks_are_joined_and_what_is_not_chunked_stays() {
        let joined = |body: &[u8]| dechunk(body, LIMIT).map(|decoded| (decoded.bytes, decoded.cut));
        assert_eq!(joined(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"), Some((b"abcde".to_vec(), false)));
        assert_eq!(joined(b"3\nabc\n0\n\n"), Some((b"abc".to_vec(), false)));
        assert_eq!(joined(b"3\r\nabc\r\n9\r\nde"), Some((b"abcde".to_vec(), true)));
        assert_eq!(joined(b"ffffffffffffff\r\nabc"), Some((b"abc".to_vec(), true)));
        assert_eq!(joined(b"<p>words</p>\r\n"), None);
        assert_eq!(joined(b"2\r\nlines of a text"), None);
        assert_eq!(joined(b""), None);
        assert_eq!(dechunk(b"5\r\nabcde\r\n0\r\n\r\n", 3).unwrap(), Decoded { bytes: b"abc".to_vec(), cut: true });
    }

    #[test]
    fn every_encoding_is_undone_and_a_mere_claim_is_not() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(TEXT).unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(TEXT).unwrap();
        let brotli = b"\x0b\x02\x80hello\x03".to_vec();
        assert_eq!(decode(gzipped(TEXT), "GZip", LIMIT, false), whole(TEXT));
        assert_eq!(decode(zlib.finish().unwrap(), "deflate", LIMIT, false), whole(TEXT));
        assert_eq!(decode(raw.finish().unwrap(), "deflate", LIMIT, false), whole(TEXT));
        assert_eq!(decode(zstd::bulk::compress(TEXT, 3).unwrap(), "zstd", LIMIT, false), whole(TEXT));
        assert_eq!(decode(brotli, "br", LIMIT, false), whole(b"hello"));
        assert_eq!(decode(gzipped(&gzipped(TEXT)), "gzip, gzip", LIMIT, false), whole(TEXT));
        for claim in ["gzip", "deflate", "br", "zstd", "identity", "UTF-8"] {
            assert_eq!(decode(TEXT.to_vec(), claim, LIMIT, false), whole(TEXT), "{claim}");
            assert_eq!(decode(b"only words".to_vec(), claim, LIMIT, false), whole(b"only words"), "{claim}");
        }
    }

    #[test]
    fn compressed_bytes_never_become_text() {
        let mut cut = gzipped(TEXT);
        cut.truncate(30);
        assert!(decode(cut.clone(), "gzip", LIMIT, false).is_err());
        assert!(decode(cut.clone(), "br", LIMIT, false).is_err());
        assert!(decode(cut.clone(), "x-secret", LIMIT, false).is_err());
        let some = decode(cut, "gzip", LIMIT, true).unwrap();
        assert!(some.cut && TEXT.starts_with(&some.bytes) && !some.bytes.is_empty());
    }

    #[test]
    fn a_bomb_costs_no_more_than_the_limit() {
        let bomb = gzipped(&vec![0; 10_000_000]);
        let decoded = decode(bomb, "gzip", LIMIT, false).unwrap();
        assert_eq!((decoded.bytes.len(), decoded.cut), (LIMIT, true));
    }
}
