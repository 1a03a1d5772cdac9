"""The values of `metrics()` compared with the actions of running clients."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition, aio
from ottla.client.admin import ClientQuotaEntity
from ottla.client.metrics.client_metrics import ClientMetrics, MetricName
from ottla.client.metrics.descriptions import GROUPS
from ottla.errors import BufferExhaustedError, KafkaTimeoutError, OttlaError
from tests.patience import eventually

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
RECORDS = 40


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def produced(broker: Broker, topic: str) -> ClientMetrics:
    with Producer(broker.client_settings(), client_id="writer") as producer:
        for number in range(RECORDS):
            producer.send(topic, b"tea", partition=0 if number < RECORDS - 1 else None)
        producer.flush()
        return producer.metrics()


def read_up(broker: Broker, topic: str, group: str) -> ClientMetrics:
    settings = broker.client_settings() | {"group.id": group, "auto.offset.reset": "earliest"}
    with Consumer(settings, client_id="reader", max_poll_records=7) as consumer:
        consumer.subscribe([topic])
        count = 0
        while count < RECORDS:
            count += len(consumer.poll(5))
        consumer.commit()
        return consumer.metrics()


def checked(metrics: ClientMetrics) -> ClientMetrics:
    """All of them are described, and none is below zero."""
    for name, value in metrics.items():
        assert name.name in GROUPS[name.group], name
        assert name.description
        assert math.isnan(value) or value >= (-1 if name.name == "preferred-read-replica" else 0), name
    return metrics


def test_producer_metrics_count_what_was_sent(broker: Broker) -> None:
    metrics = checked(produced(broker, "sent"))
    assert metrics.value("record-send-total") == metrics.value("record-send-total", topic="sent") == RECORDS
    assert metrics.value("record-error-total") == metrics.value("record-retry-total") == 0
    assert metrics.value("byte-total", topic="sent") > RECORDS * len(b"tea")
    assert metrics.value("request-latency-max", node_id="node-1") > 0
    assert metrics.value("buffer-available-bytes") == metrics.value("buffer-total-bytes")
    assert metrics.value("connection-creation-total") >= metrics.value("connection-count") >= 1
    requests = sum(value for name, value in metrics.items() if name[:2] == ("request-total", "producer-node-metrics"))
    assert metrics.value("request-total") == requests > 0


def test_consumer_metrics_count_what_was_read_and_give_the_lag(broker: Broker) -> None:
    produced(broker, "read")
    metrics = checked(read_up(broker, "read", "readers"))
    assert metrics.value("records-consumed-total", topic="read") == metrics.value("records-consumed-total") == RECORDS
    assert metrics.value("records-lag", topic="read", partition=0) == metrics.value("records-lag-max") == 0
    assert metrics.value("bytes-consumed-total") > RECORDS * len(b"tea")
    assert (metrics.value("assigned-partitions"), metrics.value("rebalance-total")) == (1, 1)
    assert metrics.value("commit-total") >= 1
    assert metrics.value("fetch-total") >= 1
    assert metrics.value("time-between-poll-max") > 0
    assert 0 < metrics.value("poll-idle-ratio-avg") <= 1


def test_the_lag_is_reported_before_the_consumer_has_caught_up(broker: Broker) -> None:
    produced(broker, "behind")
    with Consumer(broker.client_settings(), max_poll_records=10) as consumer:
        consumer.assign([TopicPartition("behind", 0)])
        consumer.seek_to_beginning()
        while not consumer.poll(5):
            pass
        metrics = checked(consumer.metrics())
    assert metrics.value("records-lag", topic="behind", partition=0) == metrics.value("records-lag-max") == RECORDS - 10
    assert metrics.value("records-lead", topic="behind", partition=0) == metrics.value("records-lead-min") == 10
    assert metrics.value("records-per-request-avg") == 10
    assert metrics.value("preferred-read-replica", topic="behind", partition=0) == -1
    with pytest.raises(KeyError, match="no metric 'rebalance-total'"):
        metrics.value("rebalance-total")


def test_columns_count_as_records_do(broker: Broker) -> None:
    produced(broker, "columns")
    with Consumer(broker.client_settings()) as consumer:
        consumer.assign([TopicPartition("columns", 0)])
        consumer.seek_to_beginning()
        count = 0
        while count < RECORDS:
            count += sum(each.count for _, each in consumer.poll_columns(5))
        metrics = checked(consumer.metrics())
    assert metrics.value("records-consumed-total", topic="columns") == RECORDS


def test_compression_rates_are_reported_by_topic(broker: Broker) -> None:
    with Producer(broker.client_settings(), compression_type="gzip") as producer:
        producer.send("small", b"a" * 10_000).result(30)
        metrics = checked(producer.metrics())
    assert metrics.value("compression-rate", topic="small") == metrics.value("compression-rate-avg") < 0.1
    assert produced(broker, "plain").value("compression-rate-avg") == 1


def test_wait_times_of_callers_are_reported_by_call(broker: Broker) -> None:
    with Producer(broker.client_settings(), transactional_id="waiting") as producer:
        assert producer.metrics().value("txn-init-time-ns-total") == 0
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("waited-for", b"tea")
        producer.flush()
        producer.commit_transaction()
        metrics = checked(producer.metrics())
    for call in ("metadata-wait", "flush", "txn-init", "txn-begin", "txn-commit"):
        assert 0 < metrics.value(f"{call}-time-ns-total") < 30e9, call
    for call in ("bufferpool-wait", "txn-abort", "txn-send-offsets"):
        assert metrics.value(f"{call}-time-ns-total") == 0, call


def test_a_consumers_commits_and_its_listener_take_time(broker: Broker) -> None:
    produced(broker, "listened")
    settings = broker.client_settings() | {"group.id": "listening", "auto.offset.reset": "earliest"}
    with Consumer(settings) as consumer:
        consumer.subscribe(["listened"], on_assigned=lambda partitions: consumer.committed(partitions))
        while not consumer.poll(5):
            pass
        consumer.commit()
        metrics = checked(consumer.metrics())
    assert metrics.value("partition-assigned-latency-max") * 1e6 > metrics.value("committed-time-ns-total") > 0
    assert math.isnan(metrics.value("partition-lost-latency-max"))
    assert metrics.value("commit-sync-time-ns-total") > 0
    assert metrics.value("failed-rebalance-rate-per-hour") == 0


def knows(producer: Producer, topic: str) -> bool:
    """True if the topic is known, however fast that was."""
    try:
        return bool(producer.partitions_for(topic))
    except KafkaTimeoutError:
        return False


def test_a_record_that_finds_no_memory_is_counted() -> None:
    with Broker() as broker:
        producer = Producer(broker.client_settings(), buffer_memory=2_000, batch_size=1_000, max_block_ms=50)
        eventually(lambda: knows(producer, "full"))
        producer.send("full", b"x").result(30)
    producer.send("full", b"x" * 1_500)
    with pytest.raises(BufferExhaustedError):
        producer.send("full", b"x" * 1_500)
    metrics = checked(producer.metrics())
    assert metrics.value("buffer-exhausted-total") == 1
    assert metrics.value("bufferpool-wait-time-ns-total") > 0
    assert metrics.value("bufferpool-wait-ratio") > 0
    with suppress(OttlaError):
        producer.close(0)


def test_throttle_times_are_reported() -> None:
    with Broker() as broker, Admin(broker.client_settings()) as admin:
        limits = {"producer_byte_rate": 10_000.0, "consumer_byte_rate": 10_000.0}
        admin.alter_client_quotas({ClientQuotaEntity(client_id="greedy"): limits})
        with Producer(broker.client_settings(), client_id="greedy") as producer:
            producer.send("limited", b"x" * 200_000).result(30)
            assert checked(producer.metrics()).value("produce-throttle-time-max") > 0
        with Consumer(broker.client_settings(), client_id="greedy") as consumer:
            consumer.assign([TopicPartition("limited", 0)])
            consumer.seek_to_beginning()
            while not consumer.poll(5):
                pass
            assert checked(consumer.metrics()).value("fetch-throttle-time-max") > 0


def test_records_that_failed_are_counted(broker: Broker) -> None:
    with Admin(broker.client_settings()) as admin, Producer(broker.client_settings()) as producer:
        admin.create_topics([NewTopic("failing", 1, configs={"max.message.bytes": "100"})])
        assert producer.send("failing", b"x" * 200).exception(30) is not None
        metrics = checked(producer.metrics())
    assert metrics.value("record-error-total", topic="failing") == metrics.value("record-error-total") == 1


def test_admin_metrics_count_its_requests(broker: Broker) -> None:
    with Admin(broker.client_settings()) as admin:
        admin.list_topics()
        metrics = checked(admin.metrics())
    assert metrics.value("request-total") >= metrics.value("response-total") > 0
    assert {name.group for name in metrics} == {"admin-client-metrics", "admin-client-node-metrics"}


def test_asyncio_clients_have_the_same_metric_names(broker: Broker) -> None:
    def names(metrics: ClientMetrics) -> set[tuple[str, str]]:
        return {(name.group, name.name) for name in checked(metrics)}

    async def awaited() -> list[set[tuple[str, str]]]:
        settings = broker.client_settings()
        async with aio.Producer(settings) as producer, aio.Admin(settings) as admin:
            await (await producer.send("awaited", b"tea"))
            await admin.list_topics()
            async with aio.Consumer(settings, group_id="awaited", auto_offset_reset="earliest") as consumer:
                consumer.subscribe(["awaited"])
                while not await consumer.poll(5):
                    pass
                await consumer.commit()
                return [names(each.metrics()) for each in (producer, consumer, admin)]

    metrics = asyncio.run(awaited())
    with Admin(broker.client_settings()) as admin:
        admin.list_topics()
        assert metrics[2] == names(admin.metrics())
    assert metrics[0] == names(produced(broker, "blocking"))
    assert metrics[1] == names(read_up(broker, "blocking", "blocking"))


def test_names_are_java_s_and_read_well() -> None:
    name = MetricName("records-lag", "consumer-fetch-manager-metrics", (("client-id", "c"), ("topic", "t")))
    assert str(name) == "consumer-fetch-manager-metrics:records-lag{client-id=c,topic=t}"


def test_the_page_documents_every_metric_and_no_other() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## Clients\n")[1].split("\n### ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert named == {name for names in GROUPS.values() for name in names}


@pytest.mark.parametrize("number", range(3))
def test_a_block_of_the_page_runs(broker: Broker, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    section = PAGE.read_text(encoding="utf-8").split("## Clients\n")[1].split("\n## ")[0]
    block = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[number]
    exec(block.replace("127.0.0.1:9092", broker.bootstrap_servers).replace('"orders"', f'"block-{number}"'), {})
    assert capsys.readouterr().out
