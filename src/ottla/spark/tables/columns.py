"""Compares the columns of rows and tables: types that a format supports, and whether rows fit a table. Pure."""

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


def relax_type(kind: DataType, *, widen: bool = False) -> DataType:
    """Return `kind` with all parts nullable; `widen` replaces small integers by int, because Iceberg does not have them."""
    match kind:
        case StructType(fields=fields):
            return StructType([StructField(f.name, relax_type(f.dataType, widen=widen), True) for f in fields])
        case ArrayType(elementType=element):
            return ArrayType(relax_type(element, widen=widen), True)
        case MapType(keyType=key, valueType=value):
            return MapType(relax_type(key, widen=widen), relax_type(value, widen=widen), True)
        case ByteType() | ShortType() if widen:
            return IntegerType()
    return kind


def table_schema(schema: StructType, *, widen: bool = False) -> StructType:
    """Return the columns of a new table for rows of `schema`."""
    found = relax_type(schema, widen=widen)
    assert isinstance(found, StructType)
    return found


def ensure_fits(rows: StructType, table: StructType, name: str, merge: bool) -> list[StructField]:
    """Return the columns of `rows` to add to the table, if `merge` allows that.

    SchemaMismatchError lists every column that differs, with the remedy.
    """
    there = {f.name: f for f in table.fields}
    given = {f.name: f for f in rows.fields}
    joined = {
        f.name for f in rows.fields if merge and f.name in there and wider_type(f.dataType, there[f.name].dataType)
    }
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
        raise mismatch_error(name, other, "cast it, or write to another table")
    if not merge and (new or missing):
        sentences = [f"column {f.name!r} is not in the table" for f in new]
        sentences += [f"column {f.name!r} of the table is not in the rows" for f in missing]
        raise mismatch_error(name, sentences, "set mergeSchema to true to add and omit columns, or select the table's")
    required = [f.name for f in missing if not f.nullable]
    if required:
        raise mismatch_error(name, [f"column {c!r} may not be null and is not in the rows" for c in required], "add it")
    return new


def wider_type(one: DataType, other: DataType) -> DataType | None:
    """Return the numeric type that has all values of both; None if neither has, or they are of different families."""
    for family in (WHOLE, FLOATING):
        if type(one) in family and type(other) in family:
            return max(one, other, key=lambda kind: family.index(type(kind)))
    if isinstance(one, DecimalType) and isinstance(other, DecimalType) and one.scale == other.scale:
        return max(one, other, key=lambda kind: kind.precision)
    return None


def merge_columns(rows: StructType, table: StructType, merge: bool) -> StructType:
    """Return the columns of rows with the types in the table after it was widened, if `merge` allows that."""
    there = {f.name: f.dataType for f in table.fields}
    kinds = [wider_type(f.dataType, there[f.name]) if merge and f.name in there else None for f in rows.fields]
    return StructType(
        [StructField(f.name, kind or f.dataType, f.nullable) for f, kind in zip(rows.fields, kinds, strict=True)]
    )


def to_widen(rows: StructType, table: StructType, merge: bool) -> list[StructField]:
    """Return the table's columns that need wider types for the rows, with these types."""
    there = {f.name: f for f in table.fields}
    return [
        StructField(f.name, f.dataType, there[f.name].nullable)
        for f in merge_columns(rows, table, merge).fields
        if f.name in there and f.dataType != there[f.name].dataType and wider_type(f.dataType, there[f.name].dataType)
    ]


def mismatch_error(name: str, sentences: list[str], remedy: str) -> SchemaMismatchError:
    return SchemaMismatchError(f"the rows do not fit table {name}: {'; '.join(sentences)}; {remedy}")


def ensure_partitioned(wished: tuple[str, ...], there: tuple[str, ...], name: str) -> None:
    """Raise TableError if an existing table is partitioned otherwise than by `partitionBy`."""
    if wished and wished != there:
        raise TableError(
            f"table {name} is partitioned by {', '.join(there) or 'nothing'}, not by {', '.join(wished)}; "
            "leave the option partitionBy out"
        )


def ensure_columns(wished: tuple[str, ...], schema: StructType) -> None:
    """Raise TableError for a partition column of a new table that the rows do not have."""
    for column in wished:
        if column not in schema.names:
            raise TableError(f"option partitionBy names {column!r}, and the rows have only {', '.join(schema.names)}")
