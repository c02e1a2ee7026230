//! Runs code of other crates that can panic on damaged input, so that the panic is a reason and not
//! the end of the program.
//!
//! The program ends when a thread panics (`launch::exit_on_panic`), because a panic of nigh is a
//! fault in nigh. A panic of a decoder on a damaged file is not: the file is bad input, and bad
//! input is a reject. A panic inside [`contained`] therefore neither ends the program nor is
//! printed.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether this thread is inside [`contained`].
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// The longest cause, in bytes.
const CAUSE: usize = 80;

/// Whether a panic of this thread will be returned by [`contained`]. Panic hooks ask it, and do
/// nothing then.
pub fn is_contained() -> bool {
    IS_CONTAINED.get()
}

/// Runs `work`, and returns the cause if it panics: a short phrase for the reason of a reject.
///
/// The caller must drop whatever `work` changed if it panics, because that can be in any state; so
/// no value is used after it was left half changed, which is what `UnwindSafe` guards.
///
/// # Errors
/// If `work` panics.
pub fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static QUIET: Once = Once::new();
    // For programs that did not install the hook of `launch`: tests, a dry run, and users of the
    // library.
    QUIET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !is_contained() {
                before(info);
            }
        }));
    });
    let outer = IS_CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_CONTAINED.set(outer);
    result.map_err(|payload| cause(payload.as_ref()))
}

/// Returns the message of a panic up to the first number or colon, so that equal faults have equal
/// causes.
fn cause(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or_default();
    let phrase = text.split(|sign: char| sign == ':' || sign.is_ascii_digit() || !(' '..='~').contains(&sign)).next();
    let mut cause = phrase.unwrap_or_default().trim().to_owned();
    cause.truncate(CAUSE);
    if cause.is_empty() { "the decoder failed".to_owned() } else { cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_returned_as_a_short_cause() {
        assert_eq!(contained(|| 7), Ok(7));
        let zero = std::hint::black_box(0);
        assert_eq!(contained(|| 1 / zero).unwrap_err(), "attempt to divide by zero");
        let empty: Vec<u8> = Vec::new();
        assert_eq!(contained(|| empty[zero]).unwrap_err(), "index out of bounds");
        assert_eq!(contained(|| std::panic::panic_any(7)).unwrap_err(), "the decoder failed");
        assert_eq!(contained(|| panic!("{}", "\u{1b}[2J")).unwrap_err(), "the decoder failed");
        assert!(!is_contained());
    }
}
