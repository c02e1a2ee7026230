#!/usr/bin/env bash
# Counts how often the program has the engine compiled into it: each type of container that crosses workers, and each closure that is given
# to timely as a type, has timely, its channels and its queues compiled once more (crates/exchange/src/lib.rs). Fails if there are more
# than the limits below.
#
#     scripts/weight.sh [PROGRAM]        a program with its symbols: target/debug/nigh if none is named
set -euo pipefail

# Operators of timely: 25 were counted, half of them differential dataflow's.
MOST_OPERATORS=40
# Types of channels between workers: 4 were counted.
MOST_CHANNELS=8

program=${1:-target/debug/nigh}
symbols=$(mktemp)
trap 'rm -f "$symbols"' EXIT
nm "$program" | awk '{print $NF}' | sort -u > "$symbols"
# Symbols end in a hash of the types for which a function was compiled.
operators=$(grep -cE 'generic10builder_rc.*OperatorBuilder.*5build28_.*closure.*closure' "$symbols" || true)
channels=$(grep -cE 'timely6worker6Worker8allocate17h' "$symbols" || true)
echo "$program: $operators operators of timely (at most $MOST_OPERATORS), $channels types of channels (at most $MOST_CHANNELS)"
if [ "$operators" = 0 ] || [ "$channels" = 0 ]; then
    echo "$program has no symbols, or they are named in another way: nothing was counted" >&2
    exit 1
fi
if [ "$operators" -gt $MOST_OPERATORS ] || [ "$channels" -gt $MOST_CHANNELS ]; then
    echo "the engine is compiled too often: send blocks (crates/exchange), not containers of another type" >&2
    exit 1
fi
