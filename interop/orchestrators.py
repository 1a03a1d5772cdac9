"""Airflow and Dagster in Python environments of their own in `.cache`, as their requirements are many and not ours, and what
their tests share.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla import Admin, Broker, NewTopic, Producer
from rivals.python_environment import python_with

CORE = ("cramjam>=2.9,<3", "crc32c>=2.7,<3", "msgspec>=0.20,<1", "click>=8.1,<9", "rich>=13.7,<16")
"""The requirements of Ottla, which is imported from `src`."""
AIRFLOW = ("apache-airflow-core==3.3.2", "apache-airflow-task-sdk==1.3.2", *CORE)
DAGSTER = ("dagster==1.13.29", *CORE)
COUNT = 10


def airflow_python() -> Path:
    """Return the Python of an environment with Airflow; create or update it if necessary."""
    return python_with(AIRFLOW, "airflow", "Airflow")


def dagster_python() -> Path:
    """Return the Python of an environment with Dagster; create or update it if necessary."""
    return python_with(DAGSTER, "dagster", "Dagster")


@contextmanager
def broker_with_orders() -> Iterator[str]:
    """Run a broker with `COUNT` records in the two partitions of `orders`; yield its address."""
    with Broker() as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 2, 1)])
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for n in range(COUNT):
                producer.send("orders", b"%d" % n, partition=n % 2)
        yield broker.bootstrap_servers
