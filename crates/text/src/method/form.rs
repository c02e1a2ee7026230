//! The form in which words are compared.

use serde::{Deserialize, Serialize};

/// The form in which words are compared: what is done to a text before it is cut into words.
///
/// ```
/// use nigh_text::method::{Method, Spaceless};
///
/// let method: Method = toml::from_str("fold-case = true\nunicode = \"nfc\"")?;
/// assert!(method.form.fold_case && method.form.unicode == nigh_text::method::Unicode::Nfc);
/// assert_eq!(method.form.spaceless, Spaceless::Letters);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TextForm {
    /// Whether words are compared without case. Default: false.
    pub fold_case: bool,
    /// Whether words are compared without diacritics. Default: false.
    pub strip_diacritics: bool,
    /// The normal form of Unicode in which words are compared. Default: as they are.
    pub unicode: Unicode,
    /// What a word is in scripts that are written without blanks. Default: each letter.
    pub spaceless: Spaceless,
}

/// The normal form of Unicode in which words are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unicode {
    /// As they are.
    #[default]
    AsIs,
    /// Form C: a letter and its diacritics are one character where there is one (Unicode Standard
    /// Annex 15).
    Nfc,
}

/// What a word is in scripts that are written without blanks: Han, Hiragana, Katakana, Thai, Lao,
/// Khmer and Myanmar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spaceless {
    /// Each letter is a word, so that a shingle is a run of letters.
    #[default]
    Letters,
    /// Each run of letters is a word, as in scripts with blanks: the study's definition.
    Runs,
}
