//! The main content of a page: what is left without menus, footers, notices and the like.
//!
//! The crate `dom_smoothie` finds it, as browsers do for their reading view (the algorithm of
//! Mozilla's Readability): it builds the tree of the page, scores elements by the text in them and
//! by their names, and gives the markup of the best one with its siblings. The text of that markup
//! is then read as that of any page.
//!
//! Nothing is found of a page with little text, and of one whose tree would be too costly
//! ([`tree_cost`](super::tree_cost)). A panic of the crate is taken as nothing found, too.
//!
//! The result is a function of the bytes of the page: neither its URL nor other pages count.

use nigh_kernels::kernels::Kernels;

use super::html::{Extract, scan};
use crate::method::Content;

/// As [`scan`], but the text is that of the main content if `content` says so. Title, base and
/// hrefs are those of the whole page. Returns whether the main content was asked for and not found:
/// then the text is that of the whole page.
pub fn scan_content(page: &[u8], content: Content, max_links: usize, kernels: &Kernels, out: &mut Extract) -> bool {
    scan(page, max_links, kernels, out);
    if content == Content::Page {
        return false;
    }
    let Some(main) = main_content(page) else { return true };
    let mut read = Extract::default();
    scan(main.as_bytes(), 0, kernels, &mut read);
    let has_words = String::from_utf8_lossy(&read.text).chars().any(char::is_alphanumeric);
    if has_words {
        out.text = read.text;
    }
    !has_words
}

/// The markup of the main content of a page.
#[cfg(feature = "main-content")]
fn main_content(page: &[u8]) -> Option<String> {
    use dom_smoothie::{Config, Readability};

    // The parser keeps a message for each NUL. It is not part of a word, as a blank.
    let page = String::from_utf8_lossy(page).replace('\0', " ");
    if !super::tree_cost::is_bounded(page.as_bytes()) {
        return None;
    }
    let config = Config { disable_json_ld: true, ..Config::default() };
    let find = || Some(Readability::new(page, None, Some(config)).ok()?.parse().ok()?.content.to_string());
    crate::contained::contained(find).ok().flatten()
}

/// Without the feature there is none; a job that asks for it is refused before.
#[cfg(not(feature = "main-content"))]
fn main_content(_: &[u8]) -> Option<String> {
    None
}

#[cfg(all(test, feature = "main-content"))]
mod tests {
    use nigh_kernels::kernels::chosen;
    use proptest::prelude::*;

    use super::*;
    use crate::text::words;

    #[test]
    fn a_name_with_nul_is_no_other_element_than_for_the_parser() {
        let page = "<p>Some words, and more words.</p>".to_owned() + &"<div><script\0></div></script>".repeat(5000);
        assert_eq!(main_content(page.as_bytes()), None);
    }

    /// The words of the main content, and whether none was found.
    fn main_words(page: &str) -> (Vec<String>, bool) {
        let mut read = Extract::default();
        let is_whole = scan_content(page.as_bytes(), Content::Main, 10, chosen().unwrap(), &mut read);
        (words(str::from_utf8(&read.text).unwrap()).map(str::to_owned).collect(), is_whole)
    }

    /// A page with this text in a template.
    fn page(text: &str) -> String {
        format!(
            "<html><head><title>A title</title></head><body><nav id=menu><ul><li><a href=/>Home</a><li><a href=/shop>Shop</a></ul></nav>\
             <div id=cookie-banner class=banner>We use cookies</div><article><h2>Heading</h2>{text}</article>\
             <footer class=footer><a href=/imprint>Imprint</a> All rights reserved</footer></body></html>"
        )
    }

    fn sentences(count: usize) -> String {
        (0..count)
            .map(|n| format!("<p>Sentence {n} of the text, which has some words, and a few commas, too.</p>"))
            .collect()
    }

    #[test]
    fn menus_and_footers_are_no_words_and_links_are_those_of_the_page() {
        let (found, is_whole) = main_words(&page(&sentences(20)));
        assert!(!is_whole);
        let text = found.join(" ");
        assert!(text.starts_with("Heading Sentence 0 of the text"), "{text}");
        assert!(text.ends_with("and a few commas too"), "{text}");
        let mut read = Extract::default();
        scan_content(page(&sentences(20)).as_bytes(), Content::Main, 10, chosen().unwrap(), &mut read);
        assert_eq!((read.title.as_str(), read.hrefs.len()), ("A title", 3));
    }

    #[test]
    fn a_page_of_which_nothing_is_found_is_read_whole() {
        let whole = |page: &str| {
            let mut read = Extract::default();
            scan(page.as_bytes(), 10, chosen().unwrap(), &mut read);
            words(&String::from_utf8_lossy(&read.text)).map(str::to_owned).collect::<Vec<_>>()
        };
        let deep = format!("{}{}", "<div>".repeat(1000), sentences(20));
        for page in ["", "<nav style='display:none'>a b c</nav>", deep.as_str()] {
            assert_eq!(main_words(page), (whole(page), true), "{page:.40}");
        }
    }

    proptest! {
        #[test]
        fn no_page_panics_and_two_readings_are_equal(
            parts in prop::collection::vec(("</?(div|p|table|tr|td|b|i|a|ul|li|svg|title|template|select|body|h1)( id=main| class=ad)?>", "[a-z, &;\0]{0,80}"), 0..60)
        ) {
            let page: String = parts.into_iter().flat_map(|(tag, text)| [tag, text]).collect();
            prop_assert_eq!(main_words(&page), main_words(&page));
        }
    }
}
