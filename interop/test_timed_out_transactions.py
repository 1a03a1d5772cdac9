"""A producer with a timed out transaction aborts it and continues, with Java's client and ours, at both brokers."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.conftest import NewTopicName
from interop.java_programs import program
from ottla import Admin, Broker, Producer
from ottla.errors import InvalidTxnStateError, KafkaError, ProducerFencedError
from rivals import apache_kafka as rival
from rivals.kafka_cluster import wait_for
from tests.broker.wire import Wire, values

SWEEP = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
TIMEOUT_MS = 500
PAUSE_MS = 3_000
"""Java's client prints nothing between a flush and the end, so it waits for the timeout, a check and the markers."""
PATIENCE = 60.0


@pytest.fixture(scope="module", params=["ottla", "apache"])
def sweeping_broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker that checks for timed out transactions several times a second."""
    if request.param == "ottla":
        directory: Path = tmp_path_factory.mktemp("ottla")
        with Broker(directory, process=True, transaction_abort_timed_out_transaction_cleanup_interval_ms=200) as broker:
            yield broker.bootstrap_servers
    else:
        rival.fetch()
        with rival.apache_kafka({SWEEP: "200"}) as kafka:
            yield kafka.bootstrap_servers


def run_java(address: str, topic: str, end: str) -> list[str]:
    words = (address, topic, uuid.uuid4().hex, end, str(TIMEOUT_MS), str(PAUSE_MS))
    return subprocess.run(
        program("TimedOutTransaction", *words), capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout.splitlines()


def test_javas_producer_continues_after_an_abort(sweeping_broker: str, fresh_topic: NewTopicName) -> None:
    topic = fresh_topic(sweeping_broker)
    assert run_java(sweeping_broker, topic, "abort") == ["end ok", "next ok"]


def test_javas_producer_cannot_commit(sweeping_broker: str, fresh_topic: NewTopicName) -> None:
    end, after = run_java(sweeping_broker, fresh_topic(sweeping_broker), "commit")
    assert end in ("end ProducerFencedException", "end InvalidTxnStateException")
    assert after != "next ok"


def begin_timed_out_transaction(address: str, topic: str) -> Producer:
    """Return a producer with a transaction that the broker has just aborted after its timeout."""
    name = uuid.uuid4().hex
    producer = Producer(bootstrap_servers=address, transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"late", partition=0)
    producer.flush()
    with Admin(bootstrap_servers=address) as admin:
        wait_for(lambda: admin.describe_transactions([name])[name].state == "CompleteAbort", f"{name} is aborted")
    return producer


def test_our_producer_continues_after_an_abort(sweeping_broker: str, fresh_topic: NewTopicName) -> None:
    topic = fresh_topic(sweeping_broker)
    with begin_timed_out_transaction(sweeping_broker, topic) as producer:
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"next", partition=0)
        producer.commit_transaction()
    with Wire(sweeping_broker) as wire:
        assert b"next" in values(wire.fetch(topic))


def test_our_producer_cannot_commit(sweeping_broker: str, fresh_topic: NewTopicName) -> None:
    producer = begin_timed_out_transaction(sweeping_broker, fresh_topic(sweeping_broker))
    with pytest.raises((ProducerFencedError, InvalidTxnStateError)):
        producer.commit_transaction()
    with pytest.raises(KafkaError):
        producer.begin_transaction()
    producer.close()
