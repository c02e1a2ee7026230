#!/usr/bin/env bash
# A week of many collections as a SLURM array: each task is a run of one process on one node, with a store of its own.
# The file COLLECTIONS has a collection a line: its store, a tab, and its input (a path, a pattern or a URL).
#     sbatch --array="1-$(wc -l < collections.tsv)%8" scripts/slurm-array.sh collections.tsv --week monday
# Flags after the file are those of `nigh run`. The weeks of one store cannot be an array: each needs the one before. A pool of nodes for one
# store is scripts/slurm.sh.
#SBATCH --job-name=nigh
#SBATCH --output=nigh-%A-%a.log
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=64G
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: sbatch --array=1-N scripts/slurm-array.sh COLLECTIONS [FLAGS]" >&2; exit 2; }
collections=$1
shift
number=${SLURM_ARRAY_TASK_ID:?"this is not a task of an array: sbatch --array=1-N"}
IFS=$'\t' read -r store input < <(sed -n "${number}p" "$collections") || true
if [ -z "${store:-}" ] || [ -z "${input:-}" ]; then
    echo "$collections, line $number: wanted are a store, a tab and an input" >&2
    exit 2
fi
# A task that is stopped or requeued goes on from what is committed. SIGTERM reaches the program.
exec nigh run --store "$store" --input "$input" --workers "${SLURM_CPUS_PER_TASK:-1}" \
    --run-id "${SLURM_ARRAY_JOB_ID:-nigh}-$number" "$@"
