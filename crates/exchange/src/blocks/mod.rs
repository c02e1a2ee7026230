//! Records of one partition, sent whole: `block` is what crosses workers, and `buffers` the pool of
//! its memory; `dealer` deals records into blocks, and `row_blocks` rows of any size.

pub(crate) mod block;
pub(crate) mod buffers;
pub(crate) mod dealer;
pub(crate) mod row_blocks;
