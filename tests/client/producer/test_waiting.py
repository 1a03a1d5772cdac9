"""The waits of `send`, and their ends: memory, close, Ctrl-C, and the turns of the sender."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ottla import Producer
from ottla.client.producer.turns import Turns
from ottla.client.runtime.steps import Steps
from ottla.errors import BufferExhaustedError, IllegalStateError
from tests.client.conftest import eventually

ROOM = 4_000
RECORD = bytes(1_500)


@pytest.fixture
def stuck(servers: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Producer]:
    """A producer that sends nothing, and has room for two records."""
    settings: dict[str, Any] = {"buffer_memory": ROOM, "batch_size": 0, "delivery_timeout_ms": 600_000}
    with Producer(bootstrap_servers=servers, **settings) as producer:
        producer.partitions_for(topic)
        monkeypatch.setattr(producer._core.sender, "_send_producer_data", lambda now: 60.0)
        for _ in range(2):
            producer.send(topic, RECORD)
        yield producer
        monkeypatch.undo()
        producer._core.sender.wakeup_for_metadata()


@pytest.mark.behaviour("P2")
def test_a_timed_out_send_names_the_settings_to_raise(stuck: Producer, topic: str) -> None:
    stuck._core.max_block = 0.05
    with pytest.raises(BufferExhaustedError, match=r"max\.block\.ms = 60000: 4000 bytes \(buffer\.memory\)"):
        stuck.send(topic, RECORD)
    pool = stuck._core.parts.pool
    assert pool.queued == 0
    assert pool.available_bytes == ROOM - 2 * (len(RECORD) + 82)


@pytest.mark.behaviour("P2")
def test_a_send_that_waited_for_memory_continues_and_calls_user_code_once(
    servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    settings: dict[str, Any] = {"buffer_memory": ROOM, "batch_size": 0, "linger_ms": 0}

    def serialize(name: str) -> bytes:
        seen.append(name)
        return RECORD

    with Producer(bootstrap_servers=servers, value_serializer=serialize, **settings) as own:
        futures = [own.send(topic, str(n)) for n in range(50)]
        assert [future.result(20).topic for future in futures] == [topic] * 50
    assert seen == [str(n) for n in range(50)]


def test_a_record_that_waits_when_its_producer_is_closed_is_refused(stuck: Producer, topic: str) -> None:
    errors: list[Exception] = []

    def send() -> None:
        try:
            stuck.send(topic, RECORD)
        except (BufferExhaustedError, IllegalStateError) as error:
            errors.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    eventually(lambda: stuck._core.parts.pool.queued == 1)
    stuck._core.sender.initiate_close()
    thread.join(20)
    assert "closed" in str(errors[0])


def test_ctrl_c_while_a_record_waits_cancels_its_claim(
    stuck: Producer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stuck._core.sender._turns, "_wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stuck.send(topic, RECORD)
    assert stuck._core.parts.pool.queued == 0


def test_an_interrupted_flush_lets_batches_linger_again(
    servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with Producer(bootstrap_servers=servers, linger_ms=60_000, delivery_timeout_ms=600_000) as producer:
        producer.partitions_for(topic)
        core = producer._core
        monkeypatch.setattr(core.sender, "_send_producer_data", lambda now: 60.0)
        monkeypatch.setattr(core.sender._turns, "_wait", interrupt)
        producer.send(topic, b"v")
        with pytest.raises(KeyboardInterrupt):
            producer.flush()
        assert not core.accumulator.ready(core.metadata.cluster, core.clock.monotonic()).nodes
        monkeypatch.undo()


def test_a_waiting_send_checks_again_after_each_sender_turn() -> None:
    turns, looks = Turns(), 0

    def patient() -> Steps[str]:
        nonlocal looks
        for looks in range(3):  # noqa: B007 - counted for the story
            yield 20.0
        return "done"

    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(turns.run(patient())))
    thread.start()
    while thread.is_alive():
        turns.end_turn()
    assert (results, looks) == (["done"], 2)


def test_a_turn_that_ends_between_the_check_and_the_wait_is_not_missed() -> None:
    turns = Turns()

    def unlucky() -> Steps[bool]:
        turns.end_turn()  # just before the wait
        yield 60.0
        return True

    begun = time.monotonic()
    assert turns.run(unlucky())
    assert time.monotonic() - begun < 30
