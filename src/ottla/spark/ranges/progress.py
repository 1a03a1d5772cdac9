"""The progress of streams for other tools: a consumer group's offsets, and the lag in a query's progress."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from ottla.errors import KafkaError, KafkaTimeoutError, OttlaError
from ottla.spark.options import SourceOptions
from ottla.spark.ranges.offsets import Offsets, StreamOffset

log = logging.getLogger(__name__)


class GroupProgress:
    """Commits the offsets that were read to the group of the option `commitOffsetsToGroup`."""

    def __init__(self, options: SourceOptions, publish: Callable[[Offsets], None]) -> None:
        self.group = options.commit_offsets_to_group
        self._publish = publish
        self._published: Offsets | None = None

    def publish(self, done: StreamOffset) -> None:
        """Commit the offsets once after each batch, if there is a group.

        After a temporary error the offsets are committed with the next batch. A permanent error stops the query,
        because otherwise tools would show that it makes no progress.
        """
        if self.group is None or done.initial or done.offsets == self._published:
            return
        try:
            self._publish(done.offsets)
            self._published = done.offsets
        except OttlaError as error:
            if not is_passing(error):
                raise OttlaError(
                    f"option commitOffsetsToGroup = {self.group}: offsets of the query cannot be committed to the group: {error}; "
                    "choose a group without members for which this user may commit offsets"
                ) from None
            log.warning(
                "commit of the query's offsets failed and will be repeated; group=%s error=%s", self.group, error
            )


def is_passing(error: OttlaError) -> bool:
    """Return True if the error may not occur the next time."""
    return isinstance(error, KafkaTimeoutError) or (isinstance(error, KafkaError) and error.retriable)


def lag(progress: Any) -> list[dict[str, float]]:
    """Return the offsets by which each source of a query is behind after a micro-batch.

    `progress` is a StreamingQueryProgress, or the dict of its JSON. The names are those of the official connector's
    metrics, over the partitions: `minOffsetsBehindLatest`, `maxOffsetsBehindLatest`, `avgOffsetsBehindLatest`. Spark
    does not let sources in Python add metrics to the progress, so they are computed from its offsets. The result is an
    empty dict for a source with other offsets.
    """
    known = progress if isinstance(progress, Mapping) else json.loads(progress.json)
    return [count_unread(source.get("endOffset"), source.get("latestOffset")) for source in known["sources"]]


def count_unread(end: Any, latest: Any) -> dict[str, float]:
    """Return the least, greatest and mean number of unread offsets of a partition."""
    try:
        read, there = (StreamOffset.from_dict(offset_of(one)).offsets for one in (end, latest))
    except (ValueError, TypeError, AttributeError):
        return {}
    left = [max(0, there[tp] - read.get(tp, 0)) for tp in there]
    if not left:
        return {}
    return {
        "minOffsetsBehindLatest": min(left),
        "maxOffsetsBehindLatest": max(left),
        "avgOffsetsBehindLatest": sum(left) / len(left),
    }


def offset_of(offset: Any) -> Any:
    """Return an offset from a progress, where it is JSON text or already parsed."""
    return json.loads(offset) if isinstance(offset, str) else offset
