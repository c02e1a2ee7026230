//! The elements that mean something to the scanner; it treats all others alike.

/// An element, by what the scanner does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    /// `a`, `area`: has a link.
    Link,
    /// `base`: what links are relative to.
    Base,
    /// `title`: text without tags, the page's title.
    Title,
    /// `textarea`: text without tags.
    Textarea,
    /// `plaintext`: the rest of the page is text.
    Plaintext,
    /// `script`: dropped with its content, which ends by rules of its own.
    Script,
    /// `style`: dropped with its content.
    Style,
    /// `xmp`, `iframe`, `noembed`, `noframes`: dropped with their content, but not inside `svg` and `math`.
    Raw,
    /// `svg`, `math`: foreign content.
    Foreign,
    /// All others.
    Other,
}

impl Element {
    /// The element of a tag's name, in any case.
    pub(super) fn new(name: &[u8]) -> Element {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        // By first letter, as most names are then done with.
        match name.first().map(u8::to_ascii_lowercase) {
            Some(b'a') if is("a") || is("area") => Element::Link,
            Some(b'b') if is("base") => Element::Base,
            Some(b'i') if is("iframe") => Element::Raw,
            Some(b'm') if is("math") => Element::Foreign,
            Some(b'n') if is("noembed") || is("noframes") => Element::Raw,
            Some(b'p') if is("plaintext") => Element::Plaintext,
            Some(b's') if is("script") => Element::Script,
            Some(b's') if is("style") => Element::Style,
            Some(b's') if is("svg") => Element::Foreign,
            Some(b't') if is("title") => Element::Title,
            Some(b't') if is("textarea") => Element::Textarea,
            Some(b'x') if is("xmp") => Element::Raw,
            _ => Element::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_whole_and_in_any_case() {
        assert_eq!(Element::new(b"ScRiPt"), Element::Script);
        assert_eq!(Element::new(b"AREA"), Element::Link);
        for name in ["", "scripts", "scrip", "article", "b", "p", "svg:svg", "noscript"] {
            assert_eq!(Element::new(name.as_bytes()), Element::Other, "{name}");
        }
    }
}
