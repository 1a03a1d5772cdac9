"""A DAG that has one mapped task for each record of the topic `orders`, as Airflow loads it.

If KILL is "cursor", the process kills itself after the cursor was stored, and before the task has ended.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from airflow.sdk import DAG, task

from ottla.airflow import TopicSensor

CURSOR = "cursor"


class KilledSensor(TopicSensor):
    def execute_complete(self, context: Mapping[str, Any], event: Mapping[str, Any]) -> list[dict[str, Any]]:
        records = super().execute_complete(context, event)
        if os.environ["KILL"] == CURSOR:
            os.kill(os.getpid(), signal.SIGKILL)
        return records


with DAG("orders", schedule="@continuous", start_date=datetime(2026, 1, 1), max_active_runs=1):

    @task  # type: ignore[untyped-decorator]
    def handle(record: dict[str, Any]) -> str:
        """Return the value of the record."""
        return str(record["value"])

    orders = KilledSensor(
        task_id="wait",
        topics="orders",
        config={"bootstrap_servers": os.environ["ORDERS_SERVERS"]},
        start="earliest",
        max_records=3,
        retries=50,
    )
    handle.expand(record=orders.output)
