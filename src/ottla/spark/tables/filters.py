"""Converts Spark's filters to those of Arrow and of Iceberg.

Filters only reduce the rows that are read: Spark applies all of them again. So a filter without an equivalent is left
out, and so are filters on floating-point numbers, because Spark orders NaN differently.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import date, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import datasource as spark
from pyspark.sql.types import DataType, DoubleType, FloatType, StructType

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    from pyiceberg.expressions import BooleanExpression

PUSHING = "pyspark.sql.worker.data_source_pushdown_filters"


def has_filter_pushdown() -> bool:
    """Return True if Spark creates this reader to push filters down to it.

    Spark rejects readers that could take filters while spark.sql.python.filterPushdown.enabled is false (the default),
    and does not pass the setting to the reader. But it uses a separate worker module to create readers with filters, so
    that module is imported.
    """
    return PUSHING in sys.modules


def find_usable(filters: Iterable[spark.Filter], schema: StructType) -> list[spark.Filter]:
    """Return the filters that have the same meaning outside of Spark."""
    kinds: dict[str, DataType] = {field.name: field.dataType for field in schema.fields}
    return [f for f in filters if is_usable(f, kinds)]


def is_usable(found: spark.Filter, kinds: dict[str, DataType]) -> bool:
    column: tuple[str, ...] = getattr(found, "attribute", ())
    if len(column) != 1 or isinstance(kinds.get(column[0], DoubleType()), DoubleType | FloatType):
        return False
    values = found.value if isinstance(found, spark.In) else (getattr(found, "value", None),)
    return type(found) in ARROW and all(isinstance(v, int | str | bytes | date | datetime | None) for v in values)


ARROW: dict[type[spark.Filter], Callable[[Any, Any], ds.Expression]] = {
    spark.EqualTo: lambda field, value: field == value,
    spark.GreaterThan: lambda field, value: field > value,
    spark.GreaterThanOrEqual: lambda field, value: field >= value,
    spark.LessThan: lambda field, value: field < value,
    spark.LessThanOrEqual: lambda field, value: field <= value,
    spark.In: lambda field, values: field.isin(list(values)),
    spark.IsNull: lambda field, _: field.is_null(),
    spark.IsNotNull: lambda field, _: field.is_valid(),
}


def for_arrow(filters: Iterable[spark.Filter], schema: StructType) -> ds.Expression | None:
    """Return the conjunction of all filters; None if there are none."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(schema, timezone="UTC")
    found = []
    for f in filters:
        name = f.attribute[0]  # type: ignore[attr-defined]  # checked by is_usable
        value = getattr(f, "value", None)
        if isinstance(f, spark.In):
            value = pa.array(f.value, arrow.field(name).type)
        elif value is not None:
            value = pa.scalar(value, arrow.field(name).type)
        found.append(ARROW[type(f)](pc.field(name), value))
    return reduce(lambda left, right: left & right, found) if found else None


def for_iceberg(filters: Iterable[spark.Filter]) -> BooleanExpression:
    from pyiceberg import expressions

    iceberg: Any = expressions  # its classes are created dynamically, unlike their type hints
    found = iceberg.AlwaysTrue()
    for f in filters:
        name, kind = f.attribute[0], type(f).__name__  # type: ignore[attr-defined]  # checked by is_usable
        if isinstance(f, spark.In):
            part = iceberg.In(name, {iceberg_literal(value) for value in f.value})
        elif isinstance(f, spark.IsNull | spark.IsNotNull):
            part = {"IsNull": iceberg.IsNull, "IsNotNull": iceberg.NotNull}[kind](name)
        else:  # the comparisons have the same names
            part = getattr(iceberg, kind)(name, iceberg_literal(f.value))  # type: ignore[attr-defined]
        found = iceberg.And(found, part)
    return cast("BooleanExpression", found)


def iceberg_literal(value: Any) -> Any:
    """Return a value for Iceberg's expressions."""
    return value.isoformat() if isinstance(value, date) else value
