//! Words: `alphabet` (which characters make words), `spaceless` (which are words by themselves),
//! `joined` (words with one blank between them).

pub(super) mod alphabet;
pub(super) mod joined;
pub(super) mod spaceless;

pub use self::joined::JoinedWords;
pub use self::spaceless::{character, is_spaceless};
