//! Where a page has `svg` and `math`, and the elements of these that have HTML in them (html5,
//! sections 13.2.6 and 13.2.6.5).
//!
//! html5 decides by the elements of its tree. Here only those are known that change the rules.
//! Limitations: an end tag such as `</desc>` always counts, though html5 ignores it where an
//! element of HTML is still open; and one such as `</div>` ends an `svg` even if no `div` is open.

use super::elements;

/// The most elements that are remembered: pages with more are made to hurt.
const DEPTH: usize = 64;

/// The letters of the longest name of an element that ends `svg` and `math`: `blockquote`.
pub(in crate::text) const LONGEST: usize = 10;

/// The names of these.
const HTML: [&str; 44] = [
    "b",
    "big",
    "blockquote",
    "body",
    "br",
    "center",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "embed",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "i",
    "img",
    "li",
    "listing",
    "menu",
    "meta",
    "nobr",
    "ol",
    "p",
    "pre",
    "ruby",
    "s",
    "small",
    "span",
    "strong",
    "strike",
    "sub",
    "sup",
    "table",
    "tt",
    "u",
    "ul",
    "var",
];

/// The names of other elements that matter in `svg` and `math`.
const OTHERS: [&str; 18] = [
    "a",
    "annotation-xml",
    "area",
    "base",
    "desc",
    "font",
    "foreignobject",
    "math",
    "mi",
    "mn",
    "mo",
    "ms",
    "mtext",
    "script",
    "style",
    "svg",
    "title",
    "plaintext",
];

/// The rules for the content of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    Svg,
    Math,
    Html,
}

/// The open elements that change the rules, the outermost first.
#[derive(Debug, Default)]
pub(in crate::text) struct Foreign {
    open: Vec<(&'static str, Rules)>,
}

impl Foreign {
    /// Whether none is open.
    #[inline]
    pub(in crate::text) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether the rules are those of `svg` or `math`.
    pub(in crate::text) fn is_inside(&self) -> bool {
        self.open.last().is_some_and(|(_, rules)| *rules != Rules::Html)
    }

    /// Reads a start tag that does not close itself. `has_html` says whether it is an
    /// `annotation-xml` whose attributes say that it has HTML.
    pub(in crate::text) fn start(&mut self, name: &[u8], has_html: bool) {
        const ALL: [(&str, Rules); 2] = [("svg", Rules::Svg), ("math", Rules::Math)];
        const OF_SVG: [(&str, Rules); 5] = [
            ("svg", Rules::Svg),
            ("math", Rules::Svg),
            ("foreignobject", Rules::Html),
            ("desc", Rules::Html),
            ("title", Rules::Html),
        ];
        const OF_MATH: [(&str, Rules); 8] = [
            ("svg", Rules::Math),
            ("math", Rules::Math),
            ("mi", Rules::Html),
            ("mo", Rules::Html),
            ("mn", Rules::Html),
            ("ms", Rules::Html),
            ("mtext", Rules::Html),
            ("annotation-xml", Rules::Math),
        ];
        let known: &[(&str, Rules)] = match self.open.last() {
            Some((_, Rules::Svg)) => &OF_SVG,
            Some(("annotation-xml", Rules::Math)) if name.eq_ignore_ascii_case(b"svg") => &ALL,
            Some((_, Rules::Math)) => &OF_MATH,
            Some((_, Rules::Html)) | None => &ALL,
        };
        let found = known.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        if let Some((name, rules)) = found.filter(|_| self.open.len() < DEPTH) {
            self.open.push((name, if has_html { Rules::Html } else { *rules }));
        }
    }

    /// Reads an end tag.
    pub(in crate::text) fn end(&mut self, name: &[u8]) {
        // Of `p` and `br` in any case, of others if such an element is open around: it is, nearly
        // always.
        if self.is_inside() && is_html(name) {
            return self.leave();
        }
        // Among HTML, only the end tag of the element around counts.
        let place = self.open.iter().rposition(|(open, _)| name.eq_ignore_ascii_case(open.as_bytes()));
        if let Some(place) = place.filter(|place| self.is_inside() || place + 1 == self.open.len()) {
            self.open.truncate(place);
        }
    }

    /// Closes the `svg` and `math` elements around, up to HTML.
    pub(in crate::text) fn leave(&mut self) {
        while self.is_inside() {
            self.open.pop();
        }
    }
}

/// Whether a tag of this name ends the `svg` and `math` elements around it. That of `font` does by
/// its attributes.
pub(in crate::text) fn is_html(name: &[u8]) -> bool {
    HTML.iter().any(|html| name.eq_ignore_ascii_case(html.as_bytes()))
}

/// Whether a tag in `svg` or `math` whose name begins with these bytes may be of an element that
/// matters. `true` may be wrong (`defs`), `false` never is. `first` is a letter; after a name of
/// one letter, `second` is the byte that ends it.
pub(in crate::text) fn may_matter(first: u8, second: u8) -> bool {
    /// For the first byte, a bit for the class of the second.
    static PAIRS: [u64; 32] = {
        let mut pairs = [0; 32];
        let mut i = 0;
        while i < HTML.len() + OTHERS.len() {
            let name = if i < HTML.len() { HTML[i] } else { OTHERS[i - HTML.len()] }.as_bytes();
            let second = if name.len() == 1 { elements::END } else { elements::class(name[1]) };
            pairs[(name[0] & 31) as usize] |= 1 << second;
            i += 1;
        }
        pairs
    };
    PAIRS[usize::from(first & 31)] >> elements::class(second) & 1 == 1
}

/// Whether a `font` with this attribute ends the `svg` and `math` elements around it.
pub(in crate::text) fn is_html_font(attribute: &[u8], _value: &[u8]) -> bool {
    [&b"color"[..], b"face", b"size"].iter().any(|name| attribute.eq_ignore_ascii_case(name))
}

/// Whether an `annotation-xml` with this attribute has HTML in it.
pub(in crate::text) fn is_html_annotation(attribute: &[u8], value: &[u8]) -> bool {
    attribute.eq_ignore_ascii_case(b"encoding")
        && [&b"text/html"[..], b"application/xhtml+xml"].iter().any(|html| value.eq_ignore_ascii_case(html))
}
