"""Results of clients survive pickle and copy, as used by process pools, Celery and Dask."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import ModuleType
from typing import Any

import pytest

import ottla
from ottla import errors
from ottla.client.consumer import Consumer, ConsumerGroupMetadata, ConsumerRecord, ConsumerRecords
from ottla.client.consumer.records import RecordSlice
from ottla.client.producer import Producer
from ottla.model import OffsetAndMetadata, OffsetAndTimestamp, RecordMetadata, TimestampType, TopicPartition
from ottla.records import builder
from tests.client.consumer.test_record import RECORD_FORMS, forms, source_of
from tests.plain import is_compiled

Again = Callable[[Any], Any]


def pickled(protocol: int) -> Again:
    """Pickle and unpickle with this protocol."""
    return lambda thing: pickle.loads(pickle.dumps(thing, protocol))


AGAIN: dict[str, Again] = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    **{f"pickle {protocol}": pickled(protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)},
}


@pytest.fixture(params=AGAIN)
def again(request: pytest.FixtureRequest) -> Again:
    """Return a copy made by pickle or copy."""
    return AGAIN[request.param]


def facts(record: Any) -> tuple[Any, ...]:
    """Return all attributes of a record."""
    names = [name for name in dir(ConsumerRecord) if not name.startswith("_")]
    return tuple(getattr(record, name) for name in names)


@forms
@pytest.mark.parametrize("deserializers", [{}, {"value_deserializer": bytes.decode}], ids=["bytes", "deserialized"])
def test_a_pickled_record_is_restored(
    form: ModuleType, columns: ModuleType, deserializers: dict[str, Any], again: Again
) -> None:
    source = source_of(form, columns, **deserializers)
    for record in form.records_of(source, 0, len(source.columns), *source.deserialize(0, len(source.columns))[:2]):
        copied = again(record)
        assert facts(copied) == facts(record)
        assert copied == record
        assert hash(copied) == hash(record)
        assert type(copied.timestamp_type) is TimestampType


def test_records_with_another_offset_or_value_differ() -> None:
    form, columns = RECORD_FORMS["plain"]
    first, second = list(form.records_of(source_of(form, columns), 0, 2))
    assert first != second
    assert first != "a record"


@pytest.mark.parametrize("deserializers", [{}, {"value_deserializer": bytes.decode}], ids=["bytes", "deserialized"])
def test_pickled_poll_results_keep_their_offsets(servers: str, topic: str, again: Again, deserializers: Any) -> None:
    place = TopicPartition(topic, 0)
    with Producer(bootstrap_servers=servers) as producer:
        for i in range(5):
            producer.send(topic, b"%d" % i, key=None if i % 2 else b"k", headers=[("h", b"x")] if i else None)
    with Consumer(
        bootstrap_servers=servers, max_poll_records=3, auto_offset_reset="earliest", **deserializers
    ) as consumer:
        consumer.assign([place])
        polled = consumer.poll(20)
    copied = again(again(polled))
    assert [facts(record) for record in copied] == [facts(record) for record in polled]
    assert len(copied) == len(polled) == 3
    assert copied.next_offsets() == polled.next_offsets()
    assert copied.first_offset(place) == 0
    assert copied.records(place) == polled.records(place)
    assert repr(copied) == repr(polled) == f"ConsumerRecords(3 records, {place}: 3)"


def test_an_empty_result_unpickles_as_empty(again: Again) -> None:
    assert not again(ConsumerRecords())


def value_of(record: ConsumerRecord) -> tuple[int, Any]:
    return record.offset, record.value


@pytest.mark.skipif(not is_compiled(builder), reason="what is uncompiled has the pickling of every Python class")
def test_internal_classes_have_no_pickling_code(again: Again) -> None:
    with pytest.raises(TypeError, match=r"cannot pickle '.*BatchBuilder' object"):
        again(builder.BatchBuilder(max_bytes=100))


def test_a_process_pool_works_on_records() -> None:
    source = source_of(*RECORD_FORMS["compiled"])
    rows = RecordSlice(source, 0, len(source.columns))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(value_of, rows)) == [value_of(record) for record in rows]


@pytest.mark.parametrize(
    "value",
    [
        TopicPartition("t", 1),
        RecordMetadata("t", 1, 2, 3, 4, 5),
        OffsetAndMetadata(7, "m", 3),
        OffsetAndTimestamp(1, 2, 3),
        ConsumerGroupMetadata("g", 1, "m", None),
        ottla.NewTopic("t", 3),
        ottla.Outgoing(b"v", key=b"k"),
        ottla.SubscriptionPattern("a.*"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_pickled_values_are_restored(value: Any, again: Again) -> None:
    copied = again(value)
    assert type(copied) is type(value)
    assert vars(copied) == vars(value) if hasattr(value, "__dict__") else copied == value


def raised() -> list[Exception]:
    """One of each kind of error."""
    made: list[Exception] = []
    for kind in vars(errors).values():
        if not inspect.isclass(kind) or not issubclass(kind, errors.OttlaError):
            continue
        if kind is errors.LogTruncationError:
            made.append(kind("gone", TopicPartition("t", 0), 5, None))
        elif kind is errors.RecordDeserializationError:
            form, columns = RECORD_FORMS["compiled"]
            (record,) = form.records_of(source_of(form, columns), 0, 1)
            made.append(kind("bad", TopicPartition("t", 0), 5, "key", record))
        elif kind is errors.UndeliveredError:
            made.append(kind(3, errors.KafkaError(10, "too large")))
        elif issubclass(kind, errors.KafkaError):
            made.append(kind(10, "too large"))
        else:
            made.append(kind("wrong"))
    return [*made, errors.RecordsRefusedError(87, "refused", [(1, "no key")])]


@pytest.mark.parametrize("error", raised(), ids=lambda error: type(error).__name__)
def test_pickled_errors_keep_their_attributes(error: Exception, again: Again) -> None:
    copied = again(error)
    assert type(copied) is type(error)
    assert str(copied) == str(error)
    assert repr(copied.args) == repr(error.args)
    assert {k: str(v) for k, v in vars(copied).items()} == {k: str(v) for k, v in vars(error).items()}
