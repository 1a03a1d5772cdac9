"""Groups over the wire: every version, and what happens to members in real time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.broker.coordinators import coordinator_runtime
from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker.membership import Membership, committed, describe, settle, state
from tests.broker.wire import Wire
from tests.coordination.groups.story import subscription
from tests.patience import eventually

SHORT_MS = 300
"""A session that ends within a test."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    """One that lets sessions be short."""
    with Broker(group_min_session_timeout_ms=1) as broker:
        yield broker


@pytest.fixture
def join(broker: Broker) -> Iterator[Callable[..., Membership]]:
    """Makes members, and hangs up for them in the end."""
    members: list[Membership] = []

    def member(**options: object) -> Membership:
        members.append(Membership(broker.bootstrap_servers, **options))  # type: ignore[arg-type]
        return members[-1]

    yield member
    for each in members:
        each.hang_up()


@pytest.mark.parametrize("version", range(10))
def test_a_group_is_joined_in_every_version(wire: Wire, version: int) -> None:
    request = JoinGroupRequest(
        "g", 6000, protocol_type="consumer", protocols=[JoinGroupRequestProtocol("range", subscription("t"))]
    )
    answer = wire.ask(request, version)
    if version >= 4:
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert answer.member_id.startswith("wire-")
        assert answer.protocol_name == (None if version >= 7 else "")
        request.member_id = answer.member_id
        answer = wire.ask(request, version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.leader == answer.member_id == answer.members[0].member_id
    assert answer.members[0].metadata == subscription("t")
    assert answer.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", range(6))
def test_sync_heartbeat_and_leave_are_answered_in_every_version(
    wire: Wire, join: Callable[..., Membership], version: int
) -> None:
    member = join()
    member.join()
    request = SyncGroupRequest(
        "g", 1, member.member_id, None, "consumer", "range", [SyncGroupRequestAssignment(member.member_id, b"A")]
    )
    assert wire.ask(request, version).assignment == b"A"
    assert wire.ask(HeartbeatRequest("g", 1, member.member_id), min(version, 4)).error_code == 0
    leaving = LeaveGroupRequest("g", member.member_id)
    if version >= 3:
        leaving = LeaveGroupRequest("g", members=[MemberIdentity(member.member_id), MemberIdentity("stranger")])
    answer = wire.ask(leaving, version)
    assert answer.error_code == 0
    assert [each.error_code for each in answer.members] == ([0, ErrorCode.UNKNOWN_MEMBER_ID] if version >= 3 else [])
    assert wire.ask(HeartbeatRequest("g", 1, member.member_id), 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", [0, 2, 3])
def test_leaving_an_unknown_group_is_an_error(wire: Wire, version: int) -> None:
    leaving = LeaveGroupRequest("g", "m") if version < 3 else LeaveGroupRequest("g", members=[MemberIdentity("m")])
    response = wire.ask(leaving, version)
    whole, each = (response.error_code, [member.error_code for member in response.members])
    assert (whole, each) == ((25, []) if version < 3 else (0, [ErrorCode.UNKNOWN_MEMBER_ID]))


def test_a_group_without_a_name_has_no_members_and_may_store_offsets(
    wire: Wire, join: Callable[..., Membership]
) -> None:
    wire.create("t")
    assert join(group="").commit(5) == 0
    assert committed(wire, group="") == 5
    assert wire.ask(JoinGroupRequest("", 6000), 9).error_code == ErrorCode.INVALID_GROUP_ID
    named = SyncGroupRequest("", 1, "m", None, "consumer", "range")
    assert wire.ask(named, 5).error_code == ErrorCode.INVALID_GROUP_ID
    assert wire.ask(HeartbeatRequest("", 1, "m"), 4).error_code == ErrorCode.INVALID_GROUP_ID
    assert wire.ask(LeaveGroupRequest("", members=[MemberIdentity("m")]), 5).error_code == ErrorCode.INVALID_GROUP_ID


def test_a_sync_must_name_the_protocol_in_versions_with_that_field(wire: Wire) -> None:
    nobody = SyncGroupRequest("g", 1, "m", None, "consumer", None)
    assert wire.ask(nobody, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert wire.ask(nobody, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_invalid_session_timeout_is_rejected_before_the_member_id_is_checked(wire: Wire) -> None:
    for member_id in ("", "nobody"):
        refused = wire.ask(JoinGroupRequest("g", -1, 1000, member_id, None, "consumer"), 9)
        assert (refused.error_code, refused.member_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, member_id)


def test_session_timeouts_have_bounds() -> None:
    bounds = {"group_min_session_timeout_ms": 2000, "group_max_session_timeout_ms": 3000}
    with Broker(**bounds) as broker:  # type: ignore[arg-type]
        for session_ms, code in [(1999, ErrorCode.INVALID_SESSION_TIMEOUT), (2000, 0), (3001, 26)]:
            member = Membership(broker.bootstrap_servers, session_ms=session_ms, version=3, group=f"g{session_ms}")
            assert member.join().error_code == code
            member.hang_up()


@pytest.mark.behaviour("B3")
def test_a_group_changes_its_states_and_the_first_member_leads_and_assigns(
    wire: Wire, join: Callable[..., Membership]
) -> None:
    first, second = join(), join()
    assert state(wire) == "Dead"
    assert first.join().leader == first.member_id
    assert state(wire) == "CompletingRebalance"
    first.sync({first.member_id: "all"})
    assert state(wire) == "Stable"
    second.ask_to_join()
    eventually(lambda: state(wire) == "PreparingRebalance")
    assert first.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert [each.member_id for each in first.join().members] == [first.member_id, second.member_id]
    assert second.joined().leader == first.member_id
    second.wire.send(second.sync_request(), 4)
    first.sync({first.member_id: "A", second.member_id: "B"})
    assert second.wire.receive(second.sync_request(), 4)[1].assignment == b"B"
    assert state(wire) == "Stable"
    assert [first.leave(), second.leave()] == [0, 0]
    assert state(wire) == "Empty"


@pytest.mark.parametrize("version", range(7))
def test_a_group_is_described_in_every_version(wire: Wire, join: Callable[..., Membership], version: int) -> None:
    member = join(instance="i")
    settle(member)
    found = describe(wire, version=version)
    assert (found.group_state, found.protocol_type, found.protocol_data) == ("Stable", "consumer", "range")
    (shown,) = found.members
    assert (shown.member_id, shown.client_id, shown.client_host) == (member.member_id, "app", "/127.0.0.1")
    assert (shown.member_metadata, shown.member_assignment) == (subscription("t"), b"A")
    assert shown.group_instance_id == ("i" if version >= 4 else None)
    unknown = describe(wire, "nobody", version)
    assert (unknown.group_state, unknown.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)
    assert unknown.error_message == ("there is no group nobody" if version >= 6 else None)


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed_in_every_version_by_state_and_type(
    wire: Wire, join: Callable[..., Membership], version: int
) -> None:
    wire.create("t")
    settle(join(group="busy"))
    assert join(group="simple").commit(5) == 0  # claims no generation, and so makes a group without members
    listed = wire.ask(ListGroupsRequest(), version).groups
    assert [(each.group_id, each.protocol_type) for each in listed] == [("busy", "consumer"), ("simple", "")]
    assert [each.group_state for each in listed] == (["Stable", "Empty"] if version >= 4 else ["", ""])
    assert [each.group_type for each in listed] == (["classic"] * 2 if version >= 5 else ["", ""])
    if version >= 4:
        assert [each.group_id for each in wire.ask(ListGroupsRequest(["empty", "Dead"]), version).groups] == ["simple"]
    if version >= 5:
        assert len(wire.ask(ListGroupsRequest(types_filter=["Classic"]), version).groups) == 2
        assert wire.ask(ListGroupsRequest(types_filter=["consumer"]), version).groups == []


@pytest.mark.parametrize("version", range(4))
def test_groups_without_members_are_deleted_with_their_offsets(
    wire: Wire, join: Callable[..., Membership], version: int
) -> None:
    wire.create("t")
    settle(join(group="busy"))
    join(group="simple").commit(5)
    results = wire.ask(DeleteGroupsRequest(["busy", "simple", "nobody"]), version).results
    codes = {each.group_id: each.error_code for each in results}
    assert codes == {"busy": ErrorCode.NON_EMPTY_GROUP, "simple": 0, "nobody": ErrorCode.GROUP_ID_NOT_FOUND}
    assert committed(wire, group="simple") == -1
    assert [each.group_id for each in wire.ask(ListGroupsRequest(), 4).groups] == ["busy"]


def test_offsets_of_subscribed_topics_are_not_deleted(wire: Wire, join: Callable[..., Membership]) -> None:
    wire.create("t")
    wire.create("u")
    member = join(topics="t")
    settle(member)
    assert [member.commit(5), member.commit(6, "u")] == [0, 0]
    topics = [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)]) for name in ("t", "u", "nowhere")]
    answer = wire.ask(OffsetDeleteRequest("g", topics), 0)
    codes = [topic.partitions[0].error_code for topic in answer.topics]
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert (committed(wire), committed(wire, "u")) == (5, -1)
    assert wire.ask(OffsetDeleteRequest("nobody", topics), 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_requests_for_unknown_groups_create_no_topic(wire: Wire) -> None:
    assert wire.ask(DeleteGroupsRequest(["g"]), 2).results[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert wire.ask(ListGroupsRequest(), 5).groups == []
    assert wire.metadata("__consumer_offsets").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.behaviour("C8")
def test_a_silent_member_is_removed_and_the_others_rebalance(wire: Wire, join: Callable[..., Membership]) -> None:
    living, silent = join(), join(session_ms=SHORT_MS)
    living.join()
    silent.ask_to_join()
    eventually(lambda: len(describe(wire).members) == 2)
    living.join()
    silent.joined()
    living.sync({living.member_id: "A", silent.member_id: "B"})
    eventually(lambda: living.beat() == ErrorCode.REBALANCE_IN_PROGRESS)
    assert [each.member_id for each in living.join().members] == [living.member_id]
    assert living.sync({living.member_id: "all"}).assignment == b"all"
    assert silent.beat() == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.behaviour("C10")
def test_a_leaving_member_is_replaced_at_once_and_a_killed_one_after_its_session(
    wire: Wire, join: Callable[..., Membership]
) -> None:
    first, second, third = join(), join(), join()
    settle(first, second, third)
    second.leave()
    assert first.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    third.session_ms = SHORT_MS
    third.ask_to_join()
    began = time.monotonic()
    assert len(first.join().members) == 2
    third.hang_up()
    first.sync({first.member_id: "A", third.member_id: "B"})
    eventually(lambda: first.beat() == ErrorCode.REBALANCE_IN_PROGRESS)
    assert time.monotonic() - began >= SHORT_MS / 1000
    assert len(first.join().members) == 1


@pytest.mark.behaviour("C12")
def test_a_static_member_that_returns_in_time_keeps_its_assignment_and_fences_the_old_one(
    wire: Wire, join: Callable[..., Membership]
) -> None:
    wire.create("t")
    leader, before, after = join(instance="a"), join(instance="b"), join(instance="b")
    settle(leader, before)
    answer = after.join()
    assert (answer.error_code, answer.generation_id, answer.leader) == (0, 2, leader.member_id)
    assert after.sync().assignment == b"B"
    assert leader.beat() == 0
    assert before.beat() == ErrorCode.FENCED_INSTANCE_ID
    assert before.commit(1) == ErrorCode.FENCED_INSTANCE_ID
    assert before.join().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert after.commit(1) == 0


def test_a_member_that_disconnects_during_a_join_is_not_waited_for(wire: Wire, join: Callable[..., Membership]) -> None:
    first, second = join(), join(rebalance_ms=60_000)
    settle(first)
    second.ask_to_join()
    eventually(lambda: len(describe(wire).members) == 2)
    second.hang_up()
    eventually(lambda: len(describe(wire).members) == 1)
    assert len(first.join().members) == 1


def test_the_log_and_listeners_get_the_reasons_of_rebalances(
    join: Callable[..., Membership], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "ottla.broker.coordinators.group_coordinator"):
        first, second = join(), join()
        settle(first, second)
        second.leave()
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert "group g (PreparingRebalance): rebalance of generation 1: " in said
    assert "group g: generation 2 started with 2 members" in said
    assert f"group g: the leader {first.member_id} sent the assignment of generation 2" in said
    assert " left by LeaveGroup" in said


def test_waiting_members_are_released_when_the_offsets_topic_is_deleted_and_groups_start_again(
    wire: Wire, join: Callable[..., Membership]
) -> None:
    first, second = join(), join()
    settle(first)
    second.ask_to_join()
    eventually(lambda: state(wire) == "PreparingRebalance")
    wire.ask(DeleteTopicsRequest(topic_names=["__consumer_offsets"]), 5)
    assert second.joined().error_code == ErrorCode.NOT_COORDINATOR
    assert first.beat() == ErrorCode.UNKNOWN_MEMBER_ID
    fresh = join()
    settle(fresh)
    assert state(wire) == "Stable"


def test_a_long_log_is_loaded_outside_the_event_loop_while_clients_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        wire.create("u")
        member = Membership(broker.bootstrap_servers)
        settle(member)
        assert [member.commit(41), member.commit(42), member.commit(7, "u")] == [0, 0, 0]
        member.hang_up()
    monkeypatch.setattr(coordinator_runtime, "LONG_LOG_BYTES", 1)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        request = HeartbeatRequest("g", member.generation, member.member_id)
        assert wire.ask(request, 4).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        wire.ask(DeleteTopicsRequest(topic_names=["u"]), 5)
        eventually(lambda: wire.ask(request, 4).error_code == 0)
        wire.create("u")
        assert (committed(wire), committed(wire, "u")) == (42, -1)
