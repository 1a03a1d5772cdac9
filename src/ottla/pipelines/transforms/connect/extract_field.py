"""`ExtractField`: one field instead of the whole."""

from __future__ import annotations

from pyspark.sql import DataFrame

from ottla.pipelines.rows import field, known, types_of, with_whole
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class ExtractField(ConnectTransform):
    """The key or the value becomes what one of its fields is."""

    field: str
    """The field."""

    def step(self, frame: DataFrame) -> DataFrame:
        kinds = types_of(frame, self.part)
        known(kinds, [self.field])
        return with_whole(frame, self.part, field(self.part, self.field), kinds[self.field])
