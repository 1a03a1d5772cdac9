"""CreateAcls and DeleteAcls: validate ACLs and filters, and return the records (KIP-140). Pure.

Each ACL and each filter of a request has its own result. An ACL that exists already is accepted without a second
record. A filter must not match too many ACLs, because all deletions of one request are one append.
"""

from __future__ import annotations

from enum import IntEnum

from ottla.coordination.access.acl import Acl, AclFilter, is_principal, range_of
from ottla.coordination.access.acl_search import AclSearch
from ottla.coordination.access.acl_store import AclStore
from ottla.coordination.cluster.events import AclCreationRequested, AclDeletionRequested
from ottla.coordination.cluster.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.machine import Decision, Reply
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import CLUSTER_NAME, Operation, PatternType, PermissionType, ResourceType
from ottla.protocol.schema import Message

MOST_MATCHES = 10_000
"""The maximum number of matches of all filters of one DeleteAcls; an ACL counts once for each filter that matches it.
"""
ADDRESS_RANGES_SINCE = 32
"""The first metadata.version in which the host of an ACL may be a range of addresses (KIP-1276)."""
FILTERS_ONLY = (0, 1)
"""The numbers of UNKNOWN and ANY, which only filters may have."""
NUMBERS: tuple[tuple[str, type[IntEnum]], ...] = (
    ("resource_type", ResourceType),
    ("pattern_type", PatternType),
    ("operation", Operation),
    ("permission", PermissionType),
)
"""The fields of an ACL that are enumerations."""


def decide_creation(acls: AclStore, event: AclCreationRequested, metadata_version: int) -> Decision[Message]:
    """Return the records of the ACLs that do not exist yet. The reply has None or a Refusal per ACL, in order."""
    records: list[Message] = []
    refusals: list[Refusal | None] = []
    new: set[Acl] = set()
    for acl, acl_id in zip(event.acls, event.acl_ids, strict=True):
        refusals.append(refusal := find_acl_error(acl, metadata_version))
        if refusal is None and acl not in acls and acl not in new:
            new.add(acl)
            records.append(AccessControlEntryRecord(acl_id, *acl))
    return Decision(tuple(records), (Reply(event.ticket, refusals),))


def decide_deletion(acls: AclStore, event: AclDeletionRequested) -> Decision[Message]:
    """Return the records that remove the matched ACLs. Raise KafkaError if the filters match too many.

    The reply has all matches of each filter, including those that an earlier filter matched too.
    """
    removals: dict[object, Message] = {}
    results: list[Refusal | list[Acl]] = []
    matched, search = 0, AclSearch(acls)
    known: dict[AclFilter, list[Acl]] = {}
    for wanted in event.filters:
        refusal = find_filter_error(wanted)
        if refusal is not None:
            results.append(refusal)
            continue
        if wanted not in known:
            found = search.find_matching(wanted)
            removals |= {acl_id: RemoveAccessControlEntryRecord(acl_id) for acl_id, _ in found}
            known[wanted] = [acl for _, acl in found]
        results.append(known[wanted])
        matched += len(known[wanted])
        if matched > MOST_MATCHES:
            text = f"the filters of one request may match {MOST_MATCHES} rules in all: divide it into several"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    return Decision(tuple(removals.values()), (Reply(event.ticket, results),))


def find_acl_error(acl: Acl, metadata_version: int) -> Refusal | None:
    """Return the error of an invalid ACL; None if it is valid."""
    for part, kind in NUMBERS:
        number = getattr(acl, part)
        if number in FILTERS_ONLY or number not in list(kind) or (part, number) == ("pattern_type", PatternType.MATCH):
            return reject_request(f"a rule cannot have {describe_field(part)} {describe_number(kind, number)}")
    if not acl.name:
        return reject_request("a rule names a resource, or * for all of its kind; the name is empty")
    if acl.resource_type == ResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        return reject_request(f"the cluster is called {CLUSTER_NAME!r} in a rule, not {acl.name!r}")
    if not is_principal(acl.principal):
        return reject_request(
            f"invalid principal {acl.principal!r} of a rule: expected User:NAME, or User:* for all users"
        )
    if "/" in acl.host and metadata_version < ADDRESS_RANGES_SINCE:
        return Refusal(
            ErrorCode.UNSUPPORTED_VERSION,
            f"invalid host {acl.host!r} of a rule: ranges of addresses need metadata.version {ADDRESS_RANGES_SINCE}, and the "
            f"cluster is at {metadata_version}: raise it first",
        )
    if not acl.host or ("/" in acl.host and range_of(acl.host) is None):
        return reject_request(
            f"invalid host {acl.host!r} of a rule: expected an address, a range such as 10.0.0.0/8, or *"
        )
    return None


def find_filter_error(wanted: AclFilter) -> Refusal | None:
    """Return the error of an invalid filter; None if it is valid."""
    for part, kind in NUMBERS:
        number = getattr(wanted, part)
        if number == 0 or number not in list(kind):
            return reject_request(f"{describe_field(part)} {describe_number(kind, number)} is not known here")
    return None


def reject_request(sentence: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, sentence)


def describe_field(part: str) -> str:
    return f"the {part.replace('_', ' ')}"


def describe_number(kind: type[IntEnum], number: int) -> str:
    return kind(number).name if number in list(kind) else str(number)
