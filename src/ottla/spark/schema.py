"""The columns of a topic in Spark: those of the official connector.

The Arrow schema is the very one Spark derives from its own, because it accepts no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = [
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
]
HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


def spark_schema(include_headers: bool) -> StructType:
    """The columns of a topic."""
    return StructType([*COLUMNS, *([StructField("headers", ArrayType(HEADER))] if include_headers else [])])


def arrow_schema(include_headers: bool) -> pa.Schema:
    """The same columns as Spark wants them in Arrow: microseconds, UTC."""
    return to_arrow_schema(spark_schema(include_headers), timezone="UTC")
