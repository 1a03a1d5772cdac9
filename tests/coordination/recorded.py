"""The log of the metadata of an Apache Kafka 4.3.1, as its controller wrote it: a node that was born, a broker of ours that joined,
was let in, went and came again, and topics that were made, changed and deleted.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from ottla.records.batch import iter_headers
from ottla.records.columns import decode

LOG = gzip.decompress(Path(__file__).with_name("recorded_metadata.log.gz").read_bytes())


def batches() -> list[bytes]:
    """The whole log, batch by batch."""
    return [LOG[position : position + header.size_bytes] for position, header in iter_headers(LOG)]


def values() -> Iterator[bytes]:
    """The values of its records."""
    columns = decode(LOG)
    return (columns.value(row) or b"" for row in range(columns.count))
