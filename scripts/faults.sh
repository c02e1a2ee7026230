#!/usr/bin/env bash
# Disturbs runs of several processes at random moments, and looks whether they end with the bytes of an undisturbed one.
#
#     scripts/faults.sh [RUNS [SEED]]
#
# Kinds, in turn: a worker process is killed; the supervisor is killed, and the command given again; a worker process is
# frozen; processes are killed one after another until the restarts are used up, and the command is given again; and, with
# the rights to mount a file system, a disk fills, is made larger, and the command is given again. Prints a table. Wants a
# built program (NIGH, target/release/nigh where it is not given) and /proc.
set -euo pipefail
cd "$(dirname "$0")/.."
nigh=${NIGH:-target/release/nigh}
runs=${1:-60}
RANDOM=${2:-$$}
echo "seed ${2:-$$}, $runs runs of $nigh"
folder=$(mktemp -d)
small=$folder/small
supervisor=
trap 'kill -KILL $supervisor 2>/dev/null || true; umount "$small" 2>/dev/null || true; rm -rf "$folder"' EXIT

# Many waves, so that there is something to go on from.
cat > "$folder/job.toml" <<END
[cluster]
week = "2024-01-08"
wave-bytes = 1
max-reject-share = 1.0
input = ["tests/data/week-2024-01-08", "tests/data/dirty", "tests/data/formats/html", "tests/data/formats/*.*"]
[cluster.method]
shards = 8
END
for processes in 2 3; do
    printf 'workers = 1\nprocesses = %s\ntimeout = "6s"\n' $processes > "$folder/config-$processes.toml"
done

# The tables of a store, as one hash.
hash() { (cd "$1" && find . -path '*/week=2024-01-08/*.parquet' -not -path './_nigh/*' | sort | xargs sha256sum | sha256sum); }
milliseconds() { date +%s%3N; }
run() { "$nigh" run "$folder/job.toml" --config "$folder/config-$processes.toml" --store "$1" > "$folder/out" 2> "$folder/err"; }
# The processes of the run.
workers() { for stat in /proc/[0-9]*/stat; do awk -v parent="$supervisor" '{ sub(/.*\) /, $1 " ") } $3 == parent { print $1 }' "$stat" 2>/dev/null || true; done; }
wait_random() { sleep "$(awk -v r=$RANDOM -v ms=$whole 'BEGIN { printf "%.3f", r / 32768 * 0.8 * ms / 1000 }')"; }
victim() { workers | awk -v r=$RANDOM '{ all[NR] = $1 } END { if (NR) print all[1 + r % NR] }'; }
signal() { [ -z "$2" ] || kill -s "$1" "$2" 2>/dev/null || true; }

processes=3
run "$folder/undisturbed"
wanted=$(hash "$folder/undisturbed")
begun=$(milliseconds)
run "$folder/again"
whole=$(($(milliseconds) - begun))
[ "$(hash "$folder/again")" = "$wanted" ]
echo "undisturbed: $whole ms"

kinds=(worker supervisor frozen exhausted)
mkdir "$small"
if mount -t tmpfs -o size=1m nigh-faults "$small" 2>/dev/null; then
    umount "$small"
    kinds+=(disk)
else
    echo "no file system can be mounted: no disk is filled"
fi
declare -A tried disturbed failed longest
for ((at = 0; at < runs; at++)); do
    kind=${kinds[at % ${#kinds[@]}]}
    processes=$((2 + RANDOM % 2))
    store=$folder/store
    [ "$kind" != disk ] || { mount -t tmpfs -o "size=$((200 + RANDOM % 1500))k" nigh-faults "$small"; store=$small/store; }
    begun=$(milliseconds)
    { run "$store"; } 2>/dev/null &
    # The program itself is the child of the function's shell; it is the one that has the processes.
    shell=$!
    supervisor=
    while kill -0 $shell 2>/dev/null && [ -z "$supervisor" ]; do supervisor=$(pgrep -P $shell -x "$(basename "$nigh")" || true); done
    code=0
    case $kind in
    worker) wait_random; signal KILL "$(victim)" ;;
    supervisor) wait_random; signal KILL "$supervisor" ;;
    frozen) wait_random; signal STOP "$(victim)" ;;
    exhausted) while kill -0 "$supervisor" 2>/dev/null; do wait_random; signal KILL "$(victim)"; done ;;
    esac
    wait $shell 2>/dev/null || code=$?
    took=$(($(milliseconds) - begun))
    met=$(grep -c -e '(restart ' -e 'No space left' -e 'as `restarts` allows' "$folder/err" || true)
    # Only what is meant to end with a rerun may end badly.
    again=no
    case $kind,$code in
    *,0) ;;
    supervisor,137 | exhausted,1 | disk,1) again=yes ;;
    *) echo "run $at ($kind): exit code $code"; cat "$folder/err"; failed[$kind]=$((${failed[$kind]:-0} + 1)) ;;
    esac
    if [ $again = yes ]; then
        met=1
        [ "$kind" != disk ] || mount -o remount,size=64m "$small"
        run "$store" || { echo "run $at ($kind): the rerun failed"; cat "$folder/err"; failed[$kind]=$((${failed[$kind]:-0} + 1)); }
    fi
    if [ "$(hash "$store")" != "$wanted" ]; then
        echo "run $at ($kind): other bytes"
        failed[$kind]=$((${failed[$kind]:-0} + 1))
    fi
    tried[$kind]=$((${tried[$kind]:-0} + 1))
    [ "$met" -eq 0 ] || disturbed[$kind]=$((${disturbed[$kind]:-0} + 1))
    [ "$took" -le "${longest[$kind]:-0}" ] || longest[$kind]=$took
    rm -rf "$folder/store"
    [ "$kind" != disk ] || umount "$small"
done

printf '%-12s %6s %10s %7s %12s\n' fault runs disturbed failed 'longest, ms'
bad=0
for kind in "${kinds[@]}"; do
    printf '%-12s %6s %10s %7s %12s\n' "$kind" "${tried[$kind]:-0}" "${disturbed[$kind]:-0}" "${failed[$kind]:-0}" "${longest[$kind]:-0}"
    bad=$((bad + ${failed[$kind]:-0}))
done
[ $bad -eq 0 ]
