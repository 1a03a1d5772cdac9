"""Fetched record batches as columns, the form in which Ottla's clients hold records.

 A record is a row here, without an object of its own; `arrow` passes the same buffers to Arrow. `encode_rows` is the
reverse.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import NamedTuple

from ottla.model import Buffer, Header, TimestampType
from ottla.records import decoder
from ottla.records.aborted_transactions import AbortedTransactions
from ottla.records.binary_column import BinaryColumn
from ottla.records.compression import DEFAULT_LIMIT_BYTES
from ottla.records.decoder import RowWriter
from ottla.records.encoder import EncodedBatch as EncodedBatch
from ottla.records.encoder import Rows as Rows
from ottla.records.encoder import encode_rows as encode_rows
from ottla.records.headers import decode_headers
from ottla.records.survey import Batch, survey

MAX_OFFSET = 0x7FFF_FFFF_FFFF_FFFF
INTERPRETED = decoder.__file__.endswith(".py")
"""True if records are better decoded by `plain_rows`, which has the same result."""
COLUMNS = ("key", "value", "offset", "timestamp")


class BatchRows(NamedTuple):
    """The batch properties that consecutive rows share: leader epoch and timestamp type."""

    start: int
    """The first row."""
    timestamp_type: TimestampType
    leader_epoch: int


class Columns:
    """`count` records of one partition, in the order of their offsets.

     `offsets` and `timestamps` are memoryviews of int64. `raw_headers` has each record's encoded headers, empty bytes
    without any; it is None if headers were not requested. Other columns that were not requested have no rows.
    """

    __slots__ = ("count", "keys", "next_offset", "offsets", "raw_headers", "runs", "timestamps", "values")

    def __init__(
        self,
        count: int,
        offsets: memoryview,
        timestamps: memoryview,
        keys: BinaryColumn,
        values: BinaryColumn,
        raw_headers: BinaryColumn | None,
        runs: list[BatchRows],
        next_offset: int,
    ) -> None:
        self.count = count
        self.offsets = offsets
        self.timestamps = timestamps
        self.keys = keys
        self.values = values
        self.raw_headers = raw_headers
        self.runs = runs
        self.next_offset = next_offset
        """The offset to continue at: after the last complete batch, even if it was filtered."""

    def __len__(self) -> int:
        return self.count

    def key(self, row: int) -> bytes | None:
        return self.keys.get(row)

    def value(self, row: int) -> bytes | None:
        return self.values.get(row)

    def headers(self, row: int) -> list[Header]:
        """Return the headers in `row`, decoded on access; none if they were not requested."""
        raw = self.raw_headers.get(row) if self.raw_headers is not None else None
        return decode_headers(raw) if raw else []

    def timestamp_type(self, row: int) -> TimestampType:
        return self.run(row).timestamp_type

    def leader_epoch(self, row: int) -> int:
        """Return the leader epoch of the batch, -1 if unknown."""
        return self.run(row).leader_epoch

    def run(self, row: int) -> BatchRows:
        """Return the run of `row`."""
        if not 0 <= row < self.count:
            raise IndexError(f"row {row} of {self.count}")
        if len(self.runs) == 1:
            return self.runs[0]
        return self.runs[bisect_right(self.runs, row, key=attrgetter("start")) - 1]


def decode(
    data: Buffer,
    *,
    from_offset: int = 0,
    up_to: int | None = None,
    check_crcs: bool = True,
    with_headers: bool = True,
    only: Collection[str] | None = None,
    aborted: Iterable[tuple[int, int]] = (),
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
    asked: int = 0,
    below: int | None = None,
) -> Columns:
    """Decode the records of all complete batches in `data` with offsets from `from_offset` on and below `up_to`.

     An incomplete batch at the end is left for the next fetch. Control batches are skipped, and so are the batches of
    `aborted` transactions: (producer id, first offset) of each, as in the fetch response. `only` names the columns to
    create, of `key`, `value`, `offset` and `timestamp`; None: all of them. Records are checked in any case.
    `limit_bytes` is the maximum size of a decompressed batch. Data beyond 2 GiB in total is left for a call with
    `next_offset`. `asked` is the requested offset, which the first batch must reach. `below` is the log end of the
    response, which no batch may exceed, except batches that were written meanwhile, from there on without a gap. Raises
    CorruptRecordError for damaged data.
    """
    end = MAX_OFFSET if up_to is None else up_to
    transactions = list(aborted)
    filter_ = AbortedTransactions(transactions) if transactions else None
    found = survey(
        data, from_offset, end, check_crcs, filter_, limit_bytes, asked, MAX_OFFSET if below is None else below
    )
    if INTERPRETED:
        from ottla.records.plain_rows import plain_columns

        return plain_columns(found, from_offset, end, with_headers)
    writer = RowWriter(found.rows, found.size_bytes, COLUMNS if only is None else only, with_headers)
    runs: list[BatchRows] = []
    last: Batch | None = None
    for batch in found.batches:
        if last is None or last.leader_epoch != batch.leader_epoch or last.append_time != batch.append_time:
            add_run(runs, writer.count, batch)
        last = batch
        writer.add(batch, from_offset, end)
    count = writer.count
    return Columns(
        count,
        writer.offsets[:count],
        writer.timestamps[:count],
        writer.keys.column(count),
        writer.values.column(count),
        writer.headers.column(count) if with_headers else None,
        runs,
        found.next_offset,
    )


def add_run(runs: list[BatchRows], start: int, batch: Batch) -> None:
    """Start a run if the batch from row `start` on differs from the previous one."""
    kind = TimestampType.LOG_APPEND_TIME if batch.append_time else TimestampType.CREATE_TIME
    if not runs or runs[-1].timestamp_type != kind or runs[-1].leader_epoch != batch.leader_epoch:
        runs.append(BatchRows(start, kind, batch.leader_epoch))
