//! The registered domain of a host, by Mozilla's public suffix list.
//!
//! The list is 100,000 lines of generic code, compiled wherever it is called: a megabyte, and ten
//! seconds. So it is called here alone, by a function that is not generic, in a package that is
//! built once for all others and their tests.

/// The registered domain of a name, one label below its public suffix (`www.bbc.co.uk` to
/// `bbc.co.uk`); `None` if it has none, as a public suffix itself.
pub fn registered_domain(name: &str) -> Option<&str> {
    psl::domain_str(name)
}
