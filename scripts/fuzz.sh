#!/usr/bin/env bash
# Fuzzes the readers: builds the targets of tests/fuzz with the coverage that libFuzzer follows, and runs one.
#
#     scripts/fuzz.sh TARGET [options of libFuzzer]     for example: scripts/fuzz.sh warc -runs=10000000 -max_len=8192
#     scripts/fuzz.sh all [options]                     one target after the other, a minute each unless the options say otherwise
#
# It needs Rust, a C++ compiler, and Linux. Inputs that reach new code are kept in target/fuzz/TARGET, which begins with small files of
# tests/data and tests/fuzz/seeds, and with what tests/data/fuzzed has; an input that fails is written to target/fuzz/failed-TARGET-*, and is given again as a file:
# scripts/fuzz.sh TARGET FILE. With SANITIZE=1 memory errors are found, too: slower, and by an option of rustc that is not stable.
set -euo pipefail
# An input to try again, from where the caller is.
again=
[ $# = 2 ] && [ -f "$2" ] && again=$(realpath "$2")
cd "$(dirname "$0")/.."

folder=$PWD/target/fuzz
triple=$(rustc -vV | sed -n 's/^host: //p')
# Not for what only builds run: an explicit target keeps these apart.
flags=(
    -Cpasses=sancov-module -Ccodegen-units=1
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
)
if [ -n "${SANITIZE:-}" ]; then
    export RUSTC_BOOTSTRAP=1
    flags+=(-Zsanitizer=address)
fi

targets() { sed -n 's/^    ("\([a-z]*\)", .*/\1/p' tests/fuzz/src/targets.rs; }

# The files that a target begins with.
seeds() {
    find tests/fuzz/seeds -name "$1-*"
    case $1 in
        warc) find tests/data -name '*.warc*' ;;
        arc) find tests/data -name '*.arc*' ;;
        jsonl | parquet | csv | arrow | wacz) find tests/data -name "*.$1*" ;;
        html | charset) find tests/data/formats/html -type f ;;
        job) find jobs configs -name '*.toml' ;;
        pieces) find tests/data -name '*.warc.gz' -o -name '*.jsonl' ;;
    esac
}

fuzz() {
    local target=$1
    shift
    # The versions that nigh is tested with; cargo adds what only the targets need.
    [ tests/fuzz/Cargo.lock -nt Cargo.lock ] || cp Cargo.lock tests/fuzz/Cargo.lock
    RUSTFLAGS="${flags[*]}" cargo build --quiet --release --manifest-path tests/fuzz/Cargo.toml --target "$triple" \
        --target-dir target/fuzz-build || return 1
    mkdir -p "$folder/$target"
    seeds "$target" | while read -r file; do
        # Long inputs say little and take long.
        [ "$(stat -c %s "$file")" -le 65536 ] || continue
        local seed
        seed=$folder/$target/$(echo "$file" | tr / -)
        case $target:$file in
            pieces:*.jsonl) { printf '\004'; cat "$file"; } > "$seed" ;;
            pieces:*) { printf '\005'; cat "$file"; } > "$seed" ;;
            *) cp "$file" "$seed" ;;
        esac
    done
    local number=0 line
    while read -r line; do
        number=$((number + 1))
        base64 -d <<< "$line" > "$folder/$target/fuzzed-$number"
    done < "tests/data/fuzzed/$target.txt"
    # With an input to try again, libFuzzer wants no folder.
    [ -n "$again" ] && set -- "$again" || set -- "$@" "$folder/$target"
    TARGET=$target "target/fuzz-build/$triple/release/nigh-fuzz" -artifact_prefix="$folder/failed-$target-" -print_final_stats=1 "$@"
}

if [ $# = 0 ]; then
    echo "scripts/fuzz.sh TARGET [options of libFuzzer], where TARGET is all or one of: $(targets | tr '\n' ' ')" >&2
    exit 2
fi
name=$1
shift
if [ "$name" = all ]; then
    [ $# -gt 0 ] || set -- -max_total_time=60
    failed=()
    for target in $(targets); do fuzz "$target" "$@" || failed+=("$target"); done
    [ ${#failed[@]} = 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
else
    fuzz "$name" "$@"
fi
