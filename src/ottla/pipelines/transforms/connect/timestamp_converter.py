"""`TimestampConverter`: times as text, as numbers since 1970, and as Kafka Connect's types."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, IntegralType, StringType, TimestampType

from ottla.errors import ConfigError
from ottla.pipelines.rows import checked_names, fields_of, types_of, whole_of, with_fields, with_whole
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform

PER_SECOND = {"seconds": 1, "milliseconds": 1000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}
MICROS = PER_SECOND["microseconds"]
DAY_MS = 24 * 60 * 60 * 1000


class TimestampConverter(ConnectTransform):
    """Converts a field, or a value that is not a record, from any representation of time to another; in UTC."""

    field: str = ""
    """The field; the whole key or value without it."""
    target_type: Literal["string", "unix", "Date", "Time", "Timestamp"] = Field(alias="target.type")
    """The new representation."""
    format: str = ""
    """The format of text, in the pattern letters of Java's SimpleDateFormat; for text that is read or written."""
    unix_precision: Literal["seconds", "milliseconds", "microseconds", "nanoseconds"] = Field(
        default="milliseconds", alias="unix.precision"
    )
    """The unit of numbers."""

    @model_validator(mode="after")
    def text_has_a_format(self) -> TimestampConverter:
        if self.target_type == "string" and not self.format:
            raise ValueError("target.type string needs format, such as `yyyy-MM-dd HH:mm:ss`")
        return self

    def step(self, frame: DataFrame) -> DataFrame:
        return self.convert(frame, tried=False)

    def tried(self, frame: DataFrame) -> DataFrame:
        return self.convert(frame, tried=True)

    def convert(self, frame: DataFrame, *, tried: bool) -> DataFrame:
        """Return the rows with the conversion; if `tried`, text that is not a time becomes null and the row is marked as failed."""
        if not self.field:
            whole, kind = whole_of(frame, self.part)
            one = self.converted(whole, kind, tried)
            marked = self.with_untried(frame, {self.part: whole}, {self.part: one}) if tried else frame
            return with_whole(marked, self.part, one, StringType())
        kinds, fields = types_of(frame, self.part), fields_of(frame, self.part)
        checked_names(fields, [self.field])
        old = fields[self.field]
        new = self.converted(old, kinds[self.field], tried)
        marked = self.with_untried(frame, {self.field: old}, {self.field: new}) if tried else frame
        return with_fields(marked, self.part, fields | {self.field: new})

    def converted(self, column: Column, kind: DataType, tried: bool) -> Column:
        """Return the column in the target representation."""
        moment = self.moment(column, kind, tried)
        if self.target_type == "string":
            return F.date_format(moment, self.format)
        if self.target_type == "unix":
            micros = F.unix_micros(moment)
            each = PER_SECOND[self.unix_precision]
            return micros * (each // MICROS) if each >= MICROS else whole(micros, MICROS // each)
        if self.target_type == "Date":
            return moment.cast("date")
        if self.target_type == "Time":
            return F.pmod(F.unix_millis(moment), F.lit(DAY_MS)).cast("int")
        return moment

    def moment(self, column: Column, kind: DataType, tried: bool) -> Column:
        """Return the column as a timestamp."""
        if isinstance(kind, TimestampType):
            return column
        if isinstance(kind, DateType):
            return column.cast("timestamp")
        if isinstance(kind, IntegralType):
            each = PER_SECOND[self.unix_precision]
            number = column.cast("bigint")
            return F.timestamp_micros(number * (MICROS // each) if each <= MICROS else whole(number, each // MICROS))
        if isinstance(kind, StringType):
            if not self.format:
                raise ConfigError("text needs format, such as `yyyy-MM-dd HH:mm:ss`, to be read as a time")
            return F.try_to_timestamp(column, F.lit(self.format)) if tried else F.to_timestamp(column, self.format)
        raise ConfigError(f"{self.field or self.part} is {kind.simpleString()}, not a time")


def whole(number: Column, by: int) -> Column:
    """Divide towards 0 as Java does. Division by double would lose digits."""
    return F.call_function("div", number, F.lit(by))
