"""Offsets of consumer groups: listed, set, deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, Question, raise_first
from ottla.client.admin.coordinators import coordinators
from ottla.client.admin.group_calls import FAULTS, checked_group, fault_of
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
    """What an admin does with committed offsets; `Admin` has the same names and says what they do."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver
        self._lookup = coordinators(GROUP)

    def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None,
        timeout: float | None,
        *,
        require_stable: bool,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        checked_flag("require_stable", require_stable)
        wanted = None if partitions is None else by_topic(checked_partitions(partitions))
        topics = None if wanted is None else [OffsetFetchRequestTopic(name, parts) for name, parts in wanted.items()]
        question: Question[str, dict[TopicPartition, OffsetAndMetadata]] = Question(
            self._lookup,
            lambda keys: OffsetFetchRequest(group_id=keys[0], topics=topics, require_stable=require_stable),
            read_committed,
            together=False,
            max_version=LAST_FETCH_OF_ONE_GROUP,
        )
        found, failed = self._driver.ask(question, [checked_group(group_id)], timeout)
        raise_first(failed)
        return found[group_id]

    def alter_consumer_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], timeout: float | None
    ) -> None:
        wanted = checked_offsets(offsets)
        topics = [
            OffsetCommitRequestTopic(
                name=name, partitions=[committed(p, wanted[TopicPartition(name, p)]) for p in parts]
            )
            for name, parts in by_topic(wanted).items()
        ]
        question: Question[str, Codes] = Question(
            self._lookup,
            lambda keys: OffsetCommitRequest(group_id=keys[0], topics=topics),
            lambda keys, answer: {keys[0]: codes_of(keys[0], 0, answer)},
            together=False,
            max_version=LAST_COMMIT_WITH_NAMES,
        )
        self._change(question, group_id, timeout)

    def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> None:
        topics = [
            OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(number) for number in numbers])
            for name, numbers in by_topic(checked_partitions(partitions)).items()
        ]
        question: Question[str, Codes] = Question(
            self._lookup,
            lambda keys: OffsetDeleteRequest(keys[0], topics),
            lambda keys, answer: {keys[0]: codes_of(keys[0], answer.error_code, answer)},
            together=False,
        )
        self._change(question, group_id, timeout)

    def _change(self, question: Question[str, Codes], group_id: str, timeout: float | None) -> None:
        found, failed = self._driver.ask(question, [checked_group(group_id)], timeout)
        raise_first(failed)
        raise_first({tp: of_partition(code, group_id, tp) for tp, code in found[group_id].items() if code})


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of each topic's partitions."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics


def committed(number: int, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    """One offset as it travels."""
    return OffsetCommitRequestPartition(number, offset.offset, offset.leader_epoch, offset.metadata)


def of_partition(code: int, group_id: str, tp: TopicPartition) -> KafkaError:
    """The error of one partition of a group."""
    return error_for(code, FAULTS[code](group_id) if code in FAULTS else f"partition {tp}")


def read_committed(
    groups: list[str], answer: Any
) -> Mapping[str, dict[TopicPartition, OffsetAndMetadata] | KafkaError]:
    """What one group has committed; partitions without an offset are left out."""
    (group,) = groups
    parts = {TopicPartition(topic.name, p.partition_index): p for topic in answer.topics for p in topic.partitions}
    code = answer.error_code or next((part.error_code for part in parts.values() if part.error_code), 0)
    fault = fault_of(code, group)
    if isinstance(fault, KafkaError):
        return {group: fault}
    return {
        group: {
            tp: OffsetAndMetadata(part.committed_offset, part.metadata or "", part.committed_leader_epoch)
            for tp, part in sorted(parts.items())
            if part.committed_offset >= 0
        }
    }


def codes_of(group: str, code: int, answer: Any) -> Codes | KafkaError:
    """A code for each partition; the error of the group, or one that may pass, is that of all."""
    fault = fault_of(code, group)
    if isinstance(fault, KafkaError):
        return fault
    codes = {
        TopicPartition(topic.name, p.partition_index): p.error_code for topic in answer.topics for p in topic.partitions
    }
    for tp, each in codes.items():
        if each and of_partition(each, group, tp).retriable:
            return of_partition(each, group, tp)
    return codes
