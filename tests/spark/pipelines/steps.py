"""Transforms at work on rows that a test gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pyspark.sql import DataFrame, Row, SparkSession

from ottla.pipelines.file.choice import one_of, predicate_by_type, transform_by_key
from ottla.pipelines.file.pipeline_file import TRANSFORMS
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.transforms import PREDICATES
from ottla.pipelines.transforms.transform import Transform

TRANSFORM: TypeAdapter[Any] = TypeAdapter(one_of(TRANSFORMS, transform_by_key))
PREDICATE: TypeAdapter[Any] = TypeAdapter(one_of(PREDICATES, predicate_by_type))

RECORD = (
    "named_struct('id', 1) as _key, 'orders' as _topic, 3 as _partition, 7L as _offset, "
    "timestamp'2026-05-01 10:00:00' as _timestamp, false as _tombstone, "
    "array(named_struct('key', 'a', 'value', binary('x'))) as _headers"
)
"""The metadata columns of a record of a topic."""


def step(given: Mapping[str, Any]) -> Transform:
    """A transform as the file has it."""
    found: Transform = TRANSFORM.validate_python(dict(given))
    return found


def rows(spark: SparkSession, *values: str, beside: str = RECORD) -> DataFrame:
    """A row for each list of columns in SQL."""
    return spark.sql(" union all ".join(f"select {value}{', ' + beside if beside else ''}" for value in values))


def after(frame: DataFrame, *steps: Mapping[str, Any], folder: Path | None = None, **predicates: Any) -> DataFrame:
    """The rows after the steps."""
    known = {name: PREDICATE.validate_python(one) for name, one in predicates.items()}
    for one in steps:
        frame = step(one).apply(frame, PipelineContext(folder=folder or Path(), predicates=known))
    return frame


def value(frame: DataFrame) -> dict[str, Any]:
    """The value of the only row, as its fields."""
    (row,) = frame.collect()
    return {name: plain(one) for name, one in row.asDict().items() if not name.startswith("_")}


def of(frame: DataFrame, name: str) -> Any:
    """Return a metadata column of the only row."""
    (row,) = frame.collect()
    return plain(row[name])


def plain(one: Any) -> Any:
    """Rows as dicts, bytes as bytes."""
    if isinstance(one, Row):
        return {name: plain(inner) for name, inner in one.asDict().items()}
    if isinstance(one, list):
        return [plain(inner) for inner in one]
    return bytes(one) if isinstance(one, bytearray) else one
