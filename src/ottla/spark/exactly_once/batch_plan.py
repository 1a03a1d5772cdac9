"""What Spark's own log says of a batch: what it reads, and into how many parts a shuffle makes it.

Pure. Spark writes it down before any task runs, and a replay finds it unchanged, unless somebody has had a hand in it.
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
    """What decides which rows there are and which task has them, as far as it is known."""

    sources: tuple[str, ...] = ()
    """A digest of the end offsets of each source; none where the log cannot be read."""
    shuffle: str | None = None
    """The setting `spark.sql.shuffle.partitions`, which Spark keeps with the offsets."""
    topic: str | None = None
    """The option `topic`."""

    def to_dict(self) -> dict[str, Any]:
        """As it is kept with a mark."""
        return {"sources": list(self.sources), "shuffle": self.shuffle, "topic": self.topic}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> BatchPlan:
        """The inverse of `to_dict`."""
        return cls(tuple(kept.get("sources", ())), kept.get("shuffle"), kept.get("topic"))

    def changes(self, before: BatchPlan) -> list[str]:
        """What differs from `before`, each with what to restore."""
        found = []
        if self.topic != before.topic:
            found.append(f"the option topic was {before.topic!r} and is {self.topic!r}: set it back")
        if self.shuffle != before.shuffle and self.shuffle and before.shuffle:
            found.append(f"{SHUFFLE} was {before.shuffle} and is {self.shuffle}: set it back to {before.shuffle}")
        if self.sources != before.sources and self.sources and before.sources:
            found.append(
                "the offsets of its sources are others: restore the file of this batch in the checkpoint's folder "
                "`offsets`, and the query's sources as they were; or, if this checkpoint is an old copy, go on with the newest"
            )
        return found


NO_PLAN = BatchPlan()
"""Where Spark's log cannot be read."""


def parse_plan(text: str, topic: str | None) -> BatchPlan:
    """The plan of a file of Spark's offset log: its version, its settings, then a line for each source."""
    _, settings, *sources = text.splitlines() or ["", "{}"]
    try:
        shuffle = json.loads(settings).get("conf", {}).get(SHUFFLE)
    except (ValueError, AttributeError):
        shuffle = None
    digests = (hashlib.sha256(line.encode()).hexdigest()[:16] for line in sources)
    return BatchPlan(tuple(digests), shuffle, topic)
