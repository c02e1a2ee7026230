//! Questions to the workers that own what is asked: `ask` as a stream or in rounds, `lookup` about
//! nodes.

pub(crate) mod ask;
pub(crate) mod lookup;
