"""The announcements and marks of a query: the batch being written, and the tasks that have written their part.

Pure: converts them to offsets of consumer groups and back. The offset is the batch's number plus one, so that Kafka's
tools show the progress of a query. The other fields are in the offset's metadata, of which brokers store 4,096 bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ottla.model import OffsetAndMetadata
from ottla.spark.exactly_once.batch_plan import NO_PLAN, BatchPlan
from ottla.spark.exactly_once.weight import NOTHING, Weight


@dataclass(frozen=True)
class Announcement:
    """The driver's announcement of a batch, before any of its tasks starts. Only the newest is valid."""

    batch: int | None
    """None if the driver does not know it."""
    token: str
    """A random value that identifies the announcement."""
    author: str = ""
    """The process, for error messages."""
    driver: str = ""
    """The Spark application; empty if it is not known."""

    def to_offset(self) -> OffsetAndMetadata:
        metadata = json.dumps({"token": self.token, "author": self.author, "driver": self.driver})
        return OffsetAndMetadata(0 if self.batch is None else self.batch + 1, metadata)

    @classmethod
    def from_offset(cls, kept: OffsetAndMetadata) -> Announcement:
        more = fields_of(kept)
        batch = kept.offset - 1 if kept.offset else None
        return cls(batch, *(str(more.get(name, "")) for name in ("token", "author", "driver")))

    def is_of_the_same_run(self, other: Announcement) -> bool:
        """Return True if both announce one batch in one driver.

        The process that handles a failure is not the one that announced.
        """
        same_driver = self.driver == other.driver and bool(self.driver)
        return self.batch == other.batch and (self.token == other.token or same_driver)


@dataclass(frozen=True)
class Marker:
    """A task's mark, committed together with its rows."""

    batch: int
    token: str
    """The token of the announcement under which it was written."""
    weight: Weight = NOTHING
    plan: BatchPlan = NO_PLAN

    def to_offset(self) -> OffsetAndMetadata:
        more = {"token": self.token, "weight": list(self.weight), "plan": self.plan.to_dict()}
        return OffsetAndMetadata(self.batch + 1, json.dumps(more))

    @classmethod
    def from_offset(cls, kept: OffsetAndMetadata) -> Marker:
        more = fields_of(kept)
        weight, plan = more.get("weight", (0, 0, 0)), more.get("plan", {})
        return cls(kept.offset - 1, str(more.get("token", "")), Weight(*weight), BatchPlan.from_dict(plan))


def fields_of(kept: OffsetAndMetadata) -> Mapping[str, Any]:
    """Return the fields in the metadata; empty if it is not from Ottla."""
    try:
        found = json.loads(kept.metadata)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
