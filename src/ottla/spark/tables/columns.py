"""The columns of rows and of a table: what a format can hold, and whether the one fits the other. Pure."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructField,
    StructType,
)

from ottla.spark.tables.errors import SchemaMismatchError, TableError

WHOLE: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)
FLOATING: tuple[type[DataType], ...] = (FloatType, DoubleType)


def relaxed(kind: DataType, *, widen: bool = False) -> DataType:
    """`kind` where everything may be null; `widen` makes int of the small integers, which Iceberg does not have."""
    match kind:
        case StructType(fields=fields):
            return StructType([StructField(f.name, relaxed(f.dataType, widen=widen), True) for f in fields])
        case ArrayType(elementType=element):
            return ArrayType(relaxed(element, widen=widen), True)
        case MapType(keyType=key, valueType=value):
            return MapType(relaxed(key, widen=widen), relaxed(value, widen=widen), True)
        case ByteType() | ShortType() if widen:
            return IntegerType()
    return kind


def table_schema(schema: StructType, *, widen: bool = False) -> StructType:
    """The columns a new table has for rows of `schema`."""
    found = relaxed(schema, widen=widen)
    assert isinstance(found, StructType)
    return found


def ensure_fits(rows: StructType, table: StructType, name: str, merge: bool) -> list[StructField]:
    """The columns of `rows` that are to be added to the table, where `merge` allows that.

    SchemaMismatchError names every column that differs, and the remedy.
    """
    there = {f.name: f for f in table.fields}
    given = {f.name: f for f in rows.fields}
    joined = {f.name for f in rows.fields if merge and f.name in there and wider(f.dataType, there[f.name].dataType)}
    other = [
        f"column {f.name!r} is {f.dataType.simpleString()} in the rows and {there[f.name].dataType.simpleString()} in "
        "the table"
        for f in rows.fields
        if f.name in there
        and f.name not in joined
        and f.dataType.simpleString() != there[f.name].dataType.simpleString()
    ]
    new = [f for f in rows.fields if f.name not in there]
    missing = [f for f in table.fields if f.name not in given]
    if other:
        raise mismatch(name, other, "cast it, or write to another table")
    if not merge and (new or missing):
        sentences = [f"column {f.name!r} is not in the table" for f in new]
        sentences += [f"column {f.name!r} of the table is not in the rows" for f in missing]
        raise mismatch(name, sentences, "set mergeSchema to true to add and leave out columns, or select the table's")
    required = [f.name for f in missing if not f.nullable]
    if required:
        raise mismatch(name, [f"column {c!r} may not be null and is not in the rows" for c in required], "add it")
    return new


def wider(one: DataType, other: DataType) -> DataType | None:
    """The one of two numeric types that has all values of both; None if neither has, or they are not of a kind."""
    for family in (WHOLE, FLOATING):
        if type(one) in family and type(other) in family:
            return max(one, other, key=lambda kind: family.index(type(kind)))
    if isinstance(one, DecimalType) and isinstance(other, DecimalType) and one.scale == other.scale:
        return max(one, other, key=lambda kind: kind.precision)
    return None


def merged(rows: StructType, table: StructType, merge: bool) -> StructType:
    """The columns of rows with the types that the table has for them after it was widened, where `merge` allows that."""
    there = {f.name: f.dataType for f in table.fields}
    kinds = [wider(f.dataType, there[f.name]) if merge and f.name in there else None for f in rows.fields]
    return StructType(
        [StructField(f.name, kind or f.dataType, f.nullable) for f, kind in zip(rows.fields, kinds, strict=True)]
    )


def to_widen(rows: StructType, table: StructType, merge: bool) -> list[StructField]:
    """The table's columns whose types must become wider before it takes the rows, as they are then."""
    there = {f.name: f for f in table.fields}
    return [
        StructField(f.name, f.dataType, there[f.name].nullable)
        for f in merged(rows, table, merge).fields
        if f.name in there and f.dataType != there[f.name].dataType and wider(f.dataType, there[f.name].dataType)
    ]


def mismatch(name: str, sentences: list[str], remedy: str) -> SchemaMismatchError:
    return SchemaMismatchError(f"the rows do not fit table {name}: {'; '.join(sentences)}; {remedy}")


def ensure_partitioned(wished: tuple[str, ...], there: tuple[str, ...], name: str) -> None:
    """TableError if a table that exists is partitioned otherwise than `partitionBy` says."""
    if wished and wished != there:
        raise TableError(
            f"table {name} is partitioned by {', '.join(there) or 'nothing'}, not by {', '.join(wished)}; "
            "leave the option partitionBy out"
        )


def ensure_columns(wished: tuple[str, ...], schema: StructType) -> None:
    """TableError for a new table's partition column that the rows do not have."""
    for column in wished:
        if column not in schema.names:
            raise TableError(f"option partitionBy names {column!r}, and the rows have only {', '.join(schema.names)}")
