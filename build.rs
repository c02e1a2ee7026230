//! The program of development is not position-independent on Linux: tests start it some 25,000
//! times, and half of each start was its relocations. A release is as the compiler makes it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| std::env::var(variable).is_ok_and(|found| found == value);
    let of_gnu_linux = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is("PROFILE", "debug") && of_gnu_linux && is("CARGO_CFG_TARGET_ARCH", "x86_64") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
