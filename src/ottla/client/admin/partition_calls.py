"""Add partitions, delete records, elect leaders and reassign replicas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ottla.client.admin.admin_api_driver import (
    AdminApiDriver,
    AdminQuery,
    lookup_controller,
    raise_first,
)
from ottla.client.admin.group_offset_calls import group_by_topic
from ottla.client.admin.leaders import leader_lookup
from ottla.client.admin.partition import NewPartitions, PartitionReassignment
from ottla.client.admin.topic_calls import INT32, TopicCalls, result_error
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
COUNT = "the total number of partitions"


class PartitionCalls:
    """Implements the partition methods of `Admin`, which documents them."""

    def __init__(self, driver: AdminApiDriver, topics: TopicCalls) -> None:
        self._driver = driver
        self._topics = topics

    def create_partitions(
        self, new_partitions: Mapping[str, int | NewPartitions], timeout: float | None, *, validate_only: bool
    ) -> None:
        given = checked_dict("new_partitions", new_partitions, "{'flights': 6}")
        wanted = {checked_topic(name): encode_new_partitions(name, count) for name, count in given.items()}
        checked_flag("validate_only", validate_only)

        def request(names: list[str]) -> CreatePartitionsRequest:
            limit = self._driver.timeout_ms(timeout)
            return CreatePartitionsRequest([wanted[name] for name in names], limit, validate_only)

        def read(_: list[str], message: Any) -> dict[str, KafkaError | bool]:
            return {each.name: result_error(each) for each in message.results}

        query: AdminQuery[str, bool] = AdminQuery(lookup_controller, request, read)
        raise_first(self._driver.run_query(query, wanted, timeout)[1])

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
                for name, numbers in group_by_topic(keys).items()
            ]
            return DeleteRecordsRequest(topics, self._driver.timeout_ms(timeout))

        query: AdminQuery[TopicPartition, int] = AdminQuery(
            leader_lookup(self._topics.metadata, wanted), request, read_low_watermarks
        )
        found, failed = self._driver.run_query(query, wanted, timeout)
        raise_first(failed)
        return found

    def elect_leaders(
        self, election_type: str, partitions: Iterable[TopicPartition] | None, timeout: float | None
    ) -> set[TopicPartition]:
        if election_type not in ELECTIONS:
            raise ValueError(f"election_type = {election_type!r}: must be one of {', '.join(ELECTIONS)}")
        topics = None
        if partitions is not None:
            named = group_by_topic(checked_partitions(partitions))
            topics = [TopicPartitions(name, numbers) for name, numbers in named.items()]
        request = ElectLeadersRequest(ELECTIONS[election_type], topics, self._driver.timeout_ms(timeout))
        response = self._driver.send_one(lookup_controller, request, "the leader election", timeout)
        results = {
            TopicPartition(topic.topic, each.partition_id): each
            for topic in response.replica_election_results
            for each in topic.partition_result
            if each.error_code != ErrorCode.ELECTION_NOT_NEEDED
        }
        raise_first({tp: error for tp, each in results.items() if (error := partition_error(tp, each)) is not None})
        return set(results)

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        timeout: float | None,
        *,
        allow_replication_factor_change: bool,
    ) -> None:
        given = checked_dict("reassignments", reassignments, "{TopicPartition('flights', 0): [2, 3]}")
        wanted = {checked_partition(tp): check_brokers(tp, brokers) for tp, brokers in given.items()}
        topics = [
            ReassignableTopic(name, [ReassignablePartition(n, wanted[TopicPartition(name, n)]) for n in numbers])
            for name, numbers in group_by_topic(wanted).items()
        ]
        change = checked_flag("allow_replication_factor_change", allow_replication_factor_change)
        request = AlterPartitionReassignmentsRequest(self._driver.timeout_ms(timeout), change, topics)
        response = self._driver.send_one(lookup_controller, request, "the reassignments", timeout)
        results = {
            TopicPartition(topic.name, each.partition_index): each
            for topic in response.responses
            for each in topic.partitions
        }
        raise_first({tp: error for tp, each in results.items() if (error := partition_error(tp, each)) is not None})

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None, timeout: float | None
    ) -> dict[TopicPartition, PartitionReassignment]:
        topics = None
        if partitions is not None:
            named = group_by_topic(checked_partitions(partitions))
            topics = [ListPartitionReassignmentsTopics(name, numbers) for name, numbers in named.items()]
        request = ListPartitionReassignmentsRequest(self._driver.timeout_ms(timeout), topics)
        response = self._driver.send_one(lookup_controller, request, "the reassignments", timeout)
        return {
            TopicPartition(topic.name, each.partition_index): PartitionReassignment(
                tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
            )
            for topic in response.topics
            for each in topic.partitions
        }


def encode_new_partitions(name: str, count: int | NewPartitions) -> CreatePartitionsTopic:
    """Return the new partition count of a topic in the form of the protocol."""
    wanted = count if isinstance(count, NewPartitions) else NewPartitions(count)
    total = checked_whole(f"the number for {name!r}", wanted.total_count, COUNT, *INT32)
    if wanted.new_assignments is None:
        return CreatePartitionsTopic(name, total, None)
    assigned = checked_list("new_assignments", wanted.new_assignments, "[[1, 2]]")
    brokers = [[checked_broker(each) for each in checked_list("brokers", one, "[1, 2]")] for one in assigned]
    return CreatePartitionsTopic(name, total, [CreatePartitionsAssignment(each) for each in brokers])


def check_brokers(tp: TopicPartition, brokers: Sequence[int] | None) -> list[int] | None:
    """Return the brokers of a reassignment. None cancels one in progress."""
    if brokers is None:
        return None
    return [checked_broker(each) for each in checked_list(f"the brokers for {tp}", brokers, "[2, 3]")]


def partition_error(tp: TopicPartition, response: Any) -> KafkaError | None:
    if not response.error_code:
        return None
    return error_for(response.error_code, response.error_message or f"partition {tp}")


def read_low_watermarks(_: list[TopicPartition], response: Any) -> Mapping[TopicPartition, int | KafkaError]:
    """Return the new start offset of each partition."""
    results = {
        TopicPartition(topic.name, each.partition_index): each for topic in response.topics for each in topic.partitions
    }
    return {
        tp: error_for(each.error_code, f"partition {tp}") if each.error_code else each.low_watermark
        for tp, each in results.items()
    }
