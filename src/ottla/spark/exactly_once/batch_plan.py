"""The plan of a batch in Spark's offset log: the offsets that it reads, and the number of partitions after a shuffle.

Pure. Spark writes the log before any task runs, and a repeated batch has the same entry, unless the checkpoint was
modified.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SHUFFLE = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class BatchPlan:
    """The known properties that determine the rows of a batch and their distribution to tasks."""

    sources: tuple[str, ...] = ()
    """A digest of the end offsets of each source; empty if the log cannot be read."""
    shuffle: str | None = None
    """The setting `spark.sql.shuffle.partitions`, which Spark stores with the offsets."""
    topic: str | None = None
    """The option `topic`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as stored with a mark."""
        return {"sources": list(self.sources), "shuffle": self.shuffle, "topic": self.topic}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> BatchPlan:
        """Return the inverse of `to_dict`."""
        return cls(tuple(kept.get("sources", ())), kept.get("shuffle"), kept.get("topic"))

    def changes(self, before: BatchPlan) -> list[str]:
        """Return the differences from `before`, each with its remedy."""
        found = []
        if self.topic != before.topic:
            found.append(f"the option topic was {before.topic!r} and is {self.topic!r}: set it back")
        if self.shuffle != before.shuffle and self.shuffle and before.shuffle:
            found.append(f"{SHUFFLE} was {before.shuffle} and is {self.shuffle}: set it back to {before.shuffle}")
        if self.sources != before.sources and self.sources and before.sources:
            found.append(
                "the offsets of its sources are different: restore the file of this batch in the checkpoint's folder "
                "`offsets`, and the query's previous sources; or, if this checkpoint is an old copy, continue with the newest"
            )
        return found


NO_PLAN = BatchPlan()
"""The plan if Spark's log cannot be read."""


def parse_plan(text: str, topic: str | None) -> BatchPlan:
    """Return the plan of a file in Spark's offset log, which has a version, settings, and a line for each source."""
    _, settings, *sources = text.splitlines() or ["", "{}"]
    try:
        shuffle = json.loads(settings).get("conf", {}).get(SHUFFLE)
    except (ValueError, AttributeError):
        shuffle = None
    digests = (hashlib.sha256(line.encode()).hexdigest()[:16] for line in sources)
    return BatchPlan(tuple(digests), shuffle, topic)
