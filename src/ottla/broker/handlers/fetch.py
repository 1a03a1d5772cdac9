"""Fetch: record batches straight from the file, now or when there are enough of them.

There are no fetch sessions: every answer has session id 0, which tells the client to name all partitions each time
(KIP-227). There are no transactions yet, so the last stable offset is the high watermark.
"""

from __future__ import annotations

import logging
import uuid
from functools import partial

from ottla.broker.call import Call, Outcome
from ottla.broker.node import Node
from ottla.broker.partition import Partition
from ottla.broker.waiting import WaitingFetch
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

log = logging.getLogger(__name__)

IDS_SINCE = 13
"""From this version on topics have ids instead of names."""
NEW_SESSION = 0
"""A session epoch that asks for a session; -1 wants none, a higher one goes on with one."""


def handle(node: Node, call: Call, request: FetchRequest) -> FetchResponse | Outcome:
    """Answer at once where there is enough, or something to complain of; else wait."""
    if request.session_epoch > NEW_SESSION:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    return look(node, call, request, node.clock.monotonic())


def look(node: Node, call: Call, request: FetchRequest, now: float) -> FetchResponse | Outcome:
    """What there is, if it is enough or the wait is over; else wait, and look again then."""
    deadline = call.received + request.max_wait_ms / 1000
    reading = Reading(node, call.version, request)
    response = reading.response()
    if reading.failed or reading.size >= request.min_bytes or now >= deadline or not reading.partitions:
        return response
    again = partial(call.resume, lambda: look(node, call, request, node.clock.monotonic()))
    fetch = WaitingFetch(reading.partitions, request.min_bytes - reading.size, again)
    call.on_abandoned = lambda: node.waiting.discard(fetch)
    node.waiting.add(fetch, deadline)
    return Outcome.LATER


class Reading:
    """One look at the logs on behalf of a fetch."""

    __slots__ = ("failed", "left", "node", "partitions", "request", "size", "version")

    def __init__(self, node: Node, version: int, request: FetchRequest) -> None:
        self.node = node
        self.version = version
        self.request = request
        self.partitions: list[Partition] = []
        """Those that were found, for whose records the fetch could wait."""
        self.size = 0
        """Bytes of records found."""
        self.left = min(request.max_bytes, node.config.fetch_max_bytes)
        self.failed = False
        """Whether some partition has an error to tell."""

    def response(self) -> FetchResponse:
        """What there is."""
        return FetchResponse(responses=[self._topic(topic) for topic in self.request.topics])

    def _topic(self, topic: FetchTopic) -> FetchableTopicResponse:
        name: str | None = topic.topic
        if self.version >= IDS_SINCE:
            name = self.node.partitions.topic_name(topic.topic_id)
        found = [self._partition(name, wanted, topic.topic_id) for wanted in topic.partitions]
        return FetchableTopicResponse(topic.topic, topic.topic_id, found)

    def _partition(self, name: str | None, wanted: FetchPartition, topic_id: uuid.UUID) -> PartitionData:
        if name is None:
            return self._error(wanted, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = self.node.partitions.find(name, wanted.partition)
        if partition is None:
            return self._error(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        error = partition.epoch_error(wanted.current_leader_epoch)
        if error:
            return self._error(wanted, error)
        self.partitions.append(partition)
        try:
            return self._read(partition, wanted)
        except KafkaError as failure:
            if failure.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                log.error("cannot read %s at offset %d: %s", partition.topic_partition, wanted.fetch_offset, failure)
            return self._error(wanted, failure.code, partition)
        except CorruptRecordError as failure:
            log.error("cannot read %s at offset %d: %s", partition.topic_partition, wanted.fetch_offset, failure)
            return self._error(wanted, ErrorCode.KAFKA_STORAGE_ERROR, partition)

    def _read(self, partition: Partition, wanted: FetchPartition) -> PartitionData:
        log = partition.log
        end = log.high_watermark
        records = None
        offset = wanted.fetch_offset
        # At the end is where a consumer usually is.
        if offset != end and (self.left > 0 or not self.size):
            records = log.read(offset, max(0, min(wanted.partition_max_bytes, self.left)), min_one=not self.size)
        if records is not None:
            size = len(records)
            self.size += size
            self.left -= size
        return PartitionData(
            wanted.partition,
            high_watermark=end,
            last_stable_offset=end,
            log_start_offset=log.start_offset,
            records=b"" if records is None else records,
        )

    def _error(self, wanted: FetchPartition, code: int, partition: Partition | None = None) -> PartitionData:
        self.failed = True
        found = PartitionData(wanted.partition, code, high_watermark=-1, records=b"")
        if partition is not None and code == ErrorCode.OFFSET_OUT_OF_RANGE:
            found.high_watermark = found.last_stable_offset = partition.log.high_watermark
            found.log_start_offset = partition.log.start_offset
        return found
