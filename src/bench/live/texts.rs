//! Made-up documents for `nigh bench live`, as lines of batches: of each ten about one is a copy
//! and two are near-duplicates.

use nigh_bench::synthetic::{Script, Vocabulary};

use crate::records::mix;

/// Documents of as many words each.
pub(super) struct MadeDocuments {
    vocabulary: Vocabulary,
    words: u64,
}

impl MadeDocuments {
    pub(super) fn new(words: u64) -> MadeDocuments {
        MadeDocuments { vocabulary: Vocabulary::new(Script::Latin), words }
    }

    /// Writes the line of a document. Its number is its id.
    pub(super) fn write(&self, number: u64, out: &mut String) {
        let (of, change) = origin(number);
        out.push_str("{\"id\":\"");
        out.push_str(&number.to_string());
        out.push_str("\",\"text\":\"");
        for place in 0..self.words {
            let random = match change {
                Some(change) if change % self.words == place => mix(change),
                _ => mix(of.wrapping_mul(0x1_0001) << 12 ^ place),
            };
            self.vocabulary.write(self.vocabulary.draw(random), out);
            out.push(' ');
        }
        out.push_str("\"}\n");
    }

    /// The lines of a batch.
    pub(super) fn batch(&self, numbers: std::ops::Range<u64>) -> String {
        let mut lines = String::new();
        numbers.for_each(|number| self.write(number, &mut lines));
        lines
    }
}

/// The document whose text a document has, and the word by which it differs from that.
fn origin(number: u64) -> (u64, Option<u64>) {
    let random = mix(number ^ 0x11FE);
    let kind = random % 10;
    if number == 0 || kind > 2 {
        return (number, None);
    }
    // Any earlier one, or what that is a copy of.
    let (of, _) = origin(mix(random) % number);
    (of, (kind > 0).then(|| mix(random ^ 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_documents_are_copies_and_others_differ_by_a_word() {
        let documents = MadeDocuments::new(50);
        let text = |number: u64| {
            let line = documents.batch(number..number + 1);
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(line["id"], number.to_string());
            line["text"].as_str().unwrap().split(' ').map(str::to_owned).collect::<Vec<_>>()
        };
        let mut counts = [0; 3];
        for number in 0..1000 {
            let (of, change) = origin(number);
            let differences = text(number).iter().zip(text(of)).filter(|(a, b)| *a != b).count();
            match change {
                _ if of == number => counts[0] += 1,
                None => {
                    assert_eq!(differences, 0);
                    counts[1] += 1;
                }
                Some(_) => {
                    assert!(differences <= 1, "{differences}");
                    counts[2] += 1;
                }
            }
        }
        assert!((650..750).contains(&counts[0]) && counts[1] > 60 && counts[2] > 140, "{counts:?}");
    }
}
