"""Descriptors of group members are closed when they are removed for any reason."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import closing
from socket import SHUT_WR, SO_LINGER, SOL_SOCKET

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.broker.descriptors import both_ends_of, open_descriptors
from tests.broker.wire import Wire
from tests.client.conftest import eventually

MEMBERS = 100


def beat(member: Wire, number: int, epoch: int) -> None:
    first = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    request = ConsumerGroupHeartbeatRequest("g", f"m{number}", epoch, **(first if epoch == 0 else {}))  # type: ignore[arg-type]
    assert member.ask(request).error_code == 0


def leave_and_hang_up(members: list[Wire]) -> None:
    for number, member in enumerate(members):
        beat(member, number, -1)
        member.socket.close()


def vanish(members: list[Wire]) -> None:
    """With a reset, as a process that is killed with unread answers."""
    for member in members:
        member.socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        member.socket.close()


def fall_silent(members: list[Wire]) -> None:
    """Close the sending side, and wait until the peer closes."""
    for member in members:
        member.socket.shutdown(SHUT_WR)
        with closing(member.socket):
            assert member.socket.recv(1) == b""


@pytest.mark.parametrize("go", [leave_and_hang_up, vanish, fall_silent])
def test_a_hundred_members_leave_no_open_descriptor(
    broker: Broker, wire: Wire, go: Callable[[list[Wire]], None]
) -> None:
    wire.create("t")
    with Wire(broker.bootstrap_servers) as first:
        beat(first, MEMBERS, 0)
        members = [Wire(broker.bootstrap_servers) for _ in range(MEMBERS)]
        for number, member in enumerate(members):
            beat(member, number, 0)
        sockets = both_ends_of(member.socket for member in members)
        assert len(sockets) == 2 * MEMBERS
        go(members)
        eventually(lambda: not sockets & open_descriptors())


def test_members_that_waited_in_a_join_leave_no_open_descriptor(broker: Broker, wire: Wire) -> None:
    protocols = [JoinGroupRequestProtocol("range", b"")]
    join = JoinGroupRequest("c", 10_000, 60_000, "", None, "consumer", protocols)
    wire.ask(join, 3)  # leads and never joins again: other members wait for it
    members = [Wire(broker.bootstrap_servers) for _ in range(MEMBERS)]
    for member in members:
        member.send(join, 3)
    eventually(lambda: len(both_ends_of(member.socket for member in members)) == 2 * MEMBERS)
    sockets = both_ends_of(member.socket for member in members)
    vanish(members)
    eventually(lambda: not sockets & open_descriptors())
