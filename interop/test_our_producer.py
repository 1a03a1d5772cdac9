"""Our producer's idempotence and transactions on Apache Kafka, with connections cut and processes killed.

The same tests for our broker are in `tests/client/producer` and `tests/client/process`.
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from interop.kafka_tools import tool
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.client.producer.transaction_sender import TransactionSender
from ottla.errors import ProducerFencedError
from rivals import apache_kafka as rival
from tests.client.cutting_proxy import CuttingProxy

HASTE: dict[str, Any] = {"reconnect_backoff_ms": 5, "reconnect_backoff_max_ms": 20, "retry_backoff_ms": 5}
KILLS = 5


@pytest.fixture(params=[False, True], ids=["version 1", "version 2"])
def v2(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """True if the producer uses transaction version 2: the broker adds the partitions (KIP-890)."""
    if not request.param:
        monkeypatch.setattr(TransactionSender, "_is_v2", lambda *_: False)
    return bool(request.param)


@pytest.fixture(scope="module")
def proxy() -> Iterator[CuttingProxy]:
    """A proxy in front of a broker with the proxy's address as its only advertised listener."""
    proxy = CuttingProxy(0, 4_000, Random(11))
    rival.fetch()
    with rival.apache_kafka({"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as kafka:
        yield aimed(proxy, kafka.bootstrap_servers)
    proxy.close()


def aimed(proxy: CuttingProxy, address: str) -> CuttingProxy:
    host, _, port = address.rpartition(":")
    proxy.target = host, int(port)
    return proxy


def fresh(address: str, partitions: int = 1) -> str:
    name = f"topic-{uuid.uuid4().hex[:8]}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(name, partitions, 1)])
    return name


def committed(address: str, topic: str, partitions: int = 1) -> list[bytes]:
    """Read all committed records of a topic."""
    values: list[Any] = []
    places = [TopicPartition(topic, index) for index in range(partitions)]
    with Consumer(
        bootstrap_servers=address, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < ends[place] for place in places):
            values.extend(record.value for record in consumer.poll(0.1))
    return values


def test_transactions_commit_abort_and_are_fenced(apache_kafka: str, v2: bool) -> None:
    topic = fresh(apache_kafka, 2)
    place = TopicPartition(topic, 0)
    settings: Any = {"bootstrap_servers": apache_kafka, "transactional_id": f"tx-{topic}"}
    with Producer(**settings) as old, Producer(**settings) as new:
        old.init_transactions()
        for number in range(4):
            old.begin_transaction()
            for partition in (0, 1):
                old.send(topic, b"%d" % number, partition=partition)
            old.send_offsets_to_transaction({place: number}, ConsumerGroupMetadata(f"g-{topic}"))
            end = old.abort_transaction if number % 2 else old.commit_transaction
            end()
        old.begin_transaction()
        old.send(topic, b"zombie", partition=0).result(20)
        new.init_transactions()
        with pytest.raises(ProducerFencedError), new_end(old):
            old.send(topic, b"zombie", partition=0)
        with new.transaction():
            new.send(topic, b"new", partition=0)
    assert sorted(committed(apache_kafka, topic, 2)) == [b"0", b"0", b"2", b"2", b"new"]
    with Consumer(bootstrap_servers=apache_kafka, group_id=f"g-{topic}") as consumer:
        assert consumer.committed([place])[place].offset == 2  # type: ignore[union-attr]


def new_end(producer: Producer) -> Any:
    """Return a context manager that commits the open transaction, or aborts it after an error."""
    from contextlib import contextmanager

    @contextmanager
    def rest() -> Iterator[None]:
        try:
            yield
            producer.commit_transaction()
        except Exception:
            producer.abort_transaction()
            raise

    return rest()


def test_kafkas_own_consumer_reads_the_committed_records(any_broker: str) -> None:
    topic = fresh(any_broker)
    with Producer(bootstrap_servers=any_broker, transactional_id=f"tx-{topic}") as producer:
        producer.init_transactions()
        for number in range(20):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number)
            end = producer.abort_transaction if number % 2 else producer.commit_transaction
            end()
    printed = tool(
        "consumer.ConsoleConsumer", "--bootstrap-server", any_broker, "--topic", topic, "--from-beginning",
        "--isolation-level", "read_committed", "--max-messages", "10", "--timeout-ms", "20000",
    )  # fmt: skip
    assert printed.split()[:10] == [str(number) for number in range(0, 20, 2)]


@pytest.mark.behaviour("P6", "P10")
def test_cut_connections_lose_and_repeat_no_record(proxy: CuttingProxy) -> None:
    topic = fresh(proxy.address)
    proxy.left = 40
    with Producer(bootstrap_servers=proxy.address, batch_size=500, max_request_size=2_000, **HASTE) as producer:
        futures = [producer.send(topic, b"%d" % number) for number in range(10_000)]
        producer.flush(50)
        assert sorted(future.result(0).offset for future in futures) == list(range(10_000))
    assert proxy.left < 20
    proxy.left = 0
    assert committed(proxy.address, topic) == [b"%d" % number for number in range(10_000)]


@pytest.mark.behaviour("P7", "P10")
def test_cut_connections_leave_transactions_atomic(proxy: CuttingProxy, v2: bool) -> None:
    topic, kept = fresh(proxy.address), []
    proxy.left = 40
    with Producer(bootstrap_servers=proxy.address, transactional_id=f"tx-{topic}", batch_size=200, **HASTE) as producer:
        producer.init_transactions()
        for number in range(80):
            values = [b"%d-%d" % (number, index) for index in range(20)]
            producer.begin_transaction()
            for value in values:
                producer.send(topic, value)
            if number % 3:
                producer.commit_transaction()
                kept += values
            else:
                producer.abort_transaction()
    assert proxy.left < 30
    proxy.left = 0
    assert committed(proxy.address, topic) == kept


@pytest.mark.behaviour("P7", "P10")
def test_consume_process_produce_is_exactly_once_though_the_process_is_killed(
    apache_kafka: str, tmp_path: Path
) -> None:
    source, sink, count = fresh(apache_kafka, 2), fresh(apache_kafka, 2), 20_000
    with Producer(bootstrap_servers=apache_kafka) as producer:
        for number in range(count):
            producer.send(source, b"%d" % number, key=b"%d" % (number % 50))
    command = [
        sys.executable,
        "-m",
        "interop.exactly_once_worker",
        apache_kafka,
        source,
        sink,
        f"g-{sink}",
        f"tx-{sink}",
    ]
    places = [TopicPartition(source, index) for index in (0, 1)]
    with Consumer(bootstrap_servers=apache_kafka, group_id=f"g-{sink}") as watcher:
        for life in range(KILLS + 1):
            with (tmp_path / "said").open("ab") as said, subprocess.Popen(command, stderr=said) as process:
                try:
                    share = count * (life + 1) // (KILLS + 1)
                    await_progress(watcher, places, share if life < KILLS else count, process)
                finally:
                    process.kill()
    seen = Counter(committed(apache_kafka, sink, 2))
    assert len(seen) == count
    assert set(seen.values()) == {1}


def await_progress(watcher: Consumer, places: list[TopicPartition], count: int, process: Any) -> None:
    """Wait until the group has committed `count` records in total."""
    deadline = time.monotonic() + 60
    while True:
        done = sum(at.offset for at in watcher.committed(places).values() if at is not None)
        if done >= count:
            return
        assert process.poll() is None, "the worker ended by itself"
        assert time.monotonic() < deadline, f"only {done} of {count} records were read"
