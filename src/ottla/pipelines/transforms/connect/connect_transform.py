"""What Kafka Connect's transforms have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ottla.pipelines.model import NameList
from ottla.pipelines.rows import failed, with_failed
from ottla.pipelines.surroundings import Surroundings
from ottla.pipelines.transforms.connect.touched import touched
from ottla.pipelines.transforms.transform import Transform

PACKAGE = "org.apache.kafka.connect.transforms."
KEY, VALUE = "$Key", "$Value"
STAGE = "TRANSFORMATION"
"""What Connect calls it in the headers of dead letters."""


Names = Annotated[NameList, Field(min_length=1)]


class ConnectTransform(Transform):
    """A step that is known by its name in Kafka Connect."""

    is_timeless = True
    has_parts: ClassVar[bool] = True
    """Whether it works on keys or on values, as the end of its name says."""

    type: str
    """Its name in Kafka Connect, such as `InsertField`; on the key with `$Key` at the end, on the value without or with `$Value`."""
    predicate: str | None = None
    """The name of one of the pipeline's `predicates`: only records of which it holds are touched."""
    negate: bool = False
    """Whether those are touched of which it does not hold."""

    @property
    def part(self) -> Literal["key", "value"]:
        return "key" if self.type.endswith(KEY) else "value"

    def describe(self) -> str:
        return self.type.removeprefix(PACKAGE)

    def apply(self, frame: DataFrame, around: Surroundings) -> DataFrame:
        step = self.tried if around.tolerant else self.step
        if self.predicate is None:
            return step(frame)
        holds = around.predicates[self.predicate].holds(frame)
        return touched(frame, ~holds if self.negate else holds, step)

    def step(self, frame: DataFrame) -> DataFrame:
        """What it does to the records that it touches."""
        return frame

    def tried(self, frame: DataFrame) -> DataFrame:
        """The same, with the column `_failed` where there are records that it may not be able to do."""
        return self.step(frame)

    def with_untried(self, frame: DataFrame, old: Mapping[str, Column], new: Mapping[str, Column]) -> DataFrame:
        """The rows, those with `_failed` of which something became null that was not."""
        reasons = [
            F.when(
                one.isNotNull() & new[name].isNull(),
                F.concat(F.lit(self.complaint(name)), F.coalesce(one.cast("string"), F.lit("?"))),
            )
            for name, one in old.items()
        ]
        return with_failed(frame, failed(STAGE, F.coalesce(*reasons)))

    def complaint(self, name: str) -> str:
        """What is said of a field before its value."""
        return f"{self.describe()} cannot read {name} = "


def name_of(text: str) -> str:
    """The name without its package, and without the part that it works on."""
    return text.removeprefix(PACKAGE).removesuffix(KEY).removesuffix(VALUE)
