//! Whether the tree of a page has a bounded cost for each byte.
//!
//! A parser that builds the tree of html5 can take quadratic time and memory: it searches the open
//! elements for each tag, opens formatting elements (`<b>`) again in each block where their end is
//! missing, compares each attribute of a tag with the others, and appends the characters that
//! references stand for one after the other. What reads the tree takes time for each element and
//! each of its ancestors. So a page whose tree is deep or large is not given to a parser.
//!
//! The tree is not built here. The open elements are followed by simpler rules than those of html5
//! (section 13.2.6), such that there are at least as many as in the tree: where the rules differ,
//! an element stays open. A test compares them with the parser.

use memchr::{memchr, memchr2};

use super::html::attributes::{Attributes, TagEnd, ends_name};
use super::html::{foreign, sections};

/// The most elements that are open at once, or are opened again in the next block.
const MOST_OPEN: usize = 128;
/// The most elements of a page, with those that are opened again, and with references and other
/// markup, which may be mistakes: the parser keeps a message for each.
const MOST_ELEMENTS: usize = 200_000;
/// The most attributes of a tag.
const MOST_ATTRIBUTES: usize = 1_000;
/// The most references (`&amp;`) between two tags.
const MOST_REFERENCES: usize = 10_000;

/// Whether the tree of a page is bounded: see the constants above.
pub(super) fn is_bounded(page: &[u8]) -> bool {
    walk(page).is_some()
}

/// The tree of a page at its end; `None` if it is not bounded.
fn walk(page: &[u8]) -> Option<Tree> {
    let mut tree = Tree::default();
    let (mut at, mut references) = (0, 0);
    while let Some(n) = memchr2(b'<', b'&', &page[at..]) {
        let start = at + n;
        at = start + 1;
        tree.elements += 1;
        if page[start] == b'&' {
            references += 1;
            if references > MOST_REFERENCES || tree.elements > MOST_ELEMENTS {
                return None;
            }
            continue;
        }
        at = match &page[at..] {
            [b'/', b'a'..=b'z' | b'A'..=b'Z', ..] | [b'a'..=b'z' | b'A'..=b'Z', ..] => {
                references = 0;
                let is_end = page[at] == b'/';
                let name_at = at + usize::from(is_end);
                let length = page[name_at..].iter().position(|&b| ends_name(b));
                let name = &page[name_at..length.map_or(page.len(), |length| name_at + length)];
                let mut attributes = Attributes::new(page, name_at + name.len());
                if attributes.by_ref().take(MOST_ATTRIBUTES + 1).count() > MOST_ATTRIBUTES {
                    return None;
                }
                // A tag without an end does not exist, nor does what follows it.
                let Some(TagEnd { position, self_closing }) = attributes.end() else { break };
                if is_end {
                    tree.end(name);
                    position
                } else {
                    tree.start(name, self_closing);
                    raw_text_end(page, position, name, &tree)?
                }
            }
            [b'!', b'-', b'-', ..] => sections::comment_end(page, at + 3),
            [b'!', b'[', ..] => section_end(page, at, &tree)?,
            [b'!' | b'?', ..] | [b'/', _, ..] => sections::bogus_comment_end(page, at + 1),
            _ => at,
        };
        tree.most_open = tree.most_open.max(tree.open.len() + tree.again.len());
        if tree.most_open > MOST_OPEN || tree.elements > MOST_ELEMENTS {
            return None;
        }
    }
    Some(tree)
}

/// Where tags are read again after the start tag of an element that ends at `at`. Inside `svg` and
/// `math` tags of it count, except within HTML there: `None` if it has any, so that this matters.
fn raw_text_end(page: &[u8], at: usize, name: &[u8], tree: &Tree) -> Option<usize> {
    let of = ElementName::of(name);
    let end = if of == SCRIPT {
        sections::script_end(page, at)
    } else if RAW_TEXT.contains(&of) {
        sections::raw_text_end(page, at, name)
    } else {
        return Some(at);
    };
    (!tree.has_foreign() || memchr(b'<', &page[at..end]).is_none()).then_some(end)
}

/// The end of what begins with `<![` before `at`: of a comment, but inside `svg` and `math` of a
/// CDATA section. `None` if this matters.
fn section_end(page: &[u8], at: usize, tree: &Tree) -> Option<usize> {
    let end = sections::bogus_comment_end(page, at + 1);
    let is_alike = || !page[at..].starts_with(b"![CDATA[") || page[..end].ends_with(b"]]>");
    (!tree.has_foreign() || is_alike()).then_some(end)
}

/// A hash of the name of an element, in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ElementName(u64);

impl ElementName {
    /// FNV-1a of 64 bits.
    const fn of(name: &[u8]) -> ElementName {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let mut i = 0;
        while i < name.len() {
            hash = (hash ^ name[i].to_ascii_lowercase() as u64).wrapping_mul(0x0100_0000_01b3);
            i += 1;
        }
        ElementName(hash)
    }
}

const fn names<const N: usize>(names: [&str; N]) -> [ElementName; N] {
    let mut hashes = [ElementName(0); N];
    let mut i = 0;
    while i < N {
        hashes[i] = ElementName::of(names[i].as_bytes());
        i += 1;
    }
    hashes
}

const SCRIPT: ElementName = ElementName::of(b"script");
const LINK: ElementName = ElementName::of(b"a");
const OPTION: ElementName = ElementName::of(b"option");
const FORM: ElementName = ElementName::of(b"form");
const SELECT: ElementName = ElementName::of(b"select");
/// Elements whose content has no tags, besides scripts.
const RAW_TEXT: [ElementName; 7] = names(["title", "textarea", "style", "xmp", "iframe", "noembed", "noframes"]);
/// Elements without content, and those of which a page has one.
const NEVER_OPEN: [ElementName; 23] = names([
    "area", "base", "basefont", "bgsound", "br", "col", "colgroup", "embed", "frame", "hr", "image", "img", "input",
    "keygen", "link", "meta", "param", "source", "track", "wbr", "html", "head", "body",
]);
/// Elements that are opened again after what ended their parent.
const FORMATTING: [ElementName; 14] =
    names(["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"]);
/// Formatting elements in these are not opened again after them.
const MARKERS: [ElementName; 7] = names(["td", "th", "caption", "applet", "marquee", "object", "template"]);
/// Elements that an end tag inside them does not end.
const SCOPES: [ElementName; 17] = names([
    "td",
    "th",
    "caption",
    "applet",
    "marquee",
    "object",
    "template",
    "table",
    "foreignobject",
    "desc",
    "title",
    "mi",
    "mo",
    "mn",
    "ms",
    "mtext",
    "annotation-xml",
]);
/// Nor do end tags of `p` end these, nor those of `li`.
const MORE_SCOPES: [ElementName; 3] = names(["button", "ul", "ol"]);
/// Elements of tables: only a table keeps their end tags inside.
const OF_TABLES: [ElementName; 8] = names(["table", "caption", "tbody", "thead", "tfoot", "tr", "td", "th"]);
const TABLES: [ElementName; 2] = names(["table", "template"]);
const FOREIGN: [ElementName; 2] = names(["svg", "math"]);
/// Elements of `svg` and `math` that have HTML inside.
const HTML_INSIDE: [ElementName; 9] =
    names(["foreignobject", "desc", "title", "mi", "mo", "mn", "ms", "mtext", "annotation-xml"]);
/// Elements that end only by their own end tag, or by that of a special element around: the end tag
/// of any other element does not end what is open inside it if that is special.
const SPECIAL: [ElementName; 56] = names([
    "address",
    "applet",
    "article",
    "aside",
    "blockquote",
    "button",
    "caption",
    "center",
    "dd",
    "details",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "iframe",
    "li",
    "listing",
    "main",
    "marquee",
    "menu",
    "nav",
    "noembed",
    "noframes",
    "noscript",
    "object",
    "ol",
    "p",
    "plaintext",
    "pre",
    "search",
    "section",
    "select",
    "summary",
    "table",
    "tbody",
    "td",
    "template",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
]);

/// Elements that end an element before them: their names, which elements they end, and through
/// which others besides formatting elements.
const ENDING: [(&[ElementName], &[ElementName], &[ElementName]); 6] = [
    (&names(["p"]), &names(["p"]), &[]),
    (&names(["li"]), &names(["li"]), &names(["p"])),
    (&names(["dt", "dd"]), &names(["dt", "dd"]), &names(["p"])),
    (&names(["td", "th"]), &names(["td", "th"]), &names(["p"])),
    (&names(["tr"]), &names(["tr"]), &names(["td", "th", "p"])),
    (&names(["tbody", "thead", "tfoot"]), &names(["tbody", "thead", "tfoot"]), &names(["tr", "td", "th", "p"])),
];

/// An element that is open.
#[derive(Clone, Copy, Debug)]
struct OpenElement {
    name: ElementName,
    /// Whether it is of `svg` or `math`.
    is_foreign: bool,
}

/// The open elements of a page.
#[derive(Debug, Default)]
struct Tree {
    open: Vec<OpenElement>,
    /// Formatting elements that are not open, and are opened again.
    again: Vec<ElementName>,
    /// All elements, references and other markup so far.
    elements: usize,
    /// The most that were open at once, or were opened again.
    most_open: usize,
}

impl Tree {
    /// Whether `svg` or `math` is open.
    fn has_foreign(&self) -> bool {
        self.open.iter().any(|open| FOREIGN.contains(&open.name))
    }

    fn start(&mut self, tag: &[u8], self_closing: bool) {
        let name = ElementName::of(tag);
        self.elements += self.again.len();
        if foreign::is_html(tag) {
            self.leave_foreign();
        }
        let is_foreign = FOREIGN.contains(&name)
            || self.open.last().is_some_and(|last| last.is_foreign && !HTML_INSIDE.contains(&last.name));
        // A `select` has no foreign elements, so there the slash means nothing.
        if is_foreign && self_closing && !self.open.iter().any(|open| open.name == SELECT) {
            return;
        }
        if !is_foreign {
            if NEVER_OPEN.contains(&name) {
                return;
            }
            if name == LINK {
                self.end(tag);
            } else if name == OPTION {
                self.open.pop_if(|last| last.name == OPTION);
            }
            let ending = ENDING.iter().find(|(names, ..)| names.contains(&name));
            if let Some((_, ended, through)) = ending {
                let passes = |open: &&OpenElement| through.contains(&open.name) || FORMATTING.contains(&open.name);
                let inside = self.open.iter().rev().take_while(passes).count();
                let at = self.open.len() - inside;
                if at > 0 && ended.contains(&self.open[at - 1].name) {
                    self.close(at - 1);
                }
            }
        }
        self.open.push(OpenElement { name, is_foreign });
    }

    fn end(&mut self, tag: &[u8]) {
        let name = ElementName::of(tag);
        // What follows it opens elements again. It may also be read as an element: `</p>`, `</br>`.
        self.elements += self.again.len();
        if matches!(tag, [b'p' | b'P'] | [b'b' | b'B', b'r' | b'R']) {
            self.leave_foreign();
        }
        let is_special = SPECIAL.contains(&name);
        let is_formatting = FORMATTING.contains(&name);
        for at in (0..self.open.len()).rev() {
            let open = self.open[at].name;
            if open == name {
                if name == FORM || is_formatting && self.open[at..].iter().any(|open| SPECIAL.contains(&open.name)) {
                    // What is open inside it stays open.
                    self.open.remove(at);
                } else {
                    self.close(at);
                }
                return;
            }
            let is_kept_inside = if OF_TABLES.contains(&name) {
                TABLES.contains(&open)
            } else if is_special {
                SCOPES.contains(&open) || MORE_SCOPES.contains(&open)
            } else if is_formatting {
                SCOPES.contains(&open)
            } else {
                SPECIAL.contains(&open) || SCOPES.contains(&open)
            };
            if is_kept_inside {
                return;
            }
        }
        if let Some(found) = self.again.iter().rposition(|other| *other == name) {
            self.again.remove(found);
        }
    }

    /// Closes `svg` and `math` elements up to HTML.
    fn leave_foreign(&mut self) {
        while self.open.pop_if(|last| last.is_foreign && !HTML_INSIDE.contains(&last.name)).is_some() {}
    }

    /// Closes the elements from the one with the number `at` on: it itself ends, the formatting
    /// elements inside it are opened again.
    fn close(&mut self, at: usize) {
        let is_marker = |open: &OpenElement| MARKERS.contains(&open.name);
        let until = self.open[at..].iter().position(is_marker).map_or(self.open.len(), |n| at + n);
        let inside = self.open.get(at + 1..until).unwrap_or_default().iter().map(|open| open.name);
        self.again.extend(inside.filter(|name| FORMATTING.contains(name)));
        self.open.truncate(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_pages_are_bounded() {
        let list = "<ul><li><a href=/>x</a><li><p>y<li>z</ul>".repeat(1000);
        let table = "<table><tr><td><font>a<td>b<tr><td>c</table><p>d<br>e<p><b>f</b><img src=x>".repeat(1000);
        let icons = "<div><svg viewBox='0 0 1 1'><path d='M0'/><g><circle r=1 /></g></svg></div>".repeat(1000);
        let named = "<svg><title>a &amp; b</title><style>.a > .b{c:d}</style><path/></svg>".repeat(1000);
        let section = "<svg><![CDATA[a]]></svg><p><![CDATA[b></p>".repeat(1000);
        let script = format!("<script>{}</script><style>{}</style>", "'<div>'+".repeat(1000), "/*<b>*/".repeat(1000));
        let old = "<a name=x>text <b>bold</b><p>".repeat(1000);
        let select = "<select><option>x".to_owned() + &"<option value=1>y".repeat(1000) + "</select>";
        let text = "a &amp; b</x> 1 < 2 ".repeat(3000) + "<p>" + &"a&lt;b".repeat(MOST_REFERENCES);
        for page in [list, table, icons, named, section, script, old, select, text] {
            let tree = walk(page.as_bytes()).unwrap();
            assert!(tree.most_open < 12, "{page:.60} {tree:?}");
        }
    }

    #[test]
    fn pages_that_grow_faster_than_their_bytes_are_not() {
        for part in [
            "<div>",
            "<div></x>",
            "<p><b id=1>",
            "<div><b></div>",
            "<span><div></span>",
            "<b><div></b>",
            "<table><tr><td>",
            "<li><section><li>",
            "<form><div></form>",
            "<li><ul></li>",
            "<svg>",
            "<table><i></table>",
            "<svg><desc><x/>",
            "<option><b>",
            "&amp;&amp;&amp;&amp;&amp;&amp;",
            "<svg><![CDATA[></svg>]]>",
            "<svg><foreignObject><style></foreignObject></svg></style>",
            "<math><mi><script></mi></math></script>",
        ] {
            assert!(!is_bounded(part.repeat(5000).as_bytes()), "{part}");
        }
        assert!(!is_bounded(format!("<p {}>", "a=1 ".repeat(MOST_ATTRIBUTES + 1)).as_bytes()));
        for part in ["<p>a", "a < b ", "</x>", "<!-->", "&amp;<b></b>"] {
            assert!(!is_bounded(part.repeat(MOST_ELEMENTS + 1).as_bytes()), "{part}");
        }
        let formatting: String = (0..100).map(|n| format!("<b id={n}>")).collect();
        assert!(!is_bounded(format!("<p>{formatting}{}", "<p>a".repeat(MOST_ELEMENTS / 100)).as_bytes()));
    }

    #[cfg(feature = "main-content")]
    mod beside_the_parser {
        use dom_smoothie::Readability;
        use proptest::prelude::*;

        use super::*;

        /// The depth of the tree of a page, and the number of its elements, by the parser.
        fn of_parser(page: &str) -> (usize, usize) {
            let document = Readability::new(page, None, None).unwrap().doc;
            let elements: Vec<_> = document.root().descendants_it().filter(|node| node.is_element()).collect();
            let depth = elements.iter().map(|node| node.ancestors_it(None).count()).max();
            (depth.unwrap_or_default(), elements.len())
        }

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(500))]
            #[test]
            fn the_tree_is_at_most_as_deep_and_as_large(
                parts in prop::collection::vec(
                    "</?(div|p|table|tr|td|th|tbody|caption|b|i|a|font|ul|li|dl|dd|dt|svg|math|mi|desc|title|foreignObject|path|g|span|x|template|select|option|button|form|body|h1|h2|br|input|section|object|ruby|rt|nobr|noscript|style|script|annotation-xml)( id=[0-9]| class=a| color=red)?/?>([a-z]|&amp;|<!\\[CDATA\\[|]]>|>)?",
                    0..40,
                ),
                times in 1..4usize,
            ) {
                let page = parts.concat().repeat(times);
                let Some(tree) = walk(page.as_bytes()) else { return Ok(()) };
                let (depth, elements) = of_parser(&page);
                // Of `html`, `body`, and what tables imply: `tbody`, `tr`, `colgroup`.
                prop_assert!(depth <= 3 * tree.most_open + 4, "{depth} {tree:?}");
                prop_assert!(elements <= 4 * tree.elements + 4, "{elements} {tree:?}");
            }
        }
    }
}
