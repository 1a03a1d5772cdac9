"""What to answer to a wish for rules, or for some to go, and the records that make it true. Pure."""

from __future__ import annotations

from enum import IntEnum

from ottla.coordination.access.acl import Acl, AclFilter, is_principal
from ottla.coordination.access.acl_search import AclSearch
from ottla.coordination.access.acl_store import AclStore
from ottla.coordination.cluster.events import AclsRequested, AclsUnwanted
from ottla.coordination.cluster.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.machine import Decision, Reply
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import CLUSTER_NAME, Operation, PatternType, PermissionType, ResourceType
from ottla.protocol.schema import Message

MOST_MATCHES = 10_000
"""Rules that the filters of one DeleteAcls may match in all, a rule that several match counted for each."""
FILTERS_ONLY = (0, 1)
"""Numbers for what is not known, and for anything."""
NUMBERS: tuple[tuple[str, type[IntEnum]], ...] = (
    ("resource_type", ResourceType),
    ("pattern_type", PatternType),
    ("operation", Operation),
    ("permission", PermissionType),
)
"""The parts of a rule that are one of a few."""


def decide_creation(acls: AclStore, event: AclsRequested) -> Decision[Message]:
    """Records for those that are not there yet, and for each None or why it cannot be."""
    records: list[Message] = []
    refusals: list[Refusal | None] = []
    new: set[Acl] = set()
    for acl, acl_id in zip(event.acls, event.acl_ids, strict=True):
        refusals.append(refusal := refusal_of(acl))
        if refusal is None and acl not in acls and acl not in new:
            new.add(acl)
            records.append(AccessControlEntryRecord(acl_id, *acl))
    return Decision(tuple(records), (Reply(event.ticket, refusals),))


def decide_deletion(acls: AclStore, event: AclsUnwanted) -> Decision[Message]:
    """Each filter is answered with all that it means, also what another has taken already."""
    gone: dict[object, Message] = {}
    answers: list[Refusal | list[Acl]] = []
    matched, search = 0, AclSearch(acls)
    known: dict[AclFilter, list[Acl]] = {}
    for wanted in event.filters:
        refusal = filter_refusal(wanted)
        if refusal is not None:
            answers.append(refusal)
            continue
        if wanted not in known:
            found = search.matching(wanted)
            gone |= {acl_id: RemoveAccessControlEntryRecord(acl_id) for acl_id, _ in found}
            known[wanted] = [acl for _, acl in found]
        answers.append(known[wanted])
        matched += len(known[wanted])
        if matched > MOST_MATCHES:
            text = f"the filters of one request may match {MOST_MATCHES} rules in all: divide it into several"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    return Decision(tuple(gone.values()), (Reply(event.ticket, answers),))


def refusal_of(acl: Acl) -> Refusal | None:
    """Why a rule cannot be kept."""
    for part, kind in NUMBERS:
        number = getattr(acl, part)
        if number in FILTERS_ONLY or number not in list(kind) or (part, number) == ("pattern_type", PatternType.MATCH):
            return invalid(f"a rule cannot have {spoken(part)} {named(kind, number)}")
    if not acl.name:
        return invalid("a rule names a resource, or * for all of its kind; the name is empty")
    if acl.resource_type == ResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        return invalid(f"the cluster is called {CLUSTER_NAME!r} in a rule, not {acl.name!r}")
    if not is_principal(acl.principal):
        return invalid(f"{acl.principal!r} is no principal: write User: and a name, or User:* for everybody")
    return None


def filter_refusal(wanted: AclFilter) -> Refusal | None:
    """Why a filter means nothing."""
    for part, kind in NUMBERS:
        number = getattr(wanted, part)
        if number == 0 or number not in list(kind):
            return invalid(f"{spoken(part)} {named(kind, number)} is not known here")
    return None


def invalid(sentence: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, sentence)


def spoken(part: str) -> str:
    return f"the {part.replace('_', ' ')}"


def named(kind: type[IntEnum], number: int) -> str:
    return kind(number).name if number in list(kind) else str(number)
