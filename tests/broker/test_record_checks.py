"""Checks of records by topic configs: keys, timestamps, codecs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.records.batch import HEADER_BYTES, parse_header, seal
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec, compress
from tests.broker.wire import Wire, batch, produce, values

KEYED, KEYLESS = (b"k", b"v"), (None, b"v")
HOUR = 3_600_000
MAX_TIMESTAMP = -3


def records(
    pairs: Sequence[tuple[bytes | None, bytes]], timestamps: Sequence[int] = (), codec: Codec = Codec.NONE
) -> bytes:
    builder = BatchBuilder(codec)
    for number, (key, value) in enumerate(pairs):
        builder.append(timestamps[number] if timestamps else 1_000, key, value)
    return builder.build()


def produce_batch(wire: Wire, data: bytes, version: int = 12) -> Any:
    return wire.ask(produce("t", data), version).responses[0].partition_responses[0]


def resealed(data: bytes, **fields: int) -> bytes:
    return seal(parse_header(data)._replace(**fields), data[HEADER_BYTES:])


def list_offset(wire: Wire, timestamp: int) -> tuple[int, int]:
    """Return the offset and the timestamp of the record for a requested timestamp."""
    request = ListOffsetsRequest(topics=[ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp=timestamp)])])
    found = wire.ask(request, 7).topics[0].partitions[0]
    return found.offset, found.timestamp


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize("codec", list(Codec))
def test_a_compacted_topic_reports_each_record_without_a_key_and_appends_none_of_the_batch(
    wire: Wire, codec: Codec
) -> None:
    wire.create("t", cleanup_policy="compact")
    result = produce_batch(wire, records([KEYED, KEYLESS, KEYED, KEYLESS], codec=codec))
    assert (result.error_code, result.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert [error.batch_index for error in result.record_errors] == [1, 3]
    assert "without a key" in result.record_errors[0].batch_index_error_message
    assert result.error_message.startswith("2 of 4 records are refused, record 1 because")
    assert produce_batch(wire, records([KEYED], codec=codec)).base_offset == 0


@pytest.mark.parametrize("codec", [each for each in Codec if each])
def test_a_compressed_record_that_is_too_large_without_compression_is_refused(wire: Wire, codec: Codec) -> None:
    wire.create("t", max_decompressed_message_bytes=1000)
    result = produce_batch(wire, records([KEYED, (None, bytes(1000))], codec=codec))
    assert (result.error_code, result.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert result.error_message.startswith("record 1 has 1007 bytes without compression, max.decompressed.message.byt")
    many = records([(None, bytes(990)), (None, bytes(900))], codec=codec)
    assert produce_batch(wire, many).base_offset == 0


def test_a_record_without_compression_has_no_limit_of_its_own(wire: Wire) -> None:
    wire.create("t", max_decompressed_message_bytes=1000)
    assert produce_batch(wire, records([(None, bytes(2000))])).error_code == 0


def test_the_brokers_limit_of_records_is_the_default_of_topics() -> None:
    with Broker(max_decompressed_message_bytes=1000) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        large = records([(None, bytes(1000))], codec=Codec.GZIP)
        assert produce_batch(wire, large).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("content", [b"\xff\xff\xff\xff\xff\x01", b"\x01", b"\x80"])
def test_compressed_records_without_a_valid_size_are_refused(wire: Wire, content: bytes) -> None:
    wire.create("t", max_decompressed_message_bytes=1000)
    sound = parse_header(records([KEYED], codec=Codec.GZIP))
    result = produce_batch(wire, seal(sound, compress(Codec.GZIP, content)))
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert result.error_message.startswith("the records of the batch cannot be read")


def test_before_version_8_single_records_are_not_named(wire: Wire) -> None:
    wire.create("t", cleanup_policy="compact")
    assert produce_batch(wire, records([KEYLESS]), 7).error_code == ErrorCode.INVALID_RECORD


def test_records_too_far_ahead_of_the_clock_are_rejected_by_default(wire: Wire) -> None:
    wire.create("t")
    now = now_ms()
    result = produce_batch(wire, records([KEYED] * 3, [now, now + 2 * HOUR, now]))
    assert result.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in result.record_errors] == [1]
    assert produce_batch(wire, records([KEYED], [now + HOUR // 2])).error_code == 0


def test_records_too_far_behind_the_clock_are_rejected_if_the_topic_has_a_limit(wire: Wire) -> None:
    wire.create("t", message_timestamp_before_max_ms=HOUR)
    now = now_ms()
    result = produce_batch(wire, records([KEYED] * 3, [now, now - 2 * HOUR, -1]))
    assert result.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in result.record_errors] == [1]


def test_with_log_append_time_timestamps_have_no_limits(wire: Wire) -> None:
    wire.create("t", message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1)
    assert produce_batch(wire, records([KEYED] * 2, [5, now_ms() + 9 * HOUR])).error_code == 0


@pytest.mark.parametrize("came", list(Codec))
@pytest.mark.parametrize("kept", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_may_have_its_own_codec(wire: Wire, came: Codec, kept: str) -> None:
    wire.create(
        "t", compression_type=kept, compression_gzip_level=9, compression_lz4_level=17, compression_zstd_level=1
    )
    assert produce_batch(wire, batch([b"a" * 500, b"b"], came)).error_code == 0
    found = wire.fetch("t")
    assert values(found) == [b"a" * 500, b"b"]
    assert parse_header(bytes(found.records or b"")).codec.name.lower() == kept.replace("uncompressed", "none")


def test_a_recompressed_idempotent_batch_keeps_its_producer_and_sequence(wire: Wire) -> None:
    wire.create("t", compression_type="zstd")
    builder = BatchBuilder()
    builder.append(1, None, b"a" * 100)
    for _ in range(2):
        assert produce_batch(wire, builder.build(7, 0, 0)).base_offset == 0
    assert values(wire.fetch("t")) == [b"a" * 100]


def test_a_batch_that_is_too_large_after_decompression_is_rejected(wire: Wire) -> None:
    wire.create("t", compression_type="uncompressed", max_message_bytes=1000)
    assert produce_batch(wire, batch([bytes(2000)], Codec.GZIP)).error_code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("configs", [{"cleanup_policy": "compact"}, {"compression_type": "lz4"}], ids=str)
def test_a_decompression_bomb_is_rejected_where_it_would_be_decompressed(wire: Wire, configs: dict[str, Any]) -> None:
    wire.create("t", **configs)
    data = batch([b"a"])
    bomb = seal(parse_header(data)._replace(attributes=Codec.ZSTD), compress(Codec.ZSTD, bytes(100_000_000)))
    result = produce_batch(wire, bomb)
    assert result.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert "send smaller batches" in result.error_message


def test_changed_configs_apply_at_once(wire: Wire) -> None:
    wire.create("t")
    assert produce_batch(wire, records([KEYLESS])).error_code == 0
    change = AlterConfigsResource(2, "t", [AlterableConfig("cleanup.policy", 0, "compact")])
    wire.ask(IncrementalAlterConfigsRequest([change]), 1)
    assert produce_batch(wire, records([KEYLESS])).error_code == ErrorCode.INVALID_RECORD


def test_the_broker_limits_apply_to_topics_without_their_own() -> None:
    with (
        Broker(log_message_timestamp_before_max_ms=HOUR, compression_type="gzip") as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        wire.create("t")
        assert produce_batch(wire, records([KEYED], [1])).error_code == ErrorCode.INVALID_TIMESTAMP
        assert produce_batch(wire, records([KEYED], [now_ms()])).error_code == 0
        assert parse_header(bytes(wire.fetch("t").records or b"")).codec is Codec.GZIP


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"count": 3}, ErrorCode.INVALID_RECORD),
        ({"count": 1}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": 5}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": -1}, ErrorCode.INVALID_RECORD),
        ({"count": 0, "last_offset_delta": -1}, ErrorCode.INVALID_RECORD),
        ({"base_offset": 4}, ErrorCode.INVALID_RECORD),
        ({"magic": 1}, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        ({"magic": 3}, ErrorCode.CORRUPT_MESSAGE),
        ({"attributes": 0x20}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x05}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"producer_id": 7}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 7, "producer_epoch": 0}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x08}, ErrorCode.INVALID_TIMESTAMP),
    ],
    ids=str,
)
def test_impossible_batch_headers_are_rejected(wire: Wire, fields: dict[str, int], code: ErrorCode) -> None:
    wire.create("t")
    assert produce_batch(wire, resealed(records([KEYED] * 2), **fields)).error_code == code
    assert produce_batch(wire, records([KEYED])).base_offset == 0


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_unreadable_records_get_an_error_that_producers_do_not_retry(wire: Wire, codec: Codec) -> None:
    """Only if they are examined; CORRUPT_MESSAGE would make Java's producer retry for two minutes."""
    wire.create("t", cleanup_policy="compact")
    result = produce_batch(wire, seal(parse_header(records([KEYED], codec=codec)), b"garbage"))
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert "cannot be read" in result.error_message


def test_a_batch_with_a_wrong_checksum_is_rejected_with_a_retriable_error(wire: Wire) -> None:
    wire.create("t")
    sound = records([KEYED] * 2)
    flipped = sound[:-1] + bytes([sound[-1] ^ 1])
    assert [produce_batch(wire, data).error_code for data in (flipped, sound)] == [ErrorCode.CORRUPT_MESSAGE, 0]


def test_zstd_requires_a_produce_version_that_has_it(wire: Wire) -> None:
    wire.create("t")
    data = batch([b"a"], Codec.ZSTD)
    assert [produce_batch(wire, data, version).error_code for version in (6, 7)] == [
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        0,
    ]


def test_misnumbered_records_are_rejected_if_they_are_examined(wire: Wire) -> None:
    wire.create("t", cleanup_policy="compact")
    one = records([KEYED])[HEADER_BYTES:]
    result = produce_batch(wire, seal(parse_header(records([KEYED] * 2)), one + one))
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert "not numbered one after the other" in result.error_message


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("expected", [-1, 5, 10**15])
def test_a_wrong_maximum_timestamp_is_corrected(wire: Wire, codec: Codec, expected: int) -> None:
    wire.create("t")
    began = now_ms() - 2000
    lying = resealed(records([KEYED] * 3, [began, began + 7, began + 3], codec), max_timestamp=expected)
    assert produce_batch(wire, lying).error_code == 0
    found = wire.fetch("t").records
    assert found is not None
    assert parse_header(found).max_timestamp == began + 7
    assert list_offset(wire, began + 4) == (1, began + 7)
    assert list_offset(wire, MAX_TIMESTAMP) == (1, began + 7)


def test_a_maximum_timestamp_above_all_records_hides_no_later_record(wire: Wire) -> None:
    wire.create("t")
    began = now_ms()
    # Within the limits of the topic, records are not examined.
    assert (
        produce_batch(wire, resealed(records([KEYED] * 2, [began, began + 1]), max_timestamp=began + 50)).error_code
        == 0
    )
    assert produce_batch(wire, records([KEYED], [began + 20])).error_code == 0
    assert list_offset(wire, MAX_TIMESTAMP) == (1, began + 1)
    assert list_offset(wire, began + 10) == (2, began + 20)


def test_a_consumer_without_zstd_gets_an_error_for_topics_with_that_codec(wire: Wire) -> None:
    wire.create("t", compression_type="zstd")
    wire.create("u", compression_type="producer")
    assert produce_batch(wire, records([KEYED])).error_code == 0
    assert wire.fetch("t", version=9).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert wire.fetch("u", version=9).error_code == 0
    assert wire.fetch("t", version=10).records
