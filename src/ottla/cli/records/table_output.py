"""`ottla consume --format arrow | parquet`: records become a table on standard output, as they were fetched.

Arrow's form is that of a stream, so that a reader may begin before the end; Parquet's end is written when reading ends, by Ctrl-C too.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ottla.cli.output import nobody_reads, patience_of
from ottla.extras import extra

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ottla.cli.records.reading import End
    from ottla.client.consumer import Consumer

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers")


def print_tables(
    consumer: Consumer, form: str, max_messages: int | None, timeout: float | None, end: End | None
) -> int:
    """Write until the limit, the timeout, the end or the reader's end; return how many records."""
    output = sys.stdout.buffer
    written = 0
    last_heard = time.monotonic()
    empty = consumer.poll_arrow(0.0, columns=COLUMNS)  # which says what is missing where there is no Arrow
    with writer_of(form, output, empty.schema) as writer:
        table = empty
        while True:
            if max_messages is not None:
                table = table.slice(0, max_messages - written)
            if table.num_rows:
                writer.write_table(table)
                written += table.num_rows
                last_heard = time.monotonic()
            if nobody_reads(output.fileno()):
                raise BrokenPipeError
            patience = patience_of(timeout, last_heard)
            if written == max_messages or (end and end.is_reached()) or patience < 0:
                return written
            table = consumer.poll_arrow(patience, columns=COLUMNS)


@contextmanager
def writer_of(form: str, output: Any, schema: pa.Schema) -> Iterator[Any]:
    """What writes tables; their end is written whatever happens."""
    with extra("arrow"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    writer = pq.ParquetWriter(output, schema) if form == "parquet" else pa.ipc.new_stream(output, schema)
    try:
        yield writer
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())  # where the end goes, which is written in any case
        raise
    finally:
        writer.close()
