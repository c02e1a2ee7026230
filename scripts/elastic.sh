#!/usr/bin/env bash
# Runs with random schedules of kills, stops, losses and joins of hosts, each of which must end with the bytes of an
# undisturbed run. Prints the seed, so that a schedule that fails can be run again alone.
#
#     scripts/elastic.sh [SCHEDULES [SEED]]
#
# Wants cargo and /proc; the hosts are processes of this machine (tests/suite/runs/elastic.rs).
set -euo pipefail
cd "$(dirname "$0")/.."
export NIGH_SCHEDULES=${1:-50} NIGH_SEED=${2:-$((RANDOM * 1000))}
echo "$NIGH_SCHEDULES schedules from seed $NIGH_SEED"
exec cargo test --test suite elastic::random -- --nocapture
