"""`Cast`: fields, or the whole, as another type."""

from __future__ import annotations

from pydantic import Field, field_validator

from ottla.config import unknown
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform, Names

TYPES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "float",
    "float64": "double",
    "boolean": "boolean",
    "string": "string",
}
"""Connect's types and Spark's."""


class Cast(ConnectTransform):
    """Casts fields (`spec: "id:int64,price:float64"`), or a value that is no record (`spec: string`)."""

    spec: Names
    """`field:type` pairs with commas between, or one type for the whole."""
    replace_null_with_default: bool = Field(default=True, alias="replace.null.with.default")
    """Accepted: columns have no defaults here, and null stays null."""

    @field_validator("spec")
    @classmethod
    def types_are_known(cls, spec: list[str]) -> list[str]:
        for one in spec:
            kind = one.rpartition(":")[2].strip()
            if kind not in TYPES:
                raise ValueError(f"{one!r}: {unknown('type', kind, TYPES)} The types are {', '.join(TYPES)}.")
        if len(spec) > 1 and not all(":" in one for one in spec):
            raise ValueError("give field:type pairs, or one type alone for the whole")
        return spec
