"""Consumer groups: listed, described, deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ottla.client.admin.acl import operations_in
from ottla.client.admin.admin_api_driver import AdminApiDriver, Lookup, Question, raise_first
from ottla.client.admin.coordinators import coordinators
from ottla.client.admin.group import ConsumerGroupDescription, GroupListing, MemberDescription
from ottla.client.consumer.assignors.wire import decode_assignment
from ottla.client.interface.arguments import checked_flag, checked_list, checked_text, checked_texts
from ottla.client.metadata.coordinators import GROUP
from ottla.client.runtime.deadline import Deadline
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import Node, TopicPartition
from ottla.protocol.errors import MalformedError
from ottla.protocol.messages.consumer_group_describe import Assignment, ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_protocol import PROTOCOL_TYPE
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest

DEAD = "Dead"
OF_CONSUMERS = ("", PROTOCOL_TYPE)
"""Protocol types of groups with consumers, and of those that only keep offsets."""
CLASSIC, CONSUMER = "Classic", "Consumer"
ANOTHER_KIND = frozenset({ErrorCode.UNSUPPORTED_VERSION, ErrorCode.GROUP_ID_NOT_FOUND})
"""What a broker says of groups that are not of KIP-848, or when it knows nothing of those."""
FIRST_WITH_STATES, FIRST_WITH_TYPES = 4, 5
REMOVED = "an admin removed it"
FAULTS: Mapping[int, Callable[[str], str]] = {
    ErrorCode.GROUP_ID_NOT_FOUND: lambda group: f"there is no group {group!r}",
    ErrorCode.NON_EMPTY_GROUP: lambda group: f"group {group!r} has members: stop them first",
    ErrorCode.UNKNOWN_MEMBER_ID: lambda group: f"group {group!r} has members, which commit themselves: stop them first",
    ErrorCode.INVALID_GROUP_ID: lambda group: f"{group!r} is no name for a group",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: lambda group: f"group {group!r} is reading the topic: stop its members first",
}
"""What errors mean to somebody who manages groups."""


class GroupCalls:
    """What an admin does with groups; `Admin` has the same names and says what they do."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver
        self._lookup = coordinators(GROUP)

    def list_consumer_groups(
        self, states: Iterable[str], types: Iterable[str], timeout: float | None
    ) -> list[GroupListing]:
        return [each for each in self.list_groups(states, types, (), timeout) if each.protocol_type in OF_CONSUMERS]

    def list_groups(
        self, states: Iterable[str], types: Iterable[str], protocol_types: Iterable[str], timeout: float | None
    ) -> list[GroupListing]:
        wanted = checked_texts("protocol_types", protocol_types, "consumer")
        request = ListGroupsRequest(checked_texts("states", states, "Stable"), checked_texts("types", types, "classic"))
        found = self._driver.ask_each_broker(request, read_listing, timeout)
        listings = sorted(listing for listings in found.values() for listing in listings)
        return [each for each in listings if not wanted or each.protocol_type in wanted]

    def describe_classic_groups(
        self, group_ids: Iterable[str], timeout: float | None, with_operations: bool = False
    ) -> dict[str, ConsumerGroupDescription]:
        checked_flag("include_authorized_operations", with_operations)
        asked = list(dict.fromkeys(checked_groups(group_ids)))
        lookup, where = self._remembering()
        question: Question[str, ConsumerGroupDescription] = Question(
            lookup, lambda keys: DescribeGroupsRequest(keys, with_operations), partial(read_classic, where)
        )
        found, failed = self._driver.ask(question, asked, timeout)
        raise_first(failed)
        return {group: found[group] for group in asked}

    def describe_consumer_groups(
        self, group_ids: Iterable[str], timeout: float | None, with_operations: bool = False
    ) -> dict[str, ConsumerGroupDescription]:
        checked_flag("include_authorized_operations", with_operations)
        asked = list(dict.fromkeys(checked_groups(group_ids)))
        lookup, where = self._remembering()
        new: Question[str, ConsumerGroupDescription] = Question(
            lookup, lambda keys: ConsumerGroupDescribeRequest(keys, with_operations), partial(read_new, where)
        )
        old: Question[str, ConsumerGroupDescription] = Question(
            lookup, lambda keys: DescribeGroupsRequest(keys, with_operations), partial(read_classic, where)
        )
        found, failed = self._driver.ask(new, asked, timeout)
        rest = [group for group, error in failed.items() if error.code in ANOTHER_KIND]
        classic, still = self._driver.ask(old, rest, timeout)
        raise_first({**{group: error for group, error in failed.items() if group not in rest}, **still})
        described = {**found, **classic}
        return {group: described[group] for group in asked}

    def _remembering(self) -> tuple[Lookup[str], Mapping[str, Node]]:
        """A lookup of coordinators, and where it puts what it found."""
        where: dict[str, Node] = {}

        def lookup(driver: AdminApiDriver, keys: list[str], deadline: Deadline) -> Mapping[str, Node | KafkaError]:
            located = self._lookup(driver, keys, deadline)
            where.update({key: node for key, node in located.items() if isinstance(node, Node)})
            return located

        return lookup, where

    def remove_members_from_consumer_group(
        self, group_id: str, group_instance_ids: Iterable[str] | None, timeout: float | None
    ) -> None:
        group = checked_group(group_id)
        if group_instance_ids is None:
            members = self.describe_consumer_groups([group], timeout)[group].members
            leaving = [MemberIdentity(each.member_id, each.group_instance_id, REMOVED) for each in members]
        else:
            names = checked_texts("group_instance_ids", group_instance_ids, "reader-1")
            if not names:
                raise ValueError("group_instance_ids = []: name at least one, or None for all members")
            leaving = [MemberIdentity("", each, REMOVED) for each in names]
        if not leaving:
            return

        def read(_: list[str], answer: Any) -> Mapping[str, Any]:
            if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:  # of all of them, where there is no such group
                return {group: error_for(answer.error_code, missing(group, map(name_of, leaving)))}
            fault = fault_of(answer.error_code, group)
            return {group: fault if isinstance(fault, KafkaError) else answer.members}

        question: Question[str, Any] = Question(self._lookup, lambda _: LeaveGroupRequest(group, members=leaving), read)
        found, failed = self._driver.ask(question, [group], timeout)
        raise_first(failed or {name_of(each): fault for each in found[group] if (fault := stayed(each, group))})

    def delete_consumer_groups(self, group_ids: Iterable[str], timeout: float | None) -> None:
        question: Question[str, bool] = Question(
            self._lookup,
            lambda keys: DeleteGroupsRequest(keys),
            lambda _, answer: {each.group_id: fault_of(each.error_code, each.group_id) for each in answer.results},
        )
        _, failed = self._driver.ask(question, checked_groups(group_ids), timeout)
        raise_first(failed)


def checked_groups(group_ids: Iterable[str]) -> list[str]:
    """Names of groups; one alone is a mistake, for its letters would be names too."""
    return [checked_group(group_id) for group_id in checked_list("group_ids", group_ids, "['billing']")]


def checked_group(group_id: Any) -> str:
    """The name of a group."""
    return checked_text("group_id", group_id, "billing")


def fault_of(code: int, group_id: str) -> KafkaError | bool:
    """What a code says of a group; True where nothing is wrong."""
    if not code:
        return True
    meaning = FAULTS.get(code)
    return error_for(code, meaning(group_id) if meaning else f"group {group_id!r}")


def name_of(member: Any) -> str:
    return str(member.group_instance_id or member.member_id)


def stayed(answer: Any, group_id: str) -> KafkaError | None:
    """Why a member could not be removed."""
    if not answer.error_code:
        return None
    return error_for(answer.error_code, missing(group_id, [name_of(answer)]))


def missing(group_id: str, members: Iterable[str]) -> str:
    return f"group {group_id!r} has no member {', '.join(map(repr, members))}"


def read_listing(brokers: list[int], answer: Any) -> Mapping[int, list[GroupListing] | KafkaError]:
    """The groups of one broker, of whatever application."""
    (broker,) = brokers
    if answer.error_code:
        return {broker: error_for(answer.error_code, f"the groups of broker {broker}")}
    listings = [
        GroupListing(each.group_id, each.protocol_type, each.group_state, each.group_type.capitalize())
        for each in answer.groups
    ]
    return {broker: listings}


def read_classic(
    where: Mapping[str, Node], groups: list[str], answer: Any
) -> Mapping[str, ConsumerGroupDescription | KafkaError]:
    """Groups of the classic protocol; one that nobody knows is dead to old brokers."""
    return {each.group_id: classic(where, each) for each in answer.groups}


def classic(where: Mapping[str, Node], answer: Any) -> ConsumerGroupDescription | KafkaError:
    code = answer.error_code or (ErrorCode.GROUP_ID_NOT_FOUND if answer.group_state == DEAD else ErrorCode.NONE)
    fault = fault_of(code, answer.group_id)
    if isinstance(fault, KafkaError):
        return fault
    members = tuple(
        MemberDescription(m.member_id, m.group_instance_id, m.client_id, m.client_host, assigned(m.member_assignment))
        for m in answer.members
    )
    return ConsumerGroupDescription(
        answer.group_id,
        answer.protocol_type,
        answer.protocol_data,
        CLASSIC,
        answer.group_state,
        where[answer.group_id],
        members,
        authorized_operations=operations_in(answer.authorized_operations),
    )


def assigned(data: Any) -> tuple[TopicPartition, ...]:
    """What a member of a classic group was given; nothing where that is no consumer's assignment."""
    try:
        return tuple(sorted(decode_assignment(data).partitions))
    except MalformedError:
        return ()


def read_new(
    where: Mapping[str, Node], groups: list[str], answer: Any
) -> Mapping[str, ConsumerGroupDescription | KafkaError]:
    return {each.group_id: of_new_protocol(where, each) for each in answer.groups}


def of_new_protocol(where: Mapping[str, Node], answer: Any) -> ConsumerGroupDescription | KafkaError:
    fault = fault_of(answer.error_code, answer.group_id)
    if isinstance(fault, KafkaError):
        return fault
    members = tuple(
        MemberDescription(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            flat(member.assignment),
            flat(member.target_assignment),
            member.member_epoch,
        )
        for member in answer.members
    )
    return ConsumerGroupDescription(
        answer.group_id,
        PROTOCOL_TYPE,
        answer.assignor_name,
        CONSUMER,
        answer.group_state,
        where[answer.group_id],
        members,
        answer.group_epoch,
        answer.assignment_epoch,
        operations_in(answer.authorized_operations),
    )


def flat(assignment: Assignment) -> tuple[TopicPartition, ...]:
    parts: Sequence[Any] = assignment.topic_partitions
    return tuple(sorted(TopicPartition(part.topic_name, number) for part in parts for number in part.partitions))
