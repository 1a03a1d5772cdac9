"""`InsertField`: what is known of a record, or a constant, as a field of it."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.errors import ConfigError
from ottla.pipelines.model import Scalar
from ottla.pipelines.rows import column, fields_of, needed, with_fields
from ottla.pipelines.surroundings import text_of
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class InsertField(ConnectTransform):
    """Adds fields. A name may end with `!` or `?` as in Connect, where they say whether a schema lets it be null."""

    static_field: str | None = Field(default=None, alias="static.field")
    """The field that is `static.value`."""
    static_value: Scalar | None = Field(default=None, alias="static.value")
    """The constant; text."""
    topic_field: str | None = Field(default=None, alias="topic.field")
    """The field that is the topic."""
    partition_field: str | None = Field(default=None, alias="partition.field")
    """The field that is the partition, of records of topics."""
    offset_field: str | None = Field(default=None, alias="offset.field")
    """The field that is the offset, of records of topics."""
    timestamp_field: str | None = Field(default=None, alias="timestamp.field")
    """The field that is the record's time, of records of topics."""

    @model_validator(mode="after")
    def something_is_inserted(self) -> InsertField:
        if not self.wanted() and self.static_field is None:
            names = "static.field, topic.field, partition.field, offset.field and timestamp.field"
            raise ValueError(f"nothing is inserted; give one of {names}")
        if (self.static_field is None) != (self.static_value is None):
            raise ValueError("static.field and static.value go together; give both")
        return self

    def wanted(self) -> dict[str, Any]:
        """The fields that are asked for, by what they are to be."""
        names = {
            "topic": self.topic_field,
            "partition": self.partition_field,
            "offset": self.offset_field,
            "timestamp": self.timestamp_field,
        }
        return {what: name.rstrip("!?") for what, name in names.items() if name is not None}

    def step(self, frame: DataFrame) -> DataFrame:
        fields = fields_of(frame, self.part)
        new = {name: column(needed(frame, f"_{what}")) for what, name in self.wanted().items()}
        if self.static_field is not None and self.static_value is not None:
            new[self.static_field.rstrip("!?")] = F.lit(text_of(self.static_value))
        for name in new:
            if name in fields:
                raise ConfigError(
                    f"there is a field {name!r} already; rename it with ReplaceField, or choose another name"
                )
        return with_fields(frame, self.part, fields | new)
