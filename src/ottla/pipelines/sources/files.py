"""`type: files`: the files of a folder, each once, new ones as they appear."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator, model_validator
from pyspark.sql import DataFrame, SparkSession

from ottla.pipelines.address import check_files
from ottla.pipelines.model import Scalar
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.sources.source import Source

STRICT = {"csv": {"mode": "FAILFAST", "enforceSchema": "false"}, "json": {"mode": "FAILFAST"}}
"""Options that stop the pipeline at a line that does not match the columns. Spark's default would return nulls."""
PATTERN = frozenset("*?[]{}\\")
"""The characters that make a path a pattern in Hadoop."""


class FilesSource(Source):
    """The rows of files in a folder. A file is read completely when it appears, so move finished files in."""

    type: Literal["files"]
    format: Literal["csv", "json", "parquet", "lines"]
    """The format of the files. `json` has an object in each line; `lines` returns each line as the column `value`."""
    path: str
    """The folder, or a pattern of files such as `in/*.csv`; relative to the pipeline file."""
    columns: str | None = Field(default=None, alias="schema")
    """The columns, for example `id bigint, name string`; optional for `parquet` if a file exists, and not allowed for
    `lines`.
    """
    options: dict[str, Scalar] = {}
    """More options of Spark's file source, for example `header: true` for CSV or `maxFilesPerTrigger: 10`."""

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

    def find_misplaced(self, context: PipelineContext) -> Iterator[tuple[str, str]]:
        path = context.path(self.path)
        # A path without a pattern must be a folder: Spark takes the path of a stream as the root of its partitions.
        if "://" not in path and PATTERN.isdisjoint(path) and os.path.isfile(path):
            remedy = "use its folder, or a pattern there such as `in/*.csv`"
            yield "path", f"path = {self.path!r}: must be a folder, not a file; {remedy}"

    def read(self, spark: SparkSession, context: PipelineContext, tolerant: bool) -> DataFrame:
        reader = spark.readStream.format("text" if self.format == "lines" else self.format)
        if self.columns is not None:
            reader = reader.schema(self.columns)
        elif self.format == "parquet":
            reader = reader.schema(spark.read.parquet(context.path(self.path)).schema)
        return reader.options(**(STRICT.get(self.format, {}) | context.options(self.options))).load(
            context.path(self.path)
        )
