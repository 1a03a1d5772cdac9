"""Error messages for a registration that cannot succeed: unsupported features, or a conflict with another broker. Pure.

Each message has the values of both sides and a remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from ottla.coordination.cluster.features import BROKER_LEVELS, METADATA_VERSION, Levels
from ottla.coordination.cluster.registration import BrokerRegistration
from ottla.kafka_id import LAST_RESERVED, text_of

MEANINGS = {"share.version": "share groups", "streams.version": "groups of Kafka Streams"}


def unsupported_features(finalized: Mapping[str, int]) -> str | None:
    """Return why this broker cannot join a cluster with these feature levels, and the remedy; None if it can."""
    beyond = {
        name: level
        for name, level in sorted(finalized.items())
        if level and not is_supported(BROKER_LEVELS.get(name), level)
    }
    if not beyond:
        return None
    runs = " and ".join(f"{name} {level}{describe_feature(name)}" for name, level in beyond.items())
    return f"the cluster runs {runs}, which this broker does not support, so it cannot join: {remedy_for(beyond)}"


def remedy_for(beyond: Mapping[str, int]) -> str:
    """Return the remedy for unsupported levels. metadata.version can rarely be lowered, so a newer broker is needed."""
    if METADATA_VERSION in beyond:
        return f"install a version that supports {METADATA_VERSION} {beyond[METADATA_VERSION]}; this one supports {last_level(METADATA_VERSION)}"
    options = " ".join(f"--feature {name}={last_level(name)}" for name in beyond)
    return (
        "if the feature is not needed, downgrade it with "
        f"`kafka-features --bootstrap-server HOST:PORT downgrade {options}` and restart the broker"
    )


def is_supported(levels: Levels | None, level: int) -> bool:
    return levels is not None and levels.first <= level <= levels.last


def describe_feature(name: str) -> str:
    return f" ({MEANINGS[name]})" if name in MEANINGS else ""


def last_level(name: str) -> int:
    """Return the highest supported level of a feature."""
    levels = BROKER_LEVELS.get(name)
    return levels.last if levels is not None else 0


def directory_conflict(node_id: int, log_dirs: Sequence[UUID], others: Mapping[int, BrokerRegistration]) -> str | None:
    """Return the message if a directory of this broker is registered by another broker."""
    for other in others.values():
        shared = [each for each in log_dirs if each in other.log_dirs]
        if shared and other.broker_id != node_id:
            return (
                f"directory.id = {text_of(shared[0])} in meta.properties is that of a directory of broker {other.broker_id} "
                f"({endpoints_of(other)}), and this is broker {node_id}: a directory was copied with its meta.properties; format an "
                "empty one with `ottla storage format`, or unregister that broker"
            )
    return None


def reserved_directory_id(log_dirs: Sequence[UUID]) -> str | None:
    """Return the message if a directory of this broker has a reserved id, possible if it was formatted by hand."""
    reserved = next((each for each in log_dirs if each <= LAST_RESERVED), None)
    if reserved is None:
        return None
    return (
        f"directory.id = {text_of(reserved)} in meta.properties is reserved by Kafka, and a registration with it is rejected: format an "
        "empty directory with `ottla storage format`, with an id from `ottla storage random-uuid`"
    )


def node_id_conflict(node_id: int, others: Mapping[int, BrokerRegistration]) -> str:
    """Return the message if another running broker has this one's node id."""
    other = others.get(node_id)
    where = f" ({endpoints_of(other)})" if other is not None else ""
    return f"node.id = {node_id} is used by another running broker{where}: set another node.id and use another directory for this one"


def endpoints_of(broker: BrokerRegistration) -> str:
    return ", ".join(f"{each.host}:{each.port}" for each in broker.listeners) or "without an address"
