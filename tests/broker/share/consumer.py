"""A member of a share group that sends single requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.protocol.messages import share_acknowledge, share_fetch
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.records.columns import decode
from tests.broker.share.requests import GROUP, topic_id
from tests.broker.wire import Wire

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GROUP_RESOURCE = 32
Batch = tuple[int, int, int]
"""First offset, last offset, type."""


class Fetched(NamedTuple):
    """The response for one partition."""

    ranges: list[tuple[int, int, int]]
    """First offset, last offset, delivery count."""
    values: dict[int, bytes | None]
    """The values of the acquired records by offset."""
    error: int
    acknowledge_error: int
    leader: int


NOTHING = Fetched([], {}, 0, 0, 0)


class Sharer:
    """One member, with a share session on one connection."""

    def __init__(self, wire: Wire, member: str = "a", topic: str = "t", group: str = GROUP) -> None:
        self.wire = wire
        self.member = member
        self.group = group
        self.topic_id = topic_id(wire, topic)
        self.epoch = 0
        self.last: Any = None
        """The last response."""

    def fetch(
        self,
        *acknowledged: Batch,
        partitions: Sequence[int] = (0,),
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        max_records: int = 500,
        batch_size: int = 500,
        exact: bool = False,
        is_renewal: bool = False,
        epoch: int | None = None,
        version: int = 2,
    ) -> Fetched:
        """Fetch, with acknowledgements of partition 0; return what came of partition 0."""
        request = self.request(
            acknowledged,
            partitions,
            max_wait_ms,
            min_bytes,
            max_bytes,
            max_records,
            batch_size,
            exact,
            is_renewal,
            epoch,
        )
        self.last = self.wire.ask(request, version)
        return self.taken(self.last)

    def request(
        self,
        acknowledged: Sequence[Batch] = (),
        partitions: Sequence[int] = (0,),
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        max_records: int = 500,
        batch_size: int = 500,
        exact: bool = False,
        is_renewal: bool = False,
        epoch: int | None = None,
    ) -> share_fetch.ShareFetchRequest:
        named = [
            share_fetch.FetchPartition(index, wire_batches(acknowledged) if index == 0 else ()) for index in partitions
        ]
        topics = [share_fetch.FetchTopic(self.topic_id, named)]
        present = self.epoch if epoch is None else epoch
        limits = (0, 0, 0, 0) if is_renewal else (max_wait_ms, min_bytes, max_bytes, max_records)
        return share_fetch.ShareFetchRequest(
            self.group, self.member, present, *limits, batch_size, int(exact), is_renewal, topics
        )

    def taken(self, response: Any) -> Fetched:
        """Read a response, and expect the next epoch if it is a success."""
        if response.error_code:
            return NOTHING._replace(error=response.error_code)
        self.epoch += 1
        found = [each for topic in response.responses for each in topic.partitions if each.partition_index == 0]
        return fetched(found[0]) if found else NOTHING

    def acknowledge(self, *acknowledged: Batch, epoch: int | None = None, is_renewal: bool = False) -> int:
        """Acknowledge records of partition 0 and return the error code."""
        topics = [
            share_acknowledge.AcknowledgeTopic(
                self.topic_id, [share_acknowledge.AcknowledgePartition(0, wire_batches(acknowledged))]
            )
        ]
        present = self.epoch if epoch is None else epoch
        request = share_acknowledge.ShareAcknowledgeRequest(
            self.group, self.member, present, is_renewal, topics if acknowledged else ()
        )
        self.last = self.wire.ask(request, 2)
        if self.last.error_code:
            return self.last.error_code  # type: ignore[no-any-return]
        self.epoch += 1
        codes = [each.error_code for topic in self.last.responses for each in topic.partitions]
        return codes[0] if codes else 0

    def close(self, *acknowledged: Batch) -> int:
        """Close the share session."""
        return self.acknowledge(*acknowledged, epoch=-1)


def wire_batches(batches: Sequence[Batch]) -> list[share_fetch.AcknowledgementBatch]:
    return [share_fetch.AcknowledgementBatch(first, last, [kind]) for first, last, kind in batches]


def fetched(data: share_fetch.PartitionData) -> Fetched:
    ranges = [(each.first_offset, each.last_offset, each.delivery_count) for each in data.acquired_records]
    columns = decode(bytes(data.records or b""))
    offsets = {offset for first, last, _ in ranges for offset in range(first, last + 1)}
    values = {columns.offsets[row]: columns.value(row) for row in range(columns.count)}
    kept = {offset: value for offset, value in values.items() if offset in offsets}
    return Fetched(ranges, kept, data.error_code, data.acknowledge_error_code, data.current_leader.leader_id)


def configure(wire: Wire, settings: Mapping[str, object], group: str = GROUP) -> None:
    """Set configs of a group."""
    changes = [AlterableConfig(name, 0, str(value)) for name, value in settings.items()]
    (result,) = wire.ask(
        IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP_RESOURCE, group, changes)])
    ).responses
    assert result.error_code == 0, result.error_message


def produce_each(wire: Wire, count: int, topic: str = "t", first: int = 0) -> None:
    """Produce records one by one, so that each is a batch."""
    for number in range(first, first + count):
        wire.produce(topic, b"%d" % number)
