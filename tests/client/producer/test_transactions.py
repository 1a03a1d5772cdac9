"""Transactions of our producer on our broker, in both versions of the protocol."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.client.producer.transaction_sender import TransactionSender
from ottla.errors import (
    IllegalStateError,
    KafkaTimeoutError,
    NoBrokersAvailableError,
    OttlaError,
    ProducerFencedError,
    RecordTooLargeError,
    TransactionAbortableError,
    TransactionAbortedError,
)
from tests.client.conftest import NewTopicName, eventually

MakeProducer = Callable[..., Producer]


@pytest.fixture(params=["version 1", "version 2"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both versions: before Kafka 4 the producer adds partitions, since then the brokers do."""
    if request.param == "version 1":
        monkeypatch.setattr(TransactionSender, "_is_v2", lambda *_: False)
    return str(request.param)


@pytest.fixture
def make(servers: str) -> Iterator[MakeProducer]:
    """Create initialized producers with a new or a given transactional id."""
    made: list[Producer] = []

    def producer(transactional_id: str | None = None, *, init: bool = True, **settings: Any) -> Producer:
        name = transactional_id or f"tx-{uuid.uuid4().hex[:8]}"
        made.append(Producer(bootstrap_servers=servers, transactional_id=name, **settings))
        if init:
            made[-1].init_transactions()
        return made[-1]

    yield producer
    for one in made:
        one.close(5)


@pytest.fixture(scope="module")
def impatient_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that checks for expired transactions at a short interval."""
    settings: Any = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": 50}
    with Broker(tmp_path_factory.mktemp("impatient"), **settings) as broker:
        yield broker.bootstrap_servers


def fail_after(sent: Any = None) -> None:
    """Raise an error in the middle of a transaction, after a part was written."""
    if sent is not None:
        sent.result(10)
    raise ZeroDivisionError


def promise(producer: Producer, place: TopicPartition, offset: int, group: str) -> None:
    """An offset as part of the transaction."""
    producer.send_offsets_to_transaction({place: offset}, ConsumerGroupMetadata(group))


def committed(servers: str, topic: str, partitions: int = 1) -> list[bytes]:
    """Return the committed values of a topic by partition."""
    values: list[Any] = []
    places = [TopicPartition(topic, index) for index in range(partitions)]
    with Consumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < ends[place] for place in places):
            values.extend(record.value for record in consumer.poll(0.05))
    return values


@pytest.mark.behaviour("P7")
def test_committed_records_are_visible_and_aborted_records_are_not(
    servers: str, new_topic: NewTopicName, make: MakeProducer, version: str
) -> None:
    topic, producer = new_topic(3), make()
    for number in range(6):
        producer.begin_transaction()
        for index in range(9):
            producer.send(topic, b"%d-%d" % (number, index), partition=index % 3)
        end = producer.abort_transaction if number % 2 else producer.commit_transaction
        end()
    assert sorted(committed(servers, topic, 3)) == [b"%d-%d" % (n, i) for n in (0, 2, 4) for i in range(9)]


@pytest.mark.behaviour("P7")
def test_a_record_queued_before_its_partition_is_added_is_still_sent(
    topic: str, make: MakeProducer, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer, looks = make(), 0
    sender, manager = producer._core.sender, producer._core.transactions
    assert manager is not None
    look, send_to = sender._send_producer_data, manager.add_partition

    def looked(now: float) -> float:
        nonlocal looks
        patience = look(now)
        looks += 1
        return patience

    def late(tp: TopicPartition) -> bool:
        before = looks

        def seen() -> bool:
            sender.wakeup_for_metadata()
            return looks > before + 1  # the second of them began after the record was there

        eventually(seen)
        return send_to(tp)

    producer.partitions_for(topic)
    monkeypatch.setattr(sender, "_send_producer_data", looked)
    monkeypatch.setattr(manager, "add_partition", late)
    with producer.transaction():
        assert producer.send(topic, b"seen too soon").result(20).topic == topic


def test_records_aborted_immediately_are_not_part_of_the_next_transaction(
    servers: str, topic: str, make: MakeProducer, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer, held, go_on = make(), threading.Event(), threading.Event()
    send_next = TransactionSender.send_next_request

    def late(sender: TransactionSender, now: float, **rest: Any) -> float:
        held.set()
        assert go_on.wait(10)
        return send_next(sender, now, **rest)

    producer.partitions_for(topic)
    producer.begin_transaction()
    monkeypatch.setattr(TransactionSender, "send_next_request", late)
    producer._core.sender.wakeup_for_metadata()
    assert held.wait(10)
    producer.send(topic, b"aborted")
    abort = threading.Thread(target=producer.abort_transaction)
    abort.start()
    eventually(
        lambda: producer._core.transactions is not None and producer._core.transactions.machine.status.is_aborting
    )
    go_on.set()
    abort.join()
    with producer.transaction():
        producer.send(topic, b"committed")
    assert committed(servers, topic) == [b"committed"]


@pytest.mark.behaviour("P7")
def test_a_with_block_commits_and_aborts_where_something_is_raised(
    servers: str, topic: str, make: MakeProducer, version: str
) -> None:
    producer = make()
    with producer.transaction():
        producer.send(topic, b"kept")
    with pytest.raises(ZeroDivisionError), producer.transaction():
        fail_after(producer.send(topic, b"dropped"))
    with producer.transaction() as same:
        same.send(topic, b"kept too")
    assert committed(servers, topic) == [b"kept", b"kept too"]


@pytest.mark.behaviour("P7")
def test_the_new_producer_of_an_id_ends_what_the_old_one_left_and_fences_it(
    servers: str, topic: str, make: MakeProducer, version: str
) -> None:
    old = make("shared-" + topic)
    old.begin_transaction()
    old.send(topic, b"zombie").result(10)
    new = make("shared-" + topic)
    with new.transaction():
        new.send(topic, b"alive")
    with pytest.raises(ProducerFencedError, match=r"another producer uses transactional\.id"):
        old.commit_transaction()
    for call in (old.begin_transaction, old.commit_transaction, old.abort_transaction, lambda: old.send(topic, b"v")):
        with pytest.raises(ProducerFencedError, match=r"\(\) cannot be called \[FATAL_ERROR\]: close this producer"):
            call()
    assert committed(servers, topic) == [b"alive"]


@pytest.mark.behaviour("P7")
def test_a_with_block_raises_that_its_producer_was_fenced(
    servers: str, topic: str, make: MakeProducer, version: str
) -> None:
    old = make("shared-" + topic)
    make("shared-" + topic)
    with pytest.raises(ProducerFencedError), old.transaction():
        old.send(topic, b"zombie")
    assert committed(servers, topic) == []


@pytest.mark.behaviour("P7")
def test_offsets_are_committed_with_the_transaction_or_not_at_all(
    servers: str, topic: str, make: MakeProducer, version: str
) -> None:
    producer, place, group = make(), TopicPartition(topic, 0), f"group-{topic}"
    with producer.transaction():
        producer.send_offsets_to_transaction({place: 5}, ConsumerGroupMetadata(group))
    with pytest.raises(ZeroDivisionError), producer.transaction():
        fail_after(promise(producer, place, 9, group))  # type: ignore[func-returns-value]
    with Consumer(bootstrap_servers=servers, group_id=group) as consumer:
        assert consumer.committed([place])[place].offset == 5  # type: ignore[union-attr]


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_offsets_that_timed_out_can_be_waited_for_again_or_abandoned(
    servers: str, topic: str, make: MakeProducer, version: str, end: str
) -> None:
    producer, place, group = make(), TopicPartition(topic, 0), f"group-{topic}"
    promised = {place: 5}, ConsumerGroupMetadata(group)
    producer.begin_transaction()
    late = None
    try:
        producer.send_offsets_to_transaction(*promised, timeout=0)
    except KafkaTimeoutError as error:
        late = error
    assert late is None or "call it again to continue waiting" in str(late)  # None: the sender was quicker
    if end == "commit":
        producer.send_offsets_to_transaction(*promised)
        producer.commit_transaction()
    else:
        producer.abort_transaction()
    with Consumer(bootstrap_servers=servers, group_id=group) as consumer:
        assert (consumer.committed([place])[place] is not None) == (end == "commit")
    with producer.transaction():
        producer.send(topic, b"goes on")


@pytest.mark.parametrize("known", [True, False])
def test_offsets_of_a_topic_that_is_deleted_before_the_commit_do_not_come_back(
    servers: str, admin: Admin, new_topic: NewTopicName, make: MakeProducer, version: str, known: bool
) -> None:
    topic, producer = new_topic(), make()
    place, group = TopicPartition(topic, 0), f"group-{topic}"
    with Consumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False) as consumer:
        if known:
            consumer.commit({place: 3})
        with producer.transaction():
            producer.send_offsets_to_transaction({place: 5}, ConsumerGroupMetadata(group))
            admin.delete_topics([topic])
            eventually(lambda: not known or consumer.committed([place])[place] is None)
            admin.create_topics([NewTopic(topic, 1)])
        assert consumer.committed([place])[place] is None


@pytest.mark.behaviour("P7")
def test_a_member_that_the_group_has_lost_cannot_commit(topic: str, make: MakeProducer, version: str) -> None:
    producer = make()
    stale = ConsumerGroupMetadata(f"group-{topic}", 7, "nobody", None)
    producer.begin_transaction()
    with pytest.raises(TransactionAbortableError, match=r"\[ABORTABLE_ERROR\]: call abort_transaction\(\)"):
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, stale)
    producer.abort_transaction()
    with producer.transaction():
        producer.send(topic, b"goes on")


@pytest.mark.behaviour("P7")
def test_a_transaction_that_takes_too_long_is_aborted_by_the_coordinator(impatient_servers: str, version: str) -> None:
    servers, topic = impatient_servers, f"late-{version[-1]}"
    producer = Producer(bootstrap_servers=servers, transactional_id=topic, transaction_timeout_ms=1500)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"late").result(10)
    eventually(lambda: stable_end(servers, topic) == 2)
    with pytest.raises(ProducerFencedError, match=r"took longer than transaction\.timeout\.ms"):
        producer.commit_transaction()
    producer.close()
    assert committed(servers, topic) == []


def stable_end(servers: str, topic: str) -> int:
    """Return the last stable offset."""
    place = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
        return consumer.end_offsets([place])[place]


@pytest.mark.behaviour("P7")
def test_a_poison_record_is_refused_and_fails_its_transaction(
    servers: str, topic: str, make: MakeProducer, version: str
) -> None:
    producer = make(max_request_size=1000)
    producer.begin_transaction()
    good = producer.send(topic, b"good")
    good.result(10)
    with pytest.raises(RecordTooLargeError):
        producer.send(topic, bytes(1000))
    with pytest.raises(
        TransactionAbortableError, match=r"commit_transaction\(\) cannot be called .*max\.request\.size"
    ):
        producer.commit_transaction()
    with pytest.raises(TransactionAbortableError, match=r"send\(\) cannot be called .*call abort_transaction\(\)"):
        producer.send(topic, b"more")
    producer.abort_transaction()
    with producer.transaction():
        producer.send(topic, b"next")
    assert committed(servers, topic) == [b"next"]


@pytest.mark.behaviour("P7")
def test_a_batch_that_the_broker_refuses_fails_the_commit(
    servers: str, new_topic: NewTopicName, make: MakeProducer, version: str
) -> None:
    topic, producer = new_topic(max_message_bytes=500), make()
    producer.begin_transaction()
    producer.send(topic, b"small").result(10)
    large = producer.send(topic, bytes(2000))
    with pytest.raises(TransactionAbortableError, match="MESSAGE_TOO_LARGE"):
        producer.commit_transaction()
    assert isinstance(large.exception(10), RecordTooLargeError)
    producer.abort_transaction()
    with producer.transaction():
        producer.send(topic, b"next")
    assert committed(servers, topic) == [b"next"]


def test_records_queued_when_a_transaction_is_aborted_are_not_sent(
    servers: str, topic: str, make: MakeProducer
) -> None:
    producer = make(linger_ms=60_000, delivery_timeout_ms=200_000)
    producer.begin_transaction()
    future = producer.send(topic, b"v")
    producer.abort_transaction()
    assert isinstance(future.exception(0), TransactionAbortedError)
    assert stable_end(servers, topic) == 0


def test_a_transaction_without_records_sends_no_request(topic: str, make: MakeProducer, version: str) -> None:
    producer = make()
    for _ in range(3):
        with producer.transaction():
            pass
    producer.begin_transaction()
    producer.abort_transaction()


@pytest.mark.behaviour("P7")
def test_closing_in_the_middle_of_a_transaction_aborts_it(
    servers: str, topic: str, make: MakeProducer, version: str
) -> None:
    producer = make()
    producer.begin_transaction()
    producer.send(topic, b"v").result(10)
    producer.close()
    assert stable_end(servers, topic) == 2, "the record and the marker"
    assert committed(servers, topic) == []


@pytest.mark.behaviour("P7")
def test_methods_called_in_a_wrong_state_name_the_right_call(topic: str, make: MakeProducer) -> None:
    producer = make(init=False)
    with pytest.raises(
        IllegalStateError, match=r"begin_transaction\(\).*\[UNINITIALIZED\]: call init_transactions\(\)"
    ):
        producer.begin_transaction()
    producer.init_transactions()
    with pytest.raises(IllegalStateError, match=r"init_transactions\(\).*READY.*called already"):
        producer.init_transactions()
    with pytest.raises(IllegalStateError, match=r"send\(\).*\[READY\]: call begin_transaction\(\)"):
        producer.send(topic, b"v")
    with pytest.raises(IllegalStateError, match=r"commit_transaction\(\).*\[READY\]: call begin_transaction\(\)"):
        producer.commit_transaction()
    producer.begin_transaction()
    with pytest.raises(IllegalStateError, match=r"begin_transaction\(\).*\[IN_TRANSACTION\]: call commit_transaction"):
        producer.begin_transaction()
    with pytest.raises(TypeError, match=r"pass consumer.group_metadata\(\)"):
        producer.send_offsets_to_transaction({}, "group")  # type: ignore[arg-type]
    producer.abort_transaction()
    producer.close()
    with pytest.raises(IllegalStateError, match="the producer is closed"):
        producer.begin_transaction()


def test_a_producer_without_transactional_id_has_no_transactions(servers: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        for call in (producer.init_transactions, producer.begin_transaction, producer.commit_transaction):
            with pytest.raises(IllegalStateError, match=r"needs a transactional\.id"):
                call()


def test_a_timeout_that_the_broker_does_not_allow_names_both_settings(make: MakeProducer) -> None:
    producer = make(init=False, transaction_timeout_ms=2_000_000_000)
    with pytest.raises(OttlaError, match=r"transaction\.timeout\.ms = 2000000000 .*transaction\.max\.timeout\.ms"):
        producer.init_transactions()


def test_a_coordinator_timeout_names_the_setting_and_the_call_can_be_repeated() -> None:
    with Producer(bootstrap_servers="127.0.0.1:1", transactional_id="t", max_block_ms=100) as producer:
        for _ in range(2):
            with pytest.raises(NoBrokersAvailableError, match=r"max\.block\.ms"):
                producer.init_transactions()
        with pytest.raises(IllegalStateError, match=r"begin_transaction\(\).*init_transactions\(\) has not finished"):
            producer.begin_transaction()
        with pytest.raises(KafkaTimeoutError):
            producer.init_transactions(timeout=0.05)
        producer.close(0)


@pytest.mark.behaviour("P7")
def test_tables_belong_to_transactions_too(
    servers: str, new_topic: NewTopicName, make: MakeProducer, version: str
) -> None:
    pa = pytest.importorskip("pyarrow")
    topic, producer = new_topic(2), make()
    rows = pa.table({"key": [b"%d" % n for n in range(1000)], "value": [b"%d" % n for n in range(1000)]})
    with producer.transaction():
        producer.send_table(topic, rows)
    with pytest.raises(ZeroDivisionError), producer.transaction():
        fail_after(producer.send_table(topic, rows))
    assert sorted(committed(servers, topic, 2), key=int) == [b"%d" % n for n in range(1000)]


def test_transactions_can_be_followed_in_the_log(
    topic: str, make: MakeProducer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "ottla.client.producer"):
        producer = make()
        with producer.transaction():
            producer.send(topic, b"v")
    for step in ("INITIALIZING -> READY", "READY -> IN_TRANSACTION", "COMMITTING_TRANSACTION -> READY"):
        assert step in caplog.text
