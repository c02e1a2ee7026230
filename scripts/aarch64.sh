#!/usr/bin/env bash
# Runs the tests of the packages nigh-kernels and nigh-text for aarch64, on a machine of any kind: the cross compiler builds them, qemu's
# user mode runs them, and the level `pmull` must be among those found.
#
# Needs aarch64-linux-gnu-gcc and qemu-aarch64 (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user), and
# adds the Rust target aarch64-unknown-linux-gnu where rustup can. What is missing is said, and then nothing is tested:
# the exit code is 0. It is another where a test fails.
#
#     scripts/aarch64.sh [options of cargo test]
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
libraries=/usr/aarch64-linux-gnu

skip() {
    echo "skipped: $1"
    exit 0
}

for tool in aarch64-linux-gnu-gcc qemu-aarch64 cargo; do
    command -v "$tool" >/dev/null || skip "$tool is missing"
done
[ -d "$libraries/lib" ] || skip "no C library in $libraries"
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    command -v rustup >/dev/null || skip "the Rust target $target is missing, and so is rustup"
    rustup target add "$target" || skip "rustup cannot add the target $target"
fi

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $libraries"
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export NIGH_EXPECT_KERNELS=pmull

# Minutes of emulation, and other tests run the kernels in them: the statistics of samplers draw 200 sets of polynomials, thousands of
# texts are given to the detector of charsets, and the shape of a method is sought among all.
cargo test --package nigh-kernels --package nigh-text --lib --target "$target" "$@" -- \
    --skip samplers_are_unbiased --skip ascii_left_out_of_a_sample --skip a_chosen_shape_links_the_pairs
echo "passed: nigh-kernels and nigh-text on $target, with $NIGH_EXPECT_KERNELS"
