"""Replay of the records of Kafka's controller gives Kafka's state."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.node_records import BeginTransactionRecord, EndTransactionRecord
from ottla.coordination.cluster.records import UnknownRecord, decode_record, encode_record
from ottla.errors import CorruptRecordError
from ottla.protocol.schema import Message
from tests.coordination import recorded


@cache
def records() -> list[Message]:
    return [decode_record(value) for value in recorded.values()]


def replayed(some: list[Message]) -> ClusterMetadata:
    machine = ClusterMetadata()
    for record in some:
        machine.replay(record)
    machine.check()
    return machine


def test_all_records_are_decoded_and_restore_the_cluster() -> None:
    assert not [record for record in records() if isinstance(record, UnknownRecord)]
    machine = replayed(records())
    assert machine.features["metadata.version"] == 30
    assert machine.features["eligible.leader.replicas.version"] == 1
    assert set(machine.registrations) == {1, 7}
    assert not machine.registrations[7].fenced
    assert machine.registrations[7].cordoned_log_dirs == machine.registrations[7].log_dirs
    assert set(machine.controllers) == {1}
    assert "short-lived" not in machine.topics
    assert [state.replicas for state in machine.topics["on-ours"].partitions] == [(1, 7)]
    assert machine.topics["made-through-ours"].configs == {"retention.ms": "1000000"}


def test_the_first_records_of_a_cluster_are_one_transaction() -> None:
    kinds = [type(record) for record in records()]
    begun, ended = kinds.index(BeginTransactionRecord), kinds.index(EndTransactionRecord)
    assert replayed(records()[:ended]).features == {}
    assert replayed(records()[: ended + 1]).features["metadata.version"] == 30
    assert begun < ended


def test_each_record_is_written_again_as_kafka_read_it() -> None:
    # Versions differ, because the oldest sufficient one is used; the content does not.
    assert [decode_record(encode_record(record)) for record in records()] == records()


def test_a_snapshot_of_it_makes_the_same_cluster() -> None:
    machine = replayed(records())
    again = replayed([decode_record(encode_record(record)) for record in machine.records()])
    assert (again.topics, again.registrations, again.features) == (
        machine.topics,
        machine.registrations,
        machine.features,
    )


@given(st.data())
def test_a_value_with_bytes_changed_is_read_or_refused(data: st.DataObject) -> None:
    value = bytearray(encode_record(data.draw(st.sampled_from(records()))))
    for _ in range(data.draw(st.integers(1, 3))):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptRecordError):
        decode_record(bytes(value))
