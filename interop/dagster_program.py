"""A job and its sensor, as Dagster loads them, and a sensor daemon that stops itself by SIGKILL.

`python -m interop.dagster_program SERVERS HOME KILL_AT` evaluates the sensor as Dagster's daemon does, against the
instance in HOME, until there are no new records. The process kills itself when its runs reach KILL_AT: after the run was
stored, and before the cursor is.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from dagster import DagsterInstance, DagsterRun, RunConfig, RunRequest, RunsFilter, build_sensor_context, job, op

from ottla.client.consumer import ConsumerRecord
from ottla.dagster import topic_sensor

RUN_KEY = "dagster/run_key"
CURSOR_FILE = "cursor"


@op  # type: ignore[untyped-decorator]
def handle() -> None:
    """Do nothing."""


@job  # type: ignore[untyped-decorator]
def orders() -> None:
    """The job of each record."""
    handle()


def request(record: ConsumerRecord) -> RunRequest:
    return RunRequest(run_config=RunConfig(), tags={"value": (record.value or b"").decode()})


def main(servers: str, home: str, kill_at: int) -> None:
    sensor = topic_sensor(
        "orders", bootstrap_servers=servers, target=orders, run_request=request, start="earliest", max_records=4
    )
    place = Path(home) / CURSOR_FILE
    with DagsterInstance.local_temp(home) as instance:
        while True:
            cursor = place.read_text(encoding="utf-8") if place.exists() else None
            result = sensor.evaluate_tick(build_sensor_context(instance, cursor=cursor, sensor_name=sensor.name))
            for wanted in result.run_requests or []:
                if not instance.get_runs(RunsFilter(tags={RUN_KEY: wanted.run_key or ""})):
                    tags = {**wanted.tags, RUN_KEY: wanted.run_key or ""}
                    instance.create_run_for_job(orders, tags=tags)
                if instance.get_runs_count() == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)
            half = place.with_suffix(".new")
            half.write_text(result.cursor or "", encoding="utf-8")
            half.replace(place)
            if not result.run_requests:
                break
        runs: list[DagsterRun] = list(instance.get_runs())
        print(*sorted(f"{run.tags['value']}@{run.tags['ottla/partition']}" for run in runs))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
