"""What was probably meant, where a topic or a config of that name is not there; the cluster is asked which there are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

from ottla.errors import ErrorCode, KafkaError, OttlaError, UnknownTopicOrPartitionError

if TYPE_CHECKING:
    from ottla.client.admin import Admin, ConfigResource

OF_CONFIGS = (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)
"""How a config that there is not is refused: Kafka has the second where a broker's cannot be set."""

NAMED_WHOLE = ("topic", "broker", "group")
"""Kinds of resources of which a cluster names every config, also those that nobody has set."""
OF_ONE_LISTENER = "listener.name."
"""Before configs that a broker names only where they are set."""


@contextmanager
def nearly_named(admin: Admin, names: Collection[str]) -> Iterator[None]:
    """Where a topic is not there, name those that are called nearly so."""
    try:
        yield
    except UnknownTopicOrPartitionError as error:
        close = nearest(names, admin.list_topics(internal=True))
        if not close:
            raise
        raise OttlaError(meant(str(error), close)) from error


@contextmanager
def nearly_set(admin: Admin, changes: Mapping[ConfigResource, Mapping[str, str | None]]) -> Iterator[None]:
    """Refuse unknown configs and name the closest known ones.

    Brokers keep unknown names of their configs as custom ones, and deletions of unknown names succeed: both are checked before the change.
    """
    unchecked = {
        each: [key for key, value in of_it.items() if value is None or each.kind == "broker"]
        for each, of_it in changes.items()
    }
    with nearly_named(admin, [each.name for each in changes if each.kind == "topic"]):
        if any(unchecked.values()):
            check_known(unchecked, known_configs(admin, unchecked))
        try:
            yield
        except KafkaError as error:
            if error.code not in OF_CONFIGS or "did you mean" in str(error):
                raise
            check_known(changes, known_configs(admin, changes))
            raise


def known_configs(admin: Admin, resources: Collection[ConfigResource]) -> dict[ConfigResource, set[str]]:
    """The names of all that each can be told; of kinds that name only what is set, and where one may not look, none."""
    asked = {each: whose_names(admin, each) for each in resources if each.kind in NAMED_WHOLE}
    try:
        found = admin.describe_configs(list(asked.values())) if asked else {}
    except KafkaError:
        return {}
    return {each: set(found[of_it]) for each, of_it in asked.items()}


def whose_names(admin: Admin, resource: ConfigResource) -> ConfigResource:
    """Who names all configs of a resource; of brokers' defaults any broker does."""
    if resource.kind != "broker" or resource.name:
        return resource
    return resource._replace(name=str(min(node.node_id for node in admin.describe_cluster().nodes)))


def check_known(
    wanted: Mapping[ConfigResource, Collection[str]], known: Mapping[ConfigResource, Collection[str]]
) -> None:
    """Refuse a name that none of a resource's configs has."""
    for resource, there in known.items():
        unknown = [name for name in wanted[resource] if name not in there and not name.startswith(OF_ONE_LISTENER)]
        if unknown:
            whose = f"{resource.kind} {resource.name} has no" if resource.name else f"no {resource.kind} has a"
            raise OttlaError(meant(f"{whose} config {' or '.join(map(repr, unknown))}", nearest(unknown, there)))


def nearest(names: Collection[str], there: Collection[str]) -> list[str]:
    """For each name that is not there the one that is spelt most like it, if any is."""
    return [each for name in names if name not in there for each in get_close_matches(name, list(there), n=1)]


def meant(told: str, close: Collection[str]) -> str:
    return f"{told.rstrip('.')}; did you mean {' and '.join(map(repr, close))}?" if close else told
