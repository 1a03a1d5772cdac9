"""`InsertField`: metadata of a record, or a constant, as a field."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.errors import ConfigError
from ottla.pipelines.model import Scalar
from ottla.pipelines.pipeline_context import text_of
from ottla.pipelines.rows import column, fields_of, require_column, with_fields
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class InsertField(ConnectTransform):
    """Adds fields. A name may end with `!` or `?` as in Kafka Connect, which marks whether the schema allows null."""

    static_field: str | None = Field(default=None, alias="static.field")
    """The field for `static.value`."""
    static_value: Scalar | None = Field(default=None, alias="static.value")
    """The constant; text."""
    topic_field: str | None = Field(default=None, alias="topic.field")
    """The field for the topic."""
    partition_field: str | None = Field(default=None, alias="partition.field")
    """The field for the partition; only for records of topics."""
    offset_field: str | None = Field(default=None, alias="offset.field")
    """The field for the offset; only for records of topics."""
    timestamp_field: str | None = Field(default=None, alias="timestamp.field")
    """The field for the record's timestamp; only for records of topics."""

    @model_validator(mode="after")
    def something_is_inserted(self) -> InsertField:
        if not self.wanted() and self.static_field is None:
            names = "static.field, topic.field, partition.field, offset.field and timestamp.field"
            raise ValueError(f"nothing is inserted; give one of {names}")
        if (self.static_field is None) != (self.static_value is None):
            raise ValueError("static.field needs static.value; give both")
        return self

    def wanted(self) -> dict[str, Any]:
        """Return the name of each requested field by its metadata."""
        names = {
            "topic": self.topic_field,
            "partition": self.partition_field,
            "offset": self.offset_field,
            "timestamp": self.timestamp_field,
        }
        return {what: name.rstrip("!?") for what, name in names.items() if name is not None}

    def step(self, frame: DataFrame) -> DataFrame:
        fields = fields_of(frame, self.part)
        new = {name: column(require_column(frame, f"_{what}")) for what, name in self.wanted().items()}
        if self.static_field is not None and self.static_value is not None:
            new[self.static_field.rstrip("!?")] = F.lit(text_of(self.static_value))
        for name in new:
            if name in fields:
                raise ConfigError(f"field {name!r} exists already; rename it with ReplaceField, or choose another name")
        return with_fields(frame, self.part, fields | new)
