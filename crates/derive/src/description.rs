//! Doc comments as descriptions.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The first paragraph of a doc comment as one line; empty without a doc comment.
pub(crate) fn first_paragraph(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes.iter().filter_map(doc_line).collect();
    let lines = lines.iter().flat_map(|line| line.split('\n')).map(str::trim);
    let paragraph: Vec<&str> = lines.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty()).collect();
    paragraph.join(" ")
}

/// A sentence as the description of a column: without the period at its end, and with a small
/// letter at its start if the first word is not a name. A name has a second letter that is not
/// small.
pub(crate) fn of_column(sentence: &str) -> String {
    let sentence = sentence.strip_suffix('.').unwrap_or(sentence);
    let mut letters = sentence.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => sentence.to_owned(),
    }
}

/// A line of a doc comment; `None` for another attribute.
fn doc_line(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use syn::{DeriveInput, parse_str};

    use super::*;

    #[test]
    fn the_first_paragraph_is_one_line() {
        let of = |text: &str| first_paragraph(&parse_str::<DeriveInput>(text).unwrap().attrs);
        assert_eq!(of("/// One row for\n/// each page.\n#[other] struct A;"), "One row for each page.");
        assert_eq!(of("///\n/// One.\n///\n/// Two.\nstruct A;"), "One.");
        assert_eq!(of("/** One\n row. */ struct A;"), "One row.");
        assert_eq!(of("struct A;"), "");
    }

    #[test]
    fn a_description_is_a_sentence_without_its_capital_and_period() {
        for (sentence, description) in [
            ("Document id.", "document id"),
            ("A hash of the line.", "a hash of the line"),
            ("XXH3-128 of these bytes.", "XXH3-128 of these bytes"),
            ("URL of that page.", "URL of that page"),
            ("WARC-Record-ID.", "WARC-Record-ID"),
            ("`kept` or `gone`.", "`kept` or `gone`"),
            ("1 for the first.", "1 for the first"),
            ("Its host", "its host"),
            ("A", "A"),
            ("", ""),
        ] {
            assert_eq!(of_column(sentence), description);
        }
    }
}
