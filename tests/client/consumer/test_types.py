"""The types of records for type checkers: mypy checks this file too, and `assert_type` fails there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, assert_type

import pytest

import ottla
from ottla import aio
from ottla.errors import ConfigError

if TYPE_CHECKING:
    from ottla.client.consumer.record import ConsumerRecord as CompiledRecord

NOWHERE = "127.0.0.1:1"


class Flight(NamedTuple):
    """The result of a deserializer."""

    number: int


def flight_of(data: bytes) -> Flight:
    return Flight(int(data))


def test_records_are_bytes_or_none_without_deserializers() -> None:
    with ottla.Consumer(bootstrap_servers=NOWHERE) as consumer:
        assert_type(consumer, "ottla.Consumer[bytes, bytes]")
        consumer.assign([ottla.TopicPartition("flights", 0)])
        for record in consumer.poll(0):
            assert_type(record, "ottla.ConsumerRecord[bytes, bytes]")
            assert_type(record.key, bytes | None)
            assert_type(record.value, bytes | None)
            assert_type(record.offset, int)
        assert not assert_type(consumer.poll(0), "ottla.ConsumerRecords[bytes, bytes]")


def looped(consumer: ottla.Consumer[str, Flight]) -> None:
    """Read by mypy alone, as are the others below: a loop over a consumer has no end."""
    for record in consumer:
        assert_type(record, "ottla.ConsumerRecord[str, Flight]")
        assert_type(record.key, str | None)
        assert_type(record.value, Flight | None)
        compiled: CompiledRecord = record
        assert compiled is record
    tp = ottla.TopicPartition("flights", 0)
    kept = consumer.poll().where(lambda record: record.value is not None and record.value.number > 7)
    assert_type(kept.records(tp), "list[ottla.ConsumerRecord[str, Flight]]")


async def looped_by_tasks(consumer: aio.Consumer[str, Flight]) -> None:
    async for record in consumer:
        assert_type(record, "ottla.ConsumerRecord[str, Flight]")
        assert_type(record.value, Flight | None)
    async with consumer as same:
        assert_type(same, "aio.Consumer[str, Flight]")
        assert_type(await same.poll(), "ottla.ConsumerRecords[str, Flight]")


def made_by_tasks() -> None:
    assert_type(aio.Consumer(bootstrap_servers=NOWHERE), "aio.Consumer[bytes, bytes]")
    one = aio.Consumer({"bootstrap.servers": NOWHERE}, key_deserializer=bytes.decode, value_deserializer=flight_of)
    assert_type(one, "aio.Consumer[str, Flight]")


def made_of_json() -> None:
    """A value deserializer that returns `Any` leaves the type of the key."""
    assert_type(ottla.Consumer(bootstrap_servers=NOWHERE, value_deserializer=json.loads), "ottla.Consumer[bytes, Any]")
    assert_type(aio.Consumer(bootstrap_servers=NOWHERE, value_deserializer=json.loads), "aio.Consumer[bytes, Any]")


def read_from_settings(settings: dict[str, Any], plain: Mapping[str, str]) -> None:
    """A dict may have deserializers in it, of which its type says nothing."""
    assert_type(ottla.Consumer(plain), "ottla.Consumer[bytes, bytes]")
    assert_type(ottla.Consumer(settings), "ottla.Consumer[Any, Any]")
    assert_type(aio.Consumer(settings), "aio.Consumer[Any, Any]")
    assert_type(ottla.Consumer({**settings, "client.id": "x"}), "ottla.Consumer[Any, Any]")


def bare(record: ottla.ConsumerRecord, records: ottla.ConsumerRecords, consumer: ottla.Consumer) -> None:
    """The names alone are those of bytes."""
    assert_type(record.value, bytes | None)
    assert_type(records, "ottla.ConsumerRecords[bytes, bytes]")
    assert_type(consumer, "ottla.Consumer[bytes, bytes]")


def of_wider_types(record: ottla.ConsumerRecord[bool, Flight]) -> ottla.ConsumerRecord[int, NamedTuple]:
    """Nothing is put into a record: what is read as flights is read as tuples."""
    return record


class Flights(ottla.Consumer[str, Flight]):
    """A class of a user's own."""


def read_by_own_class(consumer: Flights) -> None:
    assert_type([record.value for record in consumer], list[Flight | None])


def test_records_are_what_the_deserializers_make() -> None:
    with ottla.Consumer(bootstrap_servers=NOWHERE, value_deserializer=flight_of) as consumer:
        assert_type(consumer, "ottla.Consumer[bytes, Flight]")
        assert consumer.config.value_deserializer is flight_of
    with ottla.Consumer({"bootstrap.servers": NOWHERE}, key_deserializer=bytes.decode) as keyed:
        assert_type(keyed, "ottla.Consumer[str, bytes]")
    with ottla.Consumer({"bootstrap.servers": NOWHERE}, value_deserializer=json.loads) as loose:
        assert_type(loose, "ottla.Consumer[bytes, Any]")
    with ottla.Consumer({"bootstrap.servers": NOWHERE, "value.deserializer": flight_of}) as dotted:
        assert_type(dotted, "ottla.Consumer[Any, Any]")
        assert dotted.config.value_deserializer is flight_of


@pytest.mark.parametrize("generic", [ottla.Consumer, aio.Consumer, ottla.ConsumerRecord, ottla.ConsumerRecords])
def test_generic_classes_can_be_subscripted_at_run_time(generic: Any) -> None:
    assert generic[str, Flight] is not None


def test_a_consumer_written_with_its_types_is_a_consumer() -> None:
    with Flights(bootstrap_servers=NOWHERE, key_deserializer=bytes.decode, value_deserializer=flight_of) as own:
        assert own.config.value_deserializer is flight_of
    with ottla.Consumer[bytes, Flight](bootstrap_servers=NOWHERE, value_deserializer=flight_of) as consumer:
        assert type(consumer) is ottla.Consumer
    with pytest.raises(
        ConfigError, match=r"^unknown setting 'value_deserialiser'; did you mean 'value_deserializer'\?$"
    ):
        ottla.Consumer[bytes, Flight](bootstrap_servers=NOWHERE, value_deserialiser=flight_of)  # type: ignore[call-overload]
