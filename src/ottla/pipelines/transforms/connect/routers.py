"""`RegexRouter` and `TimestampRouter`: choose the topic of a record from its metadata."""

from __future__ import annotations

import re
from typing import ClassVar

from pydantic import Field, field_validator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.pipelines.rows import TIMESTAMP, TOPIC, column, require_column
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class Router(ConnectTransform):
    has_parts: ClassVar[bool] = False


class RegexRouter(Router):
    """A topic that matches with its whole name is replaced; `$1` in the replacement is the first group."""

    regex: str
    """A Java regular expression."""
    replacement: str
    """The new name."""

    @field_validator("regex")
    @classmethod
    def brackets_match(cls, text: str) -> str:
        if not text:
            raise ValueError("it is empty; write an expression such as `orders-(.*)`")
        if not re.search(r"[\\?+{\[]", text):  # Java and Python agree on expressions without these characters
            try:
                re.compile(text)
            except re.error as error:
                raise ValueError(f"{text!r} is not a regular expression: {error}") from None
        return text

    def step(self, frame: DataFrame) -> DataFrame:
        topic = column(require_column(frame, TOPIC))
        return frame.withColumn(TOPIC, F.regexp_replace(topic, rf"\A(?:{self.regex})\z", self.replacement))


class TimestampRouter(Router):
    """Inserts the record's timestamp into the topic's name."""

    topic_format: str = Field(default="${topic}-${timestamp}", alias="topic.format")
    """The new name."""
    timestamp_format: str = Field(default="yyyyMMdd", alias="timestamp.format")
    """The format of the timestamp in UTC, in the pattern letters of Java's SimpleDateFormat."""

    def step(self, frame: DataFrame) -> DataFrame:
        topic, time = column(require_column(frame, TOPIC)), column(require_column(frame, TIMESTAMP))
        parts = re.split(r"(\$\{topic\}|\$\{timestamp\})", self.topic_format)
        known = {"${topic}": topic, "${timestamp}": F.date_format(time, self.timestamp_format)}
        return frame.withColumn(TOPIC, F.concat(*(known.get(part, F.lit(part)) for part in parts if part)))
