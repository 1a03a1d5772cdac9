"""Compares the schemas of registered values with those of the last run. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from ottla.errors import ConfigError, SerializationError

PartSchemas = Mapping[str, str]
"""The schemas of one source, as options: `valueSchema`, `keySchema`."""


def find_schema_changes(before: Mapping[str, Any], now: PartSchemas) -> Iterator[str]:
    """Yield a sentence for each schema whose columns have changed; schemas that were not known before are left out."""
    for name, schema in now.items():
        known = before.get(name)
        if not isinstance(known, str) or known == schema:
            continue
        part = name.removesuffix("Schema")
        changes = list(compare_types(part, read_type(known), read_type(schema)))
        if changes:
            yield f"the schema of the {part}s has changed since the last run: {', '.join(changes)}"


def read_type(schema: str) -> DataType | None:
    """Return the type of such a column; None if the schema cannot be a column any more."""
    from ottla.spark.formats.avro import Avro
    from ottla.spark.formats.registered import find_reader_type

    try:
        content = json.loads(schema)
        if isinstance(content, dict) and "schema" in content:
            kind = find_reader_type(content)
            return None if kind is None else from_arrow_type(kind)
        return from_arrow_type(Avro(schema).kind)
    except (ConfigError, SerializationError, ValueError):
        return None


def compare_types(name: str, before: DataType | None, now: DataType | None) -> Iterator[str]:
    """Yield the columns that were added, that were removed, and whose type has changed."""
    if isinstance(before, ArrayType) and isinstance(now, ArrayType):
        yield from compare_types(f"{name}.element", before.elementType, now.elementType)
    elif isinstance(before, MapType) and isinstance(now, MapType):
        yield from compare_types(f"{name}.value", before.valueType, now.valueType)
    elif isinstance(before, StructType) and isinstance(now, StructType):
        columns = {field.name: field.dataType for field in before.fields}
        new = {field.name: field.dataType for field in now.fields}
        prefix = "" if name in ("key", "value") else f"{name}."
        for column, kind in new.items():
            if column in columns:
                yield from compare_types(f"{prefix}{column}", columns[column], kind)
            else:
                yield f"column {prefix}{column} {kind.simpleString()} was added"
        for column in columns:
            if column not in new:
                yield f"column {prefix}{column} {columns[column].simpleString()} was removed"
    elif before != now:
        old, shown = (kind.simpleString() if kind is not None else "nothing" for kind in (before, now))
        what = f"the {name}" if name in ("key", "value") else f"column {name}"
        yield f"{what} was {old} and is {shown}"
