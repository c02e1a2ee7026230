//! Numbers, as people read them.

/// Formats a number with commas between groups of three digits.
///
/// ```
/// assert_eq!(nigh_display::sheet::grouped(150_836_209), "150,836,209");
/// ```
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things, with the plural's `s` unless it is one.
///
/// ```
/// use nigh_display::sheet::plural;
/// assert_eq!([0, 1, 1200].map(|count| plural(count, "page")), ["0 pages", "1 page", "1,200 pages"]);
/// ```
pub fn plural(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(count), if count == 1 { "" } else { "s" })
}
