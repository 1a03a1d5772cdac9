"""The coordinator is killed, or time passes: what groups still know."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.settings.config import read_config
from ottla.clock import ManualClock
from ottla.errors import ErrorCode
from ottla.protocol.messages.list_groups import ListGroupsRequest
from tests.broker.membership import Membership, committed, describe, settle
from tests.broker.serving import start_server
from tests.broker.wire import Wire
from tests.patience import eventually


def kill(broker: Broker) -> None:
    os.kill(broker.pid, signal.SIGKILL)
    broker.close()


def kill_when(it_is_time: threading.Event, pid: int) -> None:
    it_is_time.wait()
    os.kill(pid, signal.SIGKILL)


@pytest.mark.behaviour("B3")
def test_no_acknowledged_commit_is_lost_by_kill_9_and_members_continue(tmp_path: Path) -> None:
    broker = Broker(tmp_path, process=True).start()
    with Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
    with Membership(broker.bootstrap_servers) as member:
        settle(member)
        acknowledged, some = 0, threading.Event()
        killer = threading.Thread(target=kill_when, args=(some, broker.pid))
        killer.start()
        try:
            while member.commit(acknowledged + 1) == 0:
                acknowledged += 1
                if acknowledged == 100:
                    some.set()  # the kill happens during the following ones
        except (EOFError, ConnectionError):
            pass
        killer.join()
        broker.close()
    assert acknowledged >= 100
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire, member:
        assert committed(wire) in (acknowledged, acknowledged + 1)
        member.move_to(broker.bootstrap_servers)
        assert describe(wire).members[0].member_assignment == b"A"
        assert member.beat() == 0
        assert member.commit(acknowledged + 2) == 0
        assert committed(wire) == acknowledged + 2


@pytest.mark.parametrize("moment", ["join", "sync"])
def test_a_group_is_stable_again_after_kill_9_during_a_rebalance(tmp_path: Path, moment: str) -> None:
    broker = Broker(tmp_path, process=True).start()
    first, second = Membership(broker.bootstrap_servers), Membership(broker.bootstrap_servers)
    settle(first)
    second.ask_to_join()
    eventually(lambda: len(describe(first.wire).members) == 2)
    if moment == "sync":
        first.join()
        second.joined()
    kill(broker)
    with Broker(tmp_path) as broker, first, second:
        for member in (first, second):
            member.move_to(broker.bootstrap_servers)
        if moment == "sync":
            assert first.sync({first.member_id: "A"}).error_code == ErrorCode.ILLEGAL_GENERATION
        assert second.join().error_code == ErrorCode.UNKNOWN_MEMBER_ID
        second.member_id = ""
        second.ask_to_join()
        eventually(lambda: len(describe(first.wire).members) == 2)
        assert len(first.join().members) == 2
        second.joined()
        assert first.sync({first.member_id: "A", second.member_id: "B"}).assignment == b"A"
        assert second.sync().assignment == b"B"
        assert describe(first.wire).group_state == "Stable"


@pytest.mark.behaviour("B3")
def test_offsets_expire_once_a_group_has_been_empty_for_a_week() -> None:
    clock = ManualClock()
    server = start_server(read_config(listeners="127.0.0.1:0", connections_max_idle_ms=-1), clock)
    loop = threading.Thread(target=server.run)
    loop.start()

    def pass_days(days: float) -> None:
        clock.advance(days * 86_400)
        server.call_soon(lambda: None)

    def is_forgotten() -> bool:
        pass_days(0.01)  # the broker checks every ten minutes, and may have done so just before
        return not wire.ask(ListGroupsRequest(), 5).groups

    try:
        with Wire(server.bootstrap_servers) as wire, Membership(server.bootstrap_servers) as member:
            wire.create("t")
            assert member.commit(5) == 0
            pass_days(6.9)
            assert committed(wire) == 5
            pass_days(0.2)
            eventually(is_forgotten)
            assert committed(wire) == -1
    finally:
        server.stop()
        loop.join()
