//! Genealogy: where the text of new pages comes from, and which paragraphs come and go, from one
//! week to the next. Beyond the study of [`paragraphs`](super), whose authors went on to ask this.
//!
//! A page is *born* in a week if the week before has no page with its URL. Its *parents* are pages
//! of the week before that have paragraphs of it, as few as explain all paragraphs that it has
//! inherited.
//!
//! ```text
//! page_changes pages whose set of paragraphs is another one than the week before
//! holders      paragraphs of these pages, and all pages that have them ─▶ paragraphs that appear or leave; for born pages, older holders
//! parents      of the holders, a few that cover the page; what they share with it, exactly
//! lifetimes    when each paragraph was seen first and last, from those of the week before and what appears and leaves
//! ```
//!
//! Only paragraphs of pages that changed are exchanged, and every worker knows them all while it
//! looks for their holders. Where they are too many for its memory, the paragraphs of all pages are
//! exchanged. Nothing depends on which of the two it is, nor on the number of workers.

mod holders;
mod lifetimes;
mod page_changes;
mod parents;
#[cfg(test)]
mod tests;

pub use self::holders::{Appearances, HeldParagraph, ParagraphEvent, held_paragraphs};
pub use self::lifetimes::{Lifetime, LifetimeReader, Lifetimes, WeekTurnover};
pub use self::page_changes::{TwoWeeks, sets_of_pages};
pub use self::parents::{Birth, Parent, births};
