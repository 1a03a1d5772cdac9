"""A whole topic as an Arrow table, from a broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from ottla import Admin, Broker, NewTopic, Producer, TopicPartition, read_table
from ottla.errors import KafkaError

TOPIC = "whole"
T0, T1 = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker with a topic of two partitions: five records in each, and more of a transaction that was aborted."""
    with Broker() as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, 2, 1), NewTopic("empty", 1, 1)])
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for n in range(10):
                producer.send(TOPIC, b"%d" % n, partition=n % 2, headers=[("n", b"%d" % n)])
        with Producer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(TOPIC, b"aborted", partition=0).result(10)
            producer.abort_transaction()
        yield broker.bootstrap_servers


def values(table: pa.Table) -> list[Any]:
    return table["value"].to_pylist()


def test_all_that_is_committed_is_read_and_then_no_more(servers: str) -> None:
    table = read_table(TOPIC, bootstrap_servers=servers)
    assert sorted(values(table)) == [b"%d" % n for n in range(10)]
    first = [row["value"] for row in table.to_pylist() if row["partition"] == 0]
    assert first == [b"0", b"2", b"4", b"6", b"8"]


def test_aborted_records_are_read_on_request(servers: str) -> None:
    table = read_table([TOPIC, "empty"], {"bootstrap.servers": servers}, isolation_level="read_uncommitted")
    assert b"aborted" in table["value"].to_pylist()


def test_offset_ranges_and_headers_are_returned_on_request(servers: str) -> None:
    table = read_table(TOPIC, bootstrap_servers=servers, start={T0: 3, T1: 1}, end={T1: 2}, include_headers=True)
    assert sorted(values(table)) == [b"3", b"6", b"8"]
    assert {row["headers"][0]["key"] for row in table.to_pylist()} == {"n"}


def test_an_empty_topic_is_an_empty_table_and_no_topic_an_error(servers: str) -> None:
    assert read_table("empty", bootstrap_servers=servers).num_rows == 0
    with pytest.raises(KafkaError, match="there is no topic 'nowhere'"):
        read_table("nowhere", bootstrap_servers=servers)
