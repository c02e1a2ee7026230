//! The pieces of the inputs that no worker of a process reads yet.
//!
//! A process has a share of each wave that only its own workers read. Each takes the next piece when it has read one, the largest first, so
//! that all are busy until the last pieces. Which worker reads a piece has no effect on the tables.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::plan::Plan;
use crate::readers::InputPiece;

/// A piece of the input with this number in the plan.
pub type PieceOfInput = (usize, InputPiece);

/// The pieces of each wave that was begun, the next one last.
#[derive(Default)]
pub struct UnreadPieces(Mutex<BTreeMap<usize, Vec<PieceOfInput>>>);

impl UnreadPieces {
    /// Takes the next piece of a wave that a process has to read; `None` if there are no more.
    pub fn take(&self, plan: &Plan, wave: usize, process: usize) -> Option<PieceOfInput> {
        let share = || {
            let mut share = plan.share(wave, process, plan.processes);
            share.reverse();
            share
        };
        // A worker that panicked has failed the run; it left the list as it was, or with one piece less.
        let mut waves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waves.entry(wave).or_insert_with(share).pop()
    }
}
