"""Members and coordinators that are stopped, killed and interrupted."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.errors import KafkaTimeoutError, OttlaError
from ottla.model import OffsetAndMetadata
from ottla.network.poller import default_poller
from ottla.testing.broker import TestedBroker
from tests.client.consumer.conftest import (
    PATIENCE,
    Members,
    fill_topic,
    partitions,
    poll_count,
    poll_until,
    shared,
)
from tests.client.consumer.group import member_process

pytestmark = pytest.mark.heavy


class MemberProcess:
    """A member in another process."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, str(Path(member_process.__file__)), *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.said: list[str] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def send_line(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self.has_said(text):
            assert time.monotonic() < deadline, self.said

    def interrupt(self) -> None:
        """Press Ctrl-C; the process ends long before its session would expire."""
        self.signal(signal.SIGINT)
        assert self.process.wait(PATIENCE) == 0
        self._reader.join()
        assert self.has_said("interrupted")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def has_said(self, text: str) -> bool:
        while not self._lines.empty():
            self.said.append(self._lines.get())
        return any(text in line for line in self.said)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip())


@pytest.fixture
def other(group_broker: Broker, group_id: str, shared_topic: str) -> Iterator[Callable[..., MemberProcess]]:
    """Starts a member process of the group."""
    started: list[MemberProcess] = []

    def start(**settings: Any) -> MemberProcess:
        quick = {"heartbeat.interval.ms": 50, "session.timeout.ms": 500, "retry.backoff.ms": 20}
        given = {**quick, **{name.replace("_", "."): value for name, value in settings.items()}}
        reported = [f"{name}={value}" for name, value in given.items()]
        started.append(MemberProcess(group_broker.bootstrap_servers, group_id, shared_topic, *reported))
        return started[-1]

    yield start
    for process in started:
        process.__exit__(None, None, None)


@pytest.mark.behaviour("C8", "C10", "C14")
def test_the_partitions_of_a_killed_member_are_reassigned_after_its_session_timeout(
    member: Members, shared_topic: str, other: Callable[..., MemberProcess]
) -> None:
    process, staying = other(session_timeout_ms=1000), member()
    staying.subscribe([shared_topic])
    poll_until([staying], lambda: process.has_said("assigned 2") and shared(staying) == [2])
    process.signal(signal.SIGKILL)
    killed = time.monotonic()
    poll_until([staying], lambda: shared(staying) == [4])
    assert time.monotonic() - killed > 0.7


@pytest.mark.behaviour("C8")
def test_a_member_that_was_suspended_logs_the_expired_session_and_rejoins(
    member: Members, shared_topic: str, other: Callable[..., MemberProcess]
) -> None:
    process, staying = other(), member()
    staying.subscribe([shared_topic])
    poll_until([staying], lambda: process.has_said("assigned 2") and shared(staying) == [2])
    process.signal(signal.SIGSTOP)
    poll_until([staying], lambda: shared(staying) == [4])
    process.signal(signal.SIGCONT)
    poll_until([staying], lambda: process.has_said("lost 2") and shared(staying) == [2])
    assert process.has_said("failed: UNKNOWN_MEMBER_ID; the generation is dropped")


UNTIL_MISSED = 600_000
"""A session that never expires in a test: a member leaves only by its own request."""


@pytest.mark.behaviour("C10")
def test_a_commit_rejected_until_its_timeout_names_the_error_of_the_coordinator() -> None:
    with TestedBroker() as broker, Consumer(broker.client_settings(), group_id="g") as consumer:
        broker.faults.fail("OffsetCommit", error="COORDINATOR_NOT_AVAILABLE")
        with pytest.raises(
            KafkaTimeoutError, match=r"within 1 s: COORDINATOR_NOT_AVAILABLE: .* see the log of that broker"
        ):
            consumer.commit({TopicPartition("t", 0): 1}, timeout=1)


@pytest.mark.parametrize("when", ["polling", "joining", "committing"])
def test_ctrl_c_leaves_the_group(
    member: Members, shared_topic: str, other: Callable[..., MemberProcess], when: str
) -> None:
    staying = member(session_timeout_ms=UNTIL_MISSED)
    staying.subscribe([shared_topic])
    poll_until([staying], lambda: shared(staying) == [4])
    process = other(session_timeout_ms=UNTIL_MISSED, do="commit" if when == "committing" else "poll")
    if when == "joining":  # the coordinator waits for us, and it for the coordinator
        deadline = time.monotonic() + PATIENCE
        while not process.has_said("use of the member id"):
            assert time.monotonic() < deadline
            staying.commit({partitions(shared_topic)[0]: 0})
    else:
        poll_until([staying], lambda: process.has_said("assigned 2") and shared(staying) == [2])
    if when == "committing":
        process.wait_for("committing")
    process.interrupt()
    poll_until([staying], lambda: shared(staying) == [4])


class Fallible:
    """A broker that can be killed, and comes back at the same address."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.broker = self._start("127.0.0.1:0")
        self.address = self.broker.bootstrap_servers

    def _start(self, listen: str) -> Broker:
        return Broker(
            self._directory,
            listen=listen,
            process=True,
            group_min_session_timeout_ms=100,
            group_initial_rebalance_delay_ms=0,
            group_consumer_heartbeat_interval_ms=50,
            group_consumer_session_timeout_ms=3000,
        ).start()

    def kill(self) -> None:
        os.kill(self.broker.pid, signal.SIGKILL)
        self.broker.close()

    def restart(self) -> None:
        self.broker = self._start(self.address)


@pytest.fixture
def fallible(tmp_path: Path) -> Iterator[Fallible]:
    """A broker with a topic `t` of four partitions and forty records."""
    broker = Fallible(tmp_path)
    with Admin(bootstrap_servers=broker.address) as admin, Producer(bootstrap_servers=broker.address) as producer:
        admin.create_topics([NewTopic("t", 4)])
        fill_topic(producer, "t", 40)
    yield broker
    broker.broker.close()


NEWER: dict[str, Any] = {"group_protocol": "consumer", "heartbeat_interval_ms": None}
"""Settings of a member by KIP-848, which has no heartbeats of its own choice."""


def member_at(address: str, **settings: Any) -> Consumer:
    quick = {"group_id": "g", "auto_offset_reset": "earliest", "heartbeat_interval_ms": 50, "retry_backoff_ms": 20}
    given = {**quick, "bootstrap_servers": address, "reconnect_backoff_max_ms": 100, **settings}
    return Consumer(**{name: value for name, value in given.items() if value is not None})


@pytest.mark.behaviour("C6")
def test_a_coordinator_killed_in_any_phase_restarts_without_losing_group_state(fallible: Fallible) -> None:
    with member_at(fallible.address) as one, member_at(fallible.address) as two:
        one.subscribe(["t"])
        seen = poll_count(one, 40)
        one.commit()
        # While one joins:
        two.subscribe(["t"])
        two.poll(0.1)
        fallible.kill()
        fallible.restart()
        seen += poll_until([one, two], lambda: shared(one, two) == [2, 2])
        # While one commits:
        committer = threading.Timer(0.05, fallible.restart)
        fallible.kill()
        committer.start()
        one.commit()
        committer.join()
        seen += poll_until([one, two], lambda: shared(one, two) == [2, 2])
        assert one.committed(partitions("t")) == dict.fromkeys(partitions("t"), OffsetAndMetadata(10, leader_epoch=0))
        assert len({(r.partition, r.offset) for r in seen}) == len(seen) == 40


@pytest.mark.behaviour("C6", "C14")
def test_a_coordinator_killed_during_a_reconciliation_loses_nothing(fallible: Fallible) -> None:
    deaths: list[str] = []

    def deadly(when: str) -> None:
        if when not in deaths:
            deaths.append(when)
            fallible.kill()
            fallible.restart()

    with member_at(fallible.address, **NEWER) as one, member_at(fallible.address, **NEWER) as two:
        one.subscribe(["t"], on_assigned=lambda _: deadly("taking"), on_revoked=lambda _: deadly("giving up"))
        seen = poll_count(one, 40)
        two.subscribe(["t"])
        seen += poll_until([one, two], lambda: shared(one, two) == [2, 2])
        fallible.kill()
        fallible.restart()
        one.commit()
        two.commit()
        assert deaths == ["taking", "giving up"]
        assert one.committed(partitions("t")) == dict.fromkeys(partitions("t"), OffsetAndMetadata(10, leader_epoch=0))
        assert len({(r.partition, r.offset) for r in seen}) == len(seen) == 40
        assert one.assignment() | two.assignment() == set(partitions("t"))


@pytest.mark.behaviour("C8", "C10", "C14")
def test_with_the_consumer_protocol_a_killed_member_expires_and_a_suspended_one_rejoins(
    fallible: Fallible,
) -> None:
    with member_at(fallible.address, **NEWER) as staying:
        staying.subscribe(["t"])
        poll_until([staying], lambda: shared(staying) == [4])
        for number, is_over in ((signal.SIGKILL, True), (signal.SIGSTOP, False)):
            with MemberProcess(fallible.address, "g", "t", "group.protocol=consumer", "retry.backoff.ms=20") as other:
                poll_until([staying], lambda: other.has_said("assigned 2") and shared(staying) == [2])
                other.signal(number)
                stopped = time.monotonic()
                poll_until([staying], lambda: shared(staying) == [4])
                assert time.monotonic() - stopped > 2.4
                if is_over:
                    continue
                other.signal(signal.SIGCONT)
                poll_until([staying], lambda: other.has_said("lost 2") and shared(staying) == [2])
                assert other.has_said("was fenced by the coordinator: UNKNOWN_MEMBER_ID")
                other.signal(signal.SIGINT)
                assert other.process.wait(PATIENCE) == 0
                poll_until([staying], lambda: shared(staying) == [4], timeout=2.4)


@pytest.mark.behaviour("C14")
def test_a_coordinator_killed_during_the_leaders_assignment_restores_the_group(fallible: Fallible) -> None:
    deaths = [1]

    def deadly(wanted: Any, counts: Any, owned: Any) -> Any:
        if deaths:
            deaths.pop()
            fallible.kill()
            fallible.restart()
        members = sorted(wanted)
        return {m: [("t", n) for n in range(4) if n % len(members) == i] for i, m in enumerate(members)}

    settings = {"partition_assignment_strategy": [deadly]}
    with member_at(fallible.address, **settings) as one, member_at(fallible.address, **settings) as two:
        one.subscribe(["t"])
        two.subscribe(["t"])
        poll_until([one, two], lambda: shared(one, two) == [2, 2])
        assert not deaths
        assert one.assignment() | two.assignment() == set(partitions("t"))


@pytest.mark.parametrize("beats", [{}, NEWER], ids=["classic", "newer"])
def test_without_a_broker_a_member_neither_spins_nor_dies(
    fallible: Fallible, beats: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"reconnect_backoff_max_ms": 1000, "retry_backoff_ms": 100, "auto_commit_interval_ms": 100}
    with member_at(fallible.address, **settings, **beats) as consumer:
        consumer.subscribe(["t"])
        poll_count(consumer, 40)
        fallible.kill()
        consumer.poll(0.5)
        looks = poll_timeouts(monkeypatch)
        started = time.monotonic()
        consumer.poll(2.0)
        took = time.monotonic() - started
        assert 2 <= len(looks) < 150 * took, (
            "some for each attempt to connect; one that spins looks 10,000 times a second"
        )
        fallible.restart()
        poll_until([consumer], lambda: shared(consumer) == [4])
        consumer.commit()


def poll_timeouts(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """How long each look would have waited, from now on and in every thread."""
    looks: list[float | None] = []
    kind = type(default_poller())
    really = kind.poll

    def count_partitions(poller: Any, timeout: float | None) -> Any:
        looks.append(timeout)
        return really(poller, timeout)

    monkeypatch.setattr(kind, "poll", count_partitions)
    return looks


@pytest.mark.behaviour("C10")
def test_closing_without_a_broker_keeps_to_its_timeout(fallible: Fallible) -> None:
    consumer = member_at(fallible.address)
    consumer.subscribe(["t"])
    poll_count(consumer, 40)
    fallible.kill()
    started = time.monotonic()
    consumer.close(1.0)
    consumer.close(1.0)
    assert time.monotonic() - started < 10


@pytest.mark.behaviour("C10")
@pytest.mark.parametrize("beats", [{}, NEWER], ids=["classic", "newer"])
def test_closing_does_not_wait_for_a_broker_that_refuses_connections(
    fallible: Fallible, beats: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    consumer = member_at(fallible.address, reconnect_backoff_max_ms=1000, retry_backoff_ms=100, **beats)
    consumer.subscribe(["t"])
    poll_count(consumer, 40)
    fallible.kill()
    started = time.monotonic()
    consumer.close()
    assert time.monotonic() - started < 10, "half of the thirty seconds that closing may take went by"
    assert "connection refused" in caplog.text


@pytest.mark.behaviour("C10")
def test_ctrl_c_between_two_calls_does_not_wait_for_a_stopped_coordinator(fallible: Fallible) -> None:
    consumer = member_at(fallible.address)
    consumer.subscribe(["t"])
    poll_count(consumer, 40)
    os.kill(fallible.broker.pid, signal.SIGSTOP)
    pressed = time.monotonic()
    consumer.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    waited = time.monotonic() - pressed
    os.kill(fallible.broker.pid, signal.SIGCONT)
    assert waited < 20, "thirty seconds, if nobody had pressed Ctrl-C"


@pytest.mark.behaviour("C10")
@pytest.mark.parametrize("commits", ["true", "false"])
def test_ctrl_c_during_a_close_without_a_coordinator_leaves_the_group_once_a_coordinator_answers(
    fallible: Fallible, commits: str
) -> None:
    slow = {"session.timeout.ms": UNTIL_MISSED, "heartbeat.interval.ms": 50, "enable.auto.commit": commits}
    settings = [f"{name}={value}" for name, value in slow.items()]
    with (
        member_at(fallible.address, session_timeout_ms=UNTIL_MISSED) as staying,
        MemberProcess(fallible.address, "g", "t", "do=close", *settings) as process,
    ):
        staying.subscribe(["t"])
        poll_until([staying], lambda: process.has_said("ready") and shared(staying) == [2])
        os.kill(fallible.broker.pid, signal.SIGSTOP)
        process.send_line("now")
        process.wait_for("closing")
        pressed = time.monotonic()
        try:
            process.interrupt()
        finally:
            waited = time.monotonic() - pressed
            os.kill(fallible.broker.pid, signal.SIGCONT)
        assert waited < 20, "thirty seconds, if nobody had pressed Ctrl-C"
        poll_until([staying], lambda: shared(staying) == [4])


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_poll_heartbeat_commit_and_close_never_wait_for_each_other(
    group_broker: Broker, group_id: str, shared_topic: str, protocol: str
) -> None:
    """Everything at once, with quick heartbeats and wakeups from outside, until it is done or stuck."""
    beats = {"heartbeat_interval_ms": 1} if protocol == "classic" else {"group_protocol": "consumer"}
    assigned: list[int] = []
    failed: list[BaseException] = []

    def hammer_all() -> None:
        try:
            for turn in range(12):
                quick = {"auto_commit_interval_ms": 1, "max_poll_interval_ms": 60 + turn, "retry_backoff_ms": 20}
                settings = {**beats, **quick, "group_id": group_id, "auto_offset_reset": "earliest"}
                hammer(Consumer(settings, bootstrap_servers=group_broker.bootstrap_servers), shared_topic, assigned)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=hammer_all, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "stuck"
    assert failed == []
    assert len(assigned) > 12, "there were rebalances, each of which a busy machine may let pass"
    assert not [t.name for t in threading.enumerate() if t.name.endswith(group_id)], "no thread is left"


def hammer(consumer: Consumer, topic: str, assigned: list[int]) -> None:
    """Make every call of a consumer in turn."""
    ended = threading.Event()

    def wake_often() -> None:
        while not ended.wait(0.003):
            consumer.wakeup()

    def subscribe() -> None:
        consumer.subscribe(
            [topic],
            on_assigned=lambda tps: assigned.append(len(tps)),
            on_revoked=lambda _: attempt(consumer.commit),
        )

    waker = threading.Thread(target=wake_often)
    waker.start()
    subscribe()
    for step in range(60):
        attempt(consumer.poll, 0.005)
        attempt(consumer.commit_async)
        if step % 5 == 0:
            attempt(consumer.enforce_rebalance)
            attempt(consumer.commit, None, 1)
        if step % 21 == 20:
            attempt(consumer.unsubscribe)
            subscribe()
    attempt(consumer.close, 5)
    ended.set()
    waker.join()


def attempt(call: Callable[..., Any], *arguments: Any) -> None:
    """Errors are expected here; a hanging call is a failure."""
    with contextlib.suppress(OttlaError):
        call(*arguments)
