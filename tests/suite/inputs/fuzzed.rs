//! The fuzz targets with inputs that a fuzzer found: each reached code that the others did not
//! reach.
//!
//! An input is a line of tests/data/fuzzed/TARGET.txt, in base 64.

#[path = "../../fuzz/src/targets.rs"]
mod targets;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::program::data;

#[test]
fn no_target_fails_on_what_a_fuzzer_found() {
    for (name, target) in targets::TARGETS {
        let path = data(&format!("fuzzed/{name}.txt"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!text.is_empty(), "{name} has no input");
        for (number, line) in text.lines().enumerate() {
            eprintln!("{name}, line {}", number + 1);
            target(&STANDARD.decode(line).unwrap());
        }
    }
}
