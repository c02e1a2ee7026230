//! What a person sees: lines and grids on a terminal, plots as SVG, texts in HTML.
//!
//! ```text
//! sheet                      lines and grids, cut to the width of a terminal
//! plot                       plots as SVG
//! markup                     texts as HTML and SVG have them
//! ```

use nigh_kernels::records;
use nigh_text::text;

pub mod markup;
pub mod plot;
pub mod sheet;
