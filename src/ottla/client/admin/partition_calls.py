"""Partitions: added, emptied, led by others, moved, and found on the disks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ottla.client.admin.admin_api_driver import (
    AdminApiDriver,
    Question,
    controller,
    raise_first,
)
from ottla.client.admin.group_offset_calls import by_topic
from ottla.client.admin.leaders import leaders
from ottla.client.admin.partition import NewPartitions, PartitionReassignment
from ottla.client.admin.topic_calls import INT32, TopicCalls, outcome
from ottla.client.interface.arguments import (
    LAST_OFFSET,
    checked_broker,
    checked_dict,
    checked_flag,
    checked_list,
    checked_partition,
    checked_partitions,
    checked_topic,
    checked_whole,
)
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import TopicPartition
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

ELECTIONS = {"PREFERRED": 0, "UNCLEAN": 1}
COUNT = "how many partitions there shall be in all"


class PartitionCalls:
    """What an admin does with partitions; `Admin` has the same names and says what they do."""

    def __init__(self, driver: AdminApiDriver, topics: TopicCalls) -> None:
        self._driver = driver
        self._topics = topics

    def create_partitions(
        self, new_partitions: Mapping[str, int | NewPartitions], timeout: float | None, *, validate_only: bool
    ) -> None:
        given = checked_dict("new_partitions", new_partitions, "{'flights': 6}")
        wanted = {checked_topic(name): grown(name, count) for name, count in given.items()}
        checked_flag("validate_only", validate_only)

        def request(names: list[str]) -> CreatePartitionsRequest:
            limit = self._driver.timeout_ms(timeout)
            return CreatePartitionsRequest([wanted[name] for name in names], limit, validate_only)

        def read(_: list[str], message: Any) -> dict[str, KafkaError | bool]:
            return {each.name: outcome(each) for each in message.results}

        question: Question[str, bool] = Question(controller, request, read)
        raise_first(self._driver.ask(question, wanted, timeout)[1])

    def delete_records(
        self, before_offsets: Mapping[TopicPartition, int], timeout: float | None
    ) -> dict[TopicPartition, int]:
        given = checked_dict("before_offsets", before_offsets, "{TopicPartition('flights', 0): 100}")
        wanted = {
            checked_partition(tp): checked_whole(
                f"the offset for {tp}", offset, "an offset, -1 for the end", LAST_OFFSET, -1
            )
            for tp, offset in given.items()
        }

        def request(keys: list[TopicPartition]) -> DeleteRecordsRequest:
            topics = [
                DeleteRecordsTopic(name, [DeleteRecordsPartition(n, wanted[TopicPartition(name, n)]) for n in numbers])
                for name, numbers in by_topic(keys).items()
            ]
            return DeleteRecordsRequest(topics, self._driver.timeout_ms(timeout))

        question: Question[TopicPartition, int] = Question(
            leaders(self._topics.metadata, wanted), request, read_low_watermarks
        )
        found, failed = self._driver.ask(question, wanted, timeout)
        raise_first(failed)
        return found

    def elect_leaders(
        self, election_type: str, partitions: Iterable[TopicPartition] | None, timeout: float | None
    ) -> set[TopicPartition]:
        if election_type not in ELECTIONS:
            raise ValueError(f"election_type = {election_type!r}: must be one of {', '.join(ELECTIONS)}")
        topics = None
        if partitions is not None:
            named = by_topic(checked_partitions(partitions))
            topics = [TopicPartitions(name, numbers) for name, numbers in named.items()]
        request = ElectLeadersRequest(ELECTIONS[election_type], topics, self._driver.timeout_ms(timeout))
        answer = self._driver.ask_one(controller, request, "the election", timeout)
        told = {
            TopicPartition(topic.topic, each.partition_id): each
            for topic in answer.replica_election_results
            for each in topic.partition_result
            if each.error_code != ErrorCode.ELECTION_NOT_NEEDED
        }
        raise_first({tp: error for tp, each in told.items() if (error := error_of(tp, each)) is not None})
        return set(told)

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        timeout: float | None,
        *,
        allow_replication_factor_change: bool,
    ) -> None:
        given = checked_dict("reassignments", reassignments, "{TopicPartition('flights', 0): [2, 3]}")
        wanted = {checked_partition(tp): brokers_of(tp, brokers) for tp, brokers in given.items()}
        topics = [
            ReassignableTopic(name, [ReassignablePartition(n, wanted[TopicPartition(name, n)]) for n in numbers])
            for name, numbers in by_topic(wanted).items()
        ]
        change = checked_flag("allow_replication_factor_change", allow_replication_factor_change)
        request = AlterPartitionReassignmentsRequest(self._driver.timeout_ms(timeout), change, topics)
        answer = self._driver.ask_one(controller, request, "the moves", timeout)
        told = {
            TopicPartition(topic.name, each.partition_index): each
            for topic in answer.responses
            for each in topic.partitions
        }
        raise_first({tp: error for tp, each in told.items() if (error := error_of(tp, each)) is not None})

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None, timeout: float | None
    ) -> dict[TopicPartition, PartitionReassignment]:
        topics = None
        if partitions is not None:
            named = by_topic(checked_partitions(partitions))
            topics = [ListPartitionReassignmentsTopics(name, numbers) for name, numbers in named.items()]
        request = ListPartitionReassignmentsRequest(self._driver.timeout_ms(timeout), topics)
        answer = self._driver.ask_one(controller, request, "the moves", timeout)
        return {
            TopicPartition(topic.name, each.partition_index): PartitionReassignment(
                tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
            )
            for topic in answer.topics
            for each in topic.partitions
        }


def grown(name: str, count: int | NewPartitions) -> CreatePartitionsTopic:
    """A topic with more partitions, as it travels."""
    wanted = count if isinstance(count, NewPartitions) else NewPartitions(count)
    total = checked_whole(f"the number for {name!r}", wanted.total_count, COUNT, *INT32)
    if wanted.new_assignments is None:
        return CreatePartitionsTopic(name, total, None)
    assigned = checked_list("new_assignments", wanted.new_assignments, "[[1, 2]]")
    brokers = [[checked_broker(each) for each in checked_list("brokers", one, "[1, 2]")] for one in assigned]
    return CreatePartitionsTopic(name, total, [CreatePartitionsAssignment(each) for each in brokers])


def brokers_of(tp: TopicPartition, brokers: Sequence[int] | None) -> list[int] | None:
    """Where a partition is to go; None stops what is under way."""
    if brokers is None:
        return None
    return [checked_broker(each) for each in checked_list(f"the brokers for {tp}", brokers, "[2, 3]")]


def error_of(tp: TopicPartition, answer: Any) -> KafkaError | None:
    if not answer.error_code:
        return None
    return error_for(answer.error_code, answer.error_message or f"partition {tp}")


def read_low_watermarks(_: list[TopicPartition], answer: Any) -> Mapping[TopicPartition, int | KafkaError]:
    """The first offset that each partition has now."""
    told = {
        TopicPartition(topic.name, each.partition_index): each for topic in answer.topics for each in topic.partitions
    }
    return {
        tp: error_for(each.error_code, f"partition {tp}") if each.error_code else each.low_watermark
        for tp, each in told.items()
    }
