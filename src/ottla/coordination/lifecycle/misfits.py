"""What does not fit where a broker is not registered, in sentences with both values and a remedy. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from ottla.coordination.cluster.registration import Registration
from ottla.kafka_id import LAST_RESERVED, text_of


def taken_directory(me: int, log_dirs: Sequence[UUID], others: Mapping[int, Registration]) -> str | None:
    """Whether a directory of this broker is another's, by what the cluster knows."""
    for other in others.values():
        shared = [each for each in log_dirs if each in other.log_dirs]
        if shared and other.broker_id != me:
            return (
                f"directory.id = {text_of(shared[0])} in meta.properties is that of a directory of broker {other.broker_id} "
                f"({place_of(other)}), and this is broker {me}: a directory was copied with its meta.properties; format an "
                "empty one with `ottla storage format`, or take that broker out of the cluster"
            )
    return None


def reserved_directory(log_dirs: Sequence[UUID]) -> str | None:
    """Whether a directory of this broker has an id that none may have, as one formatted by hand can."""
    reserved = next((each for each in log_dirs if each <= LAST_RESERVED), None)
    if reserved is None:
        return None
    return (
        f"directory.id = {text_of(reserved)} in meta.properties is one of Kafka's marks, and no broker gets in with it: format an "
        "empty directory with `ottla storage format`, with an id that `ottla storage random-uuid` draws"
    )


def taken_number(me: int, others: Mapping[int, Registration]) -> str:
    """Another broker has this one's number, and still runs."""
    other = others.get(me)
    where = f" ({place_of(other)})" if other is not None else ""
    return f"node.id = {me} is that of another broker, which runs{where}: give this one a node.id and a directory of its own"


def place_of(broker: Registration) -> str:
    return ", ".join(f"{each.host}:{each.port}" for each in broker.listeners) or "which tells no address"
