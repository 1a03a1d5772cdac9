from __future__ import annotations

from array import array
from typing import Any

import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

import ottla.records.murmur2 as compiled
from ottla.records.binary_column import BinaryColumn
from tests.plain import plain

FORMS = [compiled, plain("ottla.records.murmur2")]
forms = pytest.mark.parametrize("form", FORMS, ids=["compiled", "plain"])
JAVAS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def column(values: list[bytes | None]) -> BinaryColumn:
    offsets = array("i", [0])
    bits = bytearray((len(values) + 7) // 8)
    for row, value in enumerate(values):
        offsets.append(offsets[-1] + len(value or b""))
        if value is not None:
            bits[row >> 3] |= 1 << (row & 7)
    data = b"".join(value or b"" for value in values)
    return BinaryColumn(len(values), memoryview(offsets), data, bits, values.count(None))


@pytest.mark.behaviour("P8")
@forms
@pytest.mark.parametrize("key", JAVAS, ids=bytes.decode)
def test_hashes_are_those_of_java(form: Any, key: bytes) -> None:
    assert form.murmur2(key) == form.murmur2(bytearray(key)) == form.murmur2(memoryview(key)) == JAVAS[key]


@forms
@given(key=st.binary(max_size=40))
def test_hashes_are_those_of_other_clients(form: Any, key: bytes) -> None:
    assert form.murmur2(key) & 0xFFFFFFFF == kafka_python_murmur2(key) & 0xFFFFFFFF == aiokafka_murmur2(key)


@forms
@given(key=st.binary(max_size=20), partitions=st.integers(1, 2000))
def test_a_partition_is_the_positive_hash_modulo_their_number(form: Any, key: bytes, partitions: int) -> None:
    assert form.partition_for(key, partitions) == (kafka_python_murmur2(key) & 0x7FFFFFFF) % partitions


@forms
@given(keys=st.lists(st.none() | st.binary(max_size=20)))
def test_the_partitions_of_a_column_are_those_of_its_keys(form: Any, keys: list[bytes | None]) -> None:
    chosen = form.partitions_for(column(keys), 7)
    assert chosen.tolist() == [-1 if key is None else form.partition_for(key, 7) for key in keys]
    assert chosen.format == "i"


@forms
def test_no_partitions_are_an_error(form: Any) -> None:
    with pytest.raises(ValueError, match="a topic with 0 partitions"):
        form.partition_for(b"key", 0)
    with pytest.raises(ValueError, match="a topic with 0 partitions"):
        form.partitions_for(column([b"key"]), 0)
