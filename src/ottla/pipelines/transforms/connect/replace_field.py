"""`ReplaceField`: removes, selects and renames fields."""

from __future__ import annotations

from pydantic import field_validator
from pyspark.sql import DataFrame

from ottla.pipelines.rows import checked_names, fields_of, with_fields
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform, Names


class ReplaceField(ConnectTransform):
    """Removes fields, or keeps only some, and renames others."""

    exclude: Names | None = None
    """The fields to remove; they take precedence over `include`."""
    include: Names | None = None
    """The fields to keep; all without it."""
    renames: Names | None = None
    """Pairs `old:new`, separated by commas."""

    @field_validator("renames")
    @classmethod
    def renames_are_pairs(cls, renames: list[str] | None) -> list[str] | None:
        for one in renames or ():
            old, colon, new = one.partition(":")
            if not (old and colon and new):
                raise ValueError(f"{one!r} is not a pair; write old:new")
        return renames

    def new_names(self) -> dict[str, str]:
        """Return the new name of each renamed field."""
        return {one.partition(":")[0]: one.partition(":")[2] for one in self.renames or ()}

    def step(self, frame: DataFrame) -> DataFrame:
        fields, renames = fields_of(frame, self.part), self.new_names()
        for names in (self.exclude, self.include, renames):
            checked_names(fields, names or ())
        left = {
            renames.get(name, name): one
            for name, one in fields.items()
            if name not in (self.exclude or ()) and (self.include is None or name in self.include)
        }
        return with_fields(frame, self.part, left)
