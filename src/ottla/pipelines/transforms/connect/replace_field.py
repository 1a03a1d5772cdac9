"""`ReplaceField`: fields are left out, chosen, renamed."""

from __future__ import annotations

from pydantic import field_validator
from pyspark.sql import DataFrame

from ottla.pipelines.rows import fields_of, known, with_fields
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform, Names


class ReplaceField(ConnectTransform):
    """Leaves fields out, or all but some, and gives others new names."""

    exclude: Names | None = None
    """Fields that are left out; they win over `include`."""
    include: Names | None = None
    """The fields that stay; all without it."""
    renames: Names | None = None
    """`old:new` pairs with commas between."""

    @field_validator("renames")
    @classmethod
    def renames_are_pairs(cls, renames: list[str] | None) -> list[str] | None:
        for one in renames or ():
            old, colon, new = one.partition(":")
            if not (old and colon and new):
                raise ValueError(f"{one!r} is no pair; write old:new")
        return renames

    def new_names(self) -> dict[str, str]:
        """The new name of each field that gets one."""
        return {one.partition(":")[0]: one.partition(":")[2] for one in self.renames or ()}

    def step(self, frame: DataFrame) -> DataFrame:
        fields, renames = fields_of(frame, self.part), self.new_names()
        for names in (self.exclude, self.include, renames):
            known(fields, names or ())
        left = {
            renames.get(name, name): one
            for name, one in fields.items()
            if name not in (self.exclude or ()) and (self.include is None or name in self.include)
        }
        return with_fields(frame, self.part, left)
