//! The pieces of the inputs that a process is to read next.
//!
//! [`deal`](super::deal()) fills the list; the workers of the process take from it, each the next
//! piece when it has read one. Which worker reads a piece has no effect on the tables.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::plan::PieceOfInput;

/// The pieces that a process was given and that none of its workers has taken.
pub struct UnreadPieces(Mutex<PiecesByWave>);

struct PiecesByWave {
    /// The pieces of each wave, in the order in which they are read.
    pieces: BTreeMap<usize, VecDeque<PieceOfInput>>,
    /// The waves of which the process may get more pieces. It has all of the waves before.
    waves: Range<usize>,
    /// The wave that is not read any more, nor are those after it.
    end: usize,
    /// The last wave that a worker wanted a piece of.
    reached: usize,
    /// The number of workers of the process.
    workers: usize,
    /// The number of pieces of its last answer of this wave.
    answered: usize,
    /// Whether it waits for an answer.
    has_asked: bool,
    /// The last wave in which a worker found no piece.
    starved_wave: Option<usize>,
}

/// What a worker gets when it asks for a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextPiece {
    /// The piece to read.
    Piece(PieceOfInput),
    /// There may be one later.
    NotYet,
    /// No piece of this wave is left.
    End,
}

impl UnreadPieces {
    /// No pieces yet of these waves, for a process of this many workers.
    pub fn new(workers: usize, waves: Range<usize>) -> UnreadPieces {
        let pieces = BTreeMap::new();
        let (reached, end) = (waves.start, waves.end);
        let (answered, has_asked, starved_wave) = (0, false, None);
        UnreadPieces(Mutex::new(PiecesByWave {
            pieces,
            waves,
            end,
            reached,
            workers,
            answered,
            has_asked,
            starved_wave,
        }))
    }

    /// Takes the next piece of a wave.
    pub fn take(&self, wave: usize) -> NextPiece {
        let mut unread = self.lock();
        unread.reached = unread.reached.max(wave);
        match unread.pieces.get_mut(&wave).and_then(VecDeque::pop_front) {
            Some(piece) => NextPiece::Piece(piece),
            None if unread.waves.contains(&wave) => {
                unread.starved_wave = Some(wave);
                NextPiece::NotYet
            }
            // It will see that there are no more waves.
            None if wave >= unread.end => NextPiece::NotYet,
            None => NextPiece::End,
        }
    }

    /// The wave at which reading ends: that of the plan, or an earlier one if the run is ended
    /// after a wave. It is known before any worker can have passed it.
    pub fn end(&self) -> usize {
        self.lock().end
    }

    /// Ends the reading before this wave, of which no process has a piece.
    pub fn end_before(&self, wave: usize) {
        let mut unread = self.lock();
        (unread.end, unread.waves) = (wave, wave..wave);
    }

    /// The wave of which the process wants more pieces, if it is time to ask for them. It asks
    /// again only after [`UnreadPieces::add`].
    ///
    /// While answers are long, it is time when half of one is taken, so that no worker waits. When
    /// they have become short, few pieces are left for all processes, and it is time only when a
    /// worker waits: a process must not hold a piece that another one could read. The first answer
    /// of the next wave comes early, so that the process has something to read while worker 0
    /// writes; but not that of the wave after the next, before which the run may be ended.
    pub fn wanted(&self) -> Option<usize> {
        let mut unread = self.lock();
        let wave = unread.waves.clone().next()?;
        let left = unread.pieces.get(&wave).map_or(0, VecDeque::len);
        let wants = match unread.answered {
            0 => wave <= unread.reached + 1,
            answered if answered > unread.workers => left < answered / 2,
            _ => left == 0 && unread.starved_wave == Some(wave),
        };
        let asks = wants && !unread.has_asked;
        unread.has_asked |= asks;
        asks.then_some(wave)
    }

    /// Adds the pieces of the answer; `is_last` says that none of the wave are left after them.
    pub fn add(&self, wave: usize, pieces: Vec<PieceOfInput>, is_last: bool) {
        let mut unread = self.lock();
        unread.has_asked = false;
        unread.starved_wave = None;
        unread.answered = if is_last { 0 } else { pieces.len() };
        unread.waves.start = wave + usize::from(is_last);
        unread.pieces.entry(wave).or_default().extend(pieces);
    }

    /// Whether the process has all that it gets.
    pub fn has_all(&self) -> bool {
        self.lock().waves.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, PiecesByWave> {
        // A worker that panicked has failed the run; it left the list as it was, or with one piece
        // less.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::InputPiece;

    #[test]
    fn a_process_asks_when_half_of_an_answer_is_read_and_ends_a_wave_with_its_last_piece() {
        let unread = UnreadPieces::new(1, 3..5);
        let piece = |file: usize| (file, InputPiece::WHOLE);
        assert_eq!((unread.wanted(), unread.wanted()), (Some(3), None));
        assert_eq!((unread.take(2), unread.take(3)), (NextPiece::End, NextPiece::NotYet));
        unread.add(3, (0..4).map(piece).collect(), false);
        for file in 0..3 {
            assert_eq!(unread.wanted(), None);
            assert_eq!(unread.take(3), NextPiece::Piece(piece(file)));
        }
        assert_eq!((unread.wanted(), unread.wanted()), (Some(3), None));
        unread.add(3, vec![piece(7)], true);
        assert_eq!((unread.wanted(), unread.wanted(), unread.has_all()), (Some(4), None, false));
        assert_eq!((unread.take(3), unread.take(3)), (NextPiece::Piece(piece(3)), NextPiece::Piece(piece(7))));
        assert_eq!((unread.take(3), unread.take(4)), (NextPiece::End, NextPiece::NotYet));
        unread.add(4, vec![], true);
        assert_eq!((unread.take(4), unread.wanted(), unread.has_all()), (NextPiece::End, None, true));
    }

    #[test]
    fn a_process_asks_for_the_next_wave_early_and_not_for_the_one_after_it() {
        let unread = UnreadPieces::new(1, 0..9);
        assert_eq!(unread.wanted(), Some(0));
        unread.add(0, vec![(0, InputPiece::WHOLE)], true);
        assert_eq!(unread.wanted(), Some(1));
        unread.add(1, vec![(1, InputPiece::WHOLE)], true);
        assert_eq!(unread.wanted(), None);
        assert_eq!(unread.take(0), NextPiece::Piece((0, InputPiece::WHOLE)));
        assert_eq!((unread.wanted(), unread.take(0), unread.wanted()), (None, NextPiece::End, None));
        assert_eq!((unread.take(1), unread.wanted()), (NextPiece::Piece((1, InputPiece::WHOLE)), Some(2)));
    }

    #[test]
    fn a_process_that_ends_before_a_wave_asks_for_no_more_and_its_workers_wait_there() {
        let unread = UnreadPieces::new(1, 3..9);
        assert_eq!((unread.wanted(), unread.end()), (Some(3), 9));
        unread.add(3, vec![(0, InputPiece::WHOLE)], true);
        assert_eq!((unread.wanted(), unread.take(4)), (Some(4), NextPiece::NotYet));
        unread.end_before(4);
        assert_eq!((unread.end(), unread.has_all(), unread.wanted()), (4, true, None));
        // The last wave is read to its end.
        assert_eq!(unread.take(3), NextPiece::Piece((0, InputPiece::WHOLE)));
        assert_eq!((unread.take(3), unread.take(4)), (NextPiece::End, NextPiece::NotYet));
    }

    #[test]
    fn after_a_short_answer_a_process_asks_when_a_worker_waits() {
        let unread = UnreadPieces::new(16, 0..1);
        let piece = (0, InputPiece::WHOLE);
        assert_eq!(unread.wanted(), Some(0));
        unread.add(0, vec![piece; 2], false);
        assert_eq!((unread.take(0), unread.wanted()), (NextPiece::Piece(piece), None));
        assert_eq!((unread.take(0), unread.wanted()), (NextPiece::Piece(piece), None));
        assert_eq!((unread.take(0), unread.wanted()), (NextPiece::NotYet, Some(0)));
    }
}
