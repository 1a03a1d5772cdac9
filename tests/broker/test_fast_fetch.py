"""The fast path of Fetch: in both forms it answers like the handler, or leaves the request to it."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.broker.apis import fast_fetch, fast_path
from ottla.broker.apis.handlers import HANDLERS
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.network_server.request_parsing import read_request
from ottla.errors import ProtocolError
from ottla.model import FileSlice, Part
from ottla.protocol.conversation import decode_header, encode_request, encode_response
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from tests.broker.test_fast_produce import PEER, Standing
from tests.broker.wire import batch
from tests.plain import is_compiled, plain
from tests.storage.producing import produced

FORMS = {"compiled": fast_fetch, "plain": plain("ottla.broker.apis.fast_fetch", "ottla.broker.apis.request_bytes")}
VERSIONS = range(12, 19)
ENDS = (-2, -1, 0, 1, 2, 3, 5, 6, 7, 99)
"""Offsets about the ends of a log."""


def joined(parts: list[Part]) -> bytes:
    """Return the bytes of a response, including those sent from files."""
    return b"".join(read(part) if isinstance(part, FileSlice) else bytes(part) for part in parts)


def read(part: FileSlice) -> bytes:
    return os.pread(part.file.fileno(), part.size, part.position)


def by_handler(broker: Standing, frame: bytes) -> bytes | None:
    """The answer that the handler gives; None where it would wait."""
    view = memoryview(bytearray(frame))
    header, position = decode_header(view)
    request = read_request(FetchRequest, header.api_version, view, position)
    call = Call(broker.server.handler, PEER, header, 0.0)
    response: Any = HANDLERS[1].handle(broker.node, call, request)
    if response is Outcome.LATER:
        call.abandon()
        return None
    return joined(encode_response(response, header.api_version, header.correlation_id))


def usual(broker: Standing, form: str, frame: bytes) -> Any:
    """Return the fast-path request; None if it is left to the handler."""
    request = FORMS[form].FastFetch(memoryview(bytearray(frame)))
    return request if request.read(broker.node) and request.read_logs(broker.node, request.max_bytes) else None


@contextmanager
def filled() -> Iterator[tuple[Standing, dict[str, uuid.UUID]]]:
    """A broker with records in both partitions of its topics; in one a transaction is open."""
    ids: dict[str, uuid.UUID] = {}
    broker = Standing(ids)
    try:
        for name in ids:
            for number in range(3):
                append(broker, name, 0, batch([b"a" * number, b"b"]))
        append(broker, "small", 1, produced(8, 0, transactional=True))
        yield broker, ids
    finally:
        broker.server.stop()
        broker.server.run()


def append(broker: Standing, name: str, index: int, records: bytes) -> None:
    partition = broker.node.partitions.find(name, index)
    assert partition is not None
    broker.node.append(partition, records)


def frame_of(
    version: int, topics: dict[str, list[FetchPartition]], ids: dict[str, uuid.UUID], client_id: str = "me", **more: Any
) -> bytes:
    asked = [FetchTopic(name, ids.get(name, uuid.UUID(int=9)), wanted) for name, wanted in topics.items()]
    fields = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 10_000, **more}
    return joined(encode_request(FetchRequest(topics=more.pop("more_topics", asked), **fields), version, 5, client_id))


def wanted(index: int, offset: int, limit: int = 1000, epoch: int = -1, last_epoch: int = -1) -> FetchPartition:
    return FetchPartition(index, epoch, offset, last_epoch, -1, limit)


def frames(version: int, ids: dict[str, uuid.UUID]) -> Iterator[bytes]:
    """Requests as sent by consumers, and others."""
    for committed in (0, 1):
        for offset in ENDS:
            for limit in (-1, 0, 1, 100, 1000):
                yield frame_of(version, {"t": [wanted(0, offset, limit)]}, ids, isolation_level=committed)
            for most in (-1, 0, 1, 120, 200):
                both = [wanted(0, 0), wanted(1, offset)]
                yield frame_of(
                    version, {"t": both, "small": both}, ids, isolation_level=committed, max_bytes=most, min_bytes=0
                )
    one = {"t": [wanted(0, 0)]}
    for epoch in (-2, 0, 1, 7):
        yield frame_of(version, {"t": [wanted(0, 0, epoch=epoch)]}, ids)
        yield frame_of(version, {"t": [wanted(0, 0, last_epoch=epoch)]}, ids)
    yield frame_of(version, {"t": [wanted(0, 0), wanted(0, 1)]}, ids)
    yield frame_of(version, {"t": [wanted(0, 0), wanted(9, 1)]}, ids)
    yield frame_of(version, {"t": [], "small": [wanted(0, 1)]}, ids)
    yield frame_of(version, {"nowhere": [wanted(0, 0)]}, ids)
    yield frame_of(version, {}, ids)
    yield frame_of(version, one, ids, rack_id="here")
    yield frame_of(version, one, ids, client_id="cönsumer")
    yield frame_of(version, one, ids, cluster_id="c")
    yield frame_of(version, one, ids, session_id=7)
    yield frame_of(version, one, ids, session_id=7, session_epoch=3)
    yield frame_of(version, one, ids, session_epoch=3)
    yield frame_of(version, one, ids, forgotten_topics_data=[ForgottenTopic("t", ids["t"], [0])])


def test_the_fast_path_answers_like_the_handler() -> None:
    taken = 0
    with filled() as (broker, ids):
        for version in VERSIONS:
            for frame in frames(version, ids):
                requests = [usual(broker, form, frame) for form in FORMS]
                assert (requests[0] is None) == (requests[1] is None)
                if requests[0] is not None:
                    answers = [joined(request.answer()) for request in requests]
                    assert answers == [by_handler(broker, frame)] * 2
                    taken += 1
    assert not is_compiled(FORMS["plain"])
    assert taken > len(VERSIONS) * 100


@pytest.mark.parametrize("form", FORMS)
def test_a_follower_does_not_use_the_fast_path(form: str) -> None:
    with filled() as (broker, ids):
        for version in VERSIONS:
            who: dict[str, Any] = {"replica_id": 2} if version < 15 else {"replica_state": ReplicaState(2, 1)}
            assert usual(broker, form, frame_of(version, {"t": [wanted(0, 0)]}, ids)) is not None
            assert usual(broker, form, frame_of(version, {"t": [wanted(0, 0)]}, ids, **who)) is None


def test_damaged_frames_get_the_same_answer_from_both_forms_and_from_the_handler() -> None:
    chance = random.Random(7)
    with filled() as (broker, ids):
        topics = {"t": [wanted(0, 1), wanted(1, 0)], "small": [wanted(0, 2)]}
        good = [frame_of(version, topics, ids, isolation_level=1) for version in VERSIONS]
        for number in range(3000):
            frame = bytearray(good[number % len(good)])
            for _ in range(chance.randint(1, 3)):
                frame[chance.randrange(len(frame))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
            del frame[chance.choice((len(frame), chance.randrange(len(frame)))) :]
            requests = [usual(broker, form, bytes(frame)) for form in FORMS]
            assert (requests[0] is None) == (requests[1] is None)
            if requests[0] is not None:
                assert {joined(request.answer()) for request in requests} == {due(broker, bytes(frame))}


def due(broker: Standing, frame: bytes) -> bytes | None:
    """The handler's answer to a request that has waited long enough."""
    was, broker.node.waiting.closed = broker.node.waiting.closed, True
    try:
        return by_handler(broker, frame)
    except ProtocolError:
        return None
    finally:
        broker.node.waiting.closed = was


@pytest.fixture
def sent_responses() -> list[bytes]:
    return []


@contextmanager
def start_waiting_fetch(
    sent_responses: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Standing, dict[str, uuid.UUID]]]:
    """A broker with recorded responses, and a fetch that waits at the end of t-0."""
    with filled() as (broker, ids):
        monkeypatch.setattr(broker.way, "_send", lambda channel, parts: sent_responses.append(joined(parts)))
        monkeypatch.setattr(
            broker.server.handler._selector, "send", lambda channel, parts: sent_responses.append(joined(list(parts)))
        )
        frame = memoryview(bytearray(frame_of(16, {"t": [wanted(0, 7)]}, ids, max_wait_ms=1000, min_bytes=100)))
        broker.server._sockets.memory.handed_out += len(frame)
        assert broker.way.takes(PEER, frame, broker.node.clock.monotonic(), broker.node.clock.monotonic())
        frame[:] = bytes(len(frame))  # its memory is reused
        assert PEER.call is not None
        assert not sent_responses
        try:
            yield broker, ids
        finally:
            PEER.call = None


def test_a_waiting_fetch_is_answered_when_there_are_enough_bytes(
    sent_responses: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with start_waiting_fetch(sent_responses, monkeypatch) as (broker, ids):
        append(broker, "t", 0, batch([b"c"]))
        broker.node.waiting.run_due()
        assert not sent_responses  # 100 bytes are not there yet
        append(broker, "t", 0, batch([b"d"]))
        broker.node.waiting.run_due()
        assert sent_responses == [by_handler(broker, frame_of(16, {"t": [wanted(0, 7)]}, ids))]
        assert PEER.call is None
        assert broker.server._sockets.memory.handed_out == 0


def test_a_waiting_fetch_gets_an_error_when_its_topic_is_deleted(
    sent_responses: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with start_waiting_fetch(sent_responses, monkeypatch) as (broker, _):
        partition = broker.node.partitions.find("t", 0)
        assert partition is not None
        partition.leads = False
        broker.node.waiting.recheck([partition])
        broker.node.waiting.run_due()
        assert len(sent_responses) == 1
        assert b"\0\6" in sent_responses[0]  # NOT_LEADER_OR_FOLLOWER
        assert PEER.call is None
        assert broker.server._sockets.memory.handed_out == 0


def test_the_waiting_fetch_of_a_disconnected_client_is_removed(
    sent_responses: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with start_waiting_fetch(sent_responses, monkeypatch) as (broker, _):
        assert PEER.call is not None
        PEER.call.abandon()
        append(broker, "t", 0, batch([bytes(200)]))
        broker.node.waiting.run_due()
        assert not sent_responses


@pytest.mark.parametrize("step", ["read_logs", "is_permitted"])
def test_an_internal_error_in_a_repeated_read_falls_back_to_the_handler(
    step: str, sent_responses: list[bytes], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fast_path, "FastFetch", FORMS["plain"].FastFetch)
    with start_waiting_fetch(sent_responses, monkeypatch) as (broker, ids):
        monkeypatch.setattr(FORMS["plain"].FastFetch, step, failing)
        append(broker, "t", 0, batch([bytes(100)]))
        broker.node.waiting.run_due()
        assert sent_responses == [by_handler(broker, frame_of(16, {"t": [wanted(0, 7)]}, ids))]
        assert PEER.call is None
    assert "the fast path failed" in caplog.text


def test_an_internal_error_in_a_delayed_response_closes_one_connection(
    sent_responses: list[bytes], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left: list[str] = []
    monkeypatch.setattr(fast_path, "FastFetch", FORMS["plain"].FastFetch)
    with start_waiting_fetch(sent_responses, monkeypatch) as (broker, _):
        monkeypatch.setattr(broker.way, "_hang_up", lambda connection, reason: left.append(reason))
        monkeypatch.setattr(FORMS["plain"].FastFetch, "answer", failing)
        append(broker, "t", 0, batch([bytes(100)]))
        broker.node.waiting.run_due()
        assert broker.server._sockets.memory.handed_out == 0
    assert (sent_responses, left) == ([], ["its request failed, as logged above"])
    assert "Fetch from 127.0.0.1:1 failed" in caplog.text


def failing(*_: Any) -> bool:
    raise RuntimeError("a fault")
