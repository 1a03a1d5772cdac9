"""Schemas as text, as Spark reads them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from ottla.errors import ConfigError
from ottla.spark.columns.ddl import parse_schema

TEXTS = [
    "id bigint, name string",
    "a INT, b Integer, c long, d smallint, e short, f tinyint, g byte, h float, i real, j double, k boolean, l binary",
    "at timestamp, l timestamp_ltz, n timestamp_ntz, d date, p decimal, q decimal(5), r decimal(20,3), s numeric(4, 1)",
    "a array<int>, m map<string, array<double>>, s struct<x: int, `y z`: struct<deep: string>>",
    "`odd ``name` int NOT NULL COMMENT 'it''s', b string",
    "struct<a: int, b: string>",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_schema_is_read_as_by_spark(spark: SparkSession, text: str) -> None:
    theirs = StructType.fromDDL(text)
    ours = parse_schema("valueSchema", text)
    assert ours.simpleString() == theirs.simpleString()
    assert parse_schema("valueSchema", theirs.json()) == ours


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("id", "expected a type at ''"),
        ("id bigint name string", "expected the end, or a comma at 'name string'"),
        ("id int4", "expected a type instead of 'int4', for example"),
        ("a array<int", "expected '>' at ''"),
        ("p decimal(50,2)", "a precision of at most 38"),
        ("", "expected a column's name at ''"),
        ('{"type": "struct"', "is not a Spark schema"),
        ('{"type": "struct", "fields": []}', "has no column"),
    ],
)
def test_an_invalid_schema_is_a_one_line_error(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match="valueSchema") as error:
        parse_schema("valueSchema", text)
    assert sentence in str(error.value)
