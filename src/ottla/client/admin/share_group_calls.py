"""Describe and delete share groups, and list, set and delete their start offsets (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ottla.client.admin.acl import operations_in
from ottla.client.admin.admin_api_driver import AdminApiDriver, AdminQuery, raise_first
from ottla.client.admin.coordinators import coordinator_lookup
from ottla.client.admin.group import ShareGroupDescription, ShareMemberDescription, SharePartitionOffsetInfo
from ottla.client.admin.group_calls import (
    checked_group,
    checked_groups,
    flatten_assignment,
    group_error,
    recording_lookup,
)
from ottla.client.admin.group_offset_calls import Codes, group_by_topic, partition_error
from ottla.client.interface.arguments import (
    LAST_OFFSET,
    checked_dict,
    checked_flag,
    checked_partition,
    checked_partitions,
    checked_topics,
    checked_whole,
)
from ottla.client.metadata.coordinators import GROUP
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import Node, TopicPartition
from ottla.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ottla.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from ottla.protocol.messages.share_group_describe import ShareGroupDescribeRequest


class ShareGroupCalls:
    """Implements the methods of `Admin` for share groups, which documents them."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver
        self._lookup = coordinator_lookup(GROUP)

    def describe_share_groups(
        self, group_ids: Iterable[str], timeout: float | None, with_operations: bool = False
    ) -> dict[str, ShareGroupDescription]:
        checked_flag("include_authorized_operations", with_operations)
        requested = list(dict.fromkeys(checked_groups(group_ids)))
        lookup, nodes = recording_lookup(self._lookup)
        query: AdminQuery[str, ShareGroupDescription] = AdminQuery(
            lookup, lambda keys: ShareGroupDescribeRequest(keys, with_operations), partial(read_share_groups, nodes)
        )
        found, failed = self._driver.run_query(query, requested, timeout)
        raise_first(failed)
        return {group: found[group] for group in requested}

    def list_share_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None, timeout: float | None
    ) -> dict[TopicPartition, SharePartitionOffsetInfo]:
        wanted = None if partitions is None else group_by_topic(checked_partitions(partitions))
        topics = (
            None
            if wanted is None
            else [DescribeShareGroupOffsetsRequestTopic(name, numbers) for name, numbers in wanted.items()]
        )
        query: AdminQuery[str, dict[TopicPartition, SharePartitionOffsetInfo]] = AdminQuery(
            self._lookup,
            lambda keys: DescribeShareGroupOffsetsRequest(
                [DescribeShareGroupOffsetsRequestGroup(key, topics) for key in keys]
            ),
            read_start_offsets,
            can_batch=False,
        )
        found, failed = self._driver.run_query(query, [checked_group(group_id)], timeout)
        raise_first(failed)
        return found[group_id]

    def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], timeout: float | None
    ) -> None:
        wanted = {
            checked_partition(tp): checked_whole(f"the offset of {tp}", offset, "an offset", LAST_OFFSET)
            for tp, offset in checked_dict("offsets", offsets, "{TopicPartition('flights', 0): 42}").items()
        }
        topics = [
            AlterShareGroupOffsetsRequestTopic(
                name,
                [AlterShareGroupOffsetsRequestPartition(n, wanted[TopicPartition(name, n)]) for n in numbers],
            )
            for name, numbers in group_by_topic(wanted).items()
        ]
        query: AdminQuery[str, Codes] = AdminQuery(
            self._lookup,
            lambda keys: AlterShareGroupOffsetsRequest(keys[0], topics),
            read_altered_offsets,
            can_batch=False,
        )
        found, failed = self._driver.run_query(query, [checked_group(group_id)], timeout)
        raise_first(failed)
        raise_first({tp: partition_error(code, group_id, tp) for tp, code in found[group_id].items() if code})

    def delete_share_group_offsets(self, group_id: str, topics: Iterable[str], timeout: float | None) -> None:
        names = [DeleteShareGroupOffsetsRequestTopic(name) for name in checked_topics(topics)]
        query: AdminQuery[str, dict[str, KafkaError]] = AdminQuery(
            self._lookup,
            lambda keys: DeleteShareGroupOffsetsRequest(keys[0], names),
            read_deleted_offsets,
            can_batch=False,
        )
        found, failed = self._driver.run_query(query, [checked_group(group_id)], timeout)
        raise_first(failed)
        raise_first(found[group_id])


def read_share_groups(
    nodes: Mapping[str, Node], groups: list[str], response: Any
) -> Mapping[str, ShareGroupDescription | KafkaError]:
    return {each.group_id: parse_share_group(nodes, each) for each in response.groups}


def parse_share_group(nodes: Mapping[str, Node], response: Any) -> ShareGroupDescription | KafkaError:
    error = group_error(response.error_code, response.group_id, response.error_message)
    if isinstance(error, KafkaError):
        return error
    members = tuple(
        ShareMemberDescription(
            member.member_id,
            member.client_id,
            member.client_host,
            flatten_assignment(member.assignment),
            member.member_epoch,
            tuple(member.subscribed_topic_names),
            member.rack_id,
        )
        for member in response.members
    )
    return ShareGroupDescription(
        response.group_id,
        response.group_state,
        nodes[response.group_id],
        members,
        response.group_epoch,
        response.assignment_epoch,
        response.assignor_name,
        operations_in(response.authorized_operations),
    )


def read_start_offsets(
    groups: list[str], response: Any
) -> Mapping[str, dict[TopicPartition, SharePartitionOffsetInfo] | KafkaError]:
    """Return the start offsets of groups. Partitions without one are omitted."""
    return {each.group_id: parse_start_offsets(each) for each in response.groups}


def parse_start_offsets(response: Any) -> dict[TopicPartition, SharePartitionOffsetInfo] | KafkaError:
    error = group_error(response.error_code, response.group_id, response.error_message)
    if isinstance(error, KafkaError):
        return error
    found = {}
    for topic in response.topics:
        for part in topic.partitions:
            tp = TopicPartition(topic.topic_name, part.partition_index)
            if part.error_code:
                return error_for(part.error_code, part.error_message or f"partition {tp}")
            if part.start_offset >= 0:
                lag = part.lag if part.lag >= 0 else None
                found[tp] = SharePartitionOffsetInfo(part.start_offset, part.leader_epoch, lag)
    return dict(sorted(found.items()))


def read_altered_offsets(groups: list[str], response: Any) -> Mapping[str, Codes | KafkaError]:
    """Return an error code for each partition. An error of the group fails the whole call."""
    (group,) = groups
    error = share_error(response.error_code, group, response.error_message)
    if error is not None:
        return {group: error}
    return {
        group: {
            TopicPartition(topic.topic_name, part.partition_index): part.error_code
            for topic in response.responses
            for part in topic.partitions
        }
    }


def read_deleted_offsets(groups: list[str], response: Any) -> Mapping[str, dict[str, KafkaError] | KafkaError]:
    """Return the errors of topics. An error of the group fails the whole call."""
    (group,) = groups
    error = share_error(response.error_code, group, response.error_message)
    if error is not None:
        return {group: error}
    return {
        group: {
            topic.topic_name: error_for(topic.error_code, topic.error_message or f"topic {topic.topic_name!r}")
            for topic in response.responses
            if topic.error_code
        }
    }


def share_error(code: int, group_id: str, reason: str | None) -> KafkaError | None:
    """Return the error of a request for a whole group, or None."""
    if code == ErrorCode.NON_EMPTY_GROUP:
        reason = None
    error = group_error(code, group_id, reason)
    return error if isinstance(error, KafkaError) else None
