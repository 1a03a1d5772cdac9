"""A Dagster sensor that requests one run for each record of topics. Needs the extra `dagster`.

    sensor daemon ──cursor──► topic_sensor ──► TopicCursor (pure): the next offset of each partition
                                   │
                                   └──► Consumer, bounded by the end offsets ──► a RunRequest with a run key for each record

Dagster stores the cursor after it has requested the runs, and starts no second run for a run key. So if the
sensor was killed between the two, a record gets the same key again, and has one run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.lazy_names import loader_of

__all__ = ["topic_sensor"]

if TYPE_CHECKING:
    from ottla.dagster.sensor import topic_sensor as topic_sensor


_load = loader_of(__name__, {"topic_sensor": "ottla.dagster.sensor"})


def __getattr__(name: str) -> Any:
    return _load(name)
