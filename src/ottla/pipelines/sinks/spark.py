"""`type: spark`: any other format that Spark can write streams to."""

from __future__ import annotations

from typing import ClassVar, Literal

from ottla.pipelines.model import Scalar
from ottla.pipelines.sinks.sink import Sink


class SparkSink(Sink):
    """Passed through to Spark as it is."""

    guarantee: ClassVar[str] = "what the format promises; at least once where it promises nothing"
    type: Literal["spark"]
    format: str
    """The name of the format."""
    options: dict[str, Scalar] = {}
    """Its options."""

    def describe(self) -> str:
        return f"Spark's {self.format}"
