"""An asset of Dagster: each week's clusters, by the program `nigh`, with what it says of them as metadata.

The variables NIGH_STORE and CRAWLS name the store, and a folder with a folder for each Monday.
Weeks are made one after the other, since each is compared with the one before: give the pool `nigh`
a limit of 1, and materialize weeks in their order.
"""

import json
import os
import subprocess

import dagster as dg

weeks = dg.WeeklyPartitionsDefinition(start_date="2024-01-08", day_offset=1)


# A retry goes on from what is committed; a week that is there already is not computed again.
@dg.asset(partitions_def=weeks, pool="nigh", retry_policy=dg.RetryPolicy(max_retries=3, delay=300))
def clusters(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    week = context.partition_key
    crawl = os.path.join(os.environ["CRAWLS"], week)
    command = ["nigh", "run", "--json", "--week", week, "--input", crawl, "--run-id", context.run_id]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if ran.returncode != 0:
        raise dg.Failure("the log has the event `error`", allow_retries=ran.returncode not in (2, 3))
    result = json.loads(ran.stdout)
    return dg.MaterializeResult(metadata={name: result[name] for name in ("done", "seconds", "counts", "resources")})


weekly = dg.define_asset_job("nigh_weekly", [clusters], partitions_def=weeks)
defs = dg.Definitions([clusters], jobs=[weekly], schedules=[dg.build_schedule_from_partitioned_job(weekly, hour_of_day=6)])
