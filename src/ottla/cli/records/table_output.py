"""`ottla consume --format arrow | parquet`: write fetched batches as a table to standard output.

Arrow is written as a stream, so that its reader can start before the end. Parquet's footer is written at the end, also
after Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ottla.cli.output import is_closed_by_reader, wait_seconds
from ottla.extras import extra

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ottla.cli.records.reading import PartitionEnds
    from ottla.client.consumer import Consumer

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers")


def print_tables(
    consumer: Consumer, form: str, max_messages: int | None, timeout: float | None, end: PartitionEnds | None
) -> int:
    """Write until the limit, the timeout, the end, or until the reader closes; return the number of records."""
    output = sys.stdout.buffer
    written = 0
    last_record_at = time.monotonic()
    empty = consumer.poll_arrow(0.0, columns=COLUMNS)  # raises a clear error if pyarrow is not installed
    with writer_of(form, output, empty.schema) as writer:
        table = empty
        while True:
            if max_messages is not None:
                table = table.slice(0, max_messages - written)
            if table.num_rows:
                writer.write_table(table)
                written += table.num_rows
                last_record_at = time.monotonic()
            if is_closed_by_reader(output.fileno()):
                raise BrokenPipeError
            patience = wait_seconds(timeout, last_record_at)
            if written == max_messages or (end and end.is_reached()) or patience < 0:
                return written
            table = consumer.poll_arrow(patience, columns=COLUMNS)


@contextmanager
def writer_of(form: str, output: Any, schema: pa.Schema) -> Iterator[Any]:
    """Yield a table writer; the end of its format is always written."""
    with extra("arrow"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    writer = pq.ParquetWriter(output, schema) if form == "parquet" else pa.ipc.new_stream(output, schema)
    try:
        yield writer
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())  # receives the footer, which is written in any case
        raise
    finally:
        writer.close()
