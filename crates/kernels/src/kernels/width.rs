//! Sorts rows of any type by their width, so that the sort is compiled once for each width and not
//! once for each type.
//!
//! One sort of the standard library is 12 kB of code, and the program has some 150 types of rows
//! that it sorts where that takes no time.

use std::cmp::Ordering;
use std::mem::MaybeUninit;

/// Compares the rows at two addresses.
type Compare<'a> = &'a dyn Fn(*const u8, *const u8) -> Ordering;

/// Sorts by a comparison, not stably, as [`slice::sort_unstable_by`] does; `false`, with nothing
/// done, if no sort is compiled for the width and the alignment of `T`.
///
/// `T` is `Copy` since a type that is not may change behind a shared reference while it is
/// compared; a sort of bytes would lose that.
pub(crate) fn sort<T: Copy>(rows: &mut [T], compare: impl Fn(&T, &T) -> Ordering) -> bool {
    // SAFETY: `sort_as` calls this with addresses of rows: they are valid for the call, and aligned
    // as `T`.
    let compare = |a: *const u8, b: *const u8| compare(unsafe { &*a.cast::<T>() }, unsafe { &*b.cast::<T>() });
    let (first, length) = (rows.as_mut_ptr(), rows.len());
    macro_rules! by_width {
        ($($unit:ty: $($count:literal)*;)*) => {
            match (align_of::<T>(), size_of::<T>()) {
                $($((align, size) if align == align_of::<$unit>() && size == $count * size_of::<$unit>() => {
                    // SAFETY: these are the same bytes, of the same width and alignment; any bytes
                    // are a `MaybeUninit`, and none is made that is not one of the rows. `rows` is
                    // not used meanwhile.
                    let rows = unsafe { std::slice::from_raw_parts_mut(first.cast::<MaybeUninit<[$unit; $count]>>(), length) };
                    sort_as(rows, &compare);
                    true
                })*)*
                _ => false,
            }
        };
    }
    by_width! {
        u32: 1 2 3 4 5 6;
        u64: 1 2 3 4 5 6 7 8;
        u128: 1 2 3;
    }
}

/// The sort of one width.
#[inline(never)]
fn sort_as<W: Copy>(rows: &mut [W], compare: Compare) {
    rows.sort_unstable_by(|a, b| compare((&raw const *a).cast(), (&raw const *b).cast()));
}
