//! Tests of the scanner on random tag soup against a slow twin: html5gum, a tokenizer that passes
//! the html5lib tests. Tests of hostile pages.
//!
//! The soup has no `svg` and `math`: their effect is up to a tree builder, not to a tokenizer.

use html5gum::{EndTag, StartTag, State, Token, Tokenizer};
use nigh_kernels::kernels::chosen;
use proptest::prelude::*;

use super::elements::BLOCKS;
use super::scanner::LINE_END;
use crate::text::{Extract, words};

/// The expected result of `scan`, by html5gum: the text, the first title's words, hrefs.
pub(crate) fn by_html5gum(html: &str) -> (String, String, Vec<String>) {
    let (mut text, mut title, mut titles, mut hrefs) = (String::new(), String::new(), 0, Vec::new());
    let (mut dropped, mut in_title) = (false, false);
    let mut tokens = Tokenizer::new(html);
    while let Some(token) = tokens.next() {
        let token = token.expect("a string is read without errors");
        match &token {
            Token::String(string) if !dropped => {
                let string = str::from_utf8(string).expect("text of a str is UTF-8");
                text.push_str(string);
                if in_title && titles == 1 {
                    title.push_str(string);
                }
            }
            Token::String(_) | Token::Error(_) => {}
            Token::StartTag(StartTag { name, .. }) | Token::EndTag(EndTag { name, .. }) => {
                // Of long names only the beginning counts.
                let begins = |block: &&str| {
                    name[..] == *block.as_bytes() || block.len() > 2 && name.starts_with(&block.as_bytes()[..3])
                };
                text.push(if BLOCKS.iter().any(begins) { char::from(LINE_END) } else { ' ' });
            }
            _ => text.push(' '),
        }
        match token {
            Token::StartTag(tag) => {
                let state = match &tag.name[..] {
                    b"script" => Some(State::ScriptData),
                    b"style" | b"xmp" => Some(State::RawText),
                    b"title" | b"textarea" => Some(State::RcData),
                    b"plaintext" => Some(State::PlainText),
                    _ => None,
                };
                if let Some(state) = state {
                    tokens.set_state(state);
                    dropped = matches!(&tag.name[..], b"script" | b"style");
                }
                in_title = &tag.name[..] == b"title";
                titles += usize::from(in_title);
                if matches!(&tag.name[..], b"a" | b"area")
                    && let Some(href) = tag.attributes.get(&b"href"[..])
                {
                    hrefs.push(String::from_utf8(href.to_vec()).expect("a value in a str is UTF-8"));
                }
            }
            Token::EndTag(_) => (dropped, in_title) = (false, false),
            _ => {}
        }
    }
    (text, joined(&title), hrefs)
}

fn scan(html: &str, max_links: usize, page: &mut Extract) {
    crate::text::scan(html.as_bytes(), max_links, chosen().expect("no level is asked for"), page);
}

/// The words of each line that has some.
fn lines(text: &str) -> String {
    let lines = text.split(char::from(LINE_END)).map(joined).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("|")
}

fn joined(text: &str) -> String {
    words(text).collect::<Vec<_>>().join(" ")
}

/// Pieces that change the state of a tokenizer, and some that should not.
const PIECES: &[&str] = &[
    "<",
    ">",
    "/",
    "!",
    "?",
    "-",
    "--",
    "-->",
    "--!>",
    "<!--",
    "<!-->",
    "<!--->",
    "<!",
    "<?",
    "</",
    "<!DOCTYPE ",
    "<![CDATA[",
    "]]>",
    "=",
    "= ",
    "'",
    "\"",
    " ",
    "\n",
    "\t",
    "\r",
    "\u{c}",
    "\0",
    "é",
    "日",
    "w",
    "x1",
    ";",
    "&",
    "&amp",
    "&amp;",
    "&not",
    "&notin;",
    "&eacute",
    "&copy=",
    "&#",
    "&#x",
    "&#233",
    "&#xe9;",
    "&#x80;",
    "&#0;",
    "&#xd800;",
    "&#99999999999;",
    "&nosuch;",
    "&acE;",
    "<a",
    "<a ",
    "<a href=",
    "<A HREF='/p?a&copy=1&lt;'>",
    " href=u",
    " href='v'",
    " href=\"w>\"",
    "<area href=z>",
    "<b>",
    "</b>",
    "<p class='",
    "<br/>",
    "<li>",
    "</td >",
    "<H2 id=x>",
    "<font>",
    "<script",
    "<script>",
    "</script",
    "</script>",
    "</SCRIPT >",
    "<!--<script>",
    "<style>",
    "</style>",
    "</style ",
    "<title>",
    "</title>",
    "</titles>",
    "<textarea>",
    "</textarea/>",
    "<xmp>",
    "</xmp>",
    "<iframe src=x>",
    "</iframe>",
    "<noembed>",
    "</noembed>",
    "<noframes>",
    "</noframes>",
    "<noscript>",
    "</noscript>",
    "<plaintext ",
    "if (a<b) ",
    "a = 'b'",
    "word ",
    "end.",
];

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn the_scanner_reads_tag_soup_as_html5gum_does(html in soup()) {
        // The scanner makes a space of it, like other markup; html5 has no token for it.
        prop_assume!(!html.contains("</>"));
        let mut page = Extract::default();
        scan(&html, usize::MAX, &mut page);
        let (text, title, hrefs) = by_html5gum(&html);
        prop_assert_eq!(lines(str::from_utf8(&page.text).unwrap()), lines(&text));
        let scanned: Vec<String> =
            page.hrefs.iter().map(|href| href.replace('\r', "\n")).collect();
        prop_assert_eq!(scanned, hrefs);
        if !title.is_empty() {
            prop_assert_eq!(joined(&page.title), title);
        }
    }

    #[test]
    fn no_bytes_make_the_layer_panic(body in prop::collection::vec(any::<u8>(), 0..200), html in soup()) {
        let mut page = Extract::default();
        for body in [&body[..], html.as_bytes(), &[&body[..], html.as_bytes()].concat()] {
            for label in [None, Some("utf-8"), Some("shift_jis"), Some("utf-16le")] {
                scan(&crate::text::decode(body, label).0, 10, &mut page);
            }
        }
        if let Some(url) = crate::text::canonical("http://a.example/b") {
            crate::text::out_links(Some(&url), Some(&html), [&html[..], &String::from_utf8_lossy(&body)]);
        }
        crate::text::domain(&html);
    }
}

/// Hostile pages, up to megabytes each. If any of them took quadratic time, this test would run for
/// many minutes; so it would with the smaller ones of other processors, which are emulated
/// (scripts/aarch64.sh).
#[test]
fn hostile_pages_are_read_to_their_end() {
    let mut page = Extract::default();
    let n = if cfg!(target_arch = "x86_64") { 100_000 } else { 20_000 };
    let forms = [
        "<",
        "</",
        "<!",
        "<!--",
        "<a ",
        "<a",
        "<a b='",
        "<script><!--<script>",
        "<script>",
        "</script",
        "<style></",
        "<title></titl",
        "<svg><style><",
        "<svg><style><aaaaaaaaaaaaaaaaaaaa",
        "<title> </title>",
        "&",
        "&#",
        "&#1",
        "&#x",
        "&a",
        "&CounterClockwiseContourIntegra",
        "<svg>",
        "<svg><![CDATA[",
        "<![CDATA[",
        "a",
        "<a href=x ",
        " href",
        "=",
        "\"",
        "'",
        "-",
        "<!---",
        "--!",
        "<base href=",
        "\0",
        "<textarea>&lt;<",
        "<div>",
        "<a href='&amp;'>",
        "é<",
        "</é",
        "<é",
    ];
    for form in forms {
        for start in ["", "<a ", "<!--", "<script><!--", "<svg><![CDATA[", "<svg><style>", "<title>", "<xmp>"] {
            let html = format!("{start}{}", form.repeat(n));
            scan(&html, 100, &mut page);
            assert!(page.text.len() <= 2 * html.len(), "{start} {form}");
        }
    }
}
