//! Statistics of the studies, computed from finished tables by plain functions.
//!
//! The functions take rows of tables and return numbers. They use no timely, no files and no
//! threads. In reading order:
//!
//! - `accuracy`: shares from samples, with confidence intervals, and what probabilities of links
//!   say of them;
//! - `powerlaw`: the exponent of the distribution of cluster sizes (Fetterly 2004, Fig. 1);
//! - `fitted`: a power law as the line that a plot shows;
//! - `evolution`: retention, changes of hosts, change amounts (Fetterly 2004, section 3);
//! - `machines`: how many machines hosts are on.

mod accuracy;
mod evolution;
mod fitted;
mod machines;
mod powerlaw;

pub use accuracy::{BANDS, Expectation, ExpectedPairs, SampledShare, band, binomial_tail};
pub use evolution::{
    AmountShare, BySize, Change, ChangeAmounts, ChangeShare, RetentionSums, SizeClass, add_by_size, change_amount,
    cluster_changes, ratio,
};
pub use fitted::{Fitted, fit_words, law_line};
pub use machines::machines;
pub use powerlaw::{Fit, MIN_TAIL, fit};
