"""List, set and delete committed offsets of consumer groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, AdminQuery, raise_first
from ottla.client.admin.coordinators import coordinator_lookup
from ottla.client.admin.group_calls import ERROR_MEANINGS, checked_group, group_error
from ottla.client.interface.arguments import checked_flag, checked_offsets, checked_partitions
from ottla.client.metadata.coordinators import GROUP
from ottla.errors import KafkaError, error_for
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

LAST_FETCH_OF_ONE_GROUP = 7
LAST_COMMIT_WITH_NAMES = 9
Codes = Mapping[TopicPartition, int]


class GroupOffsetCalls:
    """Implements the offset methods of `Admin`, which documents them."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver
        self._lookup = coordinator_lookup(GROUP)

    def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None,
        timeout: float | None,
        *,
        require_stable: bool,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        checked_flag("require_stable", require_stable)
        wanted = None if partitions is None else group_by_topic(checked_partitions(partitions))
        topics = None if wanted is None else [OffsetFetchRequestTopic(name, parts) for name, parts in wanted.items()]
        query: AdminQuery[str, dict[TopicPartition, OffsetAndMetadata]] = AdminQuery(
            self._lookup,
            lambda keys: OffsetFetchRequest(group_id=keys[0], topics=topics, require_stable=require_stable),
            read_committed_offsets,
            can_batch=False,
            max_version=LAST_FETCH_OF_ONE_GROUP,
        )
        found, failed = self._driver.run_query(query, [checked_group(group_id)], timeout)
        raise_first(failed)
        return found[group_id]

    def alter_consumer_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], timeout: float | None
    ) -> None:
        wanted = checked_offsets(offsets)
        topics = [
            OffsetCommitRequestTopic(
                name=name, partitions=[encode_offset(p, wanted[TopicPartition(name, p)]) for p in parts]
            )
            for name, parts in group_by_topic(wanted).items()
        ]
        query: AdminQuery[str, Codes] = AdminQuery(
            self._lookup,
            lambda keys: OffsetCommitRequest(group_id=keys[0], topics=topics),
            lambda keys, response: {keys[0]: read_partition_codes(keys[0], 0, response)},
            can_batch=False,
            max_version=LAST_COMMIT_WITH_NAMES,
        )
        self._change(query, group_id, timeout)

    def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> None:
        topics = [
            OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(number) for number in numbers])
            for name, numbers in group_by_topic(checked_partitions(partitions)).items()
        ]
        query: AdminQuery[str, Codes] = AdminQuery(
            self._lookup,
            lambda keys: OffsetDeleteRequest(keys[0], topics),
            lambda keys, response: {keys[0]: read_partition_codes(keys[0], response.error_code, response)},
            can_batch=False,
        )
        self._change(query, group_id, timeout)

    def _change(self, query: AdminQuery[str, Codes], group_id: str, timeout: float | None) -> None:
        found, failed = self._driver.run_query(query, [checked_group(group_id)], timeout)
        raise_first(failed)
        raise_first({tp: partition_error(code, group_id, tp) for tp, code in found[group_id].items() if code})


def group_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group the partition numbers by topic."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics


def encode_offset(number: int, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    """Return one offset in the form of the protocol."""
    return OffsetCommitRequestPartition(number, offset.offset, offset.leader_epoch, offset.metadata)


def partition_error(code: int, group_id: str, tp: TopicPartition) -> KafkaError:
    """Return the error of one partition of a group."""
    return error_for(code, ERROR_MEANINGS[code](group_id) if code in ERROR_MEANINGS else f"partition {tp}")


def read_committed_offsets(
    groups: list[str], response: Any
) -> Mapping[str, dict[TopicPartition, OffsetAndMetadata] | KafkaError]:
    """Return the committed offsets of one group. Partitions without an offset are omitted."""
    (group,) = groups
    parts = {TopicPartition(topic.name, p.partition_index): p for topic in response.topics for p in topic.partitions}
    code = response.error_code or next((part.error_code for part in parts.values() if part.error_code), 0)
    error = group_error(code, group)
    if isinstance(error, KafkaError):
        return {group: error}
    return {
        group: {
            tp: OffsetAndMetadata(part.committed_offset, part.metadata or "", part.committed_leader_epoch)
            for tp, part in sorted(parts.items())
            if part.committed_offset >= 0
        }
    }


def read_partition_codes(group: str, code: int, response: Any) -> Codes | KafkaError:
    """Return an error code for each partition.

    An error of the group, or a retriable error of a partition, fails the whole call.
    """
    error = group_error(code, group)
    if isinstance(error, KafkaError):
        return error
    codes = {
        TopicPartition(topic.name, p.partition_index): p.error_code
        for topic in response.topics
        for p in topic.partitions
    }
    for tp, each in codes.items():
        if each and partition_error(each, group, tp).retriable:
            return partition_error(each, group, tp)
    return codes
