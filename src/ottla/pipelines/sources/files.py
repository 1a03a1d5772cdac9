"""`type: files`: the files of a folder, each once, new ones as they come."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator, model_validator
from pyspark.sql import DataFrame, SparkSession

from ottla.pipelines.address import check_files
from ottla.pipelines.model import Scalar
from ottla.pipelines.sources.source import Source
from ottla.pipelines.surroundings import Surroundings

STRICT = {"csv": {"mode": "FAILFAST", "enforceSchema": "false"}, "json": {"mode": "FAILFAST"}}
"""What stops the pipeline at a line that is not what the columns say, instead of nulls that nobody asked for."""
PATTERN = frozenset("*?[]{}\\")
"""What makes a path a pattern, as Hadoop reads it."""


class FilesSource(Source):
    """The rows of files in a folder; a file that is there has been read whole, so move finished files in."""

    type: Literal["files"]
    format: Literal["csv", "json", "parquet", "lines"]
    """What is in the files. `json` has an object in each line; `lines` gives each line as the column `value`."""
    path: str
    """The folder, or a pattern of files such as `in/*.csv`; relative to the pipeline file."""
    columns: str | None = Field(default=None, alias="schema")
    """The columns, such as `id bigint, name string`; `parquet` may do without where there is a file, `lines` has none."""
    options: dict[str, Scalar] = {}
    """More options of Spark's file source, such as `header: true` of CSV or `maxFilesPerTrigger: 10`."""

    _path = field_validator("path")(check_files)

    @model_validator(mode="after")
    def columns_are_known(self) -> FilesSource:
        if self.format in ("csv", "json") and self.columns is None:
            raise ValueError(f"format {self.format} needs schema, the columns, such as `id bigint, name string`")
        if self.format == "lines" and self.columns is not None:
            raise ValueError("format lines has no schema: each line is the column value; leave schema out")
        return self

    def describe(self) -> str:
        return f"{self.format} files {self.path}"

    def misplaced(self, around: Surroundings) -> Iterator[tuple[str, str]]:
        path = around.path(self.path)
        # Not a pattern: Spark takes the path of a stream for the folder under which partitions begin.
        if "://" not in path and PATTERN.isdisjoint(path) and os.path.isfile(path):
            remedy = "name the folder that it is in, or a pattern there such as `in/*.csv`"
            yield "path", f"path = {self.path!r}: must be a folder, and is a file; {remedy}"

    def read(self, spark: SparkSession, around: Surroundings, tolerant: bool) -> DataFrame:
        reader = spark.readStream.format("text" if self.format == "lines" else self.format)
        if self.columns is not None:
            reader = reader.schema(self.columns)
        elif self.format == "parquet":
            reader = reader.schema(spark.read.parquet(around.path(self.path)).schema)
        return reader.options(**(STRICT.get(self.format, {}) | around.options(self.options))).load(
            around.path(self.path)
        )
