//! Connected components.
//!
//! - [`union_find`]: shared by the workers of a process;
//! - [`own_union_find`]: those that one thread has to itself.

pub mod own_union_find;
pub mod union_find;

pub use self::own_union_find::OwnUnionFind;
pub use self::union_find::UnionFind;
