"""A member leaves its group although Ctrl-C interrupts `close` at any point, or its heartbeat thread runs late."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

import pytest

from ottla import Admin, Broker, Consumer
from ottla.client.consumer.group.consumer_coordinator import ConsumerCoordinator
from ottla.client.consumer.group.heartbeat_thread import HeartbeatThread
from ottla.client.consumer.group.membership.classic_membership import ClassicMembership
from ottla.client.consumer.group.membership.consumer_membership import ConsumerMembership
from ottla.client.consumer.group.membership.heartbeat_fields import LEAVING
from ottla.client.consumer.group.thread import GroupThread
from ottla.client.network.client_request import ClientRequest
from ottla.client.network.network_client import NetworkClient
from ottla.client.runtime.deadline import ClosingDeadline
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from tests.patience import PATIENCE, eventually

PARTS = [ConsumerCoordinator.close, ConsumerCoordinator.leave, ConsumerCoordinator._end_membership]
MEMBERSHIPS = {"classic": ClassicMembership, "consumer": ConsumerMembership}


@pytest.fixture
def admin(group_broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=group_broker.bootstrap_servers) as admin:
        yield admin


class Strike:
    """Raise KeyboardInterrupt at the n-th place where Python checks for signals in some functions: at their start and
    after calls into C.

    Since Python 3.14 these calls include the `__enter__` of a lock in a `with` statement, before its body is protected. No
    program can release the lock then.
    """

    def __init__(self, codes: set[CodeType], number: int) -> None:
        self.codes, self.number = codes, number
        self.struck = False

    def __call__(self, frame: FrameType, event: str, function: object) -> None:
        if getattr(function, "__name__", "") == "__enter__":
            return
        if frame.f_code in self.codes and event in {"call", "c_return"} and not self.struck:
            self.number -= 1
            if self.number < 0:
                self.struck = True
                raise KeyboardInterrupt


def closed_under(strike: Strike, consumer: Consumer) -> None:
    sys.setprofile(strike)
    try:
        consumer.close()
    except KeyboardInterrupt:
        consumer.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("protocol", MEMBERSHIPS)
def test_an_interrupt_at_any_point_of_leaving_blocks_nothing(
    group_broker: Broker, group_id: str, shared_topic: str, admin: Admin, protocol: str
) -> None:
    kind: Any = MEMBERSHIPS[protocol]
    codes = {each.__code__ for each in (*PARTS, kind.prepare_leaving, kind.leave, kind.unsubscribe)}
    number, strike = 0, Strike(set(), 0)
    while number == 0 or strike.struck:
        settings = {
            "group_id": group_id,
            "group_protocol": protocol,
            "bootstrap_servers": group_broker.bootstrap_servers,
        }
        consumer = Consumer(settings)
        consumer.subscribe([shared_topic])
        while not consumer.assignment():
            consumer.poll(0.1)
        strike = Strike(codes, number)
        closed_under(strike, consumer)
        eventually(lambda: not admin.describe_consumer_groups([group_id])[group_id].members)
        number += 1
    assert number > 10


@pytest.mark.behaviour("C10")
@pytest.mark.parametrize("protocol", MEMBERSHIPS)
def test_a_heartbeat_thread_that_first_runs_after_the_deadline_of_close_sends_the_leave_request(
    group_broker: Broker, group_id: str, shared_topic: str, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = threading.Event()
    runs.set()
    sent: list[Any] = []
    wait_for_thread, decide, send = GroupThread.stop, HeartbeatThread._next_step, NetworkClient.send

    def decide_while_it_runs(thread: HeartbeatThread) -> Any:
        runs.wait(PATIENCE)
        return decide(thread)

    def continue_it_after_the_deadline(thread: GroupThread, deadline: ClosingDeadline) -> Any:
        for span in wait_for_thread(thread, deadline):
            runs.set()
            yield span

    def record(client: NetworkClient, request: ClientRequest, now: float) -> None:
        sent.append(request.message)
        send(client, request, now)

    monkeypatch.setattr(HeartbeatThread, "_next_step", decide_while_it_runs)
    monkeypatch.setattr(GroupThread, "stop", continue_it_after_the_deadline)
    monkeypatch.setattr(NetworkClient, "send", record)
    settings = {
        "group_id": group_id,
        "group_protocol": protocol,
        "bootstrap_servers": group_broker.bootstrap_servers,
    }
    consumer = Consumer(settings)
    consumer.subscribe([shared_topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    runs.clear()
    try:
        consumer.close(0)
        assert [message for message in list(sent) if is_leave_request(message)]
    finally:
        runs.set()


def is_leave_request(message: Any) -> bool:
    return isinstance(message, LeaveGroupRequest) or (
        isinstance(message, ConsumerGroupHeartbeatRequest) and message.member_epoch == LEAVING
    )
