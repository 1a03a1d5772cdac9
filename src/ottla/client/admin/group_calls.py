"""List, describe and delete consumer groups, and remove members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ottla.client.admin.acl import operations_in
from ottla.client.admin.admin_api_driver import AdminApiDriver, AdminQuery, Lookup, raise_first
from ottla.client.admin.coordinators import coordinator_lookup
from ottla.client.admin.group import ConsumerGroupDescription, GroupListing, MemberDescription
from ottla.client.consumer.assignors.wire import decode_assignment
from ottla.client.interface.arguments import checked_flag, checked_list, checked_text, checked_texts
from ottla.client.metadata.coordinators import GROUP
from ottla.client.runtime.deadline import Deadline
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import Node, TopicPartition
from ottla.protocol.errors import MalformedError
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_protocol import PROTOCOL_TYPE
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest

DEAD = "Dead"
CONSUMER_PROTOCOL_TYPES = ("", PROTOCOL_TYPE)
"""The protocol types of consumer groups, and of groups that only store offsets."""
CLASSIC, CONSUMER = "Classic", "Consumer"
OTHER_PROTOCOL_ERRORS = frozenset({ErrorCode.UNSUPPORTED_VERSION, ErrorCode.GROUP_ID_NOT_FOUND})
"""Error codes for a group that does not use the KIP-848 protocol, or of a broker that does not support it."""
FIRST_WITH_STATES, FIRST_WITH_TYPES = 4, 5
REMOVAL_REASON = "removed by an admin"
ERROR_MEANINGS: Mapping[int, Callable[[str], str]] = {
    ErrorCode.GROUP_ID_NOT_FOUND: lambda group: f"there is no group {group!r}",
    ErrorCode.NON_EMPTY_GROUP: lambda group: f"group {group!r} has members: stop them first",
    ErrorCode.UNKNOWN_MEMBER_ID: lambda group: f"group {group!r} has members that commit offsets: stop them first",
    ErrorCode.INVALID_GROUP_ID: lambda group: f"{group!r} is not a valid group id",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: lambda group: f"group {group!r} is reading the topic: stop its members first",
}
"""Meanings of error codes for group management."""


class GroupCalls:
    """Implements the group methods of `Admin`, which documents them."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver
        self._lookup = coordinator_lookup(GROUP)

    def list_consumer_groups(
        self, states: Iterable[str], types: Iterable[str], timeout: float | None
    ) -> list[GroupListing]:
        return [
            each
            for each in self.list_groups(states, types, (), timeout)
            if each.protocol_type in CONSUMER_PROTOCOL_TYPES
        ]

    def list_groups(
        self, states: Iterable[str], types: Iterable[str], protocol_types: Iterable[str], timeout: float | None
    ) -> list[GroupListing]:
        wanted = checked_texts("protocol_types", protocol_types, "consumer")
        request = ListGroupsRequest(checked_texts("states", states, "Stable"), checked_texts("types", types, "classic"))
        found = self._driver.query_each_broker(request, read_listing, timeout)
        listings = sorted(listing for listings in found.values() for listing in listings)
        return [each for each in listings if not wanted or each.protocol_type in wanted]

    def describe_classic_groups(
        self, group_ids: Iterable[str], timeout: float | None, with_operations: bool = False
    ) -> dict[str, ConsumerGroupDescription]:
        checked_flag("include_authorized_operations", with_operations)
        requested = list(dict.fromkeys(checked_groups(group_ids)))
        lookup, nodes = recording_lookup(self._lookup)
        query: AdminQuery[str, ConsumerGroupDescription] = AdminQuery(
            lookup, lambda keys: DescribeGroupsRequest(keys, with_operations), partial(read_classic_groups, nodes)
        )
        found, failed = self._driver.run_query(query, requested, timeout)
        raise_first(failed)
        return {group: found[group] for group in requested}

    def describe_consumer_groups(
        self, group_ids: Iterable[str], timeout: float | None, with_operations: bool = False
    ) -> dict[str, ConsumerGroupDescription]:
        checked_flag("include_authorized_operations", with_operations)
        requested = list(dict.fromkeys(checked_groups(group_ids)))
        lookup, nodes = recording_lookup(self._lookup)
        new: AdminQuery[str, ConsumerGroupDescription] = AdminQuery(
            lookup,
            lambda keys: ConsumerGroupDescribeRequest(keys, with_operations),
            partial(read_consumer_groups, nodes),
        )
        old: AdminQuery[str, ConsumerGroupDescription] = AdminQuery(
            lookup, lambda keys: DescribeGroupsRequest(keys, with_operations), partial(read_classic_groups, nodes)
        )
        found, failed = self._driver.run_query(new, requested, timeout)
        remaining = [group for group, error in failed.items() if error.code in OTHER_PROTOCOL_ERRORS]
        classic, still_failed = self._driver.run_query(old, remaining, timeout)
        raise_first({**{group: error for group, error in failed.items() if group not in remaining}, **still_failed})
        described = {**found, **classic}
        return {group: described[group] for group in requested}

    def remove_members_from_consumer_group(
        self, group_id: str, group_instance_ids: Iterable[str] | None, timeout: float | None
    ) -> None:
        group = checked_group(group_id)
        if group_instance_ids is None:
            members = self.describe_consumer_groups([group], timeout)[group].members
            leaving = [MemberIdentity(each.member_id, each.group_instance_id, REMOVAL_REASON) for each in members]
        else:
            names = checked_texts("group_instance_ids", group_instance_ids, "reader-1")
            if not names:
                raise ValueError("group_instance_ids = []: name at least one, or None for all members")
            leaving = [MemberIdentity("", each, REMOVAL_REASON) for each in names]
        if not leaving:
            return

        def read(_: list[str], response: Any) -> Mapping[str, Any]:
            # This code for the whole request means that the group does not exist.
            if response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                return {
                    group: error_for(response.error_code, describe_missing_members(group, map(member_name, leaving)))
                }
            error = group_error(response.error_code, group)
            return {group: error if isinstance(error, KafkaError) else response.members}

        query: AdminQuery[str, Any] = AdminQuery(
            self._lookup, lambda _: LeaveGroupRequest(group, members=leaving), read
        )
        found, failed = self._driver.run_query(query, [group], timeout)
        raise_first(
            failed or {member_name(each): error for each in found[group] if (error := removal_error(each, group))}
        )

    def delete_consumer_groups(self, group_ids: Iterable[str], timeout: float | None) -> None:
        query: AdminQuery[str, bool] = AdminQuery(
            self._lookup,
            lambda keys: DeleteGroupsRequest(keys),
            lambda _, response: {
                each.group_id: group_error(each.error_code, each.group_id, each.error_message)
                for each in response.results
            },
        )
        _, failed = self._driver.run_query(query, checked_groups(group_ids), timeout)
        raise_first(failed)


def recording_lookup(coordinators: Lookup[str]) -> tuple[Lookup[str], Mapping[str, Node]]:
    """Return a lookup of coordinators, and the mapping that it fills with the coordinators found."""
    nodes: dict[str, Node] = {}

    def lookup(driver: AdminApiDriver, keys: list[str], deadline: Deadline) -> Mapping[str, Node | KafkaError]:
        located = coordinators(driver, keys, deadline)
        nodes.update({key: node for key, node in located.items() if isinstance(node, Node)})
        return located

    return lookup, nodes


def checked_groups(group_ids: Iterable[str]) -> list[str]:
    """Return the group ids. A single string is rejected, because its letters would be taken as group ids."""
    return [checked_group(group_id) for group_id in checked_list("group_ids", group_ids, "['billing']")]


def checked_group(group_id: Any) -> str:
    """Return the group id. Raises ValueError if it is invalid."""
    return checked_text("group_id", group_id, "billing")


def group_error(code: int, group_id: str, reason: str | None = None) -> KafkaError | bool:
    """Return the error for a code, with the reason of the broker if there is no own text; True if there is none."""
    if not code:
        return True
    describe = ERROR_MEANINGS.get(code)
    named = f"group {group_id!r}"
    return error_for(code, describe(group_id) if describe else f"{named}: {reason}" if reason else named)


def member_name(member: Any) -> str:
    return str(member.group_instance_id or member.member_id)


def removal_error(response: Any, group_id: str) -> KafkaError | None:
    """Return the error of a member that could not be removed, or None."""
    if not response.error_code:
        return None
    return error_for(response.error_code, describe_missing_members(group_id, [member_name(response)]))


def describe_missing_members(group_id: str, members: Iterable[str]) -> str:
    return f"group {group_id!r} has no member {', '.join(map(repr, members))}"


def read_listing(brokers: list[int], response: Any) -> Mapping[int, list[GroupListing] | KafkaError]:
    """Return the groups of one broker, of all applications."""
    (broker,) = brokers
    if response.error_code:
        return {broker: error_for(response.error_code, f"the groups of broker {broker}")}
    listings = [
        GroupListing(each.group_id, each.protocol_type, each.group_state, each.group_type.capitalize())
        for each in response.groups
    ]
    return {broker: listings}


def read_classic_groups(
    nodes: Mapping[str, Node], groups: list[str], response: Any
) -> Mapping[str, ConsumerGroupDescription | KafkaError]:
    """Return groups of the classic protocol. Old brokers report an unknown group as Dead."""
    return {each.group_id: parse_classic_group(nodes, each) for each in response.groups}


def parse_classic_group(nodes: Mapping[str, Node], response: Any) -> ConsumerGroupDescription | KafkaError:
    code = response.error_code or (ErrorCode.GROUP_ID_NOT_FOUND if response.group_state == DEAD else ErrorCode.NONE)
    error = group_error(code, response.group_id)
    if isinstance(error, KafkaError):
        return error
    members = tuple(
        MemberDescription(
            m.member_id, m.group_instance_id, m.client_id, m.client_host, parse_assignment(m.member_assignment)
        )
        for m in response.members
    )
    return ConsumerGroupDescription(
        response.group_id,
        response.protocol_type,
        response.protocol_data,
        CLASSIC,
        response.group_state,
        nodes[response.group_id],
        members,
        authorized_operations=operations_in(response.authorized_operations),
    )


def parse_assignment(data: Any) -> tuple[TopicPartition, ...]:
    """Return the assignment of a member of a classic group; empty if its format is not that of consumers."""
    try:
        return tuple(sorted(decode_assignment(data).partitions))
    except MalformedError:
        return ()


def read_consumer_groups(
    nodes: Mapping[str, Node], groups: list[str], response: Any
) -> Mapping[str, ConsumerGroupDescription | KafkaError]:
    return {each.group_id: parse_consumer_group(nodes, each) for each in response.groups}


def parse_consumer_group(nodes: Mapping[str, Node], response: Any) -> ConsumerGroupDescription | KafkaError:
    error = group_error(response.error_code, response.group_id)
    if isinstance(error, KafkaError):
        return error
    members = tuple(
        MemberDescription(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            flatten_assignment(member.assignment),
            flatten_assignment(member.target_assignment),
            member.member_epoch,
        )
        for member in response.members
    )
    return ConsumerGroupDescription(
        response.group_id,
        PROTOCOL_TYPE,
        response.assignor_name,
        CONSUMER,
        response.group_state,
        nodes[response.group_id],
        members,
        response.group_epoch,
        response.assignment_epoch,
        operations_in(response.authorized_operations),
    )


def flatten_assignment(assignment: Any) -> tuple[TopicPartition, ...]:
    parts: Sequence[Any] = assignment.topic_partitions
    return tuple(sorted(TopicPartition(part.topic_name, number) for part in parts for number in part.partitions))
