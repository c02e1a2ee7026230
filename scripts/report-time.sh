#!/usr/bin/env bash
# Runs a test program so that it says how long each test took: a runner for cargo, which `.ci/run` names. The option is
# not stable, hence the variable; nothing is compiled with it.
#
#     CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=scripts/report-time.sh cargo test
case $1 in
# It lists the skipped tests, and has no options.
*/deps/summary-*) exec "$@" ;;
*/deps/*) RUSTC_BOOTSTRAP=1 exec "$@" -Z unstable-options --report-time ;;
# The examples of the documentation.
*) exec "$@" ;;
esac
