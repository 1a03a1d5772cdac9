"""The columns of a topic in Spark: those of the official connector, with key and value decoded if configured."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.columns.row_decoder import ERROR, RAW, RAW_KEY

BINARY = BinaryType()
COLUMNS = [
    StructField("key", BINARY),
    StructField("value", BINARY),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
]
HEADER = StructType([StructField("key", StringType()), StructField("value", BINARY)])
ERRORS = [StructField(ERROR, StringType()), StructField(RAW, BINARY)]


def spark_schema(
    include_headers: bool = False,
    key: DataType = BINARY,
    value: DataType = BINARY,
    with_errors: bool = False,
    with_raw_key: bool = False,
) -> StructType:
    """Return the columns of a topic with these types of keys and values; a raw key is only included with errors."""
    columns = [StructField("key", key), StructField("value", value), *COLUMNS[2:]]
    if include_headers:
        columns.append(StructField("headers", ArrayType(HEADER)))
    raw_key = [StructField(RAW_KEY, BINARY)] if with_errors and with_raw_key else []
    return StructType([*columns, *(ERRORS if with_errors else []), *raw_key])
