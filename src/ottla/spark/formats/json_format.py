"""Decodes JSON: whole blocks by Arrow's reader if its result is Spark's, otherwise row by row.

Arrow's reader is strict: it rejects a block with anything unusual in it. Such a block is halved until the unusual part
is in a few rows, which are decoded one by one, so that a bad row does not slow down the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from ottla.spark.formats.format import Decoded
from ottla.spark.formats.json_quick import Unusual, convert_values, quick_type
from ottla.spark.formats.json_text import NotJson, parse_json
from ottla.spark.formats.json_values import Misfit, ReadContext, reader_of

FEW = 32
"""The number of rows that are not decoded as a block."""
AROUND = (b'{"v":', b"}\n", b"")
"""The texts around a row, which make it an object on a line of its own, and the separator."""
SPACE = " \t\r\n"
"""A row of white space only is null, like an empty one."""
INF = re.compile(rb"[:\[,]\s*-?Inf(?!inity)")
"""A number for Arrow's reader, but not for Spark's."""


class Json:
    """Decodes objects with the fields of `kind`; times without a zone are in `zone`."""

    def __init__(self, kind: Any, zone: str = "UTC") -> None:
        self.kind, self.zone = kind, zone
        self.read = reader_of(kind)
        self.quick = quick_type(kind, zone)

    def decode(self, column: pa.Array[Any]) -> Decoded:
        errors: dict[int, str] = {}
        parts = list(self.parts(column, 0, errors))
        values = parts[0] if len(parts) == 1 else pa.concat_arrays(parts or [pa.array([], self.kind)])
        return Decoded(values, errors)

    def parts(self, column: pa.Array[Any], first: int, errors: dict[int, str]) -> Iterator[pa.Array[Any]]:
        """Yield the column in as few pieces as possible; `first` is the number of its first row."""
        if len(column) > FEW and self.quick is not None:
            try:
                yield self.block(column)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, Unusual):
                middle = len(column) // 2
                yield from self.parts(column[:middle], first, errors)
                yield from self.parts(column[middle:], first + middle, errors)
        elif len(column):
            yield self.rows(column, first, errors)

    def block(self, column: Any) -> pa.Array[Any]:
        """Return all rows at once; ArrowInvalid or Unusual if anything is unusual."""
        column.cast(pa.string())  # raises for invalid UTF-8, which Arrow's reader does not check
        # Each row becomes an object on a line of its own, so that no part of it can be read as another row.
        before, after, between = (pa.scalar(text, pa.binary()) for text in AROUND)
        lines: Any = pc.binary_join_element_wise(
            before, column, after, between, null_handling="replace", null_replacement="null"
        )
        text = lines.buffers()[2]
        if b"Inf" in memoryview(text).tobytes() and INF.search(text):
            raise Unusual
        source: Any = pa.BufferReader(text)
        table = pj.read_json(
            source,
            pj.ReadOptions(use_threads=False, block_size=text.size + 1),
            pj.ParseOptions(explicit_schema=pa.schema([("v", self.quick)]), unexpected_field_behavior="ignore"),
        )
        if table.num_rows != len(column):
            raise Unusual
        values = table.column("v").combine_chunks()
        if values.null_count != column.null_count:  # the word null, which is not an object
            raise Unusual
        found: pa.Array[Any] = convert_values(values, self.kind, self.zone)
        return found

    def rows(self, column: pa.Array[Any], first: int, errors: dict[int, str]) -> pa.Array[Any]:
        """Return the rows, decoded one by one."""
        found = []
        for row, data in enumerate(column.to_pylist()):
            value, error = self.row(data)
            found.append(value)
            if error:
                errors[first + row] = error
        values: pa.Array[Any] = pa.array(found, self.kind)
        return values

    def row(self, data: bytes | None) -> tuple[dict[str, Any] | None, str]:
        """Return the fields of a row that could be read, and the error, or an empty text."""
        text = "" if data is None else data.decode("utf-8", "replace")
        if not text.strip(SPACE):
            return None, ""
        reading = ReadContext(self.zone)
        try:
            return self.read(present(parse_json(text)), reading), "; ".join(reading.misfits)
        except NotJson as error:
            return {}, f"not JSON: {error}"
        except Misfit as error:
            return {}, str(error)


def present(node: Any) -> Any:
    """Return the node of a row; Misfit for the word null."""
    if node is None:
        raise Misfit("null is not an object")
    return node
