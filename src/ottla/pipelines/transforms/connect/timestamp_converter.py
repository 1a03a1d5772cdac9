"""`TimestampConverter`: times as text, as numbers since 1970, as Connect's types."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class TimestampConverter(ConnectTransform):
    """Turns a field, or a value that is no record, from any form of time into another; in UTC."""

    field: str = ""
    """The field; without it the whole."""
    target_type: Literal["string", "unix", "Date", "Time", "Timestamp"] = Field(alias="target.type")
    """The form that it gets."""
    format: str = ""
    """How text is written, by the letters of Java's SimpleDateFormat; for text that comes or goes."""
    unix_precision: Literal["seconds", "milliseconds", "microseconds", "nanoseconds"] = Field(
        default="milliseconds", alias="unix.precision"
    )
    """What numbers count."""

    @model_validator(mode="after")
    def text_has_a_format(self) -> TimestampConverter:
        if self.target_type == "string" and not self.format:
            raise ValueError("target.type string needs format, such as `yyyy-MM-dd HH:mm:ss`")
        return self
