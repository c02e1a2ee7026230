#!/usr/bin/env bash
# A week's clusters as a SLURM job of four processes, a node each:
#     nigh pool keys --processes 4 --out pool     # once
#     sbatch scripts/slurm.sh jobs/cluster.toml --week monday --store crawls --input '/crawl/*.warc.gz'
# A job that is cancelled, preempted or out of time is resumable: the same command goes on from what is committed. With
# --requeue SLURM gives the command again by itself where a node fails or the job is preempted.
#SBATCH --job-name=nigh
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=64G
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
# A task that is lost is not started again by SLURM: the run is then over at once, instead of after `wait`.
exec srun --cpus-per-task="$SLURM_CPUS_PER_TASK" --kill-on-bad-exit=1 nigh run "$@" --config configs/slurm.toml
