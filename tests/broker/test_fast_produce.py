"""The fast path of Produce: in both forms it answers like the handler, or leaves the request to it."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla import Broker, Producer, read_table
from ottla.broker.apis import fast_path, fast_produce
from ottla.broker.apis.handlers import HANDLERS
from ottla.broker.network_server.call import Call, EncodedResponse
from ottla.broker.network_server.connection import Connection
from ottla.broker.network_server.request_parsing import read_request
from ottla.broker.node import BrokerNode
from ottla.broker.settings.config import read_config
from ottla.clock import ManualClock, wall_ms
from ottla.errors import OttlaError
from ottla.protocol.conversation import decode_header, encode_request, encode_response
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.compression import Codec
from tests.broker.listener_settings import door_of
from tests.broker.serving import create_topic, start_server
from tests.broker.wire import batch
from tests.plain import is_compiled, plain
from tests.storage.producing import produced

FORMS = {
    "compiled": fast_produce,
    "plain": plain("ottla.broker.apis.fast_produce", "ottla.broker.apis.request_bytes"),
}
VERSIONS = range(3, 14)
SETTINGS = {"t": {}, "clock": {"message.timestamp.type": "LogAppendTime"}, "small": {"max.message.bytes": "200"}}
NOW = wall_ms()
PEER = Connection(1, ("127.0.0.1", 1), ("127.0.0.1", 2), 0.0)


class Standing:
    """A broker that serves in the thread of the test."""

    def __init__(self, topic_ids: dict[str, uuid.UUID]) -> None:
        self.server = start_server(read_config(listeners="127.0.0.1:0"), ManualClock(0.0, NOW))
        assert self.server.broker is not None
        self.node: BrokerNode = self.server.node
        self.way = self.server.broker.fast_path
        PEER.door = door_of(self.server)
        for name, configs in SETTINGS.items():
            topic_ids[name] = create_topic(self.server, name, 2, **configs).topic_id
            for index in range(2):
                partition = self.node.partitions.find(name, index)
                assert partition is not None
                self.node.append(partition, batch([b"first"]))

    def by_handler(self, frame: bytes) -> bytes:
        """The answer that the handler gives."""
        view = memoryview(bytearray(frame))
        header, position = decode_header(view)
        request = read_request(ProduceRequest, header.api_version, view, position)
        call = Call(self.server.handler, PEER, header, 0.0)
        response: Any = HANDLERS[0].handle(self.node, call, request)
        return b"".join(encode_response(response, header.api_version, header.correlation_id))  # type: ignore[arg-type]

    def shortly(self, form: str, frame: bytes) -> bytes | None:
        """Return the response of the fast path; None if the request is left to the handler."""
        request = FORMS[form].FastProduce(memoryview(bytearray(frame)))
        if not request.read(self.node, PEER):
            return None
        response = request.answer(request.append(self.node))
        if isinstance(response, EncodedResponse):
            return b"".join(response.parts)  # type: ignore[arg-type]
        return b"".join(encode_response(response, request.version, request.correlation_id))  # type: ignore[arg-type]


@contextmanager
def standing() -> Iterator[tuple[Standing, dict[str, uuid.UUID]]]:
    ids: dict[str, uuid.UUID] = {}
    broker = Standing(ids)
    try:
        yield broker, ids
    finally:
        broker.server.stop()
        broker.server.run()


def batches() -> dict[str, bytes]:
    """Requests as sent by producers, accepted or rejected."""
    usual, damaged = batch([b"a", b"b"]), bytearray(batch([b"c"]))
    damaged[-1] ^= 1
    return {
        "usual": usual,
        "compressed": batch([bytes(500)], Codec.GZIP),
        "damaged": bytes(damaged),
        "large": batch([bytes(300)]),
        "of a producer": produced(7, 0, 3),
        "of a producer, again": produced(7, 0, 3),
        "out of sequence": produced(7, 9),
        "two": usual + usual,
        "cut off": usual[:-1],
        "of a transaction": produced(8, 0, transactional=True),
        "none": b"",
    }


def frame_of(version: int, topics: dict[str, list[tuple[int, bytes]]], ids: dict[str, uuid.UUID], **more: Any) -> bytes:
    data = [
        TopicProduceData(name, ids.get(name, uuid.UUID(int=9)), [PartitionProduceData(*each) for each in each_topic])
        for name, each_topic in topics.items()
    ]
    request = ProduceRequest(more.get("transactional_id"), more.get("acks", -1), 30_000, data)
    return b"".join(encode_request(request, version, 5, more.get("client_id", "me")))  # type: ignore[arg-type]


def frames(version: int, ids: dict[str, uuid.UUID]) -> Iterator[bytes]:
    for records in batches().values():
        for name in SETTINGS:
            yield frame_of(version, {name: [(0, records)]}, ids)
        yield frame_of(version, {"t": [(0, records), (1, batch([b"d"]))], "clock": [(1, records)]}, ids)
    usual = batch([b"a"])
    for acks in (1, -1):
        yield frame_of(version, {"t": [(0, usual)]}, ids, acks=acks)
    for client_id in (None, "", "pröducer"):
        yield frame_of(version, {"t": [(0, usual)]}, ids, client_id=client_id)
    yield frame_of(version, {"t": [(0, usual), (9, usual)]}, ids)
    yield frame_of(version, {"nowhere": [(0, usual)]}, ids)
    yield frame_of(version, {"t": [(number % 2, usual) for number in range(200)]}, ids)
    yield frame_of(version, {"t": [(0, usual)]}, ids, transactional_id="x")


def test_the_compiled_and_the_plain_form_differ() -> None:
    assert not is_compiled(FORMS["plain"])


@pytest.mark.parametrize("form", FORMS)
def test_the_fast_path_answers_like_the_handler(form: str) -> None:
    taken = 0
    with standing() as (short, ids), standing() as (long, other_ids):
        for version in VERSIONS:
            for ours, theirs in zip(frames(version, ids), frames(version, other_ids), strict=True):
                answer = short.shortly(form, ours)
                taken += answer is not None
                by_handler = long.by_handler(theirs)
                named = short.by_handler(ours) if answer is None else answer
                assert comparable(named, ids) == comparable(by_handler, other_ids)
    assert taken > len(VERSIONS) * 25


def comparable(answer: bytes, ids: dict[str, uuid.UUID]) -> bytes:
    """The same for both brokers: topics have ids of their own."""
    for name, topic_id in ids.items():
        answer = answer.replace(topic_id.bytes, name.encode())
    return answer


def test_damaged_frames_get_the_same_result_from_both_forms_and_from_the_handler() -> None:
    chance = random.Random(7)
    with standing() as (broker, ids):
        good = [frame_of(version, {"t": [(0, batch([b"a"])), (1, batch([b"b"]))]}, ids) for version in VERSIONS]
        for number in range(3000):
            frame = bytearray(good[number % len(good)])
            for _ in range(chance.randint(1, 3)):
                frame[chance.randrange(len(frame))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
            del frame[chance.choice((len(frame), chance.randrange(len(frame)))) :]
            verdicts = [
                form.FastProduce(memoryview(bytearray(frame))).read(broker.node, PEER) for form in FORMS.values()
            ]
            assert verdicts[0] == verdicts[1]
            if verdicts[0]:
                header, position = decode_header(memoryview(frame))
                read_request(ProduceRequest, header.api_version, memoryview(frame), position)


def test_nothing_is_appended_if_the_last_partition_needs_the_handler() -> None:
    with standing() as (broker, ids):
        partition = broker.node.partitions.find("t", 0)
        assert partition is not None
        before = partition.log.end_offset
        assert broker.shortly("compiled", frame_of(11, {"t": [(0, batch([b"a"])), (9, batch([b"b"]))]}, ids)) is None
        assert partition.log.end_offset == before


def test_an_internal_error_closes_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []

    def failing(*_: Any) -> None:
        raise OttlaError("a fault")

    with standing() as (broker, ids):
        way = broker.way
        monkeypatch.setattr(way, "_hang_up", lambda connection, reason: heard.append(reason))
        monkeypatch.setattr(broker.node, "note_append", failing)
        frame = memoryview(bytearray(frame_of(11, {"t": [(0, batch([b"a"]))]}, ids)))
        broker.server._sockets.memory.handed_out += len(frame)
        assert way.takes(PEER, frame, 0.0, 0.0)
    assert heard == ["its request failed, as logged above"]


@pytest.mark.parametrize("form", ["FastProduce", "FastFetch"])
def test_an_internal_error_in_parsing_falls_back_to_the_handler(
    form: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing:
        def __init__(self, frame: memoryview) -> None: ...

        def read(self, *_: Any) -> bool:
            raise RuntimeError("a fault")

    monkeypatch.setattr(fast_path, form, Failing)
    with Broker() as broker, Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        assert producer.send("t", b"a").result(timeout=30).offset == 0
        assert read_table("t", bootstrap_servers=broker.bootstrap_servers).num_rows == 1
    assert "the fast path failed" in caplog.text
