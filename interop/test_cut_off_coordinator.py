"""The coordinator of a transaction is partitioned from the other two brokers, but clients still reach it."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from ottla import Admin, Cluster, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.admin import TransactionDescription
from ottla.errors import InvalidTxnStateError, KafkaTimeoutError, ProducerFencedError, TransactionAbortableError
from ottla.model import LATEST
from tests.broker.in_sync import in_sync
from tests.patience import eventually

TOPICS = "cut-a", "cut-b"
ID = "cut"


@pytest.mark.long
@pytest.mark.behaviour("B4", "P3")
def test_transactions_of_a_partitioned_coordinator_are_atomic() -> None:
    """No transaction becomes visible in part, although the partitioned broker still acts as the coordinator.

    Like Kafka's, it accepts requests, and clients can reach it, so it may respond that it knows no open transaction.
    That is fatal for the producer, as for Java's. The test then creates another producer and checks the records of the
    last transaction.
    """
    committed = 0
    with Cluster() as cluster, Admin(cluster.client_settings()) as admin:
        admin.create_topics([NewTopic(topic, 1, 3) for topic in TOPICS])
        with transactional(cluster) as producer:
            commit(producer, 0, 60)
            cut_off = coordinator_of_complete(admin, ID)
            cluster.partition_off(cut_off)
            with suppress(InvalidTxnStateError, ProducerFencedError, KafkaTimeoutError):
                for committed in (1, 2):  # this many are acknowledged, and the current one may be
                    commit(producer, committed, 10)
                committed = 3
            cluster.heal()
        others = [address for node, address in cluster.addresses.items() if node != cut_off]
        with Admin(bootstrap_servers=",".join(others)) as beside:
            eventually(lambda: all(in_sync(beside, topic) == {1, 2, 3} for topic in TOPICS))
        numbers = [b"%d" % number for number in range(4)]
        with transactional(cluster) as producer:  # this aborts the open transaction
            found = committed_in(cluster, TOPICS[0])
            assert found in (numbers[:committed], numbers[: committed + 1])
            assert committed_in(cluster, TOPICS[1]) == found
            for number in range(len(found), len(numbers)):
                commit(producer, number, 60)
        for topic in TOPICS:
            assert committed_in(cluster, topic) == numbers


SOON_SECONDS = 20.0
"""A request to a broker that does not respond times out after 30 seconds."""


@pytest.mark.behaviour("B4")
def test_a_committed_transaction_is_read_soon_after_the_leader_with_its_marker_is_partitioned() -> None:
    """The marker is already sent to the leader when the leader is partitioned.

    Only the coordinator has the decision.
    """
    with Cluster(transaction_state_log_replication_factor=1, transaction_state_log_min_isr=1) as cluster:
        with Admin(cluster.client_settings()) as admin, transactional(cluster) as producer:
            coordinator = admin.describe_transactions([ID])[ID].coordinator_id
            led = (coordinator % 3 + 1, (coordinator + 1) % 3 + 1, coordinator)
            admin.create_topics([NewTopic(topic, replica_assignments={0: led}) for topic in TOPICS])
            commit(producer, 0, 60)
            coordinator_of_complete(admin, ID)
            producer.begin_transaction()
            for topic in TOPICS:
                producer.send(topic, b"1", partition=0).result(60)
            cluster.partition_off(led[0])
            producer.commit_transaction(60)
            committed = time.monotonic()
            others = ",".join(address for node, address in cluster.addresses.items() if node != led[0])
            with Admin(bootstrap_servers=others) as beside:
                eventually(lambda: beside.describe_transactions([ID])[ID].state == "CompleteCommit")
            assert time.monotonic() - committed < SOON_SECONDS
        cluster.heal()


def coordinator_of_complete(admin: Admin, transactional_id: str) -> int:
    """Return the coordinator's node id once the markers of the last transaction are written."""

    def description() -> TransactionDescription:
        return admin.describe_transactions([transactional_id])[transactional_id]

    eventually(lambda: description().state == "CompleteCommit")
    return description().coordinator_id


def transactional(cluster: Cluster) -> Producer:
    """Return an initialized producer with short timeouts."""
    producer = Producer(cluster.client_settings(), transactional_id=ID, request_timeout_ms=2000)
    producer.init_transactions(60)
    return producer


def commit(producer: Producer, number: int, timeout: float) -> None:
    """Write a number to all topics in one transaction, and retry after an abort."""
    while True:
        producer.begin_transaction()
        try:
            for topic in TOPICS:
                producer.send(topic, b"%d" % number, partition=0)
            producer.commit_transaction(timeout)
        except TransactionAbortableError:
            producer.abort_transaction(timeout)
        else:
            return


def committed_in(cluster: Cluster, topic: str) -> list[bytes]:
    """Read the committed records up to the end of the log. No transaction may be open."""
    place = TopicPartition(topic, 0)
    with Admin(cluster.client_settings()) as admin:
        end = admin.list_offsets({place: LATEST})[place].offset
    found: list[bytes] = []
    with Consumer(cluster.client_settings(), isolation_level="read_committed") as consumer:
        consumer.assign([place])
        consumer.seek(place, 0)

        def is_read() -> bool:
            found.extend(record.value or b"" for record in consumer.poll(0.2))
            return consumer.position(place) >= end

        eventually(is_read)
    return found
