"""How far streams are, where others can see it: a consumer group's offsets, and the lag in a query's progress."""

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
    """Tells the group of the option `commitOffsetsToGroup` what was read."""

    def __init__(self, options: SourceOptions, publish: Callable[[Offsets], None]) -> None:
        self.group = options.commit_offsets_to_group
        self._publish = publish
        self._published: Offsets | None = None

    def publish(self, done: StreamOffset) -> None:
        """Tell it once, if a group wants to know and a batch has ended.

        A group that cannot be reached for a while is told the next time; one that refuses stops the query, which else
        would look as if it stood still.
        """
        if self.group is None or done.initial or done.offsets == self._published:
            return
        try:
            self._publish(done.offsets)
            self._published = done.offsets
        except OttlaError as error:
            if not is_passing(error):
                raise OttlaError(
                    f"option commitOffsetsToGroup = {self.group}: the group cannot be told how far the query is: {error}; "
                    "name a group without members, of which this user may commit offsets"
                ) from None
            log.warning("group %s cannot be told how far the query is, and is told later: %s", self.group, error)


def is_passing(error: OttlaError) -> bool:
    """Whether it may be over the next time."""
    return isinstance(error, KafkaTimeoutError) or (isinstance(error, KafkaError) and error.retriable)


def lag(progress: Any) -> list[dict[str, float]]:
    """How many offsets each source of a query is behind, after a micro-batch.

    `progress` is a StreamingQueryProgress, or the dict of its JSON. The names are those of the official connector's
    metrics: `minOffsetsBehindLatest`, `maxOffsetsBehindLatest`, `avgOffsetsBehindLatest`, over the partitions. Spark lets
    no source that is written in Python put metrics of its own into the progress, so they are worked out of the
    offsets that stand there. A source whose offsets are of another kind gives an empty dict.
    """
    known = progress if isinstance(progress, Mapping) else json.loads(progress.json)
    return [behind(source.get("endOffset"), source.get("latestOffset")) for source in known["sources"]]


def behind(end: Any, latest: Any) -> dict[str, float]:
    """The least, the most and the mean of what is left in each partition."""
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
    """An offset as Spark shows it: text of JSON in a progress, already read in the JSON of one."""
    return json.loads(offset) if isinstance(offset, str) else offset
