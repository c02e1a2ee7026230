//! Digests as archives write them: `sha1:` and 32 characters of base32, or 40 hexadecimal digits,
//! in upper or lower case.

/// The characters of base32 (RFC 4648, section 6).
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A digest: its algorithm, lower case, and its bytes. Of an algorithm that is not known, the bytes
/// are those of the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WarcDigest {
    pub(super) algorithm: String,
    value: Vec<u8>,
}

impl WarcDigest {
    /// Reads the value of a field `WARC-Payload-Digest`. `None` if it is no digest of its
    /// algorithm.
    pub(super) fn parse(text: &str) -> Option<WarcDigest> {
        let (algorithm, value) = text.split_once(':').unwrap_or(("sha1", text));
        let (algorithm, value) = (algorithm.trim().to_ascii_lowercase().replace('-', ""), value.trim());
        let bytes = match algorithm.as_str() {
            "md5" => 16,
            "sha1" => 20,
            "sha256" => 32,
            "sha384" => 48,
            "sha512" => 64,
            _ => return (!value.is_empty()).then(|| WarcDigest { algorithm, value: value.as_bytes().to_vec() }),
        };
        let value = from_hexadecimal(value).filter(|value| value.len() == bytes).or_else(|| from_base32(value))?;
        (value.len() == bytes).then_some(WarcDigest { algorithm, value })
    }
}

/// Writes bytes in base32 without padding.
pub(in crate::export) fn base32(bytes: &[u8]) -> String {
    bytes
        .chunks(5)
        .flat_map(|chunk| {
            let number = chunk.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            let number = number << (8 * (5 - chunk.len()));
            let characters = (chunk.len() * 8).div_ceil(5);
            (0..characters).map(move |place| char::from(BASE32[(number >> (35 - 5 * place) & 31) as usize]))
        })
        .collect()
}

/// Writes bytes as hexadecimal digits.
pub(in crate::export) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_base32(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut number, mut bits) = (Vec::new(), 0_u32, 0);
    for character in text.trim_end_matches('=').bytes() {
        let value = BASE32.iter().position(|known| *known == character.to_ascii_uppercase())?;
        (number, bits) = (number << 5 | value as u32, bits + 5);
        if bits >= 8 {
            bits -= 8;
            bytes.push((number >> bits) as u8);
            number &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_the_same_in_hexadecimal_and_base32_of_any_case() {
        // Of the bytes `abc`: FIPS 180-2, appendix A, and RFC 1321.
        let texts = [
            "sha1:A9993E364706816ABA3E25717850C26C9CD0D89D",
            "SHA1:a9993e364706816aba3e25717850c26c9cd0d89d",
            "sha-1:vgmt4nsha2awvor6evyxqugcnsonbwe5",
            "sha1: VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5",
            "VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5",
        ];
        let digests = texts.map(|text| WarcDigest::parse(text).unwrap());
        assert!(digests.iter().all(|digest| *digest == digests[0] && digest.algorithm == "sha1"), "{digests:?}");
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let digest = WarcDigest::parse(&format!("sha256:{sha256}")).unwrap();
        assert_eq!(hexadecimal(&digest.value), sha256);
        assert_eq!(WarcDigest::parse(&format!("SHA-256:{}====", base32(&digest.value))), Some(digest));
        assert_ne!(WarcDigest::parse("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"), Some(digests[0].clone()));
        for text in ["", "sha1:", "sha1:5", "sha1:é", "md5:900150983cd24fb0d6963f7d28e17f7", "x:"] {
            assert_eq!(WarcDigest::parse(text), None, "{text}");
        }
    }

    #[test]
    fn base32_is_that_of_the_standard() {
        // RFC 4648, section 10, without padding.
        let known = ["", "MY", "MZXQ", "MZXW6", "MZXW6YQ", "MZXW6YTB", "MZXW6YTBOI"];
        for (length, text) in known.iter().enumerate() {
            assert_eq!(base32(&b"foobar"[..length]), *text);
            assert_eq!(from_base32(text).as_deref(), Some(&b"foobar"[..length]));
        }
    }
}
