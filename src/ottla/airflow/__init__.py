"""A sensor for Airflow that waits for the next records of topics, and its trigger. Needs the extra `airflow`.

    TopicSensor ──cursor of the last successful run──► TopicTrigger (in the triggerer) ──records, next cursor──► TopicSensor ──► XCom

Airflow resumes a deferred task once, in one transaction, whatever happens to triggerers. The cursor of a run counts only
if the sensor's task succeeded. So if any process is killed, each record is in the result of exactly one successful task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.lazy_names import loader_of

__all__ = ["TopicSensor", "TopicTrigger"]

if TYPE_CHECKING:
    from ottla.airflow.sensor import TopicSensor as TopicSensor
    from ottla.airflow.trigger import TopicTrigger as TopicTrigger


_load = loader_of(__name__, {"TopicSensor": "ottla.airflow.sensor", "TopicTrigger": "ottla.airflow.trigger"})


def __getattr__(name: str) -> Any:
    return _load(name)
