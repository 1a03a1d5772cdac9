"""`TopicSensor`: a deferrable task that ends with the next records of topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from ottla.airflow.request import check_request
from ottla.airflow.trigger import TopicTrigger
from ottla.errors import IllegalStateError
from ottla.extras import extra

with extra("airflow"):
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import RuntimeTaskInstanceProtocol

CURSOR = "cursor"
"""The XCom of the cursor after the records of a run."""
SUCCESS = "success"
SCHEDULED = "scheduled"


class TopicSensor(BaseOperator):  # type: ignore[misc]
    """Wait for records after those of the last successful run, and return them as a list.

    A record is a dictionary with `topic`, `partition`, `offset`, `timestamp`, `key`, `value` and `headers`. `config` has the
    settings of a Consumer. A run returns at most `max_records`. The first run starts at the `latest` offset, and ends at once
    with an empty list, or at the `earliest` one. For a DAG with the schedule `@continuous`; `handle.expand(record=sensor.output)`
    runs a task for each record.
    """

    def __init__(
        self,
        *,
        topics: str | Iterable[str],
        config: Mapping[str, Any],
        start: Literal["earliest", "latest"] = "latest",
        max_records: int = 100,
        encoding: Literal["utf-8", "base64"] = "utf-8",
        **operator: Any,
    ) -> None:
        super().__init__(**operator)
        self._request = check_request(topics, config, start, max_records, encoding)

    def execute(self, context: Mapping[str, Any]) -> None:
        """Give the wait to the triggerer."""
        run_type = context["dag_run"].run_type
        if run_type != SCHEDULED:
            raise IllegalStateError(
                f"TopicSensor continues where the last scheduled run ended, and this run is of type {run_type}: "
                "let the DAG run by its schedule, such as @continuous"
            )
        self.defer(
            trigger=TopicTrigger(**self._request._asdict(), cursor=self._find_cursor(context["ti"])),
            method_name=self.execute_complete.__name__,
        )

    def execute_complete(self, context: Mapping[str, Any], event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Store the cursor and return the records of the trigger's event."""
        context["ti"].xcom_push(key=CURSOR, value=event["cursor"])
        records: list[dict[str, Any]] = event["records"]
        return records

    def _find_cursor(self, task_instance: RuntimeTaskInstanceProtocol) -> str | None:
        """Return the cursor of the last successful run before this one; None in the first."""
        last = task_instance.get_previous_ti(state=SUCCESS, map_index=task_instance.map_index)
        if last is None:
            return None
        cursor: str | None = task_instance.xcom_pull(task_ids=self.task_id, key=CURSOR, run_id=last.run_id)
        if cursor is None:
            raise IllegalStateError(
                f"the run {last.run_id} has no cursor of task {self.task_id}, although it succeeded: was its XCom deleted? "
                "Give the sensor another task_id to start again"
            )
        return cursor
