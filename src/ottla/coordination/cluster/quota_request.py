"""AlterClientQuotas and DescribeClientQuotas: validate changes, find quotas by a filter (KIP-546, KIP-612). Pure.

An entity is a user, a client id, both, or an IP address. A name of None is the default of its kind, which applies to
all that have no quota of their own. Each entity of a request has its own result.
"""

from __future__ import annotations

import ipaddress
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ottla.coordination.cluster.events import QuotaChangeRequested
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
"""The kinds in an entity → the quotas that it may have."""
KINDS = (USER, CLIENT_ID, IP)
EXACT, DEFAULT, ANY = range(3)


def decide(quotas: ClientQuotas, event: QuotaChangeRequested) -> Decision[Message]:
    """Return the records of the valid changes. The reply has None or a Refusal per entity, in order."""
    records: list[Message] = []
    refusals: list[Refusal | None] = []
    counts = Counter(
        frozenset((each.entity_type, each.entity_name) for each in entry.entity) for entry in event.entries
    )
    for entry in event.entries:
        try:
            entity = parse_entity(entry)
            if counts[entity] > 1:
                raise reject_request(
                    f"{describe_entity(entity)} is named more than once: name it once with all that is to change"
                )
            check_ops(entity, entry.ops)
        except Refusal as refusal:
            refusals.append(refusal)
        else:
            records += build_records(quotas, entity, entry)
            refusals.append(None)
    return Decision(() if event.validate_only else tuple(records), (Reply(event.ticket, refusals),))


def parse_entity(entry: RequestEntryData) -> Entity:
    """Return the entity of an entry. Raise Refusal if it is invalid."""
    if not entry.entity:
        raise reject_request("no entity is named: name a user, a client-id, both, or an ip")
    kinds = Counter(each.entity_type for each in entry.entity)
    for kind, count in kinds.items():
        if kind not in KINDS:
            raise reject_request(f"there are no limits of a {kind!r}: there are those of a {', '.join(KINDS)}")
        if count > 1:
            raise reject_request(f"the entity names {count} of the kind {kind}; it can have one")
    for each in entry.entity:
        if each.entity_name == "":
            raise reject_request(
                f"the {each.entity_type} has an empty name; null stands for all that have no limit of their own"
            )
        if each.entity_type == IP and each.entity_name is not None:
            check_address(each.entity_name)
    if frozenset(kinds) not in KEYS:
        raise reject_request("an ip has limits of its own: name it without a user and a client-id")
    return frozenset((each.entity_type, each.entity_name) for each in entry.entity)


def check_address(text: str) -> None:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise reject_request(f"{text!r} is no address: write it in numbers, such as 10.0.0.7") from None


def check_ops(entity: Entity, ops: Sequence[OpData]) -> None:
    """Raise Refusal for an unknown or repeated quota, and for an invalid value."""
    allowed = KEYS[frozenset(kind for kind, _ in entity)]
    for key, count in Counter(op.key for op in ops).items():
        if count > 1:
            raise reject_request(f"{key} is changed {count} times; expected one change")
        if key not in allowed:
            raise reject_request(f"{describe_entity(entity)} has no limit {key!r}: there are {', '.join(allowed)}")
    for op in ops:
        if op.remove:
            continue
        if not op.value > 0 or math.isinf(op.value):
            raise reject_request(
                f"{op.key} = {op.value:g}: must be above 0; to deny access use an ACL, to remove the limit delete it"
            )
        if op.key in WHOLE_NUMBERS and abs(op.value - round(op.value)) > 1e-6:
            raise reject_request(f"{op.key} = {op.value:g}: must be a whole number")


def build_records(quotas: ClientQuotas, entity: Entity, entry: RequestEntryData) -> Iterator[ClientQuotaRecord]:
    """Yield a record for each quota that changes."""
    present = quotas.values.get(entity, {})
    whose = [EntityData(each.entity_type, each.entity_name) for each in entry.entity]
    for op in entry.ops:
        if op.remove and op.key in present:
            yield ClientQuotaRecord(whose, op.key, 0.0, True)
        elif not op.remove and present.get(op.key) != op.value:
            yield ClientQuotaRecord(whose, op.key, op.value)


def find_matching(
    quotas: ClientQuotas, components: Sequence[ComponentData], *, strict: bool
) -> list[tuple[Entity, Any]]:
    """Return the entities that match a filter, with their quotas. Raise Refusal if the filter is invalid."""
    kinds = Counter(each.entity_type for each in components)
    for each in components:
        if each.entity_type not in KINDS:
            raise Refusal(ErrorCode.UNSUPPORTED_VERSION, f"there are no limits of a {each.entity_type!r}")
        if kinds[each.entity_type] > 1:
            raise reject_request(f"the filter names the kind {each.entity_type} more than once")
        if each.match_type not in (EXACT, DEFAULT, ANY):
            raise reject_request(
                f"{each.match_type} is an invalid match type: expected 0 (name), 1 (default) or 2 (any)"
            )
        if (each.match is not None) != (each.match_type == EXACT):
            raise reject_request("a name is required for an exact match, and not allowed for others")
    if IP in kinds and len(kinds) > 1:
        raise reject_request("an ip has separate limits: request it without users and client-ids")
    return [
        (entity, values)
        for entity, values in quotas.values.items()
        if is_match(dict(entity), components, strict=strict)
    ]


def is_match(entity: Mapping[str, str | None], components: Sequence[ComponentData], *, strict: bool) -> bool:
    if strict and len(entity) != len(components):
        return False
    return all(
        each.entity_type in entity and (each.match_type == ANY or entity[each.entity_type] == each.match)
        for each in components
    )


def reject_request(sentence: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, sentence)


def describe_entity(entity: Entity) -> str:
    """Return the entity as text for an error."""
    return " and ".join(
        f"{kind} {name!r}" if name is not None else f"every {kind}" for kind, name in sorted(entity, key=str)
    )
