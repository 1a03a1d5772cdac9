"""Reads the partitions of a query and their offsets from Kafka, in the driver.

It uses a Consumer without a subscription, and creates no topics.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ottla.client.consumer import Consumer
from ottla.errors import ConfigError, ErrorCode, KafkaError, OttlaError
from ottla.model import EARLIEST, LATEST, TopicPartition
from ottla.spark.options import SERVERS, SourceOptions
from ottla.spark.ranges.bounds import AtOffsets, AtTime, Bound, Everywhere
from ottla.spark.ranges.java_pattern import java_pattern
from ottla.spark.ranges.offsets import Offsets, parse_assignment

if TYPE_CHECKING:
    from ottla.client.admin import Admin

log = logging.getLogger(__name__)


OURS: dict[str, Any] = {
    "allow.auto.create.topics": False,
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
}
"""The client's settings unless the user sets others: reading creates no topics, and does not return records of open or
aborted transactions.
"""


class DataLossError(OttlaError):
    """Records that a query still needs do not exist any more."""


def report_losses(sentences: Sequence[str], fail: bool) -> None:
    """Raise DataLossError, or log a warning, for each loss."""
    if sentences and fail:
        remedy = "set the option failOnDataLoss to false to continue with the remaining records"
        raise DataLossError(f"records do not exist any more: {'; '.join(sentences)}; {remedy}")
    for sentence in sentences:
        log.warning("records do not exist any more: %s", sentence)


def report_unsubscribed(offsets: Offsets, fail: bool) -> None:
    """Raise DataLossError, or log a warning, for partitions that the query has read and does not read any more."""
    if not offsets:
        return
    which = ", ".join(f"{tp} up to offset {offset}" for tp, offset in offsets.items())
    what = f"the checkpoint has read {which}, which the query does not subscribe to now"
    if fail:
        raise DataLossError(
            f"{what}; if it is the checkpoint of another query, give this one its own checkpointLocation; otherwise subscribe to "
            "the topics again, or set the option failOnDataLoss to false to ignore them"
        )
    log.warning("%s", what)


def none_matches(options: SourceOptions, seen: int) -> str:
    """Return the warning for a query with a pattern that matches no topic."""
    many = f"of {seen} that this user can see" if seen else "because this user can see none"
    return (
        f"option subscribePattern = {options.subscribe_pattern}: no topic at {options.kafka[SERVERS]} matches, {many}; "
        "correct it, or grant the user DESCRIBE on the topics (ACL); a stream reads topics that appear later, a batch reads nothing"
    )


def consumer_settings(options: SourceOptions) -> dict[str, Any]:
    """Return the client's settings: the user's, and those that reading by offsets needs."""
    return {**OURS, **options.kafka}


def admin_settings(options: SourceOptions) -> dict[str, Any]:
    """Return the user's settings that an admin client supports."""
    from ottla.client.admin.config import select_admin_settings

    return select_admin_settings(options.kafka)


class OffsetReader:
    """The partitions that the options select, and their offsets."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.consumer = Consumer(consumer_settings(options))
        self._admin: Admin | None = None
        self._has_warned = False
        self._internal: set[str] = set()

    @property
    def admin(self) -> Admin:
        """The client for topics and groups, created on first use."""
        from ottla.client.admin import Admin

        if self._admin is None:
            self._admin = Admin(admin_settings(self.options))
        return self._admin

    def __enter__(self) -> OffsetReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.consumer.close()
        if self._admin is not None:
            self._admin.close()

    def partitions(self, *, may_be_gone: bool = False) -> list[TopicPartition]:
        """Return the current partitions. A topic or partition given by name must exist, unless `may_be_gone` is set."""
        assigned = None if self.options.assign is None else parse_assignment(self.options.assign)
        topics = {tp.topic for tp in assigned} if assigned is not None else self.topics()
        found = [TopicPartition(t, info.partition) for t in topics for info in self.consumer.partitions_for(t)]
        if not may_be_gone:
            self.check_there(topics, found, assigned or ())
        return sorted(found if assigned is None else set(found).intersection(assigned))

    def is_selected(self, tp: TopicPartition) -> bool:
        """Return True if the options select a partition, whether it exists or not."""
        if self.options.assign is not None:
            return tp in parse_assignment(self.options.assign)
        if self.options.subscribe_pattern is not None:
            return self.pattern(self.options.subscribe_pattern).fullmatch(tp.topic) is not None
        return tp.topic in self.topics()

    def topics(self) -> set[str]:
        """Return the topics of `subscribe`, or those that `subscribePattern` matches."""
        if self.options.subscribe is not None:
            return set(self.options.subscribe)
        assert self.options.subscribe_pattern is not None
        pattern = self.pattern(self.options.subscribe_pattern)
        seen = self.admin.list_topics(internal=True)
        self._internal = {name for name, one in seen.items() if one.internal and self.should_exclude_internal}
        found = {topic for topic in seen if topic not in self._internal and pattern.fullmatch(topic)}
        if not found and not self._has_warned:  # not an error, as in the official connector: topics may appear later
            self._has_warned = True
            log.warning("%s", none_matches(self.options, len(seen)))
        return found

    @property
    def should_exclude_internal(self) -> bool:
        """True if a pattern does not match Kafka's internal topics, as in Spark's own connector and in consumers."""
        return str(self.options.kafka.get("exclude.internal.topics", "true")).lower() != "false"

    def is_excluded(self, tp: TopicPartition) -> bool:
        """Return True for a partition of an internal topic: earlier versions matched these, and a checkpoint may still have it."""
        return self.options.subscribe_pattern is not None and tp.topic in self._internal

    def pattern(self, text: str) -> re.Pattern[str]:
        """Return the expression of `subscribePattern`, which is Java's as in the official connector."""
        return java_pattern("subscribePattern", text)

    def check_there(
        self, topics: Iterable[str], found: Iterable[TopicPartition], assigned: Iterable[TopicPartition]
    ) -> None:
        """Raise ConfigError for topics or partitions that were given by name and do not exist."""
        there = set(found)
        where = f"at {self.options.kafka[SERVERS]}; create it, or correct the option"
        for topic in sorted(set(topics) - {tp.topic for tp in there}):
            raise ConfigError(f"there is no topic {topic!r} {where}")
        for tp in sorted(set(assigned) - there):
            raise ConfigError(f"there is no partition {tp} {where} assign")

    def earliest(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return self.consumer.beginning_offsets(tps) if tps else {}

    def latest(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition."""
        return self.consumer.end_offsets(tps) if tps else {}

    def first_since(self, moment_ms: int, tps: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset with that timestamp or a later one; the end if there is none."""
        found = self.consumer.offsets_for_times(dict.fromkeys(tps, moment_ms)) if tps else {}
        known = {tp: answer.offset for tp, answer in found.items() if answer is not None}
        return known | self.latest([tp for tp in tps if tp not in known])

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the ids of topics, which differ between topics of the same name; without topics that have no id (KIP-516)."""
        wanted = sorted(set(topics))
        if not wanted:
            return {}
        try:
            found = {name: known.topic_id for name, known in self.admin.describe_topics(wanted).items()}
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            # A topic was deleted a moment ago. All topics are listed only in this case, because there may be very many.
            found = {name: known.topic_id for name, known in self.admin.list_topics().items() if name in wanted}
        return {name: str(topic_id) for name, topic_id in found.items() if topic_id.int}

    def publish(self, offsets: Offsets) -> None:
        """Commit the query's offsets to the group of `commitOffsetsToGroup`, if it is set."""
        group = self.options.commit_offsets_to_group
        if group is not None:
            self.admin.alter_consumer_group_offsets(group, offsets)

    def resolve(
        self, bound: Bound, tps: Sequence[TopicPartition], *, is_end: bool = False
    ) -> dict[TopicPartition, int]:
        """Return the current offset of each partition for `bound`."""
        match bound:
            case Everywhere(offset=offset):
                return self.earliest(tps) if offset == EARLIEST else self.latest(tps)
            case AtOffsets(option, offsets):
                check_covers(option, offsets, tps)
                return self.known(offsets)
            case AtTime(option, timestamp, timestamps):
                check_covers(option, timestamps if timestamps is not None else dict.fromkeys(tps, 0), tps)
                times = timestamps if timestamps is not None else dict.fromkeys(tps, timestamp or 0)
                return self.at_times(option, times, is_end)

    def known(self, offsets: Offsets) -> dict[TopicPartition, int]:
        """Return `offsets` with earliest and latest resolved."""
        first = self.earliest([tp for tp, offset in offsets.items() if offset == EARLIEST])
        last = self.latest([tp for tp, offset in offsets.items() if offset == LATEST])
        return {**offsets, **first, **last}

    def at_times(self, option: str, times: Offsets, is_end: bool) -> dict[TopicPartition, int]:
        """Return the first offset of each timestamp or a later one; if there is none, the end, if that is allowed."""
        timed = {tp: time for tp, time in times.items() if time not in (EARLIEST, LATEST)}
        found = self.consumer.offsets_for_times(timed) if timed else {}
        beyond = [tp for tp in sorted(found) if found[tp] is None]
        if beyond and not is_end and self.options.starting_offsets_by_timestamp_strategy == "error":
            raise ConfigError(
                f"option {option}: {beyond[0]} has no record at {times[beyond[0]]} or later; choose an earlier time, "
                "or set startingOffsetsByTimestampStrategy to latest"
            )
        offsets = {tp: answer.offset for tp, answer in found.items() if answer is not None}
        return offsets | self.latest(beyond) | self.known({tp: times[tp] for tp in times.keys() - timed.keys()})


def check_covers(option: str, given: Offsets, tps: Iterable[TopicPartition]) -> None:
    """Raise ConfigError unless an option has exactly the partitions that exist."""
    there = set(tps)
    for tp in sorted(there - set(given)):
        raise ConfigError(
            f"option {option} has no offset for {tp}; give one for every partition, -2 for earliest, -1 for latest"
        )
    for tp in sorted(set(given) - there):
        raise ConfigError(f"option {option} has {tp}, which is not read by this query; leave it out")
