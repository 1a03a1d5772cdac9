"""`HeaderFrom` and `InsertHeader`: fields and constants as headers."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform, Names


class HeaderFrom(ConnectTransform):
    """Fields become headers, and stay fields (`copy`) or not (`move`)."""

    fields: Names
    """The fields."""
    headers: Names
    """The names of the headers, one for each field."""
    operation: Literal["move", "copy"]
    """Whether the fields go."""

    @model_validator(mode="after")
    def each_field_has_a_header(self) -> HeaderFrom:
        if len(self.fields) != len(self.headers):
            raise ValueError(f"{len(self.fields)} fields and {len(self.headers)} headers; name a header for each field")
        return self


class InsertHeader(ConnectTransform):
    """Each record gets a header."""

    has_parts: ClassVar[bool] = False
    header: str
    """Its name."""
    value_literal: str = Field(alias="value.literal")
    """What it is."""
