"""Measure record batches in memory, encoding and decoding: ours as columns and one by one, compiled and plain, next to
others.

A fetch of 1 MiB in batches of 16 KiB without compression. CRCs are checked on both sides, and every record is accessed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

import ottla.records.builder as builder
import ottla.records.columns as columns
from benchmarks.race import Contender, race
from ottla.records.batch import stamp_all, verify_all
from tests.plain import is_compiled, plain
from tests.records.forms import FORMS

SIZES = (100, 1024)
FETCH_BYTES = 1024 * 1024
BATCH_BYTES = 16384
TIMESTAMP = 1_700_000_000_000


def fetched(size: int) -> bytes:
    """Return a fetch response with values of `size` bytes."""
    log = bytearray()
    while len(log) < FETCH_BYTES:
        open_batch = builder.BatchBuilder(max_bytes=BATCH_BYTES)
        while open_batch.append(TIMESTAMP + open_batch.count, None, bytes(size)):
            pass
        log += open_batch.build()
    stamp_all(log, verify_all(log), 0, 0)
    return bytes(log)


def decode_columns(form: ModuleType, log: bytes, turns: int) -> int:
    """Ours, as columns."""
    return sum(form.decode(log).count for _ in range(turns))


def decode_rows(log: bytes, turns: int) -> int:
    """Ours, with each value read from the columns."""
    done = 0
    for _ in range(turns):
        decoded = columns.decode(log)
        done += len([decoded.value(row) for row in range(decoded.count)])
    return done


def decode_records(reader: Callable[[bytes], Any], log: bytes, turns: int) -> int:
    """Another client's reader, record by record."""
    done = 0
    for _ in range(turns):
        records = reader(log)
        while (batch := records.next_batch()) is not None:
            assert batch.validate_crc()
            done += len([record.value for record in batch])
    return done


def encode_columns(rows: columns.Columns, turns: int) -> int:
    """Ours, from columns."""
    for _ in range(turns):
        columns.encode_rows(rows, max_bytes=BATCH_BYTES)
    return turns * rows.count


def encode_records(form: ModuleType, size: int, count: int) -> int:
    """Ours, record by record."""
    value, left = bytes(size), count
    while left:
        open_batch = form.BatchBuilder(max_bytes=BATCH_BYTES)
        while left and open_batch.append(TIMESTAMP + left, None, value):
            left -= 1
        open_batch.build()
    return count


def encode_others(make: Callable[..., Any], size: int, count: int) -> int:
    """Another client's builder, record by record."""
    value, left = bytes(size), count
    while left:
        open_batch = make(2, 0, 0, -1, -1, -1, BATCH_BYTES)
        offset = 0
        while left and open_batch.append(offset, TIMESTAMP + left, None, value, []) is not None:
            offset += 1
            left -= 1
        open_batch.build()
    return count


def compare(size: int) -> None:
    """Both directions at one size."""
    log = fetched(size)
    rows = columns.decode(log)
    race(
        f"decode records of {size} bytes",
        [
            Contender("ottla, columns", partial(decode_columns, columns, log, 100)),
            Contender("ottla, each value taken", partial(decode_rows, log, 30)),
            Contender("ottla uncompiled, columns", partial(decode_columns, FORMS["plain"], log, 3)),
            Contender("kafka-python", partial(decode_records, KafkaPythonRecords, log, 3)),
            Contender("aiokafka", partial(decode_records, AiokafkaRecords, log, 10)),
        ],
    )
    race(
        f"encode records of {size} bytes",
        [
            Contender("ottla, columns", partial(encode_columns, rows, 100)),
            Contender("ottla, record by record", partial(encode_records, builder, size, 30 * rows.count)),
            Contender("ottla uncompiled", partial(encode_records, plain("ottla.records.builder"), size, rows.count)),
            Contender("kafka-python", partial(encode_others, KafkaPythonBuilder, size, rows.count)),
            Contender("aiokafka", partial(encode_others, AiokafkaBuilder, size, 10 * rows.count)),
        ],
    )


def main() -> None:
    if not is_compiled(builder):
        print("the hot loops are not compiled here: every row is ottla uncompiled")
    for size in SIZES:
        compare(size)


if __name__ == "__main__":
    main()
