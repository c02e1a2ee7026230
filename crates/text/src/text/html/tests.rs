//! Pages of many forms, and what the scanner makes of them.

use nigh_kernels::kernels::chosen;
use proptest::prelude::*;

use super::attributes::{Attributes, ends_name};
use super::elements::ElementKind;
use super::scanner::{href, resolved};
use super::{Extract, LINE_END, scan};
use crate::text::words;

fn page(html: &str) -> Extract {
    let mut out = Extract::default();
    scan(html.as_bytes(), 100, chosen().unwrap(), &mut out);
    out
}

fn words_of(page: &Extract) -> String {
    words(str::from_utf8(&page.text).unwrap()).collect::<Vec<_>>().join(" ")
}

fn text(html: &str) -> String {
    words_of(&page(html))
}

fn hrefs(html: &str) -> Vec<String> {
    page(html).hrefs.iter().map(str::to_owned).collect()
}

#[test]
fn tags_separate_words_and_references_do_not() {
    assert_eq!(text("<p>caf&eacute;<br/>a<b>b</b>c&nbsp;d&amp;e</p>"), "café a b c d e");
    assert_eq!(page("a<b>b").text, b"a b");
}

#[test]
fn tags_of_blocks_end_lines() {
    let lines = |html: &str| {
        let text = String::from_utf8(page(html).text).unwrap();
        let lines = text.split(char::from(LINE_END)).map(|line| words(line).collect::<Vec<_>>().join(" "));
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("|")
    };
    assert_eq!(
        lines("<title>a\nb</title><body>c<P class=x>d<b>e</b>f</p>g<br/>h<font>i</font><!-- <p> -->j"),
        "a b|c|d e f|g|h i j"
    );
    assert_eq!(lines("<tr><td>a<td>b</table>c<H2>d</H2>e<li>f<link>g<th>h<hr>i<pre>j\nk"), "a|b|c|d|e|f g|h|i|j k");
    // Tags near the end of a page are read by the slower path.
    assert_eq!(lines("a<p>b</p>c"), "a|b|c");
    assert_eq!(lines("a<article>b<option>c<p\n>d<p/>e"), "a|b|c|d|e");
}

#[test]
fn a_less_than_sign_that_begins_no_tag_is_text() {
    assert_eq!(text("a < b <3 <> <é> x"), "a b 3 é x");
    assert_eq!(text("a<b c"), "a");
    assert_eq!(text("a</ b>c</>d</3>e"), "a c d e");
}

#[test]
fn an_attribute_may_hold_the_end_of_a_tag() {
    assert_eq!(text("a<img alt='x > y'>b<img alt=\"x > y\">c<img alt=x'>d'>e"), "a b c d e");
}

#[test]
fn markup_that_is_never_closed_ends_the_page() {
    for html in ["a<b c", "a<b c='>d", "a<!-- b >", "a<?b", "a<script>b", "a<style>b</styl", "a</b c=\">"] {
        assert_eq!(text(html), "a", "{html}");
    }
}

#[test]
fn comments_doctypes_and_instructions_are_markup() {
    assert_eq!(text("<!DOCTYPE html PUBLIC '>'>a<!-- b > c -->d<?e?>f<!-->g<!g>h"), "a d f g h");
}

#[test]
fn elements_without_text_are_dropped() {
    assert_eq!(text("<SCRIPT type=x>if (a</b>c) '<p>'</script >1<style>p>a{}</style>2<scripts>b</scripts>"), "1 2 b");
    assert_eq!(text("<script/>a</script>b"), "b");
}

#[test]
fn what_is_for_other_readers_is_markup() {
    for name in ["noscript", "noframes", "noembed", "iframe", "object", "template"] {
        assert_eq!(text(&format!("1<{name} x='y'>a <b>c</b>&lt;<!-- d --></{name}>e")), "1 a c e", "{name}");
    }
}

#[test]
fn nothing_is_markup_in_xmp() {
    assert_eq!(text("<XMP a=b>c &eacute; <p d>e</p></xmp>&eacute;<i>f"), "c eacute p d e p é f");
    assert_eq!(text("<svg><xmp>a<b>c</svg>"), "a c");
    assert_eq!(text("<xmp>a<b"), "a b");
}

#[test]
fn text_of_title_and_textarea_has_references_and_no_tags() {
    let extract = page("<title>a &lt; <b>\n c</title><textarea><p>&eacute;</b></textarea>d");
    assert_eq!(extract.title, "a < <b> c");
    assert_eq!(words_of(&extract), "a b c p é b d");
    assert_eq!(text("<title>a<p>b"), "a p b");
}

#[test]
fn nothing_is_markup_after_plaintext() {
    assert_eq!(text("a<plaintext>b</plaintext><c>&eacute;"), "a b plaintext c eacute");
}

#[test]
fn cdata_is_text_in_foreign_content_only() {
    assert_eq!(text("<svg><![CDATA[a > <b> &lt;]]>c</svg>d"), "a b lt c d");
    assert_eq!(text("<![CDATA[a > b]]>c<svg/><![CDATA[d > e]]></svg>"), "b c e");
    assert_eq!(text("<math><![CDATA[a"), "a");
}

#[test]
fn a_style_or_script_of_foreign_content_ends_with_it() {
    assert_eq!(text("<svg><style>a{}</svg>b<style>c{}</style>d"), "b d");
    assert_eq!(text("<math><script>a</math>b"), "b");
    assert_eq!(text("<svg><style>a{}<p>b<i>c"), "b c");
    assert_eq!(text("<svg><style>a{}<path>b</styles></style>c</svg>d"), "c d");
    assert_eq!(text("<div><svg><style>a{}<path></div>b"), "b");
    assert_eq!(text("<svg><script><![CDATA[ a('<p>b</svg>') ]]></script></svg>c"), "c");
    assert_eq!(text("<svg><style><!-- </style><p> --></style></svg>c"), "c");
    assert_eq!(text("<svg><style><![CDATA[ a </style>"), "");
    assert_eq!(text("<style>a{}<p>b</svg>c"), "");
}

#[test]
fn html_stands_in_foreign_content_where_html5_says() {
    // An element of HTML ends the svg, a font by its attributes.
    assert_eq!(text("<svg><p>a<title>b<i>c"), "a b i c");
    assert_eq!(text("<svg><font>a<title>b<i>c"), "a b c");
    assert_eq!(text("<svg><font size=1>a<title>b<i>c"), "a b i c");
    assert_eq!(text("<math></p><title>a<i>b"), "a i b");
    assert_eq!(text("<div><svg><path></div><title>a<i>b"), "a i b");
    // HTML inside of svg and math, up to its end.
    assert_eq!(text("<svg><desc><textarea>a<i>b</textarea></desc><textarea>c<i>d"), "a i b c d");
    assert_eq!(text("<svg><foreignObject><script>'<p>a'</script>b</foreignObject></svg>c"), "b c");
    assert_eq!(text("<math><mtext><xmp>a<i></xmp></mtext><xmp>b<i>"), "a i b");
    assert_eq!(text("<math><annotation-xml encoding='TEXT/html'><title>a<i></title>"), "a i");
    assert_eq!(text("<math><annotation-xml><title>a<i></title>"), "a");
    assert_eq!(text("<math><annotation-xml><svg><desc><xmp>a<i>"), "a i");
    // Only an end tag of an element that is open counts.
    assert_eq!(text("<svg></math><title>a<i>b"), "a b");
    assert_eq!(text("<math><svg></math><title>a<i>b"), "a i b");
    assert_eq!(text("<svg/><title>a<i>b"), "a i b");
}

#[test]
fn foreign_content_has_other_rules() {
    let extract = page("<svg><title>Icon<p>a</title><style>b{}</style><script/>c<textarea><p>d</textarea></svg>");
    assert_eq!(extract.title, "");
    assert_eq!(words_of(&extract), "Icon a c d");
}

#[test]
fn the_title_is_the_first_that_is_not_blank() {
    assert_eq!(page("<title> \n</title><title> a\t\u{1}b </title><title>c</title>").title, "a b");
}

#[test]
fn a_title_is_cut_between_characters() {
    let long = format!("<title>x{}</title>", "é".repeat(1000));
    assert_eq!(page(&long).title, format!("x{}", "é".repeat(255)));
    let long = format!("<title>{} y</title>", "x".repeat(511));
    assert_eq!(page(&long).title, "x".repeat(511));
}

#[test]
fn links_come_in_document_order() {
    let values = hrefs(
        "<a href='/1?a&amp;b&copy=1'>x</a><A class=y HREF = 2 href=no><area href=\"3\"><a name=z><link href=no>\
         <!-- <a href=no> --><a href>x<a href='4",
    );
    assert_eq!(values, ["/1?a&b&copy=1", "2", "3", ""]);
}

#[test]
fn two_values_that_are_not_utf8_do_not_become_utf8_together() {
    let mut out = Extract::default();
    scan(b"<a href=x\xC3><a href=\xA9y>", 10, chosen().unwrap(), &mut out);
    assert_eq!(out.hrefs.iter().collect::<Vec<_>>(), ["x\u{fffd}", "\u{fffd}y"]);
}

#[test]
fn links_are_bounded() {
    let mut out = Extract::default();
    scan("<a href=x>".repeat(10).as_bytes(), 3, chosen().unwrap(), &mut out);
    assert_eq!(out.hrefs.len(), 3);
}

#[test]
fn the_first_base_with_an_href_counts() {
    assert_eq!(page("<base target=x><base href='/a&#x2F;'><base href=b>").base.as_deref(), Some("/a/"));
}

#[test]
fn nothing_is_left_of_the_page_before() {
    let mut out = page("<title>a</title><base href=b><a href=c>d");
    scan(b"", 100, chosen().unwrap(), &mut out);
    assert_eq!((&out.text[..], &out.title[..], out.base, out.hrefs.len()), (&b""[..], "", None, 0));
}

#[test]
fn the_href_is_the_first_wherever_it_stands() {
    for (tag, expected) in [
        ("<a class=\"x=y\" href=\"b\" href=\"c\">", vec!["b"]),
        ("<a href class=\"x\" href=b>", vec![""]),
        ("<a x href=b>", vec!["b"]),
        ("<a x/href=b/>", vec!["b/"]),
        ("<a x=y href= 'b'>", vec!["b"]),
        ("<a x='y'href='b'>", vec!["b"]),
        ("<a x==\"y href=b>", vec!["b"]),
        ("<a ==\"x href=b>", vec![]),
        ("<a \"href=b>", vec![]),
        ("<a x=\"href=b\">", vec![]),
        ("<a href=b x='>", vec![]),
        ("<a href=b x=>c", vec!["b"]),
        ("<a href=b", vec![]),
        ("<a href='b>'", vec![]),
        ("<a=b href=c>", vec![]),
        ("<a href='b\0&amp;\0'>", vec!["b\u{fffd}&\u{fffd}"]),
    ] {
        assert_eq!(hrefs(tag), expected, "{tag}");
    }
}

#[test]
fn bytes_that_are_not_utf8_are_not_markup_and_stay() {
    let mut out = Extract::default();
    scan(
        b"<title>a\xff\xc3</title>b\xe9<c\xe9 d='\xe9>'>\xe4&auml;<a href=1\xe9><a href=2\xc3\xa9>",
        100,
        chosen().unwrap(),
        &mut out,
    );
    assert_eq!(out.title, "a\u{fffd}\u{fffd}");
    assert_eq!(out.text, b"\x1ea\xff\xc3\x1e\x1eb\xe9 \xe4\xc3\xa4  ");
    assert_eq!(out.hrefs.iter().collect::<Vec<_>>(), ["1\u{fffd}", "2é"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    /// The fast path by marks against the walk over attributes, which is the definition.
    #[test]
    fn tags_end_where_their_attributes_do(
        pieces in prop::collection::vec(
            prop::sample::select(
                &["=", "=\"", "='", "\"", "'", " ", "\n", "/", ">", "a", "href", "HREF=", "x", "-", "&amp;", "é", "<",
                  " class=\"a\"", " href='b'", " longer-than-eight"][..],
            ),
            0..12,
        ),
        start in prop::sample::select(&["<a", "<A ", "<a\t", "<area ", "<p", "<p ", "</p", "</p ", "<strong", "<h1 x"][..]),
    ) {
        let html = format!("{start}{}", pieces.concat());
        let name = start.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        let name_end = html[name..].bytes().position(ends_name).map_or(html.len(), |n| name + n);
        let mut attributes = Attributes::new(html.as_bytes(), name_end);
        let is_link = !start.starts_with("</") && ElementKind::new(&html.as_bytes()[name..name_end]) == ElementKind::Link;
        let expected = if is_link { href(&mut attributes) } else { None };
        let end = attributes.end().map(|end| end.position);
        // All after the tag is text, since every other `<` is replaced: it shows where the tag
        // ended.
        let extract = page(&html.replace('<', "\u{1}").replacen('\u{1}', "<", 1));
        let rest = end.map_or("", |end| &html[end..]).replace('<', "\u{1}");
        let rest = page(&rest).text;
        prop_assert_eq!(&extract.text[1..], &rest[..], "{}", html);
        let expected: Vec<String> = expected.filter(|_| end.is_some()).map(resolved).into_iter().collect();
        let expected: Vec<String> = expected.iter().map(|href| href.replace('<', "\u{1}")).collect();
        prop_assert_eq!(extract.hrefs.iter().collect::<Vec<_>>(), expected, "{}", html);
    }
}
