//! What goes from the texts of records that stay.
//!
//! In reading order: `gone` (a text without some paragraphs or passages), `paragraphs` (lines of
//! texts), `paragraph_place` (where one is), `repeated` (paragraphs that go from documents that
//! stay), `overlap` (those most of whose n-grams stand before), `passages` (passages that do).

mod gone;
mod overlap;
mod paragraph_place;
mod paragraphs;
mod passages;
mod repeated;

pub use self::gone::{CutAt, PassageRules, WhichPassages};
pub(super) use self::gone::{Gone, LeftTexts, PassagePlace};
pub use self::overlap::OverlapRule;
pub(super) use self::paragraph_place::ParagraphPlace;
pub use self::paragraphs::ParagraphRules;
pub(super) use self::paragraphs::text_of;
pub use self::passages::DroppedPassages;
pub use self::repeated::ParagraphSearch;
