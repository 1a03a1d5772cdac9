"""`RegexRouter` and `TimestampRouter`: records go to topics whose names are made of what they had."""

from __future__ import annotations

import re
from typing import ClassVar

from pydantic import Field, field_validator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.pipelines.rows import TIMESTAMP, TOPIC, column, needed
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class Router(ConnectTransform):
    has_parts: ClassVar[bool] = False


class RegexRouter(Router):
    """A topic whose whole name fits becomes the replacement, in which `$1` is the first group."""

    regex: str
    """A regular expression of Java's."""
    replacement: str
    """The new name."""

    @field_validator("regex")
    @classmethod
    def brackets_match(cls, text: str) -> str:
        if not text:
            raise ValueError("it is empty; write an expression such as `orders-(.*)`")
        if not re.search(r"[\\?+{\[]", text):  # what Java and Python read alike
            try:
                re.compile(text)
            except re.error as error:
                raise ValueError(f"{text!r} is no regular expression: {error}") from None
        return text

    def step(self, frame: DataFrame) -> DataFrame:
        topic = column(needed(frame, TOPIC))
        return frame.withColumn(TOPIC, F.regexp_replace(topic, rf"\A(?:{self.regex})\z", self.replacement))


class TimestampRouter(Router):
    """The topic's name gets the record's time."""

    topic_format: str = Field(default="${topic}-${timestamp}", alias="topic.format")
    """The new name."""
    timestamp_format: str = Field(default="yyyyMMdd", alias="timestamp.format")
    """How the time is written, in UTC, by the letters of Java's SimpleDateFormat."""

    def step(self, frame: DataFrame) -> DataFrame:
        topic, time = column(needed(frame, TOPIC)), column(needed(frame, TIMESTAMP))
        parts = re.split(r"(\$\{topic\}|\$\{timestamp\})", self.topic_format)
        known = {"${topic}": topic, "${timestamp}": F.date_format(time, self.timestamp_format)}
        return frame.withColumn(TOPIC, F.concat(*(known.get(part, F.lit(part)) for part in parts if part)))
