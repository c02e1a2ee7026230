//! The HTML scanner: the text, title and links of a page in one pass over its markup.
//!
//! It separates markup from text by the rules of html5's tokenizer (section 13.2.5), without
//! building a tree. It finds the next `<` or `&`, copies the text before it, and skips the markup
//! or resolves the reference there. Each piece of markup becomes one space, or one [`LINE_END`] if
//! it is a tag of a block. Only `script` and `style` are dropped with their content. What is text
//! on a page is text here: `title` and `textarea`, which have references but no tags; `xmp` and
//! `plaintext`, which have neither. What an element has for readers that cannot show it is read as
//! markup, for a crawler is such a reader: `noscript`, `noframes`, `noembed`, `iframe`, `object`;
//! and so is the content of a `template`.
//!
//! The cost is linear in any input: no part is searched twice, except a tag of unusual form.
//! Nothing recurses. A missing end (of a quote, a comment, a script) ends the page, as in html5.
//! NUL characters are kept; they are not part of a word.
//!
//! Limitations against a tree builder. The rules of `svg` and `math` follow their tags
//! (`foreign.rs`); the content of a `style` or `script` inside them is dropped, though html5 has it
//! as text. `</>` is a space like other markup, though html5 drops it without a token. Pages of
//! XHTML are read by the same rules, as by a browser that takes them for HTML: there `<title/>` is
//! open.
//!
//! The corpus' ground truth was made with regular expressions. It differs in one kind of page,
//! where html5 is right: there `<!--` opens a comment even within an attribute's value (1 page of
//! each week: a server-side include that was never run). All other pages have the same words.

use memchr::memmem;
use nigh_kernels::kernels::{Kernels, MarkupBitmaps};

use super::attributes::{Attributes, TagEnd, ends_name, is_blank};
use super::elements::{self, ElementKind};
use super::foreign::{self, Foreign};
use super::hrefs::{Hrefs, append_resolved};
use super::references::{self, ReferenceIn};
use super::sections;

/// The maximum length of a title, in bytes; longer ones are cut.
pub const TITLE_BYTES: usize = 512;

/// The byte that a tag of a block (`<p>`, `</td>`, `<br>`) becomes: the record separator of ASCII.
/// It is not `\n`, which the source of a page has wherever its author likes: there it means as much
/// as a blank. Like a blank, it is not part of a word.
pub const LINE_END: u8 = 0x1E;

/// What a tag becomes: by whether it ends a line.
const SEPARATORS: [u8; 2] = [b' ', LINE_END];

/// The text, title and links of a page. Reuse it from page to page, for its buffers.
///
/// Bytes of the page that are not UTF-8 stay in the text; in title, base and hrefs they become
/// U+FFFD.
#[derive(Clone, Debug, Default)]
pub struct Extract {
    /// The text: each piece of markup as one space, or as [`LINE_END`] if it is a tag of a block;
    /// references resolved.
    pub text: Vec<u8>,
    /// The first `<title>` that is not blank, each run of white space as one space, at most
    /// [`TITLE_BYTES`] long.
    pub title: String,
    /// The first `<base href>`, references resolved.
    pub base: Option<String>,
    /// The `href` values of `<a>` and `<area>`, in document order, references resolved.
    pub hrefs: Hrefs,
    marks: MarkupBitmaps,
}

impl Extract {
    /// Empties it for the next page.
    pub fn clear(&mut self) {
        self.text.clear();
        self.title.clear();
        self.base = None;
        self.hrefs.clear();
    }
}

/// Replaces the markup of a page by white space: fills `out` with its text, title, base and at most
/// `max_links` hrefs, and drops the previous contents of `out`. The page is UTF-8 or nearly: bytes
/// that are not UTF-8 are not markup.
///
/// ```
/// # use nigh_kernels::kernels::chosen;
/// # use nigh_text::text::{Extract, scan, words};
/// let mut page = Extract::default();
/// let html = "<title>Caf&eacute;</title><p>A <a href='/menu?a&amp;b'>menu</a><script>if (a<b) x()</script>";
/// scan(html.as_bytes(), 100, chosen()?, &mut page);
/// assert_eq!(page.title, "Café");
/// assert_eq!(words(str::from_utf8(&page.text)?).collect::<Vec<_>>(), ["Café", "A", "menu"]);
/// assert_eq!(page.hrefs.iter().collect::<Vec<_>>(), ["/menu?a&b"]);
/// # anyhow::Ok(())
/// ```
pub fn scan(html: &[u8], max_links: usize, kernels: &Kernels, out: &mut Extract) {
    out.clear();
    let mut marks = std::mem::take(&mut out.marks);
    kernels.marks(html, &mut marks);
    let mut scanner = Scanner { bytes: html, marks: &marks, max_links, foreign: Foreign::default(), out };
    let mut at = 0;
    loop {
        let end = marks.text_end(at);
        append_text(html, at, end, &mut scanner.out.text);
        at = match html.get(end) {
            None => break,
            Some(b'<') => scanner.markup(end),
            Some(_) => scanner.reference(end),
        };
    }
    out.marks = marks;
    out.hrefs.finish();
}

/// Appends `html[at..end]`. Most of these pieces are short, so it copies 32 bytes, with two moves
/// and no call, and cuts off the surplus. Copying 64 bytes was not faster.
#[inline]
fn append_text(html: &[u8], at: usize, end: usize, out: &mut Vec<u8>) {
    let length = end - at;
    match html[at..].first_chunk::<32>() {
        Some(chunk) if length <= chunk.len() => {
            let before = out.len();
            out.extend_from_slice(chunk);
            out.truncate(before + length);
        }
        _ => out.extend_from_slice(&html[at..end]),
    }
}

/// A pass over one page. Each method takes the position of the piece that it reads and returns the
/// position after it. All positions are next to ASCII bytes, hence between characters.
struct Scanner<'a, 'b> {
    bytes: &'a [u8],
    marks: &'a MarkupBitmaps,
    max_links: usize,
    foreign: Foreign,
    out: &'b mut Extract,
}

impl<'a> Scanner<'a, '_> {
    /// Resolves the reference at `at`, or copies the `&` there.
    fn reference(&mut self, at: usize) -> usize {
        match references::append(&self.bytes[at..], ReferenceIn::Text, &mut self.out.text) {
            0 => {
                self.out.text.push(b'&');
                at + 1
            }
            length => at + length,
        }
    }

    /// Reads the markup at `at`, where a `<` is. The fast path: nearly all markup is a tag that
    /// does not matter, or a link.
    #[inline]
    fn markup(&mut self, at: usize) -> usize {
        if let Some(&start) = self.bytes[at..].first_chunk::<8>() {
            let is_end = start[1] == b'/';
            let name = at + 1 + usize::from(is_end);
            // By a shift: half of all tags are end tags, so a branch would often be mispredicted.
            let [first, second, third, ..] = (u64::from_le_bytes(start) >> (8 + 8 * u32::from(is_end))).to_le_bytes();
            if first.is_ascii_alphabetic() && !self.foreign.is_empty() {
                // Of `svg` and `math`, or of HTML inside them.
                if !foreign::may_matter(first, second) && !elements::may_matter(first, second) {
                    self.out.text.push(SEPARATORS[usize::from(elements::ends_line([first, second, third]))]);
                    return self.tag_end(at, name);
                }
            } else if first.is_ascii_alphabetic() {
                if is_end | !elements::may_matter(first, second) {
                    self.out.text.push(SEPARATORS[usize::from(elements::ends_line([first, second, third]))]);
                    return self.tag_end(at, name);
                }
                if matches!(first, b'a' | b'A') && is_blank(second) {
                    self.out.text.push(b' ');
                    return self.link(name + 1);
                }
            }
        }
        self.any_markup(at)
    }

    /// Reads any markup, or copies the `<` if it does not begin markup.
    fn any_markup(&mut self, at: usize) -> usize {
        let rest = &self.bytes[at + 1..];
        let end = match rest {
            [b'a'..=b'z' | b'A'..=b'Z', ..] => self.start_tag(at + 1),
            [b'/', b'a'..=b'z' | b'A'..=b'Z', ..] => self.end_tag(at + 2),
            [b'!', b'-', b'-', ..] => sections::comment_end(self.bytes, at + 4),
            [b'!', ..] if !self.foreign.is_empty() && rest.starts_with(b"![CDATA[") => self.cdata(at + 9),
            [b'!' | b'?', ..] | [b'/', _, ..] => sections::bogus_comment_end(self.bytes, at + 2),
            _ => {
                self.out.text.push(b'<');
                return at + 1;
            }
        };
        let name = rest.strip_prefix(b"/").unwrap_or(rest);
        let ends_line = name.first_chunk().is_some_and(|name| elements::ends_line(*name));
        self.out.text.push(SEPARATORS[usize::from(ends_line)]);
        end
    }

    /// The position after the name at `at`.
    fn name_end(&self, at: usize) -> usize {
        let rest = &self.bytes[at..];
        at + rest.iter().position(|&b| ends_name(b)).unwrap_or(rest.len())
    }

    /// The position after the tag at `at`, whose name begins at `name` and whose attributes do not
    /// matter.
    #[inline]
    fn tag_end(&self, at: usize, name: usize) -> usize {
        // Searches from after the `<`, not from the name, which would be known later: a slash is
        // not a mark.
        let mark = self.marks.tag_mark(at + 1);
        if self.bytes.get(mark) == Some(&b'>') {
            return mark + 1; // the tag has no values
        }
        let name_end = self.short_name_end(name).filter(|&end| end < mark).unwrap_or_else(|| self.name_end(name));
        self.attributes_end(name_end).unwrap_or(self.bytes.len())
    }

    /// The position after the name at `at`, if the name has less than eight letters and digits and
    /// is not ended by `>`.
    #[inline]
    fn short_name_end(&self, at: usize) -> Option<usize> {
        const ONES: u64 = u64::MAX / 255;
        let bytes = u64::from_le_bytes(*self.bytes[at..].first_chunk()?);
        // The lowest of these bits is that of the first byte below '0'. Its borrow may set higher
        // ones.
        let below = bytes.wrapping_sub(ONES * u64::from(b'0')) & !bytes & (ONES << 7);
        let end = at + below.trailing_zeros() as usize / 8;
        (below != 0 && ends_name(self.bytes[end])).then_some(end)
    }

    /// The position after the tag, given a position `at` in it where a name may begin. `None` if
    /// the page ends before the tag does, as [`Attributes::end`].
    fn attributes_end(&self, mut at: usize) -> Option<usize> {
        let mut mark = self.marks.tag_mark(at);
        loop {
            match self.bytes.get(mark)? {
                b'>' => return Some(mark + 1),
                b'=' => match self.value(at, mark) {
                    Some((_, end)) => {
                        at = end;
                        mark = self.marks.tag_mark(at);
                    }
                    None => break,
                },
                _ => mark = self.marks.tag_mark(mark + 1), // a quote in a name
            }
        }
        Attributes::new(self.bytes, at).end().map(|end| end.position)
    }

    /// The value after the `=` at `equals`, and the position after the value. `equals` is the first
    /// `=` from `at` on, and a name may begin at `at`, as after a value. `None` if only
    /// [`Attributes`] can decide: no name stands right before the `=`, blanks follow it, or the
    /// page ends in the value.
    #[inline]
    fn value(&self, at: usize, equals: usize) -> Option<(&'a [u8], usize)> {
        let bytes = self.bytes;
        if equals == at || is_blank(bytes[equals - 1]) || bytes[equals - 1] == b'/' {
            return None;
        }
        let start = equals + 1;
        match *bytes.get(start)? {
            quote @ (b'"' | b'\'') => {
                let mut end = self.marks.tag_mark(start + 1);
                while *bytes.get(end)? != quote {
                    end = self.marks.tag_mark(end + 1);
                }
                Some((&bytes[start + 1..end], end + 1))
            }
            byte if is_blank(byte) => None,
            _ => {
                let length = bytes[start..].iter().position(|&b| is_blank(b) || b == b'>')?;
                Some((&bytes[start..start + length], start + length))
            }
        }
    }

    /// Reads the start tag of an `a` or `area` whose name ends at `at`.
    fn link(&mut self, at: usize) -> usize {
        let href_and_end = self.plain_href(at).or_else(|| {
            let mut attributes = Attributes::new(self.bytes, at);
            let href = href(&mut attributes);
            Some((href, attributes.end()?.position))
        });
        let Some((href, end)) = href_and_end else { return self.bytes.len() };
        if let Some(href) = href
            && self.out.hrefs.len() < self.max_links
        {
            self.out.hrefs.push(href);
        }
        end
    }

    /// The first `href` of a tag, and the position after the tag, if every attribute up to the
    /// `href` has a plain value.
    fn plain_href(&self, mut at: usize) -> Option<(Option<&'a [u8]>, usize)> {
        loop {
            let mark = self.marks.tag_mark(at);
            let start = at + self.bytes[at..].iter().position(|&b| !is_blank(b))?;
            match self.bytes.get(mark)? {
                b'>' if start == mark => return Some((None, mark + 1)),
                b'=' => {
                    let (value, end) = self.value(at, mark)?;
                    let name = &self.bytes[start..mark];
                    if name.eq_ignore_ascii_case(b"href") {
                        return Some((Some(value), self.attributes_end(end)?));
                    }
                    if name.iter().any(|&b| ends_name(b)) {
                        return None; // two names, of which the first has no value
                    }
                    at = end;
                }
                _ => return None,
            }
        }
    }

    /// Reads the end tag whose name begins at `at`.
    fn end_tag(&mut self, at: usize) -> usize {
        let name_end = self.name_end(at);
        if !self.foreign.is_empty() {
            self.foreign.end(&self.bytes[at..name_end]);
        }
        self.attributes_end(name_end).unwrap_or(self.bytes.len())
    }

    /// Reads the start tag whose name begins at `at`, and the content of the element if that is not
    /// markup.
    fn start_tag(&mut self, at: usize) -> usize {
        let name_end = self.name_end(at);
        let name = &self.bytes[at..name_end];
        let element = ElementKind::new(name);
        let mut was_inside = self.foreign.is_inside();
        if was_inside && foreign::is_html(name) {
            self.foreign.leave();
            was_inside = false;
        }
        match element {
            ElementKind::Link => return self.link(name_end),
            ElementKind::Other if !was_inside => return self.attributes_end(name_end).unwrap_or(self.bytes.len()),
            _ => {}
        }
        let mut attributes = Attributes::new(self.bytes, name_end);
        let href = if element == ElementKind::Base { href(&mut attributes) } else { None };
        let has_attribute = |attributes: &mut Attributes<'_>, of: &[u8], is: fn(&[u8], &[u8]) -> bool| {
            name.eq_ignore_ascii_case(of) && attributes.any(|(name, value)| is(name, value))
        };
        if was_inside && has_attribute(&mut attributes, b"font", foreign::is_html_font) {
            self.foreign.leave();
        }
        let has_html = was_inside && has_attribute(&mut attributes, b"annotation-xml", foreign::is_html_annotation);
        let Some(TagEnd { position: end, self_closing }) = attributes.end() else {
            return self.bytes.len();
        };
        if !self_closing && (was_inside || element == ElementKind::Foreign) {
            self.foreign.start(name, has_html);
        }
        match (element, was_inside) {
            (ElementKind::Base, _) if self.out.base.is_none() => self.out.base = href.map(resolved),
            (ElementKind::Script | ElementKind::Style, true) if self_closing => {}
            (ElementKind::Script | ElementKind::Style, true) => return sections::foreign_end(self.bytes, end, name),
            (ElementKind::Script, false) => return sections::script_end(self.bytes, end),
            (ElementKind::Style, false) => return sections::raw_text_end(self.bytes, end, name),
            (ElementKind::Xmp, false) => return self.literal(end, sections::raw_text_end(self.bytes, end, name)),
            (ElementKind::Title, false) => return self.title(end, name),
            (ElementKind::Textarea, false) => return self.text_without_tags(end, name, b' '),
            (ElementKind::Plaintext, false) => return self.literal(end, self.bytes.len()),
            _ => {}
        }
        end
    }

    /// Reads the text up to the end tag of `name`: it may have references, but no tags. The start
    /// tag becomes `separator`.
    fn text_without_tags(&mut self, at: usize, name: &[u8], separator: u8) -> usize {
        let end = sections::raw_text_end(self.bytes, at, name);
        self.out.text.push(separator);
        references::append_all(&self.bytes[at..end], ReferenceIn::Text, &mut self.out.text);
        end
    }

    /// Reads the content of a `title`.
    fn title(&mut self, at: usize, name: &[u8]) -> usize {
        let before = self.out.text.len();
        let end = self.text_without_tags(at, name, LINE_END);
        if self.out.title.is_empty() {
            fold(&self.out.text[before..], &mut self.out.title);
        }
        end
    }

    /// Reads a CDATA section, which is text without tags and without references.
    fn cdata(&mut self, at: usize) -> usize {
        match memmem::find(&self.bytes[at..], b"]]>") {
            Some(n) => self.literal(at, at + n) + 3,
            None => self.literal(at, self.bytes.len()),
        }
    }

    /// Copies the bytes as they are, after a space.
    fn literal(&mut self, at: usize, end: usize) -> usize {
        self.out.text.push(b' ');
        self.out.text.extend_from_slice(&self.bytes[at..end]);
        end
    }
}

/// The first `href` of the remaining attributes.
pub(super) fn href<'a>(attributes: &mut Attributes<'a>) -> Option<&'a [u8]> {
    attributes.find(|(name, _)| name.eq_ignore_ascii_case(b"href")).map(|(_, value)| value)
}

/// The value of an attribute with its references resolved.
pub(super) fn resolved(value: &[u8]) -> String {
    let mut out = Vec::with_capacity(value.len());
    append_resolved(value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends `text` to `title` with each run of white space and control characters as one space,
/// without spaces at the ends, up to [`TITLE_BYTES`]. It reads no further than that.
fn fold(text: &[u8], title: &mut String) {
    let mut gap = false;
    let replaced = |chunk: &std::str::Utf8Chunk| (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
    for c in text.utf8_chunks().flat_map(|chunk| chunk.valid().chars().chain(replaced(&chunk))) {
        if c.is_whitespace() || c.is_control() {
            gap = !title.is_empty();
            continue;
        }
        if title.len() + usize::from(gap) + c.len_utf8() > TITLE_BYTES {
            break;
        }
        if gap {
            title.push(' ');
            gap = false;
        }
        title.push(c);
    }
}
