"""Describe streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ottla.client.admin.acl import operations_in
from ottla.client.admin.admin_api_driver import AdminApiDriver, AdminQuery, raise_first
from ottla.client.admin.coordinators import coordinator_lookup
from ottla.client.admin.group import (
    StreamsGroupDescription,
    StreamsMemberDescription,
    StreamsSubtopology,
    StreamsTasks,
    StreamsTopologyDescription,
    StreamsTopologyNode,
)
from ottla.client.admin.group_calls import checked_groups, group_error, recording_lookup
from ottla.client.interface.arguments import checked_flag
from ottla.client.metadata.coordinators import GROUP
from ottla.errors import KafkaError
from ottla.model import Node
from ottla.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest

NODE_KINDS: Mapping[int, str] = {1: "source", 2: "processor", 3: "sink"}


class StreamsGroupCalls:
    """Implements the methods of `Admin` for streams groups, which documents them."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver
        self._lookup = coordinator_lookup(GROUP)

    def describe_streams_groups(
        self,
        group_ids: Iterable[str],
        timeout: float | None,
        with_operations: bool = False,
        with_topology: bool = False,
    ) -> dict[str, StreamsGroupDescription]:
        checked_flag("include_authorized_operations", with_operations)
        checked_flag("include_topology_description", with_topology)
        requested = list(dict.fromkeys(checked_groups(group_ids)))
        lookup, nodes = recording_lookup(self._lookup)
        query: AdminQuery[str, StreamsGroupDescription] = AdminQuery(
            lookup,
            lambda keys: StreamsGroupDescribeRequest(keys, with_operations, with_topology),
            partial(read_streams_groups, nodes),
        )
        found, failed = self._driver.run_query(query, requested, timeout)
        raise_first(failed)
        return {group: found[group] for group in requested}


def read_streams_groups(
    nodes: Mapping[str, Node], groups: list[str], response: Any
) -> Mapping[str, StreamsGroupDescription | KafkaError]:
    return {each.group_id: parse_streams_group(nodes, each) for each in response.groups}


def parse_streams_group(nodes: Mapping[str, Node], response: Any) -> StreamsGroupDescription | KafkaError:
    error = group_error(response.error_code, response.group_id, response.error_message)
    if isinstance(error, KafkaError):
        return error
    members = tuple(
        StreamsMemberDescription(
            member.member_id,
            member.client_id,
            member.client_host,
            member.process_id,
            member.member_epoch,
            parse_tasks(member.assignment),
            parse_tasks(member.target_assignment),
            member.topology_epoch,
            member.instance_id,
            member.rack_id,
        )
        for member in response.members
    )
    return StreamsGroupDescription(
        response.group_id,
        response.group_state,
        nodes[response.group_id],
        members,
        response.group_epoch,
        response.assignment_epoch,
        0 if response.topology is None else response.topology.epoch,
        operations_in(response.authorized_operations),
        () if response.topology is None else tuple(map(parse_subtopology, response.topology.subtopologies or ())),
        None if response.topology_description is None else parse_description(response.topology_description),
    )


def parse_description(response: Any) -> StreamsTopologyDescription:
    return StreamsTopologyDescription(
        {each.subtopology_id: tuple(map(parse_node, each.nodes)) for each in response.subtopologies},
        tuple((parse_node(each.source), parse_node(each.processor)) for each in response.global_stores),
    )


def parse_node(response: Any) -> StreamsTopologyNode:
    return StreamsTopologyNode(
        response.name,
        NODE_KINDS.get(response.node_type, str(response.node_type)),
        tuple(response.source_topics),
        response.sink_topic,
        tuple(response.stores),
        tuple(response.successors),
    )


def parse_subtopology(response: Any) -> StreamsSubtopology:
    return StreamsSubtopology(
        response.subtopology_id,
        tuple(response.source_topics),
        tuple(each.name for each in response.repartition_source_topics),
        tuple(response.repartition_sink_topics),
        tuple(each.name for each in response.state_changelog_topics),
    )


def parse_tasks(assignment: Any) -> StreamsTasks:
    """Return the tasks of an assignment, by role."""
    return StreamsTasks(
        *(
            tuple((each.subtopology_id, partition) for each in role for partition in each.partitions)
            for role in (assignment.active_tasks, assignment.standby_tasks, assignment.warmup_tasks)
        )
    )
