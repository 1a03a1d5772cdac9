"""A group member with its own connection that sends exactly the requests of the test."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from ottla.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.broker.wire import Wire
from tests.coordination.groups.story import subscription
from tests.patience import eventually

DEADLINE = 10.0


class Membership:
    """The membership state of a client."""

    def __init__(
        self,
        servers: str,
        *,
        topics: str = "t",
        instance: str | None = None,
        session_ms: int = 10_000,
        rebalance_ms: int = 10_000,
        version: int = 5,
        group: str = "g",
    ) -> None:
        self.wire = Wire(servers, client_id="app")
        self.topics, self.instance, self.group, self.version = topics, instance, group, version
        self.session_ms, self.rebalance_ms = session_ms, rebalance_ms
        self.member_id = ""
        self.generation = -1

    def request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            self.group,
            self.session_ms,
            self.rebalance_ms,
            self.member_id,
            self.instance,
            "consumer",
            [JoinGroupRequestProtocol("range", subscription(self.topics))],
        )

    def ask_to_join(self) -> None:
        """Send a join, with the assigned id if one is required, without waiting for the response."""
        if not self.member_id and self.instance is None and self.version >= 4:
            self.member_id = self.wire.ask(self.request(), self.version).member_id
        self.wire.send(self.request(), self.version)

    def joined(self) -> JoinGroupResponse:
        """Wait for the answer to the join."""
        response: JoinGroupResponse = self.wire.receive(self.request(), self.version)[1]
        self.member_id, self.generation = response.member_id, response.generation_id
        return response

    def join(self) -> JoinGroupResponse:
        self.ask_to_join()
        return self.joined()

    def sync_request(self, **assignments: str) -> SyncGroupRequest:
        given = [SyncGroupRequestAssignment(name, part.encode()) for name, part in assignments.items()]
        return SyncGroupRequest(self.group, self.generation, self.member_id, self.instance, assignments=given)

    def sync(self, assignments: dict[str, str] | None = None) -> SyncGroupResponse:
        response: SyncGroupResponse = self.wire.ask(self.sync_request(**(assignments or {})), 4)
        return response

    def beat(self) -> int:
        request = HeartbeatRequest(self.group, self.generation, self.member_id, self.instance)
        code: int = self.wire.ask(request, 4).error_code
        return code

    def leave(self) -> int:
        request = LeaveGroupRequest(self.group, members=[MemberIdentity(self.member_id, self.instance)])
        code: int = self.wire.ask(request, 5).members[0].error_code
        return code

    def commit(self, offset: int, topic: str = "t") -> int:
        topics = [OffsetCommitRequestTopic(topic, partitions=[OffsetCommitRequestPartition(0, offset, -1, "note")])]
        request = OffsetCommitRequest(self.group, self.generation, self.member_id, self.instance, topics=topics)
        code: int = self.wire.ask(request, 9).topics[0].partitions[0].error_code
        return code

    def hang_up(self) -> None:
        self.wire.socket.close()

    def move_to(self, servers: str) -> None:
        """Continue over another connection."""
        self.hang_up()
        self.wire = Wire(servers, client_id="app")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hang_up()


def committed(wire: Wire, topic: str = "t", group: str = "g") -> int:
    """Return the committed offset of partition 0."""
    found = wire.ask(OffsetFetchRequest(group, [OffsetFetchRequestTopic(topic, [0])]), 7).topics[0].partitions[0]
    assert found.error_code == 0
    return int(found.committed_offset)


def describe(wire: Wire, group: str = "g", version: int = 5) -> DescribedGroup:
    """A group as it is shown."""
    (found,) = wire.ask(DescribeGroupsRequest([group]), version).groups
    described: DescribedGroup = found
    return described


def state(wire: Wire, group: str = "g") -> str:
    """A group's state."""
    return describe(wire, group).group_state


def settle(*members: Membership) -> None:
    """Have members, none of which is in a group, share it: the first one leads and gives each a letter."""
    first, *others = members
    first.join()
    for count, member in enumerate(others, 2):
        member.ask_to_join()
        eventually(lambda count=count: len(describe(first.wire, first.group).members) == count)  # type: ignore[misc]
    if others:
        first.join()
    for member in others:
        member.joined()
    letters: dict[str, Any] = {member.member_id: chr(ord("A") + n) for n, member in enumerate(members)}
    assert first.sync(letters).error_code == 0
    for member in others:
        assert member.sync().error_code == 0
