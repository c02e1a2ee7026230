//! What a run says about the numbers of its method, where they find less than a user may expect.

use crate::config::{Method, RECALL, STUDY};
use crate::records::DocumentKey;

/// The least similarity of near-duplicates that programs for datasets have by default.
const USUAL_SIMILARITY: f64 = 0.8;

/// What to say about numbers that find too few pairs of the similarity of the method.
pub(crate) fn few_candidates(method: &Method) -> Option<String> {
    let similarity = f64::from(method.similarity?);
    let chance = method.shape().chance(similarity);
    (chance < RECALL).then(|| {
        format!(
            "of the pairs of similarity {similarity} only {:.1}% are linked directly by the numbers of the method. Without features, supershingles, \
             agreements and preset, nigh chooses numbers that link {:.0}%",
            100.0 * chance,
            100.0 * RECALL
        )
    })
}

/// What to say about documents of a dataset, if job and flags leave open how similar those of a
/// cluster are: the numbers of the study are made for near-copies of pages.
pub(crate) fn default_links(method: &Method, documents: Option<DocumentKey>) -> Option<String> {
    let is_dataset = matches!(documents, Some(DocumentKey::Id | DocumentKey::Row));
    let is_open = method.similarity.is_none() && method.shape() == STUDY;
    (is_dataset && is_open).then(|| {
        format!(
            "of the pairs of documents that are {}% similar, the default numbers link {:.1}%: --similarity {USUAL_SIMILARITY} chooses numbers that \
             link {:.0}%",
            100.0 * USUAL_SIMILARITY,
            100.0 * method.shape().chance(USUAL_SIMILARITY),
            100.0 * RECALL
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_those_of_the_curve() {
        let method = |text: &str| toml::from_str::<Method>(text).unwrap();
        let study = Method::default();
        let text = default_links(&study, Some(DocumentKey::Row)).unwrap();
        assert!(text.contains("80% similar, the default numbers link 2.6%") && text.contains("link 99%"), "{text}");
        assert_eq!(default_links(&study, Some(DocumentKey::Url)), None);
        assert_eq!(default_links(&study, None), None);
        for chosen in ["similarity = 0.9", "preset = \"minhash-14x8\"", "agreements = 3"] {
            assert_eq!(default_links(&method(chosen), Some(DocumentKey::Id)), None, "{chosen}");
        }
        assert_eq!((few_candidates(&study), few_candidates(&method("similarity = 0.8"))), (None, None));
        let few = few_candidates(&method("similarity = 0.8\npreset = \"fetterly-2004\"")).unwrap();
        assert!(few.contains("only 2.6% are linked directly"), "{few}");
    }
}
