"""A DAG of Airflow (3 or later): each week's clusters, by the program `nigh`, and what it says of them.

The variables NIGH_STORE and CRAWLS of the workers name the store, and a folder with a folder for
each Monday. Weeks are made one after the other, since each is compared with the one before.
"""

import json
import os
import subprocess

import pendulum
from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException


@dag(schedule="0 6 * * MON", start_date=pendulum.datetime(2024, 1, 8, tz="UTC"), catchup=False, max_active_runs=1)
def nigh_weekly():
    # A retry goes on from what is committed; a week that is there already is not computed again.
    @task(retries=3, retry_delay=pendulum.duration(minutes=5))
    def cluster(ds: str, run_id: str) -> dict:
        crawl = os.path.join(os.environ["CRAWLS"], ds)
        command = ["nigh", "run", "--json", "--week", ds, "--input", crawl, "--run-id", run_id]
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if ran.returncode in (2, 3):
            raise AirflowFailException("wrong use, or too many rejects: the log has the event `error`")
        ran.check_returncode()
        return json.loads(ran.stdout)

    @task
    def report(week: dict) -> None:
        print(f"{week['week']}: {week['done']}, {week['counts']['documents']} documents in {week['seconds']:.0f} s")

    report(cluster())


nigh_weekly()
