//! Charset detection and decoding: the body of a page as UTF-8, by the WHATWG Encoding standard.

use super::prescan::prescan;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{CoderResult, Encoding, ISO_2022_JP, UTF_8};
use memchr::{memchr, memrchr};
use std::borrow::Cow;

/// The number of bytes that the detector reads, from the first that is not ASCII. It reads Cyrillic
/// at 17 MB per second, and a few hundred bytes of text are enough for it.
const DETECTED_BYTES: usize = 64 << 10;

/// Decodes a body to UTF-8, and returns the charset it was in. The first of these sources decides:
///
/// 1. a byte order mark (UTF-8, UTF-16), which is then dropped;
/// 2. the label of the HTTP header, `charset=` of its `Content-Type`;
/// 3. the declaration in the first 2048 bytes of the page (`<meta>`, XML declaration), of HTML;
/// 4. detection: UTF-8 if the whole body is UTF-8 (a character cut off at its end does not count),
///    else the detector's guess.
///
/// Labels are read by the WHATWG Encoding standard (`iso-8859-1` means windows-1252). After an
/// unknown label, or that of a charset which the standard refuses (UTF-7, ISO-2022-KR), the next
/// source decides. Bytes that do not decode become U+FFFD. A body that is UTF-8 already is not
/// copied.
///
/// ```
/// # use nigh_text::text::decode;
/// let (text, charset) = decode(b"caf\xe9", Some("ISO-8859-1"));
/// assert_eq!((&*text, charset.name()), ("café", "windows-1252"));
/// ```
pub fn decode<'a>(body: &'a [u8], header_label: Option<&str>) -> (Cow<'a, str>, &'static Encoding) {
    decode_from(charset(body, header_label, prescan))
}

/// Decodes plain text to UTF-8, as [`decode`]: the markup that it may show declares nothing.
///
/// ```
/// # use nigh_text::text::charset::{decode, decode_plain};
/// let text = "write <meta charset=iso-8859-1> or é".as_bytes();
/// assert_eq!(decode_plain(text, None).0, "write <meta charset=iso-8859-1> or é");
/// assert_eq!(decode(text, None).0, "write <meta charset=iso-8859-1> or Ã©");
/// ```
pub fn decode_plain<'a>(body: &'a [u8], header_label: Option<&str>) -> (Cow<'a, str>, &'static Encoding) {
    decode_from(charset(body, header_label, |_| None))
}

fn decode_from<'a>((encoding, body): (&'static Encoding, &'a [u8])) -> (Cow<'a, str>, &'static Encoding) {
    let (text, _) = encoding.decode_without_bom_handling(body);
    (text, encoding)
}

/// Decodes a body to bytes that are UTF-8 or nearly: as [`decode`], but a body whose charset is
/// UTF-8 is returned as it is, with bytes that do not decode left in it. A body in another charset
/// that is all ASCII is not copied either. Other bodies are decoded into `buffer`, which the caller
/// reuses from body to body.
///
/// ```
/// # use nigh_text::text::charset::decode_bytes;
/// let mut buffer = String::new();
/// assert_eq!(decode_bytes(b"caf\xe9", Some("windows-1252"), &mut buffer), "café".as_bytes());
/// assert_eq!(decode_bytes(b"caf\xe9", Some("utf-8"), &mut buffer), b"caf\xe9");
/// ```
pub fn decode_bytes<'a>(body: &'a [u8], header_label: Option<&str>, buffer: &'a mut String) -> &'a [u8] {
    bytes_from(charset(body, header_label, prescan), buffer)
}

/// Decodes plain text to bytes, as [`decode_bytes`]: the markup that it may show declares nothing.
pub fn decode_plain_bytes<'a>(body: &'a [u8], header_label: Option<&str>, buffer: &'a mut String) -> &'a [u8] {
    bytes_from(charset(body, header_label, |_| None), buffer)
}

fn bytes_from<'a>((encoding, body): (&'static Encoding, &'a [u8]), buffer: &'a mut String) -> &'a [u8] {
    if encoding == UTF_8 || encoding.is_ascii_compatible() && body.is_ascii() {
        return body;
    }
    buffer.clear();
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let bytes = decoder.max_utf8_buffer_length(body.len()).expect("three times the length of a body does not overflow");
    buffer.reserve(bytes);
    let (result, read, _) = decoder.decode_to_string(body, buffer, true);
    debug_assert_eq!((result, read), (CoderResult::InputEmpty, body.len()));
    buffer.as_bytes()
}

/// What the markup of a body declares.
type Declared = fn(&[u8]) -> Option<&'static Encoding>;

/// The charset of a body, and the body without its byte order mark.
fn charset<'a>(body: &'a [u8], header_label: Option<&str>, declared: Declared) -> (&'static Encoding, &'a [u8]) {
    if let Some((encoding, mark)) = Encoding::for_bom(body) {
        return (encoding, &body[mark..]);
    }
    let labelled = header_label
        .map(|label| label.trim_matches(['"', '\'', ' ', '\t']))
        .and_then(|label| Encoding::for_label_no_replacement(label.as_bytes()));
    (labelled.or_else(|| declared(body)).unwrap_or_else(|| detect(body)), body)
}

/// The charset of a body without mark or label.
fn detect(body: &[u8]) -> &'static Encoding {
    let is_utf8 = match simdutf8::compat::from_utf8(body) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(), // only cut off at its end
    };
    // ISO-2022-JP is seven-bit text with escapes, hence always valid UTF-8.
    let escape = memchr(0x1b, body);
    if is_utf8 && escape.is_none() {
        return UTF_8;
    }
    let start = body.iter().position(|&byte| byte >= 0x80 || byte == 0x1b).unwrap_or(0);
    let sample = &body[start..];
    let sample = &sample[..sample.len().min(DETECTED_BYTES)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    let is_all = sample.len() == body.len() - start;
    match escape {
        Some(_) => detector.feed(sample, is_all),
        None => detector.feed(&without_ascii(sample), is_all),
    };
    match detector.guess(None, Utf8Detection::Deny) {
        guess if is_utf8 && guess != ISO_2022_JP => UTF_8,
        guess => guess,
    }
}

/// Copies a sample without the bytes between the first and the last space of each run of ASCII. The
/// detector weighs pairs of bytes of which at least one is not ASCII, and a space ends all words
/// and states that it keeps. So its guess for the copy is that for the sample, but earlier, as most
/// bytes of a page are ASCII. Decoding the corpus, where one page in 92 needs detection, took 0.64
/// ns per byte of page without this, and takes 0.28 ns.
fn without_ascii(sample: &[u8]) -> Vec<u8> {
    let mut copy = Vec::with_capacity(sample.len());
    for run in sample.chunk_by(|a, b| a.is_ascii() == b.is_ascii()) {
        match (memchr(b' ', run), memrchr(b' ', run)) {
            (Some(first), Some(last)) if first < last => {
                copy.extend_from_slice(&run[..=first]);
                copy.extend_from_slice(&run[last..]);
            }
            _ => copy.extend_from_slice(run),
        }
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{EUC_KR, KOI8_R, KOI8_U, SHIFT_JIS, UTF_16LE, WINDOWS_1251, WINDOWS_1252};
    use proptest::prelude::*;

    const RUSSIAN: &str = "Широкая электрификация южных губерний даст мощный толчок подъёму сельского хозяйства";

    #[test]
    fn a_mark_counts_before_the_header_and_the_header_before_the_meta() {
        assert_eq!(decode(b"\xef\xbb\xbf\xc3\xa9", Some("koi8-r")), ("é".into(), UTF_8));
        assert_eq!(decode(b"\xff\xfea\0\xe9\0", Some("utf-8")), ("aé".into(), UTF_16LE));
        let page = b"<meta charset=koi8-r>\xc1";
        assert_eq!(decode(page, Some("windows-1251")).1, WINDOWS_1251);
        assert_eq!(decode(page, None), ("<meta charset=koi8-r>а".into(), KOI8_R));
    }

    #[test]
    fn a_header_that_names_no_charset_is_ignored() {
        let page = b"<meta charset=koi8-r>\xc1";
        for label in ["", "none", "utf-7", "iso-2022-kr", "replacement", "\u{fffd}"] {
            assert_eq!(decode(page, Some(label)).1, KOI8_R, "{label}");
        }
        assert_eq!(decode(page, Some("\"EUC-KR\" ")).1, EUC_KR);
    }

    #[test]
    fn text_without_a_label_is_utf8_if_it_can_be() {
        assert_eq!(decode(RUSSIAN.as_bytes(), None), (RUSSIAN.into(), UTF_8));
        assert_eq!(decode(b"plain", None).1, UTF_8);
        assert_eq!(decode(b"", None), ("".into(), UTF_8));
        let cut = &RUSSIAN.as_bytes()[..RUSSIAN.len() - 1];
        assert_eq!(decode(cut, None).1, UTF_8);
    }

    #[test]
    fn the_charset_of_other_text_is_detected() {
        for (encoding, text) in [
            (WINDOWS_1251, RUSSIAN),
            (KOI8_U, RUSSIAN), // the detector's name for both, as they differ in line drawings only
            (SHIFT_JIS, "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"),
            (ISO_2022_JP, "吾輩は猫である。名前はまだ無い。"),
            (EUC_KR, "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다."),
            (WINDOWS_1252, "Où est la bibliothèque, déjà fermée cet été à Besançon ?"),
        ] {
            let (bytes, _, _) = encoding.encode(text);
            assert_eq!(decode(&bytes, None), (text.into(), encoding));
        }
    }

    #[test]
    fn an_escape_alone_is_not_japanese() {
        assert_eq!(decode("\u{1b}[1mété\u{1b}[0m".as_bytes(), None).1, UTF_8);
    }

    #[test]
    fn a_wrong_label_gives_replacement_characters() {
        assert_eq!(decode(b"a\xe9b\xff", Some("utf-8")).0, "a\u{fffd}b\u{fffd}");
        assert_eq!(decode(b"caf\xc3\xa9", Some("iso-8859-1")).0, "cafÃ©");
        assert_eq!(decode(b"abc", Some("utf-16")).0.chars().last(), Some('\u{fffd}'));
    }

    #[test]
    fn a_body_that_is_utf8_is_not_copied() {
        assert!(matches!(decode("été".as_bytes(), Some("utf-8")).0, Cow::Borrowed(_)));
    }

    #[test]
    fn bytes_are_copied_only_where_they_change() {
        let mut buffer = String::new();
        for (body, label, expected) in [
            (&b"\xef\xbb\xbfa\xff"[..], None, &b"a\xff"[..]),
            (b"a\xe9", Some("utf-8"), b"a\xe9"),
            (b"ab", Some("koi8-r"), b"ab"),
            (b"a\xc1", Some("koi8-r"), "aа".as_bytes()),
            (b"a\0b\0", Some("utf-16le"), b"ab"),
            (b"\x1b$B8c\x1b(B", Some("iso-2022-jp"), "吾".as_bytes()),
            (b"caf\xe9 d\xe9j\xe0 vu", None, "café déjà vu".as_bytes()),
        ] {
            assert_eq!(decode_bytes(body, label, &mut buffer), expected);
            let lossy = String::from_utf8_lossy(expected);
            assert_eq!(decode(body, label).0, lossy);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// This holds as long as the detector (crate `chardetng`) gives pairs of ASCII bytes no
        /// weight.
        #[test]
        fn ascii_left_out_of_a_sample_does_not_change_its_charset(
            pieces in prop::collection::vec(
                prop_oneof![
                    3 => "[ -~\\n]{0,12}",
                    2 => "[a-zA-Z0-9.,;<>/=\" ]{0,30}",
                    3 => "[а-яА-Яéèàüßßñ°º©±ıİşא-ת]{1,8}",
                    1 => "[ぁ-んァ-ン一-鿿가-힣]{1,6}",
                ],
                1..30,
            ),
            charset in prop::sample::select(&["windows-1252", "windows-1251", "koi8-u", "shift_jis", "euc-jp", "euc-kr",
                "gbk", "big5", "windows-1254", "windows-1255", "windows-1250", "iso-8859-7"][..]),
            cut in any::<bool>(),
        ) {
            let encoding = Encoding::for_label(charset.as_bytes()).unwrap();
            let text = pieces.concat();
            let (bytes, _, _) = encoding.encode(&text); // a character that the charset lacks becomes a reference
            let guess = |sample: &[u8]| {
                let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
                detector.feed(sample, !cut);
                detector.guess(None, Utf8Detection::Deny)
            };
            prop_assert_eq!(guess(&without_ascii(&bytes)), guess(&bytes));
        }
    }
}
