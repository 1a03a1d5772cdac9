"""Heartbeats of a broker while its disk is busy, and while its event loop is blocked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ottla.broker.replica_manager.log_cleaner import LogCleaner
from ottla.broker.server import Server
from ottla.coordination.lifecycle.broker_lifecycle import BrokerLifecycle
from ottla.coordination.lifecycle.events import Event, HeartbeatResponseReceived, LifecycleAction
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from tests.broker.cluster_nodes import BrokerPlace, StartedBroker, is_led, make_topic
from tests.broker.quorum_nodes import Place, new_hosts
from tests.broker.wire import Wire, produce
from tests.patience import PATIENCE, eventually
from tests.storage.compacting import keyed

EAGER = {
    "broker_heartbeat_interval_ms": "20",
    "log_cleaner_backoff_ms": "20",
    "log_cleaner_min_cleanable_ratio": "0",
}
ENOUGH = 5
"""Heartbeats would be missing or late if they waited for blocked work."""


@pytest.fixture
def heartbeat_times(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the controllers answered a heartbeat of a broker that they have let in."""
    moments: list[float] = []
    handle = BrokerLifecycle.handle

    def noting(self: BrokerLifecycle, event: Event, now: float) -> list[LifecycleAction]:
        if isinstance(event, HeartbeatResponseReceived) and not (event.response.error_code or event.response.is_fenced):
            moments.append(now)
        return handle(self, event, now)

    monkeypatch.setattr(BrokerLifecycle, "handle", noting)
    return moments


@contextmanager
def let_in(folder: Path, session_ms: int = 9000) -> Iterator[tuple[BrokerPlace, Server, Server]]:
    """A broker that is unfenced, its server, and that of its controller, each in a thread."""
    hosts = new_hosts(2)
    controller = Place(folder, 1, hosts[0])
    controller.settings["broker.session.timeout.ms"] = str(session_ms)
    controller.format([controller.voter])
    place = BrokerPlace(folder, 2, hosts[1], [controller], **EAGER)
    with controller.serving() as controlling, closing(StartedBroker(place)) as broker:
        broker.wait()
        yield place, broker.server, controlling


def is_fenced(controlling: Server) -> bool:
    """True if the active controller has fenced the broker."""
    assert controlling.controller is not None
    term = controlling.controller.driver.term
    return term is not None and term.machine.metadata.registrations[2].fenced


def wait_for_heartbeats(heartbeat_times: list[float]) -> None:
    enough = len(heartbeat_times) + ENOUGH
    eventually(lambda: len(heartbeat_times) >= enough)


def test_a_broker_with_a_blocked_event_loop_is_fenced_after_its_session_and_unfenced_when_it_continues(
    tmp_path: Path,
) -> None:
    """While its loop is blocked it serves nothing, so other replicas are to lead meanwhile."""
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        free.wait(PATIENCE)

    with let_in(tmp_path, session_ms=1000) as (_, server, controlling):
        assert not is_fenced(controlling)
        server.call_soon(hold)
        assert held.wait(PATIENCE)
        try:
            eventually(lambda: is_fenced(controlling))
        finally:
            free.set()
        eventually(lambda: not is_fenced(controlling))


def test_a_broker_sends_heartbeats_and_responses_during_an_endless_compaction(
    tmp_path: Path, heartbeat_times: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, free = threading.Event(), threading.Event()

    def stand_still(*_: object) -> None:
        begun.set()
        free.wait(PATIENCE)

    monkeypatch.setattr(LogCleaner, "_pause", stand_still)
    configs = [
        CreatableTopicConfig("cleanup.policy", "compact"),
        CreatableTopicConfig("segment.bytes", str(1 << 20)),
    ]
    with let_in(tmp_path) as (place, _, _):
        try:
            make_topic(place, CreatableTopic("t", 1, 1, configs=configs))
            eventually(lambda: is_led(place, "t"))
            with Wire(place.address) as wire:
                for number in range(5):
                    put(wire, number)
                assert begun.wait(PATIENCE)
                wait_for_heartbeats(heartbeat_times)
                put(wire, 5)
        finally:
            free.set()


def put(wire: Wire, offset: int) -> None:
    (answer,) = wire.ask(produce("t", keyed([(b"a", bytes(400_000))])), 11).responses[0].partition_responses
    assert (answer.error_code, answer.base_offset) == (0, offset)
