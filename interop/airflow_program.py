"""Runs the sensor of `airflow_dag` again and again, as Airflow's scheduler does, and kills itself by SIGKILL.

`python -m interop.airflow_program COUNT` ends when the successful runs have returned COUNT records, and prints them. Tasks
run in this process against Airflow's database; triggers run in Airflow's own triggerer. The environment variable KILL names
where the process kills itself: "fired" before a trigger's event is stored, "resumed" after it, "cursor" (see `airflow_dag`).
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from typing import Any

from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
from airflow.jobs.job import Job
from airflow.jobs.triggerer_job_runner import TriggerRunnerSupervisor
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.sdk import timezone
from airflow.sdk.definitions.dag import _run_task
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import DataInterval
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy import select

FIRED, RESUMED = "fired", "resumed"
FIRST = timezone.datetime(2026, 2, 1)
TASK = "wait"


class KilledTriggerer(TriggerRunnerSupervisor):  # type: ignore[misc]
    def on_trigger_event(self, trigger_id: int, event: Any) -> None:
        """Store the event."""
        if os.environ["KILL"] == FIRED:
            os.kill(os.getpid(), signal.SIGKILL)
        super().on_trigger_event(trigger_id, event)
        if os.environ["KILL"] == RESUMED:
            os.kill(os.getpid(), signal.SIGKILL)


def load_dag() -> Any:
    """Return the DAG, after it was written to the database."""
    with create_session() as session:
        manager = DagBundlesManager()
        manager.sync_bundles_to_db(session=session)
    bundle = next(iter(manager.get_all_dag_bundles()))
    bundle.initialize()
    bag = BundleDagBag(dag_folder=bundle.path, bundle_path=bundle.path, bundle_name=bundle.name)
    sync_bag_to_db(bag, bundle.name, bundle.version)
    return bag.dags["orders"]


def start_run(dag: Any, number: int) -> None:
    """Create the next run of the DAG."""
    at = FIRST + timedelta(minutes=number)
    DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).create_dagrun(
        run_id=f"run{number}",
        logical_date=at,
        data_interval=DataInterval(at, at),
        run_after=at,
        run_type=DagRunType.SCHEDULED,
        triggered_by=DagRunTriggeredByType.TIMETABLE,
        state=DagRunState.RUNNING,
    )


def find_sensors() -> list[TaskInstance]:
    """Return the sensor's task in each run."""
    with create_session() as session:
        query = select(TaskInstance).join(DagRun).where(TaskInstance.task_id == TASK).order_by(DagRun.logical_date)
        return list(session.scalars(query))


def returned_records() -> list[dict[str, Any]]:
    """Return the records of all runs whose sensor succeeded."""
    found: list[dict[str, Any]] = []
    for sensor in find_sensors():
        if sensor.state == TaskInstanceState.SUCCESS:
            with create_session() as session:
                query = XComModel.get_many(run_id=sensor.run_id, key="return_value", task_ids=TASK, dag_ids="orders")
                found += XComModel.deserialize_value(session.scalars(query).one())
    return found


def serve_triggers() -> None:
    """Run the triggerer until the last sensor is not deferred."""
    job = Job()
    with create_session() as session:
        job.prepare_for_execution(session=session)
    triggerer = KilledTriggerer.start(job=job, capacity=10, logger=None)
    try:
        while find_sensors()[-1].state == TaskInstanceState.DEFERRED:
            triggerer.run_once()
    finally:
        triggerer.kill(escalation_delay=10, force=True)


def main(count: int) -> None:
    dag = load_dag()
    while len(returned_records()) < count:
        sensors = find_sensors()
        if not sensors or sensors[-1].state == TaskInstanceState.SUCCESS:
            start_run(dag, len(sensors))
            continue
        last = sensors[-1]
        last.task = dag.get_task(TASK)
        if last.state == TaskInstanceState.DEFERRED:
            serve_triggers()
            continue
        if last.state in (TaskInstanceState.RUNNING, TaskInstanceState.QUEUED):  # the process was killed in the task
            last.handle_failure("the task's process was killed")
            continue
        if last.next_method is None:
            with create_session() as session:
                last.try_number += 1
                session.merge(last)
        _run_task(ti=last, task=dag.get_task(TASK))
    print(*sorted(f"{record['value']}@{record['partition']}" for record in returned_records()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
