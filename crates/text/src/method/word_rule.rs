//! What a word is: `words` in the table of the method, and the number of words in a shingle.
//!
//! ```toml
//! words = 5                          # letters and digits, five in a shingle
//! words = "code"                     # identifiers, numbers and symbols
//! words = "characters"               # each character
//! words = "icu"                      # words as ICU cuts them, by dictionaries in scripts without blanks
//! words = { pattern = '[\w-]+' }     # what a regular expression finds
//! shingle = 8                        # with a name or a pattern: the words in a shingle
//! ```

use std::fmt;

use anyhow::{Result, ensure};
use regex_automata::meta::Regex;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a word is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WordRule {
    /// A maximal run of letters and digits; in scripts without blanks as
    /// [`Spaceless`](super::Spaceless) says.
    #[default]
    Letters,
    /// In source code: an identifier, a number or a keyword, that is, a maximal run of letters,
    /// digits and `_`; and each other character that is not white space: `==` are two words.
    /// Letters of scripts without blanks are as with `Letters`.
    Code,
    /// Each character that is not white space or a control character.
    Characters,
    /// What ICU takes for a word: by the rules of Unicode (UAX #29), and in scripts without blanks
    /// by dictionaries.
    Icu,
    /// What a regular expression finds.
    Pattern(WordPattern),
}

/// A regular expression whose matches are words.
#[derive(Clone, Debug)]
pub struct WordPattern {
    text: String,
    regex: Regex,
}

/// The bytes that a compiled pattern may take, so that one of some characters does not take all
/// memory.
const MOST_BYTES: usize = 16 << 20;

impl WordRule {
    /// The words in a shingle, unless the job says another number.
    pub fn usual_shingle(&self) -> usize {
        match self {
            // Five words of English are about as many characters.
            WordRule::Characters => 24,
            _ => 5,
        }
    }

    /// Whether case does not count, unless the job says that it does.
    pub fn folds_case(&self) -> bool {
        *self == WordRule::Code
    }

    /// Checks that this program can cut texts by it.
    ///
    /// # Errors
    /// If it is that of ICU, and the program is built without the feature `icu-words`.
    pub fn check(&self) -> Result<()> {
        ensure!(
            *self != WordRule::Icu || cfg!(feature = "icu-words"),
            "words = \"icu\": this nigh is built without the feature `icu-words`, and has no dictionaries. Build it with --features icu-words, \
             or leave `words` out: then each letter of a script without blanks is a word"
        );
        Ok(())
    }

    /// The name in jobs; none of a pattern.
    fn name(&self) -> Option<&'static str> {
        match self {
            WordRule::Letters => Some("letters"),
            WordRule::Code => Some("code"),
            WordRule::Characters => Some("characters"),
            WordRule::Icu => Some("icu"),
            WordRule::Pattern(_) => None,
        }
    }

    fn of_name(name: &str) -> Option<WordRule> {
        let all = [WordRule::Letters, WordRule::Code, WordRule::Characters, WordRule::Icu];
        all.into_iter().find(|rule| rule.name() == Some(name))
    }
}

impl fmt::Display for WordRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WordRule::Pattern(pattern) => write!(f, "{{ pattern = {:?} }}", pattern.text),
            rule => f.write_str(rule.name().unwrap_or_default()),
        }
    }
}

impl WordPattern {
    /// Compiles a pattern: the syntax of the crate `regex`, with Unicode.
    ///
    /// # Errors
    /// If it is no pattern, or too large; the message says where.
    pub fn new(text: &str) -> Result<WordPattern, String> {
        let config = Regex::config().nfa_size_limit(Some(MOST_BYTES));
        let regex = Regex::builder().configure(config).build(text).map_err(|error| {
            if let Some(most) = error.size_limit() {
                return format!(
                    "the pattern `{text}` of `words` is too large: compiled, it has more than {most} bytes"
                );
            }
            let cause = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
            format!("the pattern `{text}` of `words` is no regular expression: {cause}")
        })?;
        Ok(WordPattern { text: text.to_owned(), regex })
    }

    /// The compiled pattern.
    pub(crate) fn regex(&self) -> &Regex {
        &self.regex
    }
}

impl PartialEq for WordPattern {
    fn eq(&self, other: &WordPattern) -> bool {
        self.text == other.text
    }
}

impl Eq for WordPattern {}

/// The value of `words`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WordsValue {
    /// The words in a shingle.
    Shingle(usize),
    /// What a word is.
    Rule(WordRule),
}

impl WordsValue {
    /// The rule, and the words in a shingle, given the value of `shingle`.
    pub(super) fn rule(value: Option<WordsValue>, shingle: Option<usize>) -> Result<(WordRule, usize), String> {
        match (value, shingle) {
            (Some(WordsValue::Shingle(words)), Some(shingle)) => Err(format!(
                "words = {words} and shingle = {shingle} both say how many words a shingle has: leave one out, or say with `words` what a word is"
            )),
            (Some(WordsValue::Shingle(words)), None) => Ok((WordRule::Letters, words)),
            (Some(WordsValue::Rule(rule)), shingle) => {
                let usual = rule.usual_shingle();
                Ok((rule, shingle.unwrap_or(usual)))
            }
            (None, shingle) => Ok((WordRule::Letters, shingle.unwrap_or(WordRule::Letters.usual_shingle()))),
        }
    }

    /// The values of `words` and `shingle`.
    pub(super) fn of(rule: WordRule, words: usize) -> (WordsValue, Option<usize>) {
        match rule {
            WordRule::Letters => (WordsValue::Shingle(words), None),
            rule => (WordsValue::Rule(rule), Some(words)),
        }
    }
}

/// A pattern as a table.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternTable {
    pattern: String,
}

impl Serialize for WordsValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            WordsValue::Shingle(words) => words.serialize(serializer),
            WordsValue::Rule(WordRule::Pattern(pattern)) => {
                PatternTable { pattern: pattern.text.clone() }.serialize(serializer)
            }
            WordsValue::Rule(rule) => rule.name().unwrap_or_default().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for WordsValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WordsValue, D::Error> {
        struct Values;

        impl<'de> Visitor<'de> for Values {
            type Value = WordsValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number of words in a shingle, or what a word is: \"letters\", \"code\", \"characters\", \"icu\" or { pattern = '...' }")
            }

            fn visit_u64<E: Error>(self, words: u64) -> Result<WordsValue, E> {
                Ok(WordsValue::Shingle(usize::try_from(words).unwrap_or(usize::MAX)))
            }

            fn visit_i64<E: Error>(self, words: i64) -> Result<WordsValue, E> {
                usize::try_from(words)
                    .map(WordsValue::Shingle)
                    .map_err(|_| E::custom(format!("words = {words}: allowed is 1 to 64")))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<WordsValue, E> {
                let wrong = || E::invalid_value(serde::de::Unexpected::Str(name), &self);
                WordRule::of_name(name).map(WordsValue::Rule).ok_or_else(wrong)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WordsValue, A::Error> {
                let PatternTable { pattern } = PatternTable::deserialize(MapAccessDeserializer::new(map))?;
                let pattern = WordPattern::new(&pattern).map_err(A::Error::custom)?;
                Ok(WordsValue::Rule(WordRule::Pattern(pattern)))
            }
        }

        deserializer.deserialize_any(Values)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Method;
    use super::*;

    fn method(text: &str) -> Result<Method, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn words_are_a_number_a_name_or_a_pattern() {
        let of = |text: &str| method(text).map(|method| (method.rule.to_string(), method.words, method.form.fold_case));
        for (text, rule, words, folds_case) in [
            ("", "letters", 5, false),
            ("words = 7", "letters", 7, false),
            ("words = \"letters\"", "letters", 5, false),
            ("shingle = 9", "letters", 9, false),
            ("words = \"code\"", "code", 5, true),
            ("words = \"code\"\nfold-case = false\nshingle = 8", "code", 8, false),
            ("words = \"characters\"", "characters", 24, false),
            ("words = \"icu\"\nshingle = 3", "icu", 3, false),
            ("words = { pattern = '[a-z]+' }", "{ pattern = \"[a-z]+\" }", 5, false),
        ] {
            assert_eq!(of(text).unwrap(), (rule.to_owned(), words, folds_case), "{text}");
            let once = method(text).unwrap();
            let written = toml::to_string(&once).unwrap();
            assert_eq!(method(&written).unwrap(), once, "{written}");
            assert_eq!(serde_json::from_str::<Method>(&serde_json::to_string(&once).unwrap()).unwrap(), once);
        }
        // A store that was made before has a method of the same name.
        assert!(method("words = \"letters\"\nshingle = 6").unwrap().to_string().starts_with("words = 6, features = "));
        assert!(method("words = \"code\"").unwrap().to_string().starts_with("words = code, shingle = 5, features = "));
        assert_ne!(
            method("words = { pattern = 'a' }").unwrap().hash(),
            method("words = { pattern = 'b' }").unwrap().hash()
        );
    }

    #[test]
    fn a_program_without_the_feature_refuses_words_of_icu() {
        WordRule::Code.check().unwrap();
        let refused = WordRule::Icu.check().map_err(|error| error.to_string()).err();
        assert_eq!(refused.is_none(), cfg!(feature = "icu-words"));
        assert!(refused.is_none_or(|text| text.contains("built without the feature `icu-words`")));
    }

    #[test]
    fn mistakes_in_words_say_what_is_allowed() {
        for (text, wanted) in [
            ("words = \"coed\"", "\"letters\", \"code\", \"characters\", \"icu\" or { pattern = '...' }"),
            ("words = 1.5", "the number of words in a shingle, or what a word is"),
            ("words = -1", "words = -1: allowed is 1 to 64"),
            ("words = 65", "words = 65: allowed is 1 to 64"),
            ("words = \"code\"\nshingle = 0", "shingle = 0: allowed is 1 to 64"),
            ("words = 5\nshingle = 6", "both say how many words a shingle has"),
            ("words = { pattern = '[a' }", "the pattern `[a` of `words` is no regular expression"),
            ("words = { pattern = '\\w{1000}{1000}' }", "is too large: compiled, it has more than 16777216 bytes"),
            ("words = { regex = 'a' }", "unknown field `regex`, expected `pattern`"),
        ] {
            let error = method(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
