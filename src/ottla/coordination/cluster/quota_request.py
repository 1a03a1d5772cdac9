"""What to answer to a wish for other limits of clients, and the records that make it true; and which limits a filter means. Pure."""

from __future__ import annotations

import ipaddress
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ottla.coordination.cluster.events import ClientQuotasChanged
from ottla.coordination.cluster.records import ClientQuotaRecord, EntityData
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.machine import Decision, Reply
from ottla.coordination.quotas.client_quotas import (
    CLIENT_ID,
    IP,
    OF_ADDRESSES,
    OF_CLIENTS,
    USER,
    WHOLE_NUMBERS,
    ClientQuotas,
    Entity,
)
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_client_quotas import OpData, RequestEntryData
from ottla.protocol.messages.describe_client_quotas import ComponentData
from ottla.protocol.schema import Message

KEYS: Mapping[frozenset[str], Sequence[str]] = {
    frozenset({USER, CLIENT_ID}): OF_CLIENTS,
    frozenset({USER}): OF_CLIENTS,
    frozenset({CLIENT_ID}): OF_CLIENTS,
    frozenset({IP}): OF_ADDRESSES,
}
"""What can be limited, by the kinds that an entity is of."""
KINDS = (USER, CLIENT_ID, IP)
EXACT, DEFAULT, ANY = range(3)


def decide(quotas: ClientQuotas, event: ClientQuotasChanged) -> Decision[Message]:
    """The changes of each entity that may be changed, and for each None or why it may not."""
    records: list[Message] = []
    refusals: list[Refusal | None] = []
    wished = Counter(
        frozenset((each.entity_type, each.entity_name) for each in entry.entity) for entry in event.entries
    )
    for entry in event.entries:
        try:
            entity = entity_of(entry)
            if wished[entity] > 1:
                raise invalid(f"{spoken(entity)} is named more than once: name it once with all that is to change")
            check_ops(entity, entry.ops)
        except Refusal as refusal:
            refusals.append(refusal)
        else:
            records += records_of(quotas, entity, entry)
            refusals.append(None)
    return Decision(() if event.validate_only else tuple(records), (Reply(event.ticket, refusals),))


def entity_of(entry: RequestEntryData) -> Entity:
    if not entry.entity:
        raise invalid("no entity is named: name a user, a client-id, both, or an ip")
    kinds = Counter(each.entity_type for each in entry.entity)
    for kind, count in kinds.items():
        if kind not in KINDS:
            raise invalid(f"there are no limits of a {kind!r}: there are those of a {', '.join(KINDS)}")
        if count > 1:
            raise invalid(f"the entity names {count} of the kind {kind}; it can have one")
    for each in entry.entity:
        if each.entity_name == "":
            raise invalid(
                f"the {each.entity_type} has an empty name; null stands for all that have no limit of their own"
            )
        if each.entity_type == IP and each.entity_name is not None:
            check_address(each.entity_name)
    if frozenset(kinds) not in KEYS:
        raise invalid("an ip has limits of its own: name it without a user and a client-id")
    return frozenset((each.entity_type, each.entity_name) for each in entry.entity)


def check_address(text: str) -> None:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise invalid(f"{text!r} is no address: write it in numbers, such as 10.0.0.7") from None


def check_ops(entity: Entity, ops: Sequence[OpData]) -> None:
    """Refuse limits that there are not, and values that nobody could keep to."""
    allowed = KEYS[frozenset(kind for kind, _ in entity)]
    for key, count in Counter(op.key for op in ops).items():
        if count > 1:
            raise invalid(f"{key} is changed {count} times; say once what it is to be")
        if key not in allowed:
            raise invalid(f"{spoken(entity)} has no limit {key!r}: there are {', '.join(allowed)}")
    for op in ops:
        if op.remove:
            continue
        if not op.value > 0 or math.isinf(op.value):
            raise invalid(
                f"{op.key} = {op.value:g}: must be above 0; to keep somebody out altogether use an ACL, to lift the limit remove it"
            )
        if op.key in WHOLE_NUMBERS and abs(op.value - round(op.value)) > 1e-6:
            raise invalid(f"{op.key} = {op.value:g}: must be a whole number")


def records_of(quotas: ClientQuotas, entity: Entity, entry: RequestEntryData) -> Iterator[ClientQuotaRecord]:
    """What the log says of every limit that is not as it was."""
    present = quotas.values.get(entity, {})
    whose = [EntityData(each.entity_type, each.entity_name) for each in entry.entity]
    for op in entry.ops:
        if op.remove and op.key in present:
            yield ClientQuotaRecord(whose, op.key, 0.0, True)
        elif not op.remove and present.get(op.key) != op.value:
            yield ClientQuotaRecord(whose, op.key, op.value)


def matching(quotas: ClientQuotas, components: Sequence[ComponentData], *, strict: bool) -> list[tuple[Entity, Any]]:
    """The entities that a filter means, with their limits; Refusal where it means nothing."""
    kinds = Counter(each.entity_type for each in components)
    for each in components:
        if each.entity_type not in KINDS:
            raise Refusal(ErrorCode.UNSUPPORTED_VERSION, f"there are no limits of a {each.entity_type!r}")
        if kinds[each.entity_type] > 1:
            raise invalid(f"the filter names the kind {each.entity_type} more than once")
        if each.match_type not in (EXACT, DEFAULT, ANY):
            raise invalid(f"{each.match_type} is no way to match: there are 0 (name), 1 (default) and 2 (any)")
        if (each.match is not None) != (each.match_type == EXACT):
            raise invalid("a name goes with an exact match, and with no other")
    if IP in kinds and len(kinds) > 1:
        raise invalid("an ip has limits of its own: look for it without users and client-ids")
    return [
        (entity, values)
        for entity, values in quotas.values.items()
        if is_meant(dict(entity), components, strict=strict)
    ]


def is_meant(entity: Mapping[str, str | None], components: Sequence[ComponentData], *, strict: bool) -> bool:
    if strict and len(entity) != len(components):
        return False
    return all(
        each.entity_type in entity and (each.match_type == ANY or entity[each.entity_type] == each.match)
        for each in components
    )


def invalid(sentence: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, sentence)


def spoken(entity: Entity) -> str:
    """As a person would say it."""
    return " and ".join(
        f"{kind} {name!r}" if name is not None else f"every {kind}" for kind, name in sorted(entity, key=str)
    )
