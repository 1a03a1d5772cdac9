"""Kafka Connect's predicates, under their names and options."""

from __future__ import annotations

from ottla.pipelines.model import Model

PACKAGE = "org.apache.kafka.connect.transforms.predicates."


class Predicate(Model):
    """What may hold of a record."""

    type: str
    """Its name in Kafka Connect."""


class HasHeaderKey(Predicate):
    """The record has a header of this name."""

    name: str
    """The header's name."""


class RecordIsTombstone(Predicate):
    """The record's value is null."""


class TopicNameMatches(Predicate):
    """The whole name of the record's topic fits."""

    pattern: str
    """A regular expression of Java's."""


PREDICATES: dict[str, type[Predicate]] = {
    "HasHeaderKey": HasHeaderKey,
    "RecordIsTombstone": RecordIsTombstone,
    "TopicNameMatches": TopicNameMatches,
}
