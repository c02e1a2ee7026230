//! Payload digests, compared by what they are and not by how they are written.
//!
//! `sha1:3I42H3S6…`, `SHA1:3i42h3s6…`, `sha-1:da39a3ee…` and `3I42H3S6…` are one digest: base32 or
//! hex, in either case, with the name of the algorithm or without it. Digests of different
//! algorithms say nothing of each other.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Digests of no bytes: MD5, SHA-1, SHA-224, SHA-256, BLAKE3, SHA-384, SHA-512.
const OF_NOTHING: [&str; 7] = [
    "d41d8cd98f00b204e9800998ecf8427e",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "d14a028c2a3a2bc9476102bb288234c415a2b01f828ea62ac5b3e42f",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    "38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b",
    "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
];

/// A digest of a page's bytes, as a crawler wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PayloadDigest {
    /// A hash of the name of the algorithm.
    algorithm: u64,
    /// A hash of the bytes.
    value: u64,
}

impl PayloadDigest {
    /// Reads a digest; `None` if it is empty, or that of no bytes, which tells nothing of a page.
    ///
    /// ```
    /// use nigh_week::operators::ingest::PayloadDigest;
    /// let digest = PayloadDigest::read("sha1:TPMBAGFRFSGDZI345AX5JC5PYDUOQLS5").unwrap();
    /// for text in ["tpmbagfrfsgdzi345ax5jc5pyduoqls5", "SHA-1: 9bd81018b12c8c3ca37ce82fd48bafc0e8e82e5d"] {
    ///     assert_eq!(PayloadDigest::read(text), Some(digest));
    /// }
    /// assert_eq!(PayloadDigest::read("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"), None);
    /// ```
    pub fn read(text: &str) -> Option<PayloadDigest> {
        let text = text.trim().to_ascii_lowercase();
        let (name, value) = text.split_once(':').map_or(("", text.as_str()), |(name, value)| (name, value.trim()));
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        if value.is_empty() {
            return None;
        }
        let bytes = bytes_of(&name, value);
        if OF_NOTHING.iter().any(|nothing| hex(nothing).as_deref() == Some(&bytes[..])) {
            return None;
        }
        let name = if name.is_empty() { algorithm_of(bytes.len()) } else { &name };
        Some(PayloadDigest { algorithm: xxh3_64(name.as_bytes()), value: xxh3_64(&bytes) })
    }

    /// Whether another digest, of the same algorithm, is of other bytes.
    pub fn differs_from(&self, other: &PayloadDigest) -> bool {
        self.algorithm == other.algorithm && self.value != other.value
    }
}

/// The length in bytes of the digests of an algorithm, if it is one of the usual.
fn length_of(algorithm: &str) -> Option<usize> {
    Some(match algorithm {
        "md5" => 16,
        "sha1" => 20,
        "sha224" => 28,
        "sha256" | "blake3" => 32,
        "sha384" => 48,
        "sha512" => 64,
        _ => return None,
    })
}

/// The algorithm of a digest without a name, by its length in bytes.
fn algorithm_of(bytes: usize) -> &'static str {
    match bytes {
        16 => "md5",
        20 => "sha1",
        28 => "sha224",
        32 => "sha256",
        48 => "sha384",
        64 => "sha512",
        _ => "",
    }
}

/// The bytes of a digest in hex or base32, in lower case; those of the text if it is neither.
fn bytes_of(algorithm: &str, value: &str) -> Vec<u8> {
    let fits = |bytes: &Vec<u8>| match length_of(algorithm) {
        Some(length) => bytes.len() == length,
        None => !algorithm.is_empty() || !algorithm_of(bytes.len()).is_empty(),
    };
    let decoded = hex(value).filter(fits).or_else(|| base32(value.trim_end_matches('=')).filter(fits));
    decoded.unwrap_or_else(|| value.as_bytes().to_vec())
}

/// The bytes that hex digits say.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8));
    let digits = digits.collect::<Option<Vec<u8>>>()?;
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    Some(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// The bytes that base32 digits (RFC 4648) say, in lower case and without padding.
fn base32(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for digit in text.bytes() {
        let digit = match digit {
            b'a'..=b'z' => digit - b'a',
            b'2'..=b'7' => digit - b'2' + 26,
            _ => return None,
        };
        (bits, count) = (bits << 5 | u32::from(digit), count + 5);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    // What is left over is filled with zeros.
    (count < 5 && bits == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<PayloadDigest> {
        PayloadDigest::read(text)
    }

    #[test]
    fn the_spelling_of_a_digest_does_not_matter() {
        // Of the bytes "abc".
        let all = [
            &[
                "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5",
                "SHA1:a9993e364706816aba3e25717850c26c9cd0d89d",
                "vgmt4nsha2awvor6evyxqugcnsonbwe5",
            ][..],
            &[
                "md5:900150983cd24fb0d6963f7d28e17f72",
                "MD5:SAAVBGB42JH3BVUWH56SRYL7OI======",
                "900150983CD24FB0D6963F7D28E17F72",
            ],
            &[
                "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                "SHA-256:XJ4BNP4PAHH6UQKBIDPF3LRCEOYAGYNDSYLXVHFUCD7WD4QACWWQ",
                "sha-256: BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ],
            &["crc:0A1B", "CRC:0a1b"],
            &["sha1:NEVERSEEN", "SHA1:neverseen"],
        ];
        let read_all = all.map(|texts| texts.iter().map(|text| read(text).unwrap()).collect::<Vec<_>>());
        for (number, digests) in read_all.iter().enumerate() {
            assert!(digests.iter().all(|digest| *digest == digests[0]), "{:?}", all[number]);
            assert!(read_all[..number].iter().all(|others| others[0] != digests[0]));
        }
        let [sha1, md5, ..] = &read_all;
        assert!(!sha1[0].differs_from(&md5[0]), "they are of different algorithms");
        assert!(!sha1[0].differs_from(&sha1[1]) && sha1[0].differs_from(&read("sha1:neverseen").unwrap()));
    }

    #[test]
    fn the_digest_of_nothing_names_no_page() {
        let spellings = [
            "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
            "SHA-1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "MD5:D41D8CD98F00B204E9800998ECF8427E",
            "md5:2QOYZWMPACZAJ2MABGMOZ6CCPY",
            "sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
            "sha-256:4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ====",
            "",
            "sha1:",
        ];
        for text in spellings {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
