"""JSON into columns: whole blocks by Arrow's reader where that gives what Spark gives, else row by row.

Arrow's reader is strict: it refuses a block in which anything at all is unusual. Such a block is halved until what is
unusual is among few rows, which are read one by one, so that a bad row does not cost its neighbours their speed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from ottla.spark.formats.format import Decoded
from ottla.spark.formats.json_quick import Unusual, quick_type, settled
from ottla.spark.formats.json_text import NotJson, parse_json
from ottla.spark.formats.json_values import Misfit, Reading, reader_of

FEW = 32
"""Rows that are not worth another try as a block."""
AROUND = (b'{"v":', b"}\n", b"")
"""What makes a row an object of its own line, and what stands between the three."""
SPACE = " \t\r\n"
"""A row of nothing else is null, as one of no bytes is."""
INF = re.compile(rb"[:\[,]\s*-?Inf(?!inity)")
"""A number to Arrow's reader, and none to Spark's."""


class Json:
    """Objects with the fields of `kind`; times that name no zone are of `zone`."""

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
        """The column in as few pieces as can be; `first` is the number of its first row."""
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
        """All rows at once; ArrowInvalid or Unusual if anything is out of the ordinary."""
        column.cast(pa.string())  # is it UTF-8? Arrow's reader does not ask
        # Each row becomes an object of its own line, so that nothing in it can be taken for another row.
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
        if values.null_count != column.null_count:  # the word null, which is no object
            raise Unusual
        found: pa.Array[Any] = settled(values, self.kind, self.zone)
        return found

    def rows(self, column: pa.Array[Any], first: int, errors: dict[int, str]) -> pa.Array[Any]:
        """The rows one by one."""
        found = []
        for row, data in enumerate(column.to_pylist()):
            value, error = self.row(data)
            found.append(value)
            if error:
                errors[first + row] = error
        values: pa.Array[Any] = pa.array(found, self.kind)
        return values

    def row(self, data: bytes | None) -> tuple[dict[str, Any] | None, str]:
        """What could be read of a row, and what is wrong with it, if anything is."""
        text = "" if data is None else data.decode("utf-8", "replace")
        if not text.strip(SPACE):
            return None, ""
        reading = Reading(self.zone)
        try:
            return self.read(present(parse_json(text)), reading), "; ".join(reading.misfits)
        except NotJson as error:
            return {}, f"no JSON: {error}"
        except Misfit as error:
            return {}, str(error)


def present(node: Any) -> Any:
    """The node of a row, which may not be the word null."""
    if node is None:
        raise Misfit("null is no object")
    return node
