"""The fast path of a session fetch: it answers like the handler, and leaves the session in the same state."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from ottla import Broker, Consumer, Producer
from ottla.broker.apis.fast_session import FastSession
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.fetch_session import FetchSession
from ottla.model import TopicPartition
from ottla.protocol.messages.fetch import FetchPartition, ForgottenTopic
from tests.broker.test_fast_fetch import FORMS, append, due, filled, frame_of, joined, wanted
from tests.broker.test_fast_produce import Standing
from tests.broker.wire import batch
from tests.patience import eventually

SESSION_ID = slice(11, 15)
"""The position of a field in a response."""
VERSIONS = (12, 13, 16, 18)


class Side(NamedTuple):
    """One implementation, with its own session."""

    form: str
    session: FetchSession


@contextmanager
def sides(version: int, **more: Any) -> Iterator[tuple[Standing, dict[str, uuid.UUID], list[Side]]]:
    """The handler and both forms, each with a session over the same partitions."""
    both = [wanted(0, 7), wanted(1, 1)]
    with filled() as (broker, ids):
        found: list[Side] = []
        for form in ("handler", *FORMS):
            answer = due(broker, frame_of(version, {"t": both, "small": both}, ids, session_epoch=0, **more))
            assert answer is not None
            session = broker.node.fetch_sessions.get(int.from_bytes(answer[SESSION_ID], "big"))
            assert session is not None
            found.append(Side(form, session))
        yield broker, ids, found


def answers(broker: Standing, side: Side, frame: bytes) -> bytes | None:
    """Return the response to a request after its wait; None if it is left to the handler."""
    if side.form == "handler":
        return due(broker, frame)
    fetch = FORMS[side.form].FastFetch(memoryview(bytearray(frame)))
    if not (
        fetch.read(broker.node) and fetch.read_logs(broker.node, fetch.max_bytes) and fetch.advance_session(broker.node)
    ):
        return None
    return joined(fetch.answer())


def state_of(session: FetchSession) -> object:
    """All that a session remembers."""
    session.check()
    rows = [
        (key, each.name, each.wanted, each.high_watermark, each.last_stable_offset, each.log_start_offset)
        for key, each in session.partitions.items()
    ]
    return session.epoch, rows, [(each.name, each.wanted.partition) for each in session.news]


def continue_session(
    broker: Standing,
    ids: dict[str, uuid.UUID],
    side: Side,
    version: int,
    topics: dict[str, list[FetchPartition]],
    **more: Any,
) -> bytes:
    fields = {"session_id": side.session.session_id, "session_epoch": side.session.epoch, "min_bytes": 0, **more}
    return frame_of(version, topics, ids, **fields)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("committed", [0, 1])
def test_the_fast_path_answers_and_stores_the_session_like_the_handler(version: int, committed: int) -> None:
    chance = random.Random(version * 2 + committed)
    with sides(version, isolation_level=committed) as (broker, ids, (handler, *plain)):
        for _ in range(150):
            if chance.random() < 0.5:
                append(broker, chance.choice(["t", "small"]), chance.randrange(2), batch([b"a" * chance.randrange(20)]))
            topics = drawn_topics(broker, chance)
            limits = {"isolation_level": committed, "max_bytes": chance.choice((0, 1, 150, 10_000))}
            taken = [
                answers(broker, each, continue_session(broker, ids, each, version, topics, **limits)) for each in plain
            ]
            assert (taken[0] is None) == (taken[1] is None)
            due_answer = answers(broker, handler, continue_session(broker, ids, handler, version, topics, **limits))
            assert due_answer is not None
            for side, answer in zip(plain, taken, strict=True):
                if answer is None:
                    frame = continue_session(broker, ids, side, version, topics, **limits)
                    answer = answers(broker, Side("handler", side.session), frame)
                assert answer is not None
                assert without_id(answer) == without_id(due_answer)
                assert state_of(side.session) == state_of(handler.session)


def drawn_topics(broker: Standing, chance: random.Random) -> dict[str, list[FetchPartition]]:
    """Newly requested partitions, most of them near the end of their log."""
    topics: dict[str, list[FetchPartition]] = {}
    for name in chance.sample(["t", "small"], chance.randrange(3)):
        for index in chance.sample([0, 1], chance.choice((1, 1, 2))):
            partition = broker.node.partitions.find(name, index)
            assert partition is not None
            offset = partition.log.end_offset - chance.choice((0, 0, 1, 2, 5)) + (chance.random() < 0.05)
            topics.setdefault(name, []).append(wanted(index, max(offset, 0), chance.choice((100, 1000))))
    return topics


def without_id(answer: bytes) -> bytes:
    return answer[: SESSION_ID.start] + answer[SESSION_ID.stop :]


@pytest.mark.parametrize("form", FORMS)
def test_unusual_requests_are_left_to_the_handler_without_a_change(form: str) -> None:
    with sides(16) as (broker, ids, found):
        side = next(each for each in found if each.form == form)
        known = {"t": [wanted(0, 7)]}
        unusual: list[tuple[dict[str, list[FetchPartition]], dict[str, Any]]] = [
            (known, {"session_epoch": 7}),
            (known, {"session_epoch": -1}),
            (known, {"session_id": 1 + max(each.session.session_id for each in found)}),
            (known, {"forgotten_topics_data": [ForgottenTopic("t", ids["t"], [0])]}),
            ({"clock": [wanted(0, 0)]}, {}),
            ({"t": [wanted(0, 99)]}, {}),
            ({"t": [wanted(0, 7, epoch=5)]}, {}),
        ]
        before = state_of(side.session)
        for topics, more in unusual:
            assert answers(broker, side, continue_session(broker, ids, side, 16, topics, **more)) is None
            assert state_of(side.session) == before
        assert answers(broker, side, continue_session(broker, ids, side, 12, known)) is None
        assert answers(broker, side, continue_session(broker, ids, side, 16, known)) is not None


def test_damaged_frames_get_the_same_answer_from_both_forms_and_from_the_handler() -> None:
    chance = random.Random(11)
    taken = 0
    with sides(16) as (broker, ids, (handler, *plain)):
        topics = {"t": [wanted(0, 6), wanted(1, 0)], "small": [wanted(0, 2)]}
        for _ in range(2000):
            places = [(chance.random(), chance.choice((0, 1, 127, 128, 255))) for _ in range(chance.randint(1, 3))]
            cut = chance.choice((1.0, chance.random()))
            frames = [
                damaged(continue_session(broker, ids, side, 16, topics), side, places, cut)
                for side in (handler, *plain)
            ]
            found = [answers(broker, side, frame) for side, frame in zip(plain, frames[1:], strict=True)]
            assert (found[0] is None) == (found[1] is None)
            if found[0] is None or found[1] is None:
                continue
            taken += 1
            answer = answers(broker, handler, frames[0])
            assert answer is not None
            assert {without_id(each) for each in found if each is not None} == {without_id(answer)}
            assert state_of(plain[0].session) == state_of(plain[1].session) == state_of(handler.session)
    assert taken > 100


def damaged(frame: bytes, side: Side, places: list[tuple[float, int]], cut: float) -> bytes:
    """Each side's session has an id of its own, which is left as it is: damage to it would be another on each side."""
    octets = bytearray(frame)
    for place, octet in places:
        octets[int(place * len(octets))] = octet
    session_id = side.session.session_id.to_bytes(4, "big")
    at = frame.index(session_id)
    octets[at : at + 4] = session_id
    return bytes(octets[: int(cut * len(octets))])


def test_a_session_that_another_request_continued_is_left_to_the_handler_after_a_wait() -> None:
    with sides(16) as (broker, ids, (_, side, _)):
        fetch = FORMS[side.form].FastFetch(memoryview(bytearray(continue_session(broker, ids, side, 16, {}))))
        assert fetch.read(broker.node)
        assert fetch.read_logs(broker.node, fetch.max_bytes)
        assert fetch.advance_session(broker.node)
        assert fetch.awaited == [side.session]
        assert fetch.read_logs(broker.node, fetch.max_bytes)
        side.session.advance()
        assert not fetch.read_logs(broker.node, fetch.max_bytes)


def test_our_consumer_uses_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[FastSession] = []
    begin = FastSession.advance

    def counted(session: FastSession, node: BrokerNode) -> None:
        begun.append(session)
        begin(session, node)

    monkeypatch.setattr(FastSession, "advance", counted)
    with (
        Broker() as broker,
        Producer(bootstrap_servers=broker.bootstrap_servers) as producer,
        Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer,
    ):
        for value in (b"a", b"b"):
            producer.send("t", value).result(timeout=30)
            if not consumer.assignment():
                consumer.assign([TopicPartition("t", 0)])
            eventually(lambda: consumer.poll(0.1))
    assert begun
