"""Kafka Connect's predicates, under their names and options."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ottla.pipelines.model import Model
from ottla.pipelines.rows import HEADERS, TOMBSTONE, TOPIC, WHOLE, column, is_whole, require_column

PACKAGE = "org.apache.kafka.connect.transforms.predicates."


class Predicate(Model):
    """A condition on a record."""

    type: str
    """Its name in Kafka Connect."""

    def holds(self, frame: DataFrame) -> Column:
        """Return a column that is true for the rows that fulfil the condition; it is never null."""
        return F.lit(True)


class HasHeaderKey(Predicate):
    """The record has a header of this name."""

    name: str
    """The header's name."""

    def holds(self, frame: DataFrame) -> Column:
        headers = column(require_column(frame, HEADERS))
        return F.coalesce(F.exists(headers, lambda header: header["key"] == F.lit(self.name)), F.lit(False))


class RecordIsTombstone(Predicate):
    """The record's value is null."""

    def holds(self, frame: DataFrame) -> Column:
        if TOMBSTONE in frame.columns:
            return F.coalesce(column(TOMBSTONE), F.lit(False))
        return column(WHOLE).isNull() if is_whole(frame) else F.lit(False)


class TopicNameMatches(Predicate):
    """The whole name of the record's topic matches."""

    pattern: str
    """A Java regular expression."""

    def holds(self, frame: DataFrame) -> Column:
        return F.coalesce(column(require_column(frame, TOPIC)).rlike(rf"\A(?:{self.pattern})\z"), F.lit(False))


PREDICATES: dict[str, type[Predicate]] = {
    "HasHeaderKey": HasHeaderKey,
    "RecordIsTombstone": RecordIsTombstone,
    "TopicNameMatches": TopicNameMatches,
}
