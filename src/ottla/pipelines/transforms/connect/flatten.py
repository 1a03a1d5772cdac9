"""`Flatten`: nested fields become fields of the record."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType, StructType

from ottla.errors import ConfigError
from ottla.pipelines.rows import field, types_of, with_fields
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class Flatten(ConnectTransform):
    """The fields of a nested record become fields named `outer.inner`; lists and maps are unchanged."""

    delimiter: str = "."
    """The separator between the names."""

    def step(self, frame: DataFrame) -> DataFrame:
        fields: dict[str, Column] = {}
        for name, kind in types_of(frame, self.part).items():
            for inner, one in self.flat(name, field(self.part, name), kind):
                if inner in fields:
                    raise ConfigError(f"two fields would be named {inner!r}; choose another delimiter")
                fields[inner] = one
        return with_fields(frame, self.part, fields)

    def flat(self, name: str, one: Column, kind: DataType) -> Iterator[tuple[str, Column]]:
        """Return a field, or the fields nested in it."""
        if not isinstance(kind, StructType):
            yield name, one
            return
        for inner in kind.fields:
            yield from self.flat(f"{name}{self.delimiter}{inner.name}", one[inner.name], inner.dataType)
