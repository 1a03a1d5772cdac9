"""The schema references of a batch's records, and the records that are rejected. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import NamedTuple
from uuid import UUID

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError, RecordsRefusedError
from ottla.model import Buffer
from ottla.records.columns import Columns, decode
from ottla.records.compression import DecompressedTooLargeError

LIMIT_BYTES = 64 * 1024 * 1024
"""The limit of a decompressed batch, as for other checks of records."""
MOST_ERRORS = 1000
"""The limit of records that one rejection names."""
ID_MAGIC, GUID_MAGIC = 0, 1
"""The first byte before an id in a key or value, and before a GUID in a header."""
ID_BYTES, GUID_BYTES = 4, 16
HEADERS = {"key": "__key_schema_id", "value": "__value_schema_id"}
"""The headers with the GUID of the schema."""

Reference = int | UUID
"""A schema's id or GUID."""
Subjects = Mapping[Reference, Set[str]]
"""The subjects under which each schema is registered."""


class Validated(NamedTuple):
    """The references in one column of a batch."""

    column: str
    """`key` or `value`."""
    subject: str
    references: list[tuple[int, Reference | str]]
    """The row of each record with its reference, or with the reason why it has none. Nulls are left out."""

    def known_references(self) -> set[Reference]:
        """Return the references without reasons."""
        return {found for _, found in self.references if not isinstance(found, str)}


def read_batch(batch: Buffer, topic: str, columns: list[str]) -> list[Validated]:
    """Return the references of a batch, per validated column.

    Raise KafkaError if it is too large to be read. A damaged batch has no references: the append reports it.
    """
    try:
        rows = decode(batch, limit_bytes=LIMIT_BYTES)
    except DecompressedTooLargeError as error:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"the records of this topic are validated, and {error}: send smaller batches"
        ) from error
    except (CorruptRecordError, KafkaError):
        return []
    return [Validated(column, f"{topic}-{column}", list(find_references(rows, column))) for column in columns]


def find_references(rows: Columns, column: str) -> Iterator[tuple[int, Reference | str]]:
    """Yield the row and the reference of each record that is not null."""
    data = rows.keys if column == "key" else rows.values
    for row in range(rows.count):
        if data.size(row) >= 0:
            yield row, find_reference(rows, column, row)


def find_reference(rows: Columns, column: str, row: int) -> Reference | str:
    """Return the reference of one record, or the reason why it has none."""
    guid = next((value for name, value in rows.headers(row) if name == HEADERS[column]), None)
    if guid is not None:
        if len(guid) != 1 + GUID_BYTES or guid[0] != GUID_MAGIC:
            return f"its header {HEADERS[column]} has no GUID of a schema"
        return UUID(bytes=bytes(guid[1:]))
    data = (rows.key(row) if column == "key" else rows.value(row)) or b""
    if len(data) <= ID_BYTES or data[0] != ID_MAGIC:
        return f"its {column} does not begin with the id of a schema"
    return int.from_bytes(data[1 : 1 + ID_BYTES], "big")


def check_batch(found: list[Validated], subjects: Subjects) -> None:
    """Raise RecordsRefusedError if a record has no schema, or one that is not registered under the subject."""
    faults: dict[int, str] = {}
    for column, subject, references in found:
        for row, reference in references:
            if isinstance(reference, str):
                faults.setdefault(row, reference)
            elif subject not in subjects.get(reference, ()):
                kind = "GUID" if isinstance(reference, UUID) else "id"
                faults.setdefault(
                    row, f"the schema of its {column}, {kind} {reference}, is not registered under {subject}"
                )
    if faults:
        rows = sorted(faults.items())
        text = f"{len(rows)} records are rejected by schema validation, record {rows[0][0]} because {rows[0][1]}"
        raise RecordsRefusedError(ErrorCode.INVALID_RECORD, text, rows[:MOST_ERRORS])
