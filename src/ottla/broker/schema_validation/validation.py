"""Validates the batches of a Produce request, and asks the registry about schemas that are not known yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Protocol

from ottla.broker.schema_validation.references import (
    Reference,
    Validated,
    check_batch,
    read_batch,
)
from ottla.coordination.cluster.topic_configs import validated_columns
from ottla.errors import ErrorCode, KafkaError
from ottla.model import Buffer, TopicPartition

Refusals = Mapping[TopicPartition, KafkaError]
"""The rejected batches with the reason."""
NO_REGISTRY = "the topic has schema validation, and this broker no schema registry: set schema.registry.url, or disable the validation"


class FindsSubjects(Protocol):
    """Knows the subjects of schemas."""

    @property
    def has_registry(self) -> bool:
        """True if there is a registry to ask."""

    def find(self, reference: Reference) -> Set[str] | None:
        """Return the subjects of a schema if they are known."""

    def look_up(self, reference: Reference, on_found: Callable[[Set[str] | Exception], None]) -> None:
        """Ask for the subjects of a schema."""


class FindsConfigs(Protocol):
    """Knows the configs of topics."""

    def find_configs(self, name: str) -> Mapping[str, str]:
        """Return the configs that were set for a topic."""


class SchemaValidation:
    """Validates batches in the event loop's thread."""

    def __init__(self, topics: FindsConfigs, schemas: FindsSubjects) -> None:
        self._topics = topics
        self._schemas = schemas

    def validate(
        self, batches: Iterable[tuple[TopicPartition, Buffer]], on_validated: Callable[[Refusals], None]
    ) -> Refusals | None:
        """Return the rejected batches if all schemas are known. Otherwise return None, and pass them to `on_validated` later."""
        refusals: dict[TopicPartition, KafkaError] = {}
        found: dict[TopicPartition, list[Validated]] = {}
        for partition, batch in batches:
            columns = validated_columns(self._topics.find_configs(partition.topic))
            try:
                if columns and not self._schemas.has_registry:
                    raise KafkaError(ErrorCode.INVALID_CONFIG, NO_REGISTRY)
                found[partition] = read_batch(batch, partition.topic, columns) if columns else []
            except KafkaError as error:
                refusals[partition] = error
        known: dict[Reference, Set[str]] = {}
        unknown: list[Reference] = []
        for reference, subjects in subjects_by_reference(found).items():
            registered = self._schemas.find(reference)
            if registered is None or not subjects <= registered:
                unknown.append(reference)
            else:
                known[reference] = registered
        if not unknown:
            return {**refusals, **check_all(found, known)}
        Waiting(found, refusals, known, len(unknown), on_validated).start(self._schemas, unknown)
        return None


class Waiting:
    """The batches of a request while the registry is asked."""

    def __init__(
        self,
        found: Mapping[TopicPartition, list[Validated]],
        refusals: Refusals,
        known: Mapping[Reference, Set[str]],
        count: int,
        on_validated: Callable[[Refusals], None],
    ) -> None:
        self._found = found
        self._refusals = refusals
        self._known = dict(known)
        self._count = count
        self._on_validated = on_validated
        self._failures: dict[Reference, Exception] = {}

    def start(self, schemas: FindsSubjects, unknown: Iterable[Reference]) -> None:
        """Ask for all unknown schemas."""
        for each in unknown:
            schemas.look_up(each, lambda result, each=each: self._receive(each, result))  # type: ignore[misc]

    def _receive(self, reference: Reference, result: Set[str] | Exception) -> None:
        if isinstance(result, Exception):
            self._failures[reference] = result
        else:
            self._known[reference] = result
        self._count -= 1
        if not self._count:
            self._on_validated({**self._refusals, **check_all(self._found, self._known, self._failures)})


def subjects_by_reference(found: Mapping[TopicPartition, list[Validated]]) -> dict[Reference, set[str]]:
    """Return the subjects under which each schema has to be registered."""
    needed: dict[Reference, set[str]] = {}
    for validated in found.values():
        for one in validated:
            for reference in one.known_references():
                needed.setdefault(reference, set()).add(one.subject)
    return needed


def check_all(
    found: Mapping[TopicPartition, list[Validated]],
    known: Mapping[Reference, Set[str]],
    failures: Mapping[Reference, Exception] | None = None,
) -> dict[TopicPartition, KafkaError]:
    """Return the rejected batches. One with a schema that could not be looked up is rejected with an error that clients retry."""
    refusals: dict[TopicPartition, KafkaError] = {}
    for partition, validated in found.items():
        failed = [
            error for one in validated for each in one.known_references() if (error := (failures or {}).get(each))
        ]
        try:
            if failed:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"the schema registry does not answer: {failed[0]}")
            check_batch(validated, known)
        except KafkaError as error:
            refusals[partition] = error
    return refusals
