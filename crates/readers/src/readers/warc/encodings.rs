//! Decodes the transfer and content encodings of HTTP bodies, only where the bytes really are
//! encoded.
//!
//! Crawlers store different things: Common Crawl decodes the body and leaves the header as it was;
//! wget and Heritrix store the bytes that came over the wire. So a header is only a claim. A body
//! that plainly is text is taken as it is. Compressed bytes that do not decode are an error, never
//! text. Decoding stops at a limit, so a decompression bomb costs no more than the limit.

use std::io::Read;

use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};
use memchr::memchr;

use crate::readers::sniff;

/// A decoded body.
#[derive(Debug, PartialEq)]
pub struct Decoded {
    /// The bytes, at most the limit.
    pub bytes: Vec<u8>,
    /// Whether the body is longer, or its end is missing.
    pub cut: bool,
}

/// Decodes `Transfer-Encoding: chunked`; returns `None` if the bytes do not begin with a chunk.
/// Line ends before the first chunk are passed over.
///
/// A body that ends, or is malformed, in a later chunk returns the bytes before, marked as cut.
pub fn dechunk(body: &[u8], limit: usize) -> Option<Decoded> {
    let mut rest = without_line_ends(body);
    let mut bytes = Vec::new();
    let mut first = true;
    loop {
        let Some((size, after)) = chunk_size(rest) else {
            return (!first).then_some(Decoded { bytes, cut: true });
        };
        if size == 0 {
            return Some(Decoded { bytes, cut: false });
        }
        let present = size.min(after.len());
        // In a chunked body the first chunk ends with a line end, unless the body is cut.
        if first && present == size && !after[present..].is_empty() && !matches!(after[present], b'\r' | b'\n') {
            return None;
        }
        first = false;
        let room = limit - bytes.len();
        bytes.extend_from_slice(&after[..present.min(room)]);
        if present > room || present < size {
            return Some(Decoded { bytes, cut: true });
        }
        rest = &after[present..];
        rest = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n")).unwrap_or(rest);
        if rest.is_empty() {
            return Some(Decoded { bytes, cut: true });
        }
    }
}

/// Parses the line before a chunk; returns the size of the chunk and the bytes after the line.
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

/// Decodes the content encodings that `header` names, the last one first, to at most `limit` bytes.
///
/// `stored_cut` means that the stored body is known to be incomplete: then the part that decodes is
/// enough.
///
/// # Errors
/// The reason of a reject, if an encoding is unknown or the bytes are neither in that encoding nor
/// text.
pub fn decode(body: Vec<u8>, header: &str, limit: usize, stored_cut: bool) -> Result<Decoded, &'static str> {
    let mut decoded = Decoded { bytes: body, cut: stored_cut };
    for name in header.rsplit(',') {
        // Some have parameters, as those of a request have.
        let name = name.split(';').next().unwrap_or_default().trim().trim_matches('"').to_ascii_lowercase();
        let decoder: fn(&[u8], usize) -> DecodedPart = match name.as_str() {
            // The second line has names that servers write for a charset, or for no encoding.
            "" | "identity" => continue,
            "none" | "binary" | "8bit" | "7bit" | "utf-8" | "utf8" | "iso-8859-1" | "windows-1251" => continue,
            "gzip" | "x-gzip" => gunzip,
            "deflate" | "x-deflate" => inflate,
            "br" => unbrotli,
            "zstd" => unzstd,
            // Servers write names of charsets and of much else.
            _ if sniff::is_html(&decoded.bytes) => continue,
            _ => return Err("http: unknown content encoding"),
        };
        // Some crawlers wrote a line end too many after the head.
        let packed = without_line_ends(&decoded.bytes);
        let is_after_line_ends = packed.len() < decoded.bytes.len()
            && SIGNATURES.iter().any(|(of, signature)| name.ends_with(of) && packed.starts_with(signature));
        if is_after_line_ends {
            decoded.bytes = packed.to_vec();
        }
        // Gzip has a signature. The other three have none that text cannot have.
        if decoded.bytes.is_empty() || sniff::is_html(&decoded.bytes) {
            continue;
        }
        let is_gzip = matches!(name.as_str(), "gzip" | "x-gzip");
        if is_gzip && !decoded.bytes.starts_with(&[0x1f, 0x8b]) && sniff::has_few_controls(&decoded.bytes) {
            continue;
        }
        let part = decoder(&decoded.bytes, limit);
        if part.whole || decoded.cut && !part.bytes.is_empty() {
            let cut = decoded.cut || part.bytes.len() > limit;
            decoded = Decoded { bytes: part.bytes, cut };
            decoded.bytes.truncate(limit);
        } else if !sniff::is_text(&decoded.bytes) {
            return Err("http: body does not decode");
        }
    }
    Ok(decoded)
}

/// What bytes begin with that are encoded, by the end of the encoding's name.
const SIGNATURES: [(&str, &[u8]); 2] = [("gzip", &[0x1f, 0x8b]), ("zstd", &[0x28, 0xb5, 0x2f, 0xfd])];

/// The bytes after line ends.
fn without_line_ends(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
    &bytes[start..]
}

/// The bytes that decode, up to one byte over the limit.
struct DecodedPart {
    bytes: Vec<u8>,
    /// Whether decoding reached the end, or the limit, without an error.
    whole: bool,
}

/// Reads a decoder up to one byte over the limit.
fn read_part(reader: impl Read, limit: usize) -> DecodedPart {
    let mut bytes = Vec::new();
    let whole = reader.take(limit as u64 + 1).read_to_end(&mut bytes).is_ok();
    DecodedPart { bytes, whole }
}

fn gunzip(body: &[u8], limit: usize) -> DecodedPart {
    let mut rest = body;
    let mut joined = DecodedPart { bytes: Vec::new(), whole: false };
    // A body can be several members. Other bytes after the first member are ignored.
    while rest.starts_with(&[0x1f, 0x8b]) && joined.bytes.len() <= limit {
        let mut decoder = GzDecoder::new(rest);
        let member = read_part(&mut decoder, limit - joined.bytes.len());
        rest = decoder.into_inner();
        joined.whole = member.whole;
        joined.bytes.extend_from_slice(&member.bytes);
        if !member.whole {
            break;
        }
    }
    joined
}

fn inflate(body: &[u8], limit: usize) -> DecodedPart {
    // Some servers send a zlib stream, as the standard says; some send raw deflate, which gave it
    // its name.
    let zlib = read_part(ZlibDecoder::new(body), limit);
    if zlib.whole || !zlib.bytes.is_empty() {
        return zlib;
    }
    read_part(DeflateDecoder::new(body), limit)
}

fn unbrotli(body: &[u8], limit: usize) -> DecodedPart {
    read_part(brotli_decompressor::Decompressor::new(body, 4096), limit)
}

fn unzstd(body: &[u8], limit: usize) -> DecodedPart {
    match zstd::stream::read::Decoder::with_buffer(body) {
        Ok(decoder) => read_part(decoder, limit),
        Err(_) => DecodedPart { bytes: Vec::new(), whole: false },
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
    fn chunks_are_joined_and_bodies_without_chunks_are_left() {
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
    fn every_encoding_is_decoded_and_text_with_a_false_claim_is_left() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(TEXT).unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(TEXT).unwrap();
        let brotli = b"\x0b\x02\x80hello\x03".to_vec();
        assert_eq!(decode(gzipped(TEXT), "GZip", LIMIT, false), whole(TEXT));
        assert_eq!(decode(gzipped(TEXT), "gzip;q=1.0, identity;q=0.5", LIMIT, false), whole(TEXT));
        assert_eq!(decode(zlib.finish().unwrap(), "deflate", LIMIT, false), whole(TEXT));
        assert_eq!(decode(raw.finish().unwrap(), "deflate", LIMIT, false), whole(TEXT));
        assert_eq!(decode(zstd::bulk::compress(TEXT, 3).unwrap(), "zstd", LIMIT, false), whole(TEXT));
        assert_eq!(decode(brotli, "br", LIMIT, false), whole(b"hello"));
        assert_eq!(decode(gzipped(&gzipped(TEXT)), "gzip, gzip", LIMIT, false), whole(TEXT));
        for claim in ["gzip", "deflate", "br", "zstd", "identity", "UTF-8", "aws-chunked", "ISO-8859-15, x"] {
            assert_eq!(decode(TEXT.to_vec(), claim, LIMIT, false), whole(TEXT), "{claim}");
        }
        for claim in ["gzip", "deflate", "br", "zstd", "identity", "UTF-8"] {
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
        let part = decode(cut, "gzip", LIMIT, true).unwrap();
        assert!(part.cut && TEXT.starts_with(&part.bytes) && !part.bytes.is_empty());
    }

    #[test]
    fn a_bomb_costs_no_more_than_the_limit() {
        let bomb = gzipped(&vec![0; 10_000_000]);
        let decoded = decode(bomb, "gzip", LIMIT, false).unwrap();
        assert_eq!((decoded.bytes.len(), decoded.cut), (LIMIT, true));
    }
}
