"""`ExtractField`: one field in place of the key or the value."""

from __future__ import annotations

from pyspark.sql import DataFrame

from ottla.pipelines.rows import checked_names, field, types_of, with_whole
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class ExtractField(ConnectTransform):
    """The key or the value becomes the value of one of its fields."""

    field: str
    """The field."""

    def step(self, frame: DataFrame) -> DataFrame:
        kinds = types_of(frame, self.part)
        checked_names(kinds, [self.field])
        return with_whole(frame, self.part, field(self.part, self.field), kinds[self.field])
