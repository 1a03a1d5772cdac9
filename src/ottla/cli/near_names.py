"""Suggestions for unknown names of topics and configs, from the names in the cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.errors import ErrorCode, KafkaError, OttlaError, UnknownTopicOrPartitionError

if TYPE_CHECKING:
    from ottla.client.admin import Admin, ConfigResource
    from ottla.schemas import SchemaRegistryClient

UNKNOWN_SUBJECT = 40401
"""The registry's code for an unknown subject."""
OF_CONFIGS = (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)
"""The errors for an unknown config. Kafka returns the second for a broker config that cannot be set."""

NAMED_WHOLE = ("topic", "broker", "group")
"""Kinds of resources for which a cluster lists all configs, including those that are not set."""
OF_ONE_LISTENER = "listener.name."
"""Prefix of configs that a broker lists only if they are set."""


@contextmanager
def suggest_similar_names(admin: Admin, names: Collection[str]) -> Iterator[None]:
    """Add similar names to the error for an unknown topic."""
    try:
        yield
    except UnknownTopicOrPartitionError as error:
        close = similar_names(names, admin.list_topics(internal=True))
        if not close:
            raise
        raise OttlaError(with_suggestion(str(error), close)) from error


@contextmanager
def reject_unknown_configs(admin: Admin, changes: Mapping[ConfigResource, Mapping[str, str | None]]) -> Iterator[None]:
    """Reject unknown configs and name the closest known ones.

     Brokers store unknown broker configs as custom ones, and accept deletions of unknown names; both are checked before
    the change.
    """
    unchecked = {
        each: [key for key, value in of_it.items() if value is None or each.kind == "broker"]
        for each, of_it in changes.items()
    }
    with suggest_similar_names(admin, [each.name for each in changes if each.kind == "topic"]):
        if any(unchecked.values()):
            check_known(unchecked, known_configs(admin, unchecked))
        try:
            yield
        except KafkaError as error:
            if error.code not in OF_CONFIGS or "did you mean" in str(error):
                raise
            check_known(changes, known_configs(admin, changes))
            raise


@contextmanager
def suggest_similar_subjects(client: SchemaRegistryClient, subject: str) -> Iterator[None]:
    """Add similar subjects to a registry's error for an unknown one."""
    from ottla.schemas import SchemaRegistryError  # loads with its extra only

    try:
        yield
    except SchemaRegistryError as error:
        if error.error_code != UNKNOWN_SUBJECT:
            raise
        there = client.get_subjects()
        close = [each for each in there if each in (f"{subject}-value", f"{subject}-key")]
        close = close or similar_names([subject], there)
        raise OttlaError(
            with_suggestion(f"there is no subject {subject!r}", close)
            if close
            else f"there is no subject {subject!r}; ottla schemas list prints the subjects"
        ) from None


def known_configs(admin: Admin, resources: Collection[ConfigResource]) -> dict[ConfigResource, set[str]]:
    """Return the known configs by resource. Kinds that list only configs that are set, and denied ones, are omitted."""
    asked = {each: config_lister(admin, each) for each in resources if each.kind in NAMED_WHOLE}
    try:
        found = admin.describe_configs(list(asked.values())) if asked else {}
    except KafkaError:
        return {}
    return {each: set(found[of_it]) for each, of_it in asked.items()}


def config_lister(admin: Admin, resource: ConfigResource) -> ConfigResource:
    """Return the resource that lists all configs; for the defaults of brokers it is any broker."""
    if resource.kind != "broker" or resource.name:
        return resource
    return resource._replace(name=str(min(node.node_id for node in admin.describe_cluster().nodes)))


def check_known(
    wanted: Mapping[ConfigResource, Collection[str]], known: Mapping[ConfigResource, Collection[str]]
) -> None:
    """Raise OttlaError for a name that is not a config of its resource."""
    for resource, there in known.items():
        unknown = [name for name in wanted[resource] if name not in there and not name.startswith(OF_ONE_LISTENER)]
        if unknown:
            unknown_of = f"{resource.kind} {resource.name} has no" if resource.name else f"no {resource.kind} has a"
            raise OttlaError(
                with_suggestion(f"{unknown_of} config {' or '.join(map(repr, unknown))}", similar_names(unknown, there))
            )


def similar_names(names: Collection[str], there: Collection[str]) -> list[str]:
    """Return for each unknown name the most similar known one, if there is one."""
    from difflib import get_close_matches  # loaded for errors only

    return [each for name in names if name not in there for each in get_close_matches(name, list(there), n=1)]


def with_suggestion(error: str, close: Collection[str]) -> str:
    return f"{error.rstrip('.')}; did you mean {' and '.join(map(repr, close))}?" if close else error
