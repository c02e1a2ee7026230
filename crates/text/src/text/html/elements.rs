//! The HTML elements that the scanner treats in a special way; it treats all others alike.

/// The kinds of elements, by their treatment in the scanner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementKind {
    /// `a`, `area`: may have a link.
    Link,
    /// `base`: the URL that links are relative to.
    Base,
    /// `title`: text without tags, the title of the page.
    Title,
    /// `textarea`: text without tags.
    Textarea,
    /// `plaintext`: the rest of the page is text.
    Plaintext,
    /// `script`: dropped with its content, whose end has special rules.
    Script,
    /// `style`: dropped with its content.
    Style,
    /// `xmp`: text without tags and references, but not inside `svg` and `math`.
    Xmp,
    /// `svg`, `math`: foreign content.
    Foreign,
    /// All others.
    Other,
}

impl ElementKind {
    /// The kind of the element with this name, in upper or lower case.
    pub(super) fn new(name: &[u8]) -> ElementKind {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        // The first letter alone rules out most names.
        match name.first().map(u8::to_ascii_lowercase) {
            Some(b'a') if is("a") || is("area") => ElementKind::Link,
            Some(b'b') if is("base") => ElementKind::Base,
            Some(b'm') if is("math") => ElementKind::Foreign,
            Some(b'p') if is("plaintext") => ElementKind::Plaintext,
            Some(b's') if is("script") => ElementKind::Script,
            Some(b's') if is("style") => ElementKind::Style,
            Some(b's') if is("svg") => ElementKind::Foreign,
            Some(b't') if is("title") => ElementKind::Title,
            Some(b't') if is("textarea") => ElementKind::Textarea,
            Some(b'x') if is("xmp") => ElementKind::Xmp,
            _ => ElementKind::Other,
        }
    }
}

/// Whether a start tag whose name begins with these two bytes may be of an element other than
/// [`ElementKind::Other`]. A quick test to skip most tags: `true` may be wrong (`strong`), `false`
/// never is. `first` is a letter; after a name of one letter, `second` is the byte that ends it.
pub(super) fn may_matter(first: u8, second: u8) -> bool {
    /// A word for the last five bits of the first byte, a bit for those of the second.
    static PAIRS: [u32; 32] = {
        let starts = [
            b"a ", b"a\t", b"a\n", b"a\r", b"a\x0c", b"a/", b"a>", b"ar", b"ba", b"ma", b"pl", b"sc", b"st", b"sv",
            b"ti", b"te", b"xm",
        ];
        let mut pairs = [0; 32];
        let mut i = 0;
        while i < starts.len() {
            pairs[(starts[i][0] & 31) as usize] |= 1 << (starts[i][1] & 31);
            i += 1;
        }
        pairs
    };
    PAIRS[usize::from(first & 31)] >> (second & 31) & 1 == 1
}

/// The class of bytes that end a name.
pub(super) const END: u8 = 27;
/// The classes of bytes in a name: 1 to 26 for letters in either case, [`END`], those after it for
/// the digits of `h1` to `h6`, 0 for others.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut letter = 1;
    while letter <= 26 {
        (classes[64 + letter], classes[96 + letter]) = (letter as u8, letter as u8);
        letter += 1;
    }
    let mut digit = 1;
    while digit <= 6 {
        classes[b'0' as usize + digit] = END + digit as u8;
        digit += 1;
    }
    let ends = b" \t\n\r\x0c/>";
    let mut end = 0;
    while end < ends.len() {
        classes[ends[end] as usize] = END;
        end += 1;
    }
    classes
};

/// The class of a byte in a name: the same for a letter in upper and lower case.
pub(super) const fn class(byte: u8) -> u8 {
    CLASSES[byte as usize]
}

/// Whether a tag whose name begins with these three bytes ends a line: the start or the end of a
/// block. `first` is a letter; after a name of one or two letters, the byte that ends it follows.
/// Of longer names only three letters count, so `optgroup` and `head` end lines like `option` and
/// `header`; no inline element of HTML begins like a block.
pub(super) fn ends_line([first, second, third]: [u8; 3]) -> bool {
    /// For the first byte and the class of the second, a bit for the class of the third.
    static NAMES: [[u64; 34]; 32] = {
        let mut names = [[0; 34]; 32];
        let mut i = 0;
        while i < BLOCKS.len() {
            let name = BLOCKS[i].as_bytes();
            let row = &mut names[(name[0] & 31) as usize];
            match name.len() {
                1 => row[END as usize] = u64::MAX,
                2 => row[CLASSES[name[1] as usize] as usize] |= 1 << END,
                _ => row[CLASSES[name[1] as usize] as usize] |= 1 << CLASSES[name[2] as usize],
            }
            i += 1;
        }
        names
    };
    let [second, third] = [second, third].map(|byte| CLASSES[usize::from(byte)]);
    NAMES[usize::from(first & 31)][usize::from(second)] >> third & 1 == 1
}

/// The elements whose tags end lines.
pub(super) const BLOCKS: [&str; 32] = [
    "article",
    "blockquote",
    "body",
    "br",
    "caption",
    "dd",
    "div",
    "dl",
    "dt",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "nav",
    "ol",
    "option",
    "p",
    "pre",
    "section",
    "table",
    "td",
    "th",
    "title",
    "tr",
    "ul",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_blocks_end_lines_and_inline_ones_do_not() {
        let inline = [
            "a", "abbr", "acronym", "area", "b", "base", "bdi", "bdo", "big", "blink", "button", "canvas", "cite",
            "code", "data", "del", "dfn", "em", "embed", "font", "i", "iframe", "img", "input", "ins", "kbd", "label",
            "link", "map", "mark", "meta", "noscript", "object", "param", "q", "s", "samp", "script", "select",
            "small", "span", "strike", "strong", "style", "sub", "sup", "svg", "textarea", "time", "track", "tt", "u",
            "var", "wbr", // and those of others
            "p-button", "p*", "p\0", "li-icon", "li,", "td-x", "td)", "h1-x", "h1i", "h7", "br-x", "limit", "dlo",
            "pj", "thead", "tbody", "dx", "ulm",
        ];
        for (name, expected) in BLOCKS.map(|name| (name, true)).into_iter().chain(inline.map(|name| (name, false))) {
            for name in [name.to_owned(), name.to_uppercase()] {
                for end in [" ", "\t", "\n", "\r", "\x0c", "/", ">"] {
                    let tag = [&name, end, ">"].concat();
                    assert_eq!(ends_line(*tag.as_bytes().first_chunk().unwrap()), expected, "{tag}");
                }
            }
        }
    }

    #[test]
    fn names_are_compared_whole_and_in_any_case() {
        assert_eq!(ElementKind::new(b"ScRiPt"), ElementKind::Script);
        assert_eq!(ElementKind::new(b"AREA"), ElementKind::Link);
        for name in ["", "scripts", "scrip", "article", "b", "p", "svg:svg", "noscript", "noframes", "iframe"] {
            assert_eq!(ElementKind::new(name.as_bytes()), ElementKind::Other, "{name}");
        }
    }

    #[test]
    fn the_quick_test_skips_no_element_that_matters() {
        let names = ["a", "area", "base", "math", "plaintext", "script", "style", "svg", "title", "textarea", "xmp"];
        for name in names {
            let element = ElementKind::new(name.as_bytes());
            assert_ne!(element, ElementKind::Other, "{name}");
            for name in [name.to_owned(), name.to_uppercase()] {
                for end in [" ", "\t", "\n", "\r", "\x0c", "/", ">"] {
                    let [first, second] = *[&name, end].concat().as_bytes().first_chunk().unwrap();
                    assert!(may_matter(first, second), "{name}");
                }
            }
        }
        for tag in ["p>", "td", "br", "b>", "i>", "em", "tr"] {
            let [first, second] = *tag.as_bytes().first_chunk().unwrap();
            assert!(!may_matter(first, second), "{tag}");
        }
    }
}
