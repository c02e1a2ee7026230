#!/usr/bin/env bash
# Runs a test program so that it says how long each test took: a runner for cargo, which `.ci/run` names. The option is not stable, hence the
# variable; nothing is compiled with it.
#
#     CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=scripts/report-time.sh cargo test
program=$1
shift
case $(basename "$program") in
# These know no such option: examples of the documentation, and what lists the skipped tests.
rust_out* | summary-* | rustdoc*) exec "$program" "$@" ;;
esac
case $program in
*/deps/*) RUSTC_BOOTSTRAP=1 exec "$program" "$@" -Z unstable-options --report-time ;;
*) exec "$program" "$@" ;;
esac
