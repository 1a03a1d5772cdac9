"""Exceptions at any point of a producer's calls, as a signal handler raises them in the thread of the user."""

from __future__ import annotations

import sys

import pytest

from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.errors import IllegalStateError
from tests.client.conftest import fresh_name
from tests.interrupts import Interrupter, every_point
from tests.patience import PATIENCE

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An exception may be raised where Python only reports it: in a generator that is closed, or before a socket is stored."""
STEP = 5
"""The step between the tested points; each call of a test starts at another point."""
EVERY_OPCODE = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="sys.settrace reports opcodes only of some calls since Python 3.12 (gh-103615)"
)
APPENDING = tuple(f"/producer/{name}.py" for name in ("record_accumulator", "record_intake", "producer_batch"))
"""Modules in which no point of a transaction's calls is tried: compiled, they have none; uncompiled, an interrupt may leave `append` half done."""


def read_all(servers: str, topic: str) -> list[bytes]:
    """The values of all committed records of the only partition."""
    tp = TopicPartition(topic, 0)
    values: list[bytes] = []
    with Consumer(
        bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([tp])
        end = consumer.end_offsets([tp])[tp]
        while consumer.position(tp) < end:
            values += [record.value for record in consumer.poll(PATIENCE) if record.value is not None]
    return values


@pytest.fixture
def topic(admin: Admin) -> str:
    name = fresh_name()
    admin.create_topics([NewTopic(name, 1)])
    return name


def test_a_producer_sends_and_flushes_after_an_exception_at_any_point_of_a_send_or_a_flush(
    servers: str, topic: str
) -> None:
    sent: list[bytes] = []
    doubtful: set[bytes] = set()
    with Producer(bootstrap_servers=servers, linger_ms=0) as producer:
        for number, interrupter in enumerate(every_point(step=STEP, error=KeyboardInterrupt)):
            try:
                with interrupter:
                    producer.send(topic, b"a %d" % number, partition=0)
                    producer.flush(PATIENCE)
            except KeyboardInterrupt:
                doubtful.add(b"a %d" % number)
            else:
                sent.append(b"a %d" % number)
            producer.send(topic, b"b %d" % number, partition=0)
            sent.append(b"b %d" % number)
            producer.flush(PATIENCE)
    found = read_all(servers, topic)
    assert [value for value in found if value not in doubtful] == sent
    assert len(set(found)) == len(found), "each at most once"
    assert doubtful


def test_a_close_that_an_exception_ends_at_any_point_can_be_called_again(servers: str, topic: str) -> None:
    sent: list[bytes] = []
    for number, interrupter in enumerate(every_point(step=STEP, error=KeyboardInterrupt)):
        producer = Producer(bootstrap_servers=servers, linger_ms=10_000)
        producer.send(topic, b"%d" % number, partition=0)
        sent.append(b"%d" % number)
        closed(producer, interrupter)
    assert read_all(servers, topic) == sent


def closed(producer: Producer, interrupter: Interrupter) -> None:
    try:
        with interrupter:
            producer.close()
    except KeyboardInterrupt:
        producer.close()


def test_an_admin_answers_after_an_exception_at_any_point_of_a_call(servers: str, topic: str) -> None:
    interrupted = 0
    with Admin(bootstrap_servers=servers) as admin:
        for interrupter in every_point(step=STEP, error=KeyboardInterrupt):
            try:
                with interrupter:
                    admin.describe_topics([topic])
            except KeyboardInterrupt:
                interrupted += 1
            assert topic in admin.describe_topics([topic])
    assert interrupted


QUICK = 20.0
"""Seconds for a call after an interrupted one: less than any time-out, so that nothing waits for what was lost."""


def transactional(servers: str, transactional_id: str) -> Producer:
    """A producer of small backoffs that has called `init_transactions`."""
    producer = Producer(
        bootstrap_servers=servers, transactional_id=transactional_id, linger_ms=0, max_block_ms=int(QUICK * 1000)
    )
    producer.init_transactions(QUICK)
    return producer


def end_transaction(producer: Producer) -> bool | None:
    """End what an exception has left, by what the errors say; return whether it was committed, None if nothing was open."""
    try:
        producer.abort_transaction(QUICK)
    except IllegalStateError as error:
        advice = str(error)
    else:
        return False
    if "commit_transaction() again" in advice:
        producer.commit_transaction(QUICK)
        return True
    assert "call begin_transaction() first" in advice
    return None


def open_transactions(admin: Admin, transactional_id: str) -> list[str]:
    """The states of the transactions of an id that are not ended."""
    listed = admin.list_transactions(states=("Ongoing",))
    return [str(each) for each in listed if each.transactional_id == transactional_id]


@EVERY_OPCODE
@pytest.mark.behaviour("P7")
def test_a_transaction_is_committed_or_aborted_after_an_exception_at_any_point_of_its_calls(
    servers: str, admin: Admin, topic: str
) -> None:
    kept: list[bytes] = []
    doubtful: set[bytes] = set()
    group = ConsumerGroupMetadata(f"{topic}-group")
    with transactional(servers, topic) as producer:
        for number, interrupter in enumerate(every_point(step=STEP, error=KeyboardInterrupt, skip=APPENDING)):
            value = b"a %d" % number
            try:
                with interrupter:
                    producer.begin_transaction()
                    producer.send(topic, value, partition=0)
                    producer.send_offsets_to_transaction({TopicPartition(topic, 0): number}, group, QUICK)
                    producer.commit_transaction(QUICK)
            except KeyboardInterrupt:
                match end_transaction(producer):
                    case True:
                        kept.append(value)
                    case None:
                        doubtful.add(value)
            else:
                kept.append(value)
            producer.begin_transaction()
            producer.send(topic, b"b %d" % number, partition=0)
            producer.commit_transaction(QUICK)
            kept.append(b"b %d" % number)
    found = read_all(servers, topic)
    assert [value for value in found if value not in doubtful] == kept
    assert len(set(found)) == len(found), "each at most once"
    assert doubtful
    assert not open_transactions(admin, topic)


@EVERY_OPCODE
@pytest.mark.behaviour("P7")
def test_a_block_is_committed_or_aborted_after_an_exception_at_any_point_of_it(
    servers: str, admin: Admin, topic: str
) -> None:
    kept: list[bytes] = []
    doubtful: set[bytes] = set()
    with transactional(servers, topic) as producer:
        for number, interrupter in enumerate(every_point(step=STEP, error=KeyboardInterrupt, skip=APPENDING)):
            try:
                with interrupter, producer.transaction():
                    producer.send(topic, b"a %d" % number, partition=0)
                    producer.send(topic, b"a %d, too" % number, partition=0)
            except KeyboardInterrupt:
                doubtful |= {b"a %d" % number, b"a %d, too" % number}
            else:
                kept += [b"a %d" % number, b"a %d, too" % number]
            with producer.transaction():
                producer.send(topic, b"b %d" % number, partition=0)
            kept.append(b"b %d" % number)
    found = read_all(servers, topic)
    assert [value for value in found if value not in doubtful] == kept
    assert len(set(found)) == len(found), "each at most once"
    halves = {value for value in doubtful if not value.endswith(b"too")}
    assert all((value in found) == (value + b", too" in found) for value in halves), "both or none"
    assert doubtful
    assert not open_transactions(admin, topic)


@EVERY_OPCODE
@pytest.mark.behaviour("P7")
def test_a_close_that_an_exception_ends_at_any_point_leaves_no_transaction_open(
    servers: str, admin: Admin, topic: str
) -> None:
    ids = []
    for number, interrupter in enumerate(every_point(step=STEP, error=KeyboardInterrupt, skip=APPENDING)):
        ids.append(f"{topic}-{number}")
        producer = transactional(servers, ids[-1])
        producer.begin_transaction()
        sent = producer.send(topic, b"%d" % number, partition=0)
        if number % 2:
            sent.result(QUICK)
        closed(producer, interrupter)
    assert len(ids) > 2
    assert not [each for each in ids if open_transactions(admin, each)]
