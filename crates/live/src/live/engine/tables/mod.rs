//! The tables in memory: what the engine knows of each document and node, in few bytes.
//!
//! In reading order: `doc_table` (documents), `node_table` (those of each node), `lists` (short
//! lists of numbers), `id_table` (a hash table of ids, which keys have, too).

pub(super) mod doc_table;
pub(super) mod id_table;
pub(super) mod lists;
pub(super) mod node_table;
