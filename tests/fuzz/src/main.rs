//! The fuzzer: libFuzzer gives inputs to the target that the variable `TARGET` names.
//! scripts/fuzz.sh builds and runs it.
#![no_main]

mod targets;

use std::sync::LazyLock;

use targets::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|(target, _)| *target == name);
    found.unwrap_or_else(|| panic!("TARGET={name} is none of {:?}", TARGETS.map(|(name, _)| name))).1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));
